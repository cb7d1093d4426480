"""The JSON schema of an answer, in the part of the language that Ollama's grammar obeys.

Ollama ignores `$ref`, nullable `anyOf` and `pattern`. So references are put in place, "or null" becomes
"may be left out", and every other field is demanded, one with a default too: a model that leaves it out
has not answered, and its default would look like an answer.
"""

from typing import Any

from pydantic import BaseModel

from mneme.core.errors import BadInput

Json = dict[str, Any]

IGNORED = {"title", "default", "$defs", "pattern", "format", "discriminator", "examples"}


def flat(answer: type[BaseModel]) -> Json:
    """Return the answer's schema without references, nullable unions and defaults."""
    schema = answer.model_json_schema()
    return _flat(schema, schema.get("$defs", {}), ())


def _flat(node: Json, defs: Json, within: tuple[str, ...]) -> Json:
    if "$ref" in node:
        name = node["$ref"].rsplit("/", 1)[-1]
        if name in within:
            raise BadInput(f"The answer type {name} contains itself; no grammar can say that.")
        rest = {key: value for key, value in node.items() if key != "$ref"}
        return _flat(defs[name] | rest, defs, (*within, name))
    if "anyOf" in node:
        return _one_of(node, defs, within)
    plain = {key: value for key, value in node.items() if key not in IGNORED}
    if "const" in plain:
        plain["enum"] = [plain.pop("const")]
    if "items" in plain:
        plain["items"] = _flat(plain["items"], defs, within)
    if "properties" in plain:
        plain |= _object(plain["properties"], defs, within)
    return plain


def _one_of(node: Json, defs: Json, within: tuple[str, ...]) -> Json:
    """Reduce "this or null" to this; any other union is refused, as the grammar would drop it."""
    kinds = [kind for kind in node["anyOf"] if kind.get("type") != "null"]
    if len(kinds) != 1:
        raise BadInput("An answer's field has several types; give it one.")
    described = {key: value for key, value in node.items() if key == "description"}
    return _flat(kinds[0] | described, defs, within)


def _object(properties: Json, defs: Json, within: tuple[str, ...]) -> Json:
    demanded = [name for name, node in properties.items() if not _nullable(node)]
    flattened = {name: _flat(node, defs, within) for name, node in properties.items()}
    return {"properties": flattened, "required": demanded}


def _nullable(node: Json) -> bool:
    return any(kind.get("type") == "null" for kind in node.get("anyOf", ()))
