"""Read golden cases: what a question is given, and what must hold of its answer.

One file for each question, `cases/<workflow>/<name>.yaml`::

    prompt: route_message
    cases:
      - name: an-aunt-by-the-way     # unique in the file
        kind: tricky                 # plain, tricky, injected or limit
        given: {message: "My aunt Ada is deaf, how do I say hello?"}
        fill: {message: 6000}        # optional: lengthen a text, or a list of texts (see `filling.py`)
        expect:
          - {at: route, one_of: [store]}
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field

from mneme.core.errors import needs
from mneme.evals.prompts.filling import filled
from mneme.evals.prompts.properties import Property
from mneme.evals.prompts.questions import all_questions, asked_as
from mneme.prompts.every import Key, Question
from mneme.prompts.household.sight import Frame

CASES = Path(__file__).parent / "cases"
KINDS = ("plain", "tricky", "injected", "limit")


class Case(BaseModel):
    """One golden case, as its file has it."""

    model_config = ConfigDict(extra="forbid")

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9-]*$")
    kind: Literal["plain", "tricky", "injected", "limit"]
    given: dict[str, Any]
    fill: dict[str, int] = Field({}, description="Characters that a field of `given` is lengthened to.")
    expect: list[Property] = Field(min_length=1)


class _File(BaseModel):
    """The cases of one question."""

    model_config = ConfigDict(extra="forbid")

    prompt: str
    cases: list[Case] = Field(min_length=1)


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
def golden() -> Mapping[Key, list[Golden]]:
    """Return the cases of every question that has a file."""
    return {key: read_cases(key, file_of(key)) for key in all_questions() if file_of(key).exists()}


def file_of(key: Key) -> Path:
    """Return the file of a question's cases."""
    return CASES / key[0] / f"{key[1]}.yaml"


def read_cases(key: Key, path: Path) -> list[Golden]:
    """Read one file; `tests/evals/case_checks.py` says what is wrong with a file's cases."""
    file = _File.model_validate(yaml.safe_load(path.read_text(encoding="utf-8")))
    return [golden_of(key, case) for case in file.cases]


def golden_of(key: Key, case: Case) -> Golden:
    """Return a case with its question, as it is asked."""
    question, written = all_questions()[key], case.given
    if question.given is Frame and "scene" in written:
        with needs("A case of a question about a picture", "visual"):
            from mneme.evals.prompts.rendering import rendered  # noqa: PLC0415
        written = rendered(written)
    given = question.given.model_validate(filled(written, case.fill))
    return Golden(key=key, case=case, given=given, question=asked_as(question, given))
