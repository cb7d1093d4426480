"""The form of an answer in JSON, as a question shows it to a model."""

import json
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, RootModel


def shape(kind: Any) -> str:
    """Return the form of a type's values: `{"rationale": "…", "route": "store"|"discard"}`."""
    if isinstance(kind, type):
        return _of_class(kind)
    within = get_args(kind)
    match get_origin(kind):
        case origin if origin is Annotated:
            return shape(within[0])
        case origin if origin is Literal:
            return "|".join(json.dumps(each, ensure_ascii=False) for each in within)
        case origin if origin in (Union, UnionType):
            return " or ".join(shape(each) for each in within)
        case origin if origin is dict:
            return f'{{"…": {shape(within[1])}, …}}'
    return f"[{shape(within[0])}, …]" if within else "…"


def _of_class(kind: type) -> str:
    if issubclass(kind, RootModel):
        return shape(kind.model_fields["root"].annotation)
    if issubclass(kind, BaseModel):
        fields = (
            f'"{field.alias or name}": {shape(field.annotation)}' for name, field in kind.model_fields.items()
        )
        return f"{{{', '.join(fields)}}}"
    if issubclass(kind, bool):
        return "true or false"
    if issubclass(kind, NoneType):
        return "null"
    if issubclass(kind, int):
        return "integer"
    return "number" if issubclass(kind, float) else '"…"'
