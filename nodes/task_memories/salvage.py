"""What can be used of a reply that stayed unusable: of a memory, of a document, of a turn.

A memory is taken slot by slot, a document part by part, the old one for the rest; of a turn its words are
taken, and nothing that it decides.
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

    A slot is taken where it is there, has the form of its template, still fits into the memory's bound, and
    is no list that has lost more than the history that an update may lose.
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
            and before < ROOMY * given.limit
        ):
            is_usable = len(new) >= MIN_KEPT_SHARE * len(old)
        if is_usable:
            within[name] = new
            if size(memory) > max(given.limit, before):
                within[name], is_usable = old, False
        (taken if is_usable else kept).append(".".join(path))
    return memory, taken, kept


def usable_message(given: Speaking, raw: str) -> str:
    """Return the message of a turn where it is whole and fits into its room; else nothing."""
    message = object_in(raw).get("message")
    try:
        fits_the_room(given, integrate.answer(reasoning="", message=message))
    except ValueError:  # also of what is no text
        return ""
    return str(message)


def usable_document(outline: Outline, raw: str, before: Mapping[str, Any]) -> tuple[Parts, list[str]]:
    """Return the parts of a reply that can be used, and the names of those that can not.

    `before` is the document that was there, if one was: fields, ratings and prose that cannot be used are
    taken from it. Of an item, every field must be usable, since half of one says something else.
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
    """Return the whole items, each name once, and what the others are called."""
    taken: dict[str, Parts] = {}
    refused: list[str] = []
    for number, each in enumerate(given if isinstance(given, list) else [], start=1):
        found = each if isinstance(each, Mapping) else {}
        read = {
            name: _read(SALVAGED_TYPES["fields"], found.get(name)) for name in ("name", *outline.item_fields)
        }
        key = str(read["name"] or "").strip().lower()
        if not key or None in read.values() or key in taken:
            refused.append(f"{outline.item} {number}")
        else:
            turns = found.get(TURNS)
            known = [each for each in turns if isinstance(each, int)] if isinstance(turns, list) else []
            taken[key] = {TURNS: known, **read}
    return list(taken.values()), refused


def object_in(raw: str) -> dict[str, Any]:
    """Return the JSON object of a reply; of one that was cut off, all but its last value; else nothing.

    The last value of a list of objects is its last object.
    """
    text = raw if raw.lstrip().startswith("{") else without_thought(raw)
    try:
        if found := objects(text):
            return found[0]
        cut = from_json(text[text.index("{") :], allow_partial="trailing-strings")
    except (Unusable, ValueError):
        return {}
    _drop_last(cut)
    return dict(cut)


def _drop_last(within: dict[str, Any]) -> None:
    """Drop the value that was being written as a reply ended: a part of it says something else."""
    last = next(reversed(within), None)
    if last is None:
        return
    value = within[last]
    if isinstance(value, dict) and value:
        _drop_last(value)
    elif isinstance(value, list) and value and isinstance(value[0], dict):
        value.pop()
    else:
        del within[last]
