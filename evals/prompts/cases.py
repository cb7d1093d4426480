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
from typing import Any, Literal, TypeVar, cast

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from mneme.core.errors import BadInput, needs
from mneme.evals.prompts.filling import filled
from mneme.evals.prompts.properties import Property, wrong_with
from mneme.evals.prompts.questions import all_questions, asked_as
from mneme.models.asking.schema import bounded, flat
from mneme.prompts.every import Key, Question
from mneme.prompts.household.sight import Frame

CASES = Path(__file__).parent / "cases"
KINDS = ("plain", "tricky", "injected", "limit")
M = TypeVar("M", bound=BaseModel)


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
    cases: list[dict[str, Any]] = Field(min_length=1)


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
    """Return the cases of every question that has a file. Raises `BadInput`, naming file and case."""
    return {key: read_cases(key, file_of(key)) for key in all_questions() if file_of(key).exists()}


def file_of(key: Key) -> Path:
    """Return the file of a question's cases."""
    return CASES / key[0] / f"{key[1]}.yaml"


def read_cases(key: Key, path: Path) -> list[Golden]:
    """Read one file, and hold each case to its question. Raises `BadInput`, naming file and case."""
    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise BadInput(f"{path} cannot be read: {' '.join(str(error).split())}.") from error
    file = _valid(_File, document, str(path))
    if file.prompt != key[1]:
        raise BadInput(f"{path} is for {file.prompt}, not for {key[1]}.", "Name it after its prompt.")
    found = [_golden(key, path, number, each) for number, each in enumerate(file.cases)]
    names = [each.case.name for each in found]
    if twice := next((name for name in names if names.count(name) > 1), ""):
        raise BadInput(f"{path} names two cases {twice}.", "Give each its own name.")
    return found


def _golden(key: Key, path: Path, number: int, written: dict[str, Any]) -> Golden:
    where = f"{path}, case {written.get('name', number)}"
    case = _valid(Case, written, where)
    given = _given(all_questions()[key].given, case, where)
    question = asked_as(all_questions()[key], given)
    schema = _schema(question, given)
    if wrong := next(filter(None, (wrong_with(each, schema) for each in case.expect)), ""):
        raise BadInput(f"{where}, expect: {wrong}.")
    return Golden(key=key, case=case, given=given, question=question)


def _given(kind: type[BaseModel], case: Case, where: str) -> BaseModel:
    if kind is Frame and "scene" in case.given:
        with needs("A case of a question about a picture", "visual"):
            from mneme.evals.prompts.rendering import rendered  # noqa: PLC0415
        case = case.model_copy(update={"given": rendered(case.given)})
    if strange := [name for name in (*case.given, *case.fill) if name not in kind.model_fields]:
        raise BadInput(f"{where}, given: {kind.__name__} has no field {strange[0]}.")
    try:
        whole = filled(case.given, case.fill)
    except ValueError as error:
        raise BadInput(f"{where}, fill: {error}.") from error
    return _valid(kind, whole, f"{where}, given")


def _valid(kind: type[M], value: Any, where: str) -> M:
    try:
        return kind.model_validate(value)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(map(str, first["loc"])) or "the document"
        raise BadInput(f"{where}: {field}: {first['msg']}.") from error


def _schema(question: Question, given: BaseModel) -> dict[str, Any] | None:
    """Return the schema of what can be answered to what is given; None for free text."""
    if question.answer is str:
        return None
    return bounded(flat(cast(type[BaseModel], question.answer)), question.bounds_of(given))
