"""Context of a document's writer: the current proposals, then the memories of all agents."""

import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import NamedTuple

from mneme.nodes.discussion.context import Table
from mneme.nodes.discussion.proposals import Proposal, proposals_of, repeats
from mneme.nodes.task_memories.f_context import Count, Window, f_context
from mneme.prompts.discussion.document import ENTRIES_LEFT_OUT, SHORTENED
from mneme.prompts.discussion.memory_template import entries, held, slots
from mneme.stores.discussions.agent_memory import MemoryVersion

MEMORY_SHARE = 0.6
"""Share of proposals and memories in the tokens that the task leaves; the newest turns get the rest."""
MIN_ENTRY_CHARS = 160
"""Minimum characters of a shortened entry: an item's name and choice stand at its beginning."""
LENGTH_STEP = 16
"""Precision of the length of shortened entries, in characters."""
REWRITTEN_SHARE = 0.6
"""Share of the shorter entry's words that two entries have in common if one rewrites the other."""
PROPOSALS = ("Proposals that were accepted, as last worded", "Proposals that nobody else accepted")
TOPIC_WORD = re.compile(r"\w{3,}|\d+")


async def shown_to_writer(table: Table, upto: int, count: Count) -> Window:
    """Return the writer's context: task, proposals, what each agent remembers, the newest turns that fit."""
    room = (table.budget - count(table.about.task)) * MEMORY_SHARE
    memories = {each.title: table.discussions.memory(table.about.id, each.name) for each in table.team.roles}
    histories = [(title, await memory.history()) for title, memory in memories.items()]
    memory = expert_lines(proposals_of(await table.conversation.all(upto)), histories, room, count)
    turns = [str(turn) for turn in await table.newest(upto, table.budget, count)]
    return f_context(table.about.task, memory, turns, table.budget, count)


def expert_lines(
    proposals: Sequence[Proposal],
    histories: Sequence[tuple[str, Sequence[MemoryVersion]]],
    room: float,
    count: Count,
) -> str:
    """Return the proposals, then other entries of the agents' memories by title, each with its turns.

    Accepted proposals come first, then others, then memories. If a kind does not fit, its longest entries are
    shortened to one length, so that none is dropped for another; if that is not enough, the last are left
    out. The text says so in both cases.
    """
    proposed = [Line(PROPOSALS[not e.is_accepted], e.wording, e.turns, e.origin) for e in proposals]
    tiers = [[line for line in proposed if line.heading == heading] for heading in PROPOSALS]
    remembered = [
        [Line(f"{title}, {slot}", entry, said) for slot, entry, said in _lines(kept)]
        for title, kept in histories
    ]
    # One entry of each agent in turn: if room ends, it ends for all agents alike.
    in_turn = [line for layer in zip_longest(*remembered) for line in layer if line]
    tiers.append([line for line in in_turn if not repeats(line.entry, proposals)])
    shown, is_cut = dict[str, list[str]](), False
    for tier in tiers:
        length = _fair_length(tier, room, count)
        for line in tier:
            text = line.within(length)
            room -= count(f"{text}\n") + (0 if line.heading in shown else count(f"{line.heading}:\n"))
            if room >= 0:
                shown.setdefault(line.heading, []).append(text)
                is_cut |= len(line.entry) > length
    told = [text for heading, texts in shown.items() for text in (f"{heading}:", *texts)]
    return "\n".join([*told, *[SHORTENED] * is_cut, *[ENTRIES_LEFT_OUT] * (room < 0)])


class Line(NamedTuple):
    """A proposal, or an entry of an agent's memory: its heading, its turns, and who supports it."""

    heading: str
    entry: str
    turns: Sequence[int]
    origin: str = ""

    def within(self, length: int) -> str:
        """Return the line, with its entry shortened to this length, if possible after a whole sentence."""
        entry = self.entry
        if len(entry) > length:
            sentences, stop, _ = entry[:length].rpartition(". ")
            is_enough = 2 * len(sentences) > length
            entry = f"{sentences}{stop}…" if is_enough else f"{entry[:length].rsplit(' ', 1)[0]}…"
        return "\n  ".join(filter(None, [f"- {entry} [{', '.join(map(str, self.turns))}]", self.origin]))


def _fair_length(lines: Sequence[Line], room: float, count: Count) -> int:
    """Return the greatest entry length at which all lines fit; MIN_ENTRY_CHARS if there is none."""
    longest = max([MIN_ENTRY_CHARS, *(len(line.entry) for line in lines)])
    lengths = range(MIN_ENTRY_CHARS, longest + LENGTH_STEP, LENGTH_STEP)
    headings = sum(count(f"{heading}:\n") for heading in {line.heading for line in lines})

    def lacks_room(length: int) -> bool:
        return headings + sum(count(f"{line.within(length)}\n") for line in lines) > room

    # Longer entries need more room, so the first length that lacks it is found by bisection.
    return lengths[max(bisect_left(lengths, True, key=lacks_room) - 1, 0)]


def _lines(history: Sequence[MemoryVersion]) -> Iterator[tuple[str, str, list[int]]]:
    """Yield the slots and entries of a memory, each with the turns after which it was written or rewritten.

    Entries that were carried from an earlier discussion are left out.
    """
    turns = dict[str, list[int]]()
    for version in history:
        now = entries(version.memory)
        gone = [each for each in turns if each not in now]
        turns = {
            each: turns[each] if each in turns else [*_turns_of_older(each, gone, turns), version.turn]
            for each in now
        }
    for path, slot in slots(history[-1].memory):
        for entry in held(slot):
            if said := [turn for turn in turns[entry] if turn]:  # turn 0: the memory began with it
                yield ".".join(path), " ".join(entry.split()), said


def _turns_of_older(entry: str, gone: Sequence[str], turns: Mapping[str, list[int]]) -> list[int]:
    """Return the turns of the older entry that this one rewords; empty if it is new."""
    words = {*TOPIC_WORD.findall(entry.lower())}

    def shared(other: str) -> float:
        others = {*TOPIC_WORD.findall(other.lower())}
        return len(words & others) / max(min(len(words), len(others)), 1)

    older = max(gone, key=shared, default="")
    return turns[older] if older and shared(older) >= REWRITTEN_SHARE else []
