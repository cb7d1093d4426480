"""What can be used of a document that its writer answered wrongly: part by part, the old one for the rest."""

from collections.abc import Mapping
from typing import Any

from pydantic import TypeAdapter, ValidationError

from mneme.nodes.task_memories.memory_merge import object_in
from mneme.prompts.discussion.document import TURNS, Outline, Phrase, Prose, Rating

Parts = dict[str, Any]
KINDS: dict[str, TypeAdapter[Any]] = {
    "report": TypeAdapter(Prose),
    "fields": TypeAdapter(Phrase),
    "ratings": TypeAdapter(Rating),
}


def usable_parts(outline: Outline, raw: str, before: Mapping[str, Any]) -> tuple[Parts, list[str]]:
    """Return the parts of a reply that can be used, and the names of those that can not.

    `before` is the document that was there, if one was: fields, ratings and prose that cannot be used are
    taken from it. Of an item, every field must be usable, since half of one says something else.
    """
    answered = object_in(raw)
    parts: Parts = {}
    unusable: list[str] = []
    for kind, adapter in KINDS.items():
        found = answered.get(kind)
        given: Mapping[str, Any] = found if isinstance(found, Mapping) else {}
        wanted: Mapping[str, str] = getattr(outline, kind)
        checked = {name: _read(adapter, given.get(name)) for name in wanted}
        unusable += [name for name, value in checked.items() if value in (None, "")]
        merged = {name: value or before.get(name) for name, value in checked.items()}
        parts[kind] = {name: value for name, value in merged.items() if value}
    parts["items"], refused = _items(outline, answered.get("items"))
    return parts, unusable + refused


def _read(adapter: TypeAdapter[Any], value: Any) -> Any:
    try:
        return adapter.validate_python(value)
    except ValidationError:
        return None


def _items(outline: Outline, given: Any) -> tuple[list[Parts], list[str]]:
    """Return the whole items, each name once, and what the others are called."""
    taken: dict[str, Parts] = {}
    refused: list[str] = []
    for number, each in enumerate(given if isinstance(given, list) else [], start=1):
        found = each if isinstance(each, Mapping) else {}
        read = {name: _read(KINDS["fields"], found.get(name)) for name in ("name", *outline.item_fields)}
        key = str(read["name"] or "").strip().lower()
        if not key or None in read.values() or key in taken:
            refused.append(f"{outline.item} {number}")
        else:
            turns = found.get(TURNS)
            known = [each for each in turns if isinstance(each, int)] if isinstance(turns, list) else []
            taken[key] = {TURNS: known, **read}
    return list(taken.values()), refused
