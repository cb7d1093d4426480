"""Say what is wrong with a file of golden cases, and with which case."""

from pathlib import Path
from typing import Any, cast

import yaml
from pydantic import BaseModel, ValidationError

from mneme.core.errors import BadInput, first_fault
from mneme.evals.prompts.cases import PATH_STEP, Case, Golden, Property, all_questions, golden_of
from mneme.models.asking.schema import Json, flat, narrowed_schema
from mneme.prompts.every import Key

ABSENT = object()


def check_cases(key: Key, path: Path) -> list[Golden]:
    """Read one file, and check each case against its question. Raises `BadInput`, naming file and case."""
    document = yaml.safe_load(path.read_text(encoding="utf-8"))
    if document["prompt"] != key[1]:
        raise BadInput(f"{path} is for {document['prompt']}, not for {key[1]}.")
    found = [_checked(key, path, each) for each in document["cases"]]
    names = [each.case.name for each in found]
    if twice := next((name for name in names if names.count(name) > 1), ""):
        raise BadInput(f"{path} names two cases {twice}.")
    return found


def _checked(key: Key, path: Path, written: dict[str, Any]) -> Golden:
    where, kind = f"{path}, case {written['name']}", all_questions()[key].given
    try:
        case = Case.model_validate(written)
    except ValidationError as error:
        raise BadInput(f"{where}: {first_fault(error)}") from error
    if strange := [name for name in (*case.given, *case.fill) if name not in {*kind.model_fields, "scene"}]:
        raise BadInput(f"{where}, given: {kind.__name__} has no field {strange[0]}.")
    try:
        golden = golden_of(key, case)
    except ValidationError as error:
        raise BadInput(f"{where}, given: {first_fault(error)}") from error
    schema = _schema(golden)
    if wrong := next(filter(None, (wrong_with(each, schema) for each in case.expect)), ""):
        raise BadInput(f"{where}, expect: {wrong}.")
    return golden


def _schema(golden: Golden) -> Json | None:
    """Return the schema of what can be answered to what is given; None for free text."""
    question = golden.question
    if question.answer is str:
        return None
    return narrowed_schema(flat(cast(type[BaseModel], question.answer)), question.bounds_of(golden.given))


def wrong_with(wanted: Property, schema: Json | None) -> str:
    """Return why a property can never be looked at in answers of a schema; empty where it can.

    `schema` is a flat one of JSON Schema, with what was given narrowing it; None for free text.
    """
    if schema is None:
        fits = not wanted.at and wanted.wanted.keys() <= {"some", "none"}
        return "" if fits else f'{wanted}: the answer is free text; use at: "" with some or none'
    node = _node_at(schema, wanted.at)
    if node is ABSENT:
        return f"{wanted}: an answer has no {wanted.at}"
    return _unfit(wanted, node)


def _node_at(schema: Json, path: str) -> Any:
    """Return the schema of what stands at a path; empty where anything may, `ABSENT` where nothing can."""
    node: Any = schema
    for _, name in PATH_STEP.findall(path):
        known, kind = node.get("properties", {}), node.get("type")
        if kind is None and "enum" not in node:
            return {}
        if name and kind == "object":
            node = known.get(name, ABSENT) if known else {}
        elif not name and kind == "array":
            node = node.get("items", {})
        else:
            return ABSENT
        if node is ABSENT:
            return ABSENT
    return node


def _unfit(wanted: Property, node: Json) -> str:
    kind, offered = node.get("type"), node.get("enum")
    if wanted.count is not None and kind not in {None, "array", "object"}:
        return f"{wanted}: count is for lists, not for a {kind}"
    if wanted.between is not None and kind not in {None, "integer", "number"}:
        return f"{wanted}: between is for numbers, not for a {kind}"
    strange = [each for each in wanted.one_of or () if offered and each not in offered]
    return f"{wanted}: {strange[0]!r} is never answered; {offered} are" if strange else ""
