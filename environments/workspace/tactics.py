"""Changes of files that a program can make, named by patterns; each language has its own."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

from mneme.environments.worlds import InWords


class Tactics(ABC):
    """A language of patterns that change files without a model; several stand with `;` between them."""

    definition: str
    """What the patterns are, for agents to read."""
    names: Sequence[str]
    first: Sequence[str]
    """The patterns in the order in which they are tried where nothing is known."""
    ending: str
    """Of the files that are changed."""

    def check(self, pattern: str) -> str:
        """Return the pattern, a tactic in its usual spelling; words stay as they are."""
        known = {name.lower(): name for name in self.names}
        return "; ".join(known.get(part.strip().lower(), part.strip()) for part in pattern.split(";"))

    def apply(self, pattern: str, files: dict[str, str]) -> dict[str, str]:
        """Return the files that the tactics change. Raises InWords for a pattern that is none of them."""
        steps = self.check(pattern).split("; ")
        if any(step not in self.names for step in steps):
            raise InWords(f"{pattern!r} is in words: it is for the reader to carry out.")
        changed = dict(files)
        for step in steps:
            for path, text in changed.items():
                if path.endswith(self.ending):
                    changed[path] = self.applied(step, text)
        return {path: text for path, text in changed.items() if text != files[path]}

    @abstractmethod
    def known_features(self) -> Sequence[str]:
        """Return the features that a condition can name."""

    @abstractmethod
    def features(self, files: dict[str, str]) -> list[str]:
        """Name what the files do that is slow on much data."""

    @abstractmethod
    def applied(self, step: str, text: str) -> str:
        """Return a file's text with one of the changes made; unchanged where there is nothing to change."""
