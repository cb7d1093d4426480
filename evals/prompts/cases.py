"""Golden cases: a question's input, and properties that its answer must have.

One file for each question, `cases/<workflow>/<name>.yaml`::

    prompt: route_message
    cases:
      - name: an-aunt-by-the-way     # unique in the file
        kind: tricky                 # plain, tricky, injected or limit
        given: {message: "My aunt Ada is deaf, how do I say hello?"}
        fill: {message: 6000}        # optional: lengthen a text, or a list of texts, with neutral text
        expect:
          - {at: route, one_of: [store]}

What must hold are properties of the values found at a path, not words of an answer. A path names fields,
parted by dots, of the answer as JSON: `memories[].content` is the content of each memory,
`memories[0].content` that of the first, and the empty path is the whole answer.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import count, product
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, model_validator

from mneme.core.errors import needs
from mneme.prompts.discussion.document import Documenting, write_document_as
from mneme.prompts.discussion.memory_update import Remembering, update_memory_by
from mneme.prompts.every import Key, Question, questions, questions_in
from mneme.prompts.household.sight import Frame

OF_EVALUATIONS = ("mneme.evals.discussion.judges",)
CASES = Path(__file__).parent / "cases"
CASE_KINDS = ("plain", "tricky", "injected", "limit")
NEUTRAL = Path(__file__).with_name("neutral.yaml")
FIRST_YEAR, YEARS = 1700, 197
SENTENCES_PER_TEXT = 3
"""Number of neutral sentences in one text of a list."""
PATH_STEP = re.compile(r"\[(\d*)\]|([^.\[\]]+)")
VALUE_PATH = re.compile(r"^$|^[^.\[\]]+(?:\[\d*\]|\.[^.\[\]]+)*$")
# Models write typographic quotes, dashes and spaces.
PLAIN_CHARACTERS = str.maketrans("‘’“”–—\u2011\u00a0\u202f", "''\"\"---  ")
CONDITION_KINDS = ("one_of", "some", "none", "count", "between")

Range = tuple[int | float | None, int | float | None]


class Property(BaseModel):
    """A condition on the values at a path: all of the fields given beside it must hold."""

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
        if not VALUE_PATH.match(self.at):
            raise ValueError(f"{self.at!r} is no path, such as memories[].content")
        if not self.wanted:
            raise ValueError(f"give one of {', '.join(CONDITION_KINDS)}")
        return self

    def __str__(self) -> str:
        said = (f"{kind} {json.dumps(value, ensure_ascii=False)}" for kind, value in self.wanted.items())
        return f"{self.at or 'answer'} {', '.join(said)}"

    @property
    def wanted(self) -> dict[str, Any]:
        """The condition's value, by kind."""
        return {kind: value for kind in CONDITION_KINDS if (value := getattr(self, kind)) is not None}

    def holds(self, answer: Any) -> bool:
        """Return whether the condition holds for an answer as plain JSON, or as text.

        If there is no value at the path, only `none` holds.
        """
        found = values_at(answer, self.at)
        if self.none is not None and any(_stands(phrase, found) for phrase in self.none):
            return False
        if self.some is not None and not all(_stands(phrase, found) for phrase in self.some):
            return False
        # An empty answer may be right where only words are forbidden.
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


class Case(BaseModel):
    """One golden case, as in its file."""

    model_config = ConfigDict(extra="forbid")

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9-]*$")
    kind: Literal["plain", "tricky", "injected", "limit"]
    given: dict[str, Any]
    fill: dict[str, int] = Field({}, description="Characters that a field of `given` is lengthened to.")
    expect: list[Property] = Field(min_length=1)


@dataclass(frozen=True)
class Golden:
    """A case with its question, as it is asked, and the question's input."""

    key: Key
    case: Case
    given: BaseModel
    question: Question

    @property
    def name(self) -> str:
        """Return the name that no other case has."""
        return "/".join([*self.key, self.case.name])

    def without_examples(self) -> "Golden":
        """Return the case with its question asked without worked examples."""
        return replace(self, question=replace(self.question, examples=()))


@cache
def all_questions() -> Mapping[Key, Question]:
    """Return the questions of the product and of evaluations, by workflow and name, in this order."""
    return dict(sorted({**questions(), **questions_in(OF_EVALUATIONS)}.items()))


@cache
def golden() -> Mapping[Key, list[Golden]]:
    """Return the cases of every question that has a file."""
    return {key: read_cases(key, file_of(key)) for key in all_questions() if file_of(key).exists()}


def file_of(key: Key) -> Path:
    """Return the file of a question's cases."""
    return CASES / key[0] / f"{key[1]}.yaml"


def read_cases(key: Key, path: Path) -> list[Golden]:
    """Read one file; `tests/evals/case_checks.py` reports the faults of a file's cases."""
    file = yaml.safe_load(path.read_text(encoding="utf-8"))
    return [golden_of(key, Case.model_validate(case)) for case in file["cases"]]


def golden_of(key: Key, case: Case) -> Golden:
    """Return a case with its question as its node asks it: the answer's type may depend on the input."""
    question, written = all_questions()[key], case.given
    if question.given is Frame and "scene" in written:
        with needs("A case of a question about a picture", "visual"):
            from mneme.evals.prompts.rendering import rendered  # noqa: PLC0415
        written = rendered(written)
    given = question.given.model_validate(filled(written, case.fill))
    if isinstance(given, Remembering):
        question = update_memory_by(given.template.root)
    elif isinstance(given, Documenting):
        question = write_document_as(given.outline)
    return Golden(key=key, case=case, given=given, question=question)


def filled(given: Mapping[str, Any], fill: Mapping[str, int]) -> dict[str, Any]:
    """Return the input with these fields lengthened to about that many characters of neutral text.

    A text gets half of it before and half after its content; a list gets as many texts before as after.
    Raises `ValueError` if a field is neither a text nor a list.
    """
    return {**given, **{name: _lengthened(name, given.get(name, ""), size) for name, size in fill.items()}}


def _lengthened(name: str, value: Any, size: int) -> Any:
    if not isinstance(value, str | list):
        raise ValueError(f"{name} is neither a text nor a list")  # noqa: TRY004  (a case's fault)
    at_once = 1 if isinstance(value, str) else SENTENCES_PER_TEXT
    size -= len(value) if isinstance(value, str) else sum(len(str(each)) for each in value)
    source, texts = _neutral(), list[str]()
    while sum(map(len, texts)) < size or len(texts) % 2:  # even, so that the content is in the middle
        texts.append(" ".join(next(source) for _ in range(at_once)))
    before, after = texts[: len(texts) // 2], texts[len(texts) // 2 :]
    if isinstance(value, list):
        return [*before, *value, *after]  # the content in the middle, where models read worst
    return "\n".join(filter(None, [" ".join(before), value, " ".join(after)]))


def _neutral() -> Iterator[str]:
    """Yield sentences without end: the first 480 differ, later ones differ only in years."""
    parts = yaml.safe_load(NEUTRAL.read_text(encoding="utf-8"))
    combined = [*product(parts["things"], parts["towns"], parts["sentences"])]
    for number in count():
        # 7 shares no factor with 480: all differ, and neighbours have other things.
        thing, town, sentence = combined[number * 7 % len(combined)]
        yield sentence.format(thing=thing, town=town, year=FIRST_YEAR + number * 31 % YEARS)


def as_json(answer: BaseModel | str) -> Any:
    """Return an answer as the plain JSON, or text, on which properties are checked."""
    return answer if isinstance(answer, str) else answer.model_dump(mode="json", by_alias=True)


def values_at(answer: Any, path: str) -> list[Any]:
    """Return the values at a path; a missing index or name has no value."""
    found = [answer]
    for index, name in PATH_STEP.findall(path):
        if name:
            found = [value[name] for value in found if isinstance(value, dict) and name in value]
        else:  # a slice, since an index beyond the end has no value
            own = slice(int(index), int(index) + 1) if index else slice(None)
            found = [each for value in found if isinstance(value, list) for each in value[own]]
    return found


def _stands(phrase: str, found: Sequence[Any]) -> bool:
    """Return whether an alternative of a phrase (`a|b`) occurs in a value, whatever its case and type."""
    texts = [
        _folded(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)) for value in found
    ]
    return any(_folded(each) in text for each in phrase.split("|") for text in texts)


def _folded(text: str) -> str:
    return " ".join(text.translate(PLAIN_CHARACTERS).casefold().split())


def _within(number: float, limits: Range) -> bool:
    least, most = limits
    return (least is None or number >= least) and (most is None or number <= most)
