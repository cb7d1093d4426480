"""Make the options of a command from the fields of a Pydantic model.

Typer only parses. The help shows ranges and choices, and the model checks them, so that the command line
and Python give the same error.
"""

from collections.abc import Callable
from inspect import Parameter, Signature
from types import GenericAlias
from typing import Any

import typer
from pydantic import BaseModel

from mneme.cli.options import Json

Schema = dict[str, Any]
TYPES: dict[str, type] = {"string": str, "integer": int, "number": float, "boolean": bool}
AS_JSON = "as_json"


class OptionsCommand:
    """A function for Typer whose parameters are a model's fields and `--json`."""

    def __init__(self, model: type[BaseModel], run: Callable[[Schema, bool], None]) -> None:
        self._run = run
        parameters = [_parameter(name, schema) for name, schema in schemas(model).items()]
        parameters.append(Parameter(AS_JSON, Parameter.KEYWORD_ONLY, default=False, annotation=Json))
        self.__signature__ = Signature(parameters)
        self.__annotations__ = {each.name: each.annotation for each in parameters}

    def __call__(self, *, as_json: bool, **given: object) -> None:
        self._run(given, as_json)


def schemas(model: type[BaseModel]) -> dict[str, Schema]:
    """Return the JSON schema of every field."""
    properties: dict[str, Schema] = model.model_json_schema()["properties"]
    return properties


def option_of(name: str, schema: Schema) -> str:
    """Return a field's option; a list's option has the name of one item."""
    if "items" in schema:
        name = f"{name[:-3]}y" if name.endswith("ies") else name.removesuffix("s")
    return "--" + str(schema.get("option", name)).replace("_", "-")


def _parameter(name: str, schema: Schema) -> Parameter:
    parsed = TYPES[_item(schema)["type"]]
    option = typer.Option(
        schema.get("default"),
        option_of(name, schema),
        help=_help(schema),
        envvar=schema.get("variable"),
        metavar=None if parsed is bool else f"<{_kind(schema)}>",
    )
    annotation = GenericAlias(list, (parsed,)) if "items" in schema else parsed
    return Parameter(name, Parameter.KEYWORD_ONLY, default=option, annotation=annotation)


def _item(schema: Schema) -> Schema:
    """Return the schema of one value: of a list's items, or of an optional field without None."""
    given = [each for each in schema.get("anyOf", ()) if each["type"] != "null"]
    item: Schema = schema.get("items") or next(iter(given), schema)
    return item


def _kind(schema: Schema) -> str:
    item = _item(schema)
    return "path" if item.get("format") == "path" else TYPES[item["type"]].__name__


def _help(schema: Schema) -> str:
    """Return the description with the allowed values."""
    item, said = _item(schema), [schema["description"]]
    if "enum" in item:
        said.append(f"One of: {' | '.join(map(str, item['enum']))}.")
    if least := item.get("minimum"):
        said.append(f"{least} to {item['maximum']}." if "maximum" in item else f"{least} or more.")
    if "items" in schema:
        said.append("Repeatable.")
    return " ".join(said)
