"""Golden cases: what a question is given, and what must hold of its answer.

One file for each question, `cases/<workflow>/<name>.yaml`::

    prompt: route_message
    cases:
      - name: an-aunt-by-the-way     # unique in the file
        kind: tricky                 # plain, tricky, injected or limit
        given: {message: "My aunt Ada is deaf, how do I say hello?"}
        fill: {message: 6000}        # optional: lengthen a text, or a list of texts, with neutral text
        expect:
          - {at: route, one_of: [store]}
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from itertools import count, product
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field

from mneme.core.errors import needs
from mneme.evals.prompts.properties import Property
from mneme.prompts.discussion.document import Documenting, write_document_as
from mneme.prompts.discussion.memory_update import Remembering, update_memory_by
from mneme.prompts.every import Key, Question, questions, questions_in
from mneme.prompts.household.sight import Frame

OF_EVALUATIONS = ("mneme.evals.discussion.judges",)
CASES = Path(__file__).parent / "cases"
KINDS = ("plain", "tricky", "injected", "limit")
NEUTRAL = Path(__file__).with_name("neutral.yaml")
FIRST_YEAR, YEARS = 1700, 197
SENTENCES = 3
"""Neutral sentences in one text of a list."""


class Case(BaseModel):
    """One golden case, as its file has it."""

    model_config = ConfigDict(extra="forbid")

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9-]*$")
    kind: Literal["plain", "tricky", "injected", "limit"]
    given: dict[str, Any]
    fill: dict[str, int] = Field({}, description="Characters that a field of `given` is lengthened to.")
    expect: list[Property] = Field(min_length=1)


@dataclass(frozen=True)
class Golden:
    """A case with its question, as it is asked, and what that is given."""

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
    """Read one file; `tests/evals/case_checks.py` says what is wrong with a file's cases."""
    file = yaml.safe_load(path.read_text(encoding="utf-8"))
    return [golden_of(key, Case.model_validate(case)) for case in file["cases"]]


def golden_of(key: Key, case: Case) -> Golden:
    """Return a case with its question as its node asks it: an answer's type may follow from what is given."""
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
    """Return what is given with these fields lengthened to about so many characters of neutral text.

    A text gets half of it before and half after what is there; a list gets as many texts before as after.
    Raises `ValueError` where a field is neither a text nor a list.
    """
    return {**given, **{name: _lengthened(name, given.get(name, ""), size) for name, size in fill.items()}}


def _lengthened(name: str, value: Any, size: int) -> Any:
    if not isinstance(value, str | list):
        raise ValueError(f"{name} is neither a text nor a list")  # noqa: TRY004  (a case's fault)
    at_once = 1 if isinstance(value, str) else SENTENCES
    size -= len(value) if isinstance(value, str) else sum(len(str(each)) for each in value)
    source, texts = _neutral(), list[str]()
    while sum(map(len, texts)) < size or len(texts) % 2:
        texts.append(" ".join(next(source) for _ in range(at_once)))
    before, after = texts[: len(texts) // 2], texts[len(texts) // 2 :]
    if isinstance(value, list):
        return [*before, *value, *after]
    return "\n".join(filter(None, [" ".join(before), value, " ".join(after)]))


def _neutral() -> Iterator[str]:
    """Yield sentences without end, of which the first 480 differ; after them the years do."""
    parts = yaml.safe_load(NEUTRAL.read_text(encoding="utf-8"))
    combined = [*product(parts["things"], parts["towns"], parts["sentences"])]
    for number in count():
        thing, town, sentence = combined[number * 7 % len(combined)]
        yield sentence.format(thing=thing, town=town, year=FIRST_YEAR + number * 31 % YEARS)
