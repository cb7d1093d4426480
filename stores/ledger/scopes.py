"""Which scopes an index has, so that a search below a prefix can name the one that it means.

The engine finds the records of one scope faster than those of all scopes that begin alike: over 20,000
records in one namespace that saves a seventh of a search in the mode `blend`.
"""

from bisect import bisect_left
from collections.abc import Iterable

from mneme.stores.ledger.query import LAST, Where, section_of


class Scopes:
    """All scopes that records of an index have had, sorted; some may have no record any more.

    Add a scope before its first record can be found, or searches would miss the record.
    """

    def __init__(self, known: Iterable[str]) -> None:
        self._known = sorted(set(known))

    def add(self, scope: str) -> None:
        """Note a scope; only one thread may do so at a time, while others search."""
        place = bisect_left(self._known, scope)
        if self._known[place : place + 1] != [scope]:
            self._known.insert(place, scope)

    def meets(self, where: Where) -> bool:
        """Say whether any record can be in what a search selects; without scopes it selects everything."""
        prefixes = where.scopes
        return bool(where.whole) or not prefixes or any(map(self._below, prefixes))

    def narrowed(self, where: Where) -> Where:
        """Name a scope in place of a prefix where it is the only one that begins so, or those of sections."""
        if named := self._of_sections(where):
            return Where((), whole=named)
        found = {prefix: self._below(prefix) for prefix in where.scopes}
        alone = {prefix: known[0] for prefix, known in found.items() if len(known) == 1}
        return where._replace(
            scopes=tuple(prefix for prefix in where.scopes if prefix not in alone),
            whole=(*where.whole, *alone.values()),
        )

    def _of_sections(self, where: Where) -> tuple[str, ...]:
        """Return the scopes of the sections; none where a record may have no section, or none is known."""
        if not where.sections:
            return ()
        below = {word: section_of(word) for prefix in where.scopes for word in self._all_below(prefix)}
        if None in below.values():
            return ()
        return tuple(word for word, section in below.items() if section in where.sections)

    def _all_below(self, prefix: str) -> list[str]:
        return self._known[bisect_left(self._known, prefix) : bisect_left(self._known, prefix + LAST)]

    def _below(self, prefix: str) -> list[str]:
        """Return the first two scopes that begin with a prefix."""
        place = bisect_left(self._known, prefix)
        return [each for each in self._known[place : place + 2] if each.startswith(prefix)]
