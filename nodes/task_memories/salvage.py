"""Salvage the usable parts of a reply that stayed unusable: of a memory, a document or a turn.

A memory is taken slot by slot and a document part by part; the rest stays as it was. Of a turn only the
message is taken, and none of its decisions.
"""

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

from pydantic import TypeAdapter, ValidationError
from pydantic_core import from_json

from mneme.models.asking.replies import Unusable, objects, without_thought
from mneme.prompts.discussion.document import TURNS, Outline, Phrase, Prose, Rating
from mneme.prompts.discussion.intrinsic_memory import Speaking, fits_the_room, integrate
from mneme.prompts.discussion.memory_template import at, departures, size, slots
from mneme.prompts.discussion.memory_update import MIN_CONDENSED_ENTRIES, MIN_KEPT_SHARE, ROOMY, Remembering

Parts = dict[str, Any]
SALVAGED_TYPES: dict[str, TypeAdapter[Any]] = {
    "report": TypeAdapter(Prose),
    "fields": TypeAdapter(Phrase),
    "ratings": TypeAdapter(Rating),
}


def usable_memory(given: Remembering, raw: str) -> tuple[dict[str, Any], list[str], list[str]]:
    """Return the memory, the slots that are taken from a reply, and those that stay as they were.

    A slot is taken if it is present, has the form of its template, and fits into the memory's bound; a list
    must keep at least MIN_KEPT_SHARE of its entries.
    """
    answered, memory = object_in(raw).get("memory"), deepcopy(given.memory.root)
    before = size(memory)
    taken: list[str] = []
    kept: list[str] = []
    for path, slot in slots(given.template.root):
        name, within, new = path[-1], at(memory, path[:-1]), at(answered, path)
        old, is_usable = within[name], new is not None and not departures({name: slot}, {name: new})
        if (
            is_usable
            and isinstance(old, list)
            and len(old) >= MIN_CONDENSED_ENTRIES
            and before < ROOMY * given.limit  # a nearly full memory has to be condensed
        ):
            is_usable = len(new) >= MIN_KEPT_SHARE * len(old)
        if is_usable:
            within[name] = new
            if size(memory) > max(given.limit, before):  # one too large already may stay as large
                within[name], is_usable = old, False
        (taken if is_usable else kept).append(".".join(path))
    return memory, taken, kept


def usable_message(given: Speaking, raw: str) -> str:
    """Return the message of a turn if it is complete and fits into its room; else an empty text."""
    message = object_in(raw).get("message")
    try:
        fits_the_room(given, integrate.answer(reasoning="", message=message))
    except ValueError:  # too long, or no text
        return ""
    return str(message)


def usable_document(outline: Outline, raw: str, before: Mapping[str, Any]) -> tuple[Parts, list[str]]:
    """Return the usable parts of a reply, and the names of the unusable ones.

    Unusable fields, ratings and prose are taken from `before`, the earlier document, if there is one.
    """
    answered = object_in(raw)
    parts: Parts = {}
    unusable: list[str] = []
    for kind, adapter in SALVAGED_TYPES.items():
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
    """Return the complete items, each name once, and labels of the others."""
    taken: dict[str, Parts] = {}
    refused: list[str] = []
    for number, each in enumerate(given if isinstance(given, list) else [], start=1):
        found = each if isinstance(each, Mapping) else {}
        read = {
            name: _read(SALVAGED_TYPES["fields"], found.get(name)) for name in ("name", *outline.item_fields)
        }
        key = str(read["name"] or "").strip().lower()
        if not key or None in read.values() or key in taken:  # a part of an item would say something else
            refused.append(f"{outline.item} {number}")
        else:
            turns = found.get(TURNS)
            known = [each for each in turns if isinstance(each, int)] if isinstance(turns, list) else []
            taken[key] = {TURNS: known, **read}
    return list(taken.values()), refused


def object_in(raw: str) -> dict[str, Any]:
    """Return the JSON object of a reply; of a truncated one, all but its last value; else an empty object."""
    text = raw if raw.lstrip().startswith("{") else without_thought(raw)
    try:
        if found := objects(text):
            return found[0]
        cut: dict[str, Any] = from_json(text[text.index("{") :], allow_partial="trailing-strings")
    except (Unusable, ValueError):
        return {}
    _drop_last(cut)
    return cut


def _drop_last(within: dict[str, Any]) -> None:
    """Drop the value at which a reply was truncated, since a part of a value says something else."""
    last = next(reversed(within), None)
    if last is None:
        return
    value = within[last]
    if isinstance(value, dict) and value:
        _drop_last(value)
    elif isinstance(value, list) and value and isinstance(value[0], dict):
        value.pop()  # only the last object of the list was being written
    else:
        del within[last]
