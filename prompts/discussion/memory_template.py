"""Structured memory templates (§3): named slots, nested, each with what it is for; and memories that fit one.

A slot's form in a template says what it holds: a text (`"What I hold now"`), a list of texts
(`["One risk each"]`), or further slots (an object). A memory has the same slots, with their contents.
"""

import json
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Annotated, Any

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    RootModel,
    ValidationError,
    create_model,
    model_validator,
)

SLOT = re.compile(r"^[a-z][a-z0-9_]{0,47}$")
"""Form of a slot's name."""
MAX_ENTRY_CHARS = 700
MAX_ENTRIES = 40
Entry = Annotated[str, Field(max_length=MAX_ENTRY_CHARS)]
DEEPEST = 4
Path = tuple[str, ...]
FOREIGN = 3  # weight of a non-ASCII character: it may take a whole token, others take a third of one


class Slots(RootModel[dict[str, JsonValue]]):
    """A structured template, or a memory that follows one; its text reads back as the same."""

    @model_validator(mode="before")
    @classmethod
    def _of_text(cls, value: object) -> object:
        return json.loads(value) if isinstance(value, str) else value

    def __str__(self) -> str:
        return json.dumps(self.root, indent=1, ensure_ascii=False)


def wrong_in(template: object, place: str = "memory") -> str:
    """Return the fault of a template, with the place; "" if it is usable."""
    if not isinstance(template, Mapping):
        return f"{place} is {_kind(template)}, not an object of slots."
    if not template:
        return f"{place} has no slots."
    if place.count(".") >= DEEPEST:
        return f"{place} is nested more than {DEEPEST} levels deep."
    for name, slot in template.items():
        if not (isinstance(name, str) and SLOT.match(name)):
            return f"{place}.{name} is no name of a slot: use small letters, digits and underscores."
        if wrong := _wrong_in_slot(slot, f"{place}.{name}"):
            return wrong
    return ""


def _wrong_in_slot(slot: object, place: str) -> str:
    if isinstance(slot, Mapping):
        return wrong_in(slot, place)
    described = slot[0] if isinstance(slot, list) and len(slot) == 1 else slot
    if isinstance(described, str) and described.strip():
        return ""
    return f"{place} is {_kind(slot)}: say in words what it holds, or in a list of one such text."


def _kind(value: object) -> str:
    kinds = {str: "a text", list: "a list", bool: "a truth value", int: "a number", float: "a number"}
    return "nothing" if value is None else kinds.get(type(value), "no text")


def slots(memory: Mapping[str, Any], above: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Yield each slot of a template or a memory that holds a text or a list, by its path."""
    for name, slot in memory.items():
        if isinstance(slot, Mapping):
            yield from slots(slot, (*above, name))
        else:
            yield (*above, name), slot


def at(memory: Any, path: Path) -> Any:
    """Return the content of a memory at a path; None if it has no such slot."""
    for name in path:
        memory = memory.get(name) if isinstance(memory, Mapping) else None
    return memory


def held(slot: Any) -> list[str]:
    """Return the texts that a slot holds."""
    return list(filter(None, slot if isinstance(slot, list) else [str(slot)]))


def entries(memory: Mapping[str, Any]) -> list[str]:
    """Return every text that a memory holds, in the order of its slots."""
    return [entry for _, slot in slots(memory) for entry in held(slot)]


def size(memory: Mapping[str, Any]) -> int:
    """Return the size of a memory as it is shown, in characters; a non-ASCII character counts as three."""
    shown = str(Slots(dict(memory)))
    plain = len(shown.encode("ascii", "ignore"))
    return plain + FOREIGN * (len(shown) - plain)


def departures(template: Mapping[str, Any], memory: object) -> list[str]:
    """Return where a memory departs from its template: slots lost or invented, or filled in another form."""
    try:
        memory_type(json.dumps(template)).model_validate(memory, strict=True)
    except ValidationError as wrong:
        found = wrong.errors(include_url=False)
        return [f"{'.'.join(map(str, ('memory', *each['loc'])))}: {each['msg']}." for each in found]
    return []


@lru_cache(maxsize=256)
def memory_type(template: str) -> type[BaseModel]:
    """Return the type of the memories that follow a template, so that a model can fill only its slots."""
    return _typed(json.loads(template), "Memory")


def _typed(template: Mapping[str, Any], name: str) -> type[BaseModel]:
    return closed_model(name, {each: (_type(slot, each), None) for each, slot in template.items()})


def closed_model(name: str, fields: Mapping[str, tuple[Any, str | None]]) -> type[BaseModel]:
    """Return a type with exactly these fields, whatever they are called: each a type and what it is for."""
    # By numbers: a slot may be called like a method of Pydantic's (`json`), or what is no name in Python.
    named: dict[str, Any] = {
        f"field_{number}": (kind, Field(alias=alias, description=purpose))
        for number, (alias, (kind, purpose)) in enumerate(fields.items())
    }
    # Closed, since under a newer llama.cpp models invented further fields without end.
    return create_model(name, __config__=ConfigDict(extra="forbid"), **named)


def _type(slot: Any, name: str) -> Any:
    if isinstance(slot, Mapping):
        return _typed(slot, f"Slots_{name}")
    return Annotated[list[Entry], Field(max_length=MAX_ENTRIES)] if isinstance(slot, list) else Entry
