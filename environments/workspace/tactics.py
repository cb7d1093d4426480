"""Changes of files that a program can make, named by patterns; each language has its own."""

from collections.abc import Callable, Mapping, Sequence

from mneme.environments.worlds import InWords


class Tactics:
    """A language of patterns that change files without a model; several stand with `;` between them."""

    definition: str
    """What the patterns are, for agents to read."""
    first: Sequence[str]
    """The patterns in the order in which they are tried where nothing is known."""
    ending: str
    """Of the files that are looked at and changed."""
    changes: Mapping[str, Callable[[str], str]]
    """What each pattern makes of a file's text; the same where there is nothing to change."""
    signs: Mapping[str, Callable[[str], bool]]
    """The features that a condition can name (what is slow on much data), and whether a text has them."""

    @property
    def names(self) -> Sequence[str]:
        """Return the patterns."""
        return tuple(self.changes)

    def check(self, pattern: str) -> str:
        """Return the pattern, a tactic in its usual spelling; words stay as they are."""
        known = {name.lower(): name for name in self.names}
        return "; ".join(known.get(part.strip().lower(), part.strip()) for part in pattern.split(";"))

    def apply(self, pattern: str, files: dict[str, str]) -> dict[str, str]:
        """Return the files that the tactics change. Raises InWords for a pattern that is none of them."""
        steps = self.check(pattern).split("; ")
        if any(step not in self.changes for step in steps):
            raise InWords(f"{pattern!r} is in words: it is for the reader to carry out.")
        changed = dict(files)
        for step in steps:
            for path, text in changed.items():
                if path.endswith(self.ending):
                    changed[path] = self.changes[step](text)
        return {path: text for path, text in changed.items() if text != files[path]}

    def known_features(self) -> Sequence[str]:
        """Return the features that a condition can name."""
        return tuple(self.signs)

    def features(self, files: dict[str, str]) -> list[str]:
        """Name what the files do that is slow on much data."""
        texts = [text for path, text in files.items() if path.endswith(self.ending)]
        return [name for name, shows in self.signs.items() if any(map(shows, texts))]
