"""What every question to a model must hold, whatever its room."""

import json
from typing import Any

from pydantic import BaseModel

from mneme.models.asking.replies import objects, read
from mneme.models.asking.schema import Json, flat, narrowed_schema
from mneme.prompts.prompt import Prompt


def schema_of(prompt: Prompt[Any, Any], given: BaseModel) -> dict[str, Any]:
    """Return the schema that a model server gets with a question."""
    answer: type[BaseModel] = prompt.answer
    return narrowed_schema(flat(answer), prompt.bounds_of(given))


def assert_bounded(prompt: Prompt[Any, Any], given: BaseModel) -> None:
    """Assert that no field of an answer can run on for ever, and that every enum offers something."""
    schema = schema_of(prompt, given)
    assert unbounded(schema) == []
    assert "'enum': []" not in str(schema)


def assert_examples_hold(prompt: Prompt[Any, Any]) -> None:
    """Assert that a question has worked examples: valid answers, apart from the system text."""
    answer: type[BaseModel] = prompt.answer
    assert prompt.example_texts
    for example in prompt.example_texts:
        reply = example[example.index("{") :]
        (said,) = objects(reply)
        assert json.loads(reply) == said, "valid JSON, without raw line breaks in strings"
        read(reply, answer)
        assert said.keys() <= flat(answer)["properties"].keys()
        assert reply not in prompt.system


def unbounded(schema: Json, path: str = "") -> list[str]:
    """Return the paths of a flat schema's fields in which a reply could run on for ever."""
    kind = schema.get("type")
    if "enum" in schema:
        return []
    if kind == "object":
        open_ended = [] if schema.get("properties") else [path]
        inner = schema.get("properties", {})
        return open_ended + [
            at for name in inner for at in unbounded(inner[name], f"{path}.{name}".strip("."))
        ]
    if kind == "array":
        here = [] if "maxItems" in schema else [path]
        return here + unbounded(schema.get("items", {}), f"{path}[]")
    bounds = {"string": ("maxLength",), "integer": ("minimum", "maximum"), "number": ("minimum", "maximum")}
    return [] if all(each in schema for each in bounds.get(str(kind), ())) else [path]
