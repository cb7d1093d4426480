"""Turn conversations with another program into items: what the user said, with the turns before it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from mneme.core.errors import BadInput
from mneme.importing.archive import conversations
from mneme.importing.item import Item, Reading, clean, cut, id_of
from mneme.nodes.messages import PRECEDING

LONGEST_TURN = 2000
"""Characters that are shown of each turn before a message: they only say what it refers to."""


@dataclass(frozen=True)
class Turn:
    """One turn of a conversation, in our words: the speaker is `user` or `assistant`."""

    id: str
    role: str
    text: str
    time: datetime | None


@dataclass(frozen=True)
class Source:
    """A program whose conversations are read: its name, a field that only its conversations have, a reader.

    The reader returns the id of a conversation and its turns, and counts what it passes over.
    """

    name: str
    mark: str
    other: tuple[str, str]
    """The mark of the program that it is confused with, and its name."""
    read: Callable[[dict[str, Any], Reading], tuple[str, Sequence[Turn]]]


def read_conversations(source: Source, export: Path) -> Reading:
    """Return every message of the user's in an export. Raises BadInput where it is not the source's."""
    reading, known = Reading(), 0
    for given in conversations(export):
        if not isinstance(given, dict) or source.mark not in given:
            _must_not_be_anothers(source, given, export)
            reading.skipped["conversations that cannot be read"] += 1
            continue
        known += 1
        name, turns = source.read(given, reading)
        _take(source, name, turns, reading)
    if not known:
        raise BadInput(f"{export} holds no conversations of {source.name}.", "Give its data export.")
    return reading


def _must_not_be_anothers(source: Source, given: Any, export: Path) -> None:
    mark, other = source.other
    if isinstance(given, dict) and mark in given:
        hint = f"Say `mneme import {other.lower()} {export}`."
        raise BadInput(f"This is an export of {other}, not of {source.name}.", hint)


def _take(source: Source, name: str, turns: Sequence[Turn], reading: Reading) -> None:
    spoken = [each for each in turns if each.text]
    shown = [f"{each.role}: {cut(each.text, LONGEST_TURN)}" for each in spoken]
    for number, turn in enumerate(spoken):
        if turn.role != "user":
            continue
        own = turn.id or f"{number} {turn.text}"
        reading.take(
            Item(
                id=id_of(source.name, name, own),
                text=turn.text,
                time=turn.time,
                thread=f"{source.name.lower()}/{clean(name)}",
                before=shown[max(0, number - PRECEDING) : number],
            )
        )


def path_to(last: str, parents: dict[str, str]) -> list[str]:
    """Return the names from the first message of a branch to its last one; a circle is left."""
    path: dict[str, None] = {}
    while last in parents and last not in path:
        path[last] = None
        last = parents[last]
    return [*path][::-1]
