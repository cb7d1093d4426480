"""What all agents of a discussion remember, for the one who writes its document: each entry with its turn."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import NamedTuple

from mneme.nodes.discussion.context import Table
from mneme.nodes.task_memories.f_context import Count, Window, f_context, fitting
from mneme.prompts.discussion.memory_template import entries, held, slots
from mneme.stores.discussions.agent_memory import MemoryVersion

SHARE = 0.6
"""What the memories may take of the tokens that the task leaves; the newest turns have the rest."""
BEGINNING = 24
SHORTEST = 160
"""The characters to which entries are shortened at most: what an item is, and its choice, stand first."""
STEP = 16
"""Characters to which the length of shortened entries is found."""
LEFT_OUT = "(Further entries are left out.)"


async def shown_to_writer(table: Table, upto: int, count: Count) -> Window:
    """Return the writer's context: the task, what each agent remembers, and the newest turns that fit."""
    room = (table.budget - count(table.about.task)) * SHARE
    histories: list[tuple[str, Sequence[MemoryVersion]]] = []
    for role in table.team.roles:
        history = await table.discussions.memory(table.about.id, role.name).history()
        histories.append((role.title, history))
    memory = told_by(histories, room, count)
    turns = [str(turn) for turn in await table.newest(upto, table.budget, count)]
    return f_context(table.about.task, memory, turns, table.budget, count)


def told_by(histories: Sequence[tuple[str, Sequence[MemoryVersion]]], room: float, count: Count) -> str:
    """Return what agents remember, by their titles: each entry with its turn.

    Where not all have room, the longest are shortened to one length, so that none is dropped for another; if
    that is not enough, the last of each agent are left out. Either is said.
    """
    told = [[Line(title, *line) for line in _lines(history)] for title, history in histories]
    length = _fair_length([line for lines in told for line in lines], room, count)
    shown = [[line.within(length) for line in lines] for lines in told]
    in_turn = [line for layer in zip_longest(*shown) for line in layer if line]
    return fitting(in_turn, room, count, LEFT_OUT)


class Line(NamedTuple):
    """An entry of an agent's memory, with its slot and its turn."""

    title: str
    slot: str
    entry: str
    turn: int

    def within(self, length: int) -> str:
        """Return the line, its entry shortened where it is longer, if it may be after a whole sentence."""
        if len(self.entry) <= length:
            return f"{self.title}, {self.slot}:\n- {self.entry} [{self.turn}]"
        sentences, stop, _ = self.entry[:length].rpartition(". ")
        is_enough = 2 * len(sentences) > length
        entry = f"{sentences}{stop.strip()}" if is_enough else f"{self.entry[:length].rsplit(' ', 1)[0]}…"
        return f"{self.title}, {self.slot} (shortened):\n- {entry} [{self.turn}]"


def _fair_length(lines: Sequence[Line], room: float, count: Count) -> int:
    """Return the greatest length of an entry with which all have room; SHORTEST where there is none."""
    longest = max([SHORTEST, *(len(line.entry) for line in lines)])
    lengths = range(SHORTEST, longest + STEP, STEP)

    def lacks_room(length: int) -> bool:
        return sum(count(f"{line.within(length)}\n") for line in lines) > room

    return lengths[max(bisect_left(lengths, True, key=lacks_room) - 1, 0)]


def _lines(history: Sequence[MemoryVersion]) -> Iterator[tuple[str, str, int]]:
    """Yield the slots and entries of a memory, each with the turn after which it was there first.

    What was carried into the discussion was not said in it: it is left out. An entry that was shortened
    since, or moved, is known by its beginning.
    """
    first: dict[str, int] = {}
    for version in history:
        for entry in entries(version.memory):
            first.setdefault(entry[:BEGINNING], version.turn)
    for path, slot in slots(history[-1].memory):
        for entry in held(slot):
            if turn := first[entry[:BEGINNING]]:
                yield ".".join(path), " ".join(entry.split()), turn
