"""What must hold of an answer: properties of the values found at a path, not its words.

A path names fields, parted by dots, of the answer as JSON: `memories[].content` is the content of each
memory, `memories[0].content` that of the first, and the empty path is the whole answer.
"""

import json
import re
from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, model_validator

STEP = re.compile(r"\[(\d*)\]|([^.\[\]]+)")
PATH = re.compile(r"^$|^[^.\[\]]+(?:\[\d*\]|\.[^.\[\]]+)*$")
SAME = str.maketrans("‘’“”–—\u2011\u00a0\u202f", "''\"\"---  ")
KINDS = ("one_of", "some", "none", "count", "between")

Range = tuple[int | float | None, int | float | None]


class Property(BaseModel):
    """What must hold of the values at a path: all that is given beside it, one thing or more."""

    model_config = ConfigDict(extra="forbid")

    at: str = Field(description="Path of the values; empty: the whole answer.")
    one_of: list[Any] | None = Field(None, min_length=1, description="Every value is one of these.")
    some: list[str] | None = Field(
        None, min_length=1, description="Each stands in at least one text; `a|b` are alternatives."
    )
    none: list[str] | None = Field(None, min_length=1, description="None of these stands in any text.")
    count: Range | None = Field(None, description="Least and most entries of a list; null: no bound.")
    between: Range | None = Field(None, description="Least and most of a number; null: no bound.")

    @model_validator(mode="after")
    def _says_something(self) -> "Property":
        if not PATH.match(self.at):
            raise ValueError(f"{self.at!r} is no path, such as memories[].content")
        if not self.wanted:
            raise ValueError(f"give one of {', '.join(KINDS)}")
        return self

    def __str__(self) -> str:
        said = (f"{kind} {json.dumps(value, ensure_ascii=False)}" for kind, value in self.wanted.items())
        return f"{self.at or 'answer'} {', '.join(said)}"

    @property
    def wanted(self) -> dict[str, Any]:
        """What is wanted, by kind."""
        return {kind: value for kind in KINDS if (value := getattr(self, kind)) is not None}

    def holds(self, answer: Any) -> bool:
        """Tell whether this holds of an answer as plain JSON, or as text.

        Where nothing stands at the path, only `none` holds.
        """
        found = values_at(answer, self.at)
        if self.none is not None and any(_stands(phrase, found) for phrase in self.none):
            return False
        if self.some is not None and not all(_stands(phrase, found) for phrase in self.some):
            return False
        if self.wanted.keys() <= {"some", "none"}:
            return True
        return bool(found) and all(self._fits(value) for value in found)

    def _fits(self, value: Any) -> bool:
        if self.one_of is not None and not any(
            type(value) is type(each) and value == each for each in self.one_of
        ):
            return False
        if self.count is not None and not (
            isinstance(value, list | dict) and _within(len(value), self.count)
        ):
            return False
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return self.between is None or (is_number and _within(value, self.between))


def as_json(answer: BaseModel | str) -> Any:
    """Return an answer as properties look at it."""
    return answer if isinstance(answer, str) else answer.model_dump(mode="json", by_alias=True)


def values_at(answer: Any, path: str) -> list[Any]:
    """Return the values that stand at a path; an index or a name that is not there has none."""
    found = [answer]
    for index, name in STEP.findall(path):
        found = [inner for value in found for inner in _inner(value, index, name)]
    return found


def _inner(value: Any, index: str, name: str) -> Sequence[Any]:
    if name:
        return [value[name]] if isinstance(value, dict) and name in value else []
    if not isinstance(value, list):
        return []
    return value[int(index) : int(index) + 1] if index else value


def _stands(phrase: str, found: Sequence[Any]) -> bool:
    """Tell whether one of a phrase's alternatives stands in one of the texts; case and type do not count."""
    texts = [
        _folded(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)) for value in found
    ]
    return any(_folded(each) in text for each in phrase.split("|") for text in texts)


def _folded(text: str) -> str:
    return " ".join(text.translate(SAME).casefold().split())


def _within(number: float, limits: Range) -> bool:
    least, most = limits
    return (least is None or number >= least) and (most is None or number <= most)
