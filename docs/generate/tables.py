"""Tables of fields, from JSON schemas."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from mkdocs.exceptions import PluginError

Schema = Mapping[str, Any]
BOUNDS = {
    "minimum": "≥ {}",
    "exclusiveMinimum": "> {}",
    "maximum": "≤ {}",
    "exclusiveMaximum": "< {}",
    "minLength": "≥ {} characters",
    "maxLength": "≤ {} characters",
    "minItems": "≥ {} items",
    "maxItems": "≤ {} items",
    "pattern": "`{}`",
}
MESSAGES = ("Message", "MessageChunk")
"""How the names of LangChain's classes of messages end."""
ON_PAGE = "on_page"
"""Marks a part of a schema that has a heading of its own on the page."""
LONGEST = 160
"""Characters of an example that are shown."""


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Write a Markdown table; a cell has one line, and columns that are empty everywhere are left out."""
    whole = [[_cell(cell) for cell in row] for row in rows]
    used = [at for at in range(len(header)) if any(row[at] for row in whole)]
    lines = [[header[at] for at in used], ["---"] * len(used), *([row[at] for at in used] for row in whole)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n\n"


def fields(schema: Schema, example: Schema | None = None, *, of: str = "") -> str:
    """Write a table of an object's fields: type, bounds, default, what it is, and an example.

    A field without a description is an error: the page would not explain it.
    """
    parts, required = schema.get("$defs", {}), schema.get("required", ())
    rows = []
    for name, field in schema["properties"].items():
        described = field.get("description") or _resolved(field, parts).get("description", "")
        if not described:
            raise PluginError(f"{of or schema.get('title')}: the field {name} has no description.")
        given = (example or {}).get(name, next(iter(field.get("examples", ())), None))
        default, named = "required" if name in required else _default(field), kind(field, parts)
        shown = "" if "](#" in named else _short(given)  # what it links to has examples of its own
        rows.append((code(name), named, bounds(field), default, described, shown))
    return table(("field", "type", "bounds", "default", "what it is", "example"), rows)


def kind(field: Schema, parts: Schema) -> str:
    """Say what type a field has, in words."""
    if "$ref" in field:
        name = field["$ref"].rpartition("/")[2]
        part = parts.get(name, {})
        return kind(part, parts) if "enum" in part else _name(name, part)
    if "const" in field or "enum" in field:
        return ", ".join(code(each) for each in field.get("enum", [field.get("const")]))
    for union in ("anyOf", "oneOf", "allOf"):
        if union in field:
            return " or ".join(dict.fromkeys(kind(each, parts) for each in field[union]))
    return _of_type(field, parts)


def _name(name: str, part: Schema) -> str:
    if name.endswith(MESSAGES):
        return "chat message"
    return f"[{name}](#{name.lower()})" if part.get(ON_PAGE) else name


def _of_type(field: Schema, parts: Schema) -> str:
    if field.get("type") == "array":
        within = field.get("prefixItems") or [field.get("items", {})]
        return f"list of {', '.join(dict.fromkeys(kind(each, parts) for each in within))}"
    if field.get("type") == "object" and isinstance(field.get("additionalProperties"), Mapping):
        return f"names to {kind(field['additionalProperties'], parts)}"
    plain = {"string": "text", "integer": "whole number", "boolean": "true or false", "null": "nothing"}
    named = str(field.get("type", "any value"))
    return plain.get(named, named)


def bounds(field: Schema) -> str:
    """Say what a value may be, in words."""
    alternatives = [field, *field.get("anyOf", ())]
    return ", ".join(
        words.format(each[bound]) for each in alternatives for bound, words in BOUNDS.items() if bound in each
    )


def code(value: object) -> str:
    """Write a value as code; an empty text as nothing would not be seen."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return f"`{text}`" if text else '`""`'


def _default(field: Schema) -> str:
    if "default" not in field:
        return ""
    return "nothing" if field["default"] is None else code(field["default"])


def _short(value: object) -> str:
    if value is None or value == "":
        return ""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return code(text if len(text) <= LONGEST else f"{text[:LONGEST]}…")


def _resolved(field: Schema, parts: Schema) -> Schema:
    found: Schema = parts.get(field.get("$ref", "").rpartition("/")[2], {})
    return found


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())
