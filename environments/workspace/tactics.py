"""Changes of files that a program can make, named by patterns; `tactics.yaml` has those of each language."""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

import yaml
from pydantic import BaseModel, TypeAdapter

from mneme.environments.worlds import InWords


class Tactics(BaseModel):
    """A language of patterns that change files without a model; several stand with `;` between them."""

    scope: str
    """What lessons are about that serve in every world of the language."""
    noun: str
    definition: str
    """What the patterns are, for agents to read."""
    first: Sequence[str]
    """The patterns in the order in which they are tried where nothing is known."""
    ending: str
    """Of the files that are looked at and changed."""
    features: Mapping[str, re.Pattern[str]]
    """What a condition can name (what is slow on much data), and how a text shows it."""
    patterns: Mapping[str, Sequence[tuple[re.Pattern[str], str]]]
    """What each pattern replaces in a file's text."""

    def check(self, pattern: str) -> str:
        """Return the pattern, a tactic in its usual spelling; words stay as they are."""
        known = {name.lower(): name for name in self.patterns}
        return "; ".join(known.get(part.strip().lower(), part.strip()) for part in pattern.split(";"))

    def apply(self, pattern: str, files: Mapping[str, str]) -> dict[str, str]:
        """Return the files that the tactics change. Raises InWords for a pattern that is none of them."""
        steps = self.check(pattern).split("; ")
        if any(step not in self.patterns for step in steps):
            raise InWords(f"{pattern!r} is in words: it is for the reader to carry out.")
        changed = {path: text for path, text in files.items() if path.endswith(self.ending)}
        for path, text in changed.items():
            for expression, replacement in (each for step in steps for each in self.patterns[step]):
                text = expression.sub(replacement, text)  # noqa: PLW2901
            changed[path] = text
        return {path: text for path, text in changed.items() if text != files[path]}

    def features_of(self, files: Mapping[str, str]) -> list[str]:
        """Name what the files do that is slow on much data."""
        texts = [text for path, text in files.items() if path.endswith(self.ending)]
        return [name for name, shown in self.features.items() if any(map(shown.search, texts))]


@cache
def tactics() -> Mapping[str, Tactics]:
    """Return the tactics of each language."""
    text = Path(__file__).with_name("tactics.yaml").read_text(encoding="utf-8")
    return TypeAdapter(dict[str, Tactics]).validate_python(yaml.safe_load(text))
