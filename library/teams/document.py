"""The document that a team writes: the schema of its file, and its content."""

from typing import Any

import jsonschema_rs

from mneme.core.errors import BadAnswer
from mneme.library.teams.team import Document

Json = dict[str, Any]
TEXT_SCHEMA: Json = {"type": "string", "minLength": 1}
NUMBER_ARRAY: Json = {"type": "array", "items": {"type": "integer", "minimum": 1}}
TEXT_ARRAY: Json = {"type": "array", "items": {"type": "string"}}
MINUTES = "Minutes"
"""The part of a document that says how it came about; no role writes it."""
MINUTES_PARTS: Json = {
    "ended": {"enum": ["consensus", "turn limit"]},
    "turns": {"type": "integer"},
    **dict.fromkeys(("accepted by", "dissent", "unanswered issues"), TEXT_ARRAY),
    "written by": TEXT_SCHEMA,
}
RATING: Json = {"type": "integer", "minimum": 1, "maximum": 10}


def schema(document: Document) -> Json:
    """Return the JSON schema of a document's file: its fields, numbered items and ratings, and no more."""
    fields = {name: TEXT_SCHEMA | {"description": purpose} for name, purpose in document.fields.items()}
    ratings = {name: RATING | {"description": purpose} for name, purpose in document.ratings.items()}
    parts = {name: {"type": "string", "description": each} for name, each in document.item_fields.items()}
    item = _closed({"name": TEXT_SCHEMA, "turns": NUMBER_ARRAY, **parts}, ["name", *parts])
    minutes = {} if MINUTES in fields | ratings else {MINUTES: _closed(MINUTES_PARTS, [*MINUTES_PARTS])}
    needed = [*fields, *(f"{document.item} {n}" for n in range(1, document.least + 1)), *ratings]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": document.name,
        **_closed(fields | ratings | minutes, needed),
        # Numbered as in the paper's PIPELINE_OVERVIEW.json: `Component 1`, `Component 2`, …
        "patternProperties": {f"^{document.item} [1-9][0-9]*$": item},
    }


def _closed(parts: Json, needed: list[str]) -> Json:
    return {"type": "object", "properties": parts, "required": needed, "additionalProperties": False}


def filed(document: Document, parts: Json) -> Json:
    """Return a document's parts as its file has them: fields, `Component 1`, `Component 2`, …, ratings."""
    items = {f"{document.item} {number}": item for number, item in enumerate(parts["items"], start=1)}
    return {**parts["fields"], **items, **parts["ratings"]}


def lacking(document: Document, parts: Json) -> str:
    """Return what a document lacks; "" if it has enough items."""
    found, least = len(parts["items"]), document.least
    if found >= least:
        return ""
    return f"No {document.name}: it needs at least {least} of {document.item}, and {found} were found."


def check(document: Document, file: Json) -> None:
    """Raise BadAnswer, naming the place, where a file does not follow its schema."""
    wrong = next(jsonschema_rs.Draft202012Validator(schema(document)).iter_errors(file), None)
    if wrong is not None:
        place = "/".join(str(part) for part in wrong.instance_path) or "the whole"
        raise BadAnswer(f"{document.name} does not follow its schema: {place}: {wrong.message}", str(file))
