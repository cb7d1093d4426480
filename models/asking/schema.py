"""The JSON schema of an answer, in the part of the language that constrained decoding obeys, all bounded.

Ollama 0.33 ignores a bound beside `$ref`, `anyOf` or `pattern`, and those of fractions. So references are put
in place, and "or null" becomes "may be left out".

A field without a bound is one in which a small model runs on to the end of its room. So every text, list and
number has one: its type's, else that of what was asked (`Prompt.bounds`).
"""

import math
from collections.abc import Mapping
from copy import deepcopy
from functools import lru_cache
from typing import Any

from pydantic import BaseModel

from mneme.core.errors import BadInput
from mneme.prompts.prompt import CLIPPED

Json = dict[str, Any]

IGNORED = {"title", "default", "$defs", "pattern", "format", "discriminator", "examples"}
JSON_CHARS_PER_TOKEN = 2.5
"""Of JSON with its punctuation, and of languages that a tokenizer knows less well than English."""
MIN_REPLY_TOKENS = 256
NUMBER_CHARS = 8
REFUSED_LENGTH = 2000
"""The one maxLength that llama.cpp's grammars refuse; from the next on they do not bound a text at all."""


@lru_cache(maxsize=128)  # making one takes most of a millisecond, and each reply is read by it
def flat(answer: type[BaseModel]) -> Json:
    """Return the answer's schema without references, nullable unions and defaults; not to be changed."""
    schema = answer.model_json_schema()
    return _flat(schema, schema.get("$defs", {}), ())


def narrowed_schema(schema: Json, bounds: Mapping[str, Json]) -> Json:
    """Return a flat schema with what was asked narrowing its fields, by path, e.g. `choices[].option`."""
    narrowed = deepcopy(schema)
    for path, bound in bounds.items():
        node = narrowed
        for name in path.replace("[]", ".[]").split("."):
            node = node["items"] if name == "[]" else node["properties"][name]
        node.update(bound)
    return narrowed


def room_for(schema: Json) -> int:
    """Return the tokens that the longest reply of a schema takes."""
    return max(MIN_REPLY_TOKENS, math.ceil(_chars(schema) / JSON_CHARS_PER_TOKEN))


def _chars(node: Json) -> int:
    """Return the characters of the longest reply, with quotes, commas and the names of fields."""
    if "enum" in node:
        return max(len(str(each)) for each in node["enum"]) + 2
    kind = node.get("type")
    if kind == "object":
        # 6: of each field the quotes, the colon, the comma and two spaces.
        return 2 + sum(len(name) + 6 + _chars(inner) for name, inner in node.get("properties", {}).items())
    if kind == "array":
        return 2 + int(node.get("maxItems", 1)) * (2 + _chars(node.get("items", {})))
    return int(node.get("maxLength", 0)) + 2 if kind == "string" else NUMBER_CHARS


def _flat(node: Json, defs: Json, within: tuple[str, ...]) -> Json:
    if "$ref" in node:
        name = node["$ref"].rsplit("/", 1)[-1]
        if name in within:  # `within`: the types around this node
            raise BadInput(f"The answer type {name} contains itself; no grammar can say that.")
        rest = {key: value for key, value in node.items() if key != "$ref"}  # the field's own description
        return _flat(defs[name] | rest, defs, (*within, name))
    if "anyOf" in node:
        kinds = [kind for kind in node["anyOf"] if kind.get("type") != "null"]
        if len(kinds) != 1:
            raise BadInput("An answer's field has several types; give it one.")
        described = {key: value for key, value in node.items() if key == "description"}
        return _flat(kinds[0] | described, defs, within)
    plain = {key: value for key, value in node.items() if key not in IGNORED}
    if "const" in plain:
        plain["enum"] = [plain.pop("const")]
    if "maxLength" in plain and not plain.pop(CLIPPED, False):
        plain["maxLength"] += 1  # so that a text which the grammar ended is seen to be too long
        plain["maxLength"] += plain["maxLength"] == REFUSED_LENGTH
    if "items" in plain:
        plain["items"] = _flat(plain["items"], defs, within)
    if "properties" in plain:
        fields = plain["properties"]
        plain["properties"] = {name: _flat(inner, defs, within) for name, inner in fields.items()}
        nullable = {"type": "null"}
        # Also a field with a default: if a model leaves it out, the default would look like its answer.
        plain["required"] = [name for name, each in fields.items() if nullable not in each.get("anyOf", ())]
        # A newer llama.cpp lets any further field into an open object, and a small model invents ever more.
        plain["additionalProperties"] = False
    return plain
