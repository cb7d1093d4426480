"""A world whose facts are never shown again, drawn by seed: crates that are opened once, and things moved.

Each agent looks after its own aisle. In two rounds each opens a crate; in the third each carries what the
agent before it found first to another crate. Then shelves are counted, turn by turn, and no observation says
again where anything is. A fact is where a thing is now; its owner alone was told it.

The turns are drawn and not spoken by a model, so that every memory is given the same.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from mneme.environments.turns import Turn
from mneme.nodes.task_memories.interface import Role, Task

AISLES = ("north", "south", "east", "west", "upper", "lower", "inner", "outer")
LOOKS = ("brass", "green", "wooden", "striped", "long", "dented", "white", "copper", "folded")
THINGS = ("key", "lamp", "rope", "bell", "map", "valve", "kettle", "saw", "mirror")
ROUNDS = 3
"""Rounds in which facts are said."""
TEMPLATE: dict[str, Any] = {
    "shelves_counted": ["What a shelf was observed to have"],
    "where_things_are": ["The crate that each thing was observed in last, one fact each"],
    "next_step": "What to do next",
}
SENTENCE_END = re.compile(r"(?<=[.!?;])\s+|\n")
DUTIES = "opens crates and counts shelves of its own aisle."


@dataclass(frozen=True)
class Fact:
    """What only its owner knows, said in one turn alone: there where one sentence holds all its needles."""

    owner: str
    turn: int
    needles: tuple[str, ...]

    def stands_in(self, context: str) -> bool:
        """Tell whether one sentence or entry of a context says it."""
        return any(self._in(said) for said in SENTENCE_END.split(context))

    def _in(self, said: str) -> bool:
        return all(re.search(rf"\b{re.escape(each)}\b", said, re.IGNORECASE) for each in self.needles)


@dataclass(frozen=True)
class Storehouse:
    """A conversation of several agents in turn, and what of it are facts."""

    task: Task
    roles: Mapping[str, Role]
    turns: Sequence[Turn]
    facts: Sequence[Fact]

    def next_speaker(self, turn: int) -> str:
        """Return who speaks after that turn: agents speak in turn."""
        return list(self.roles)[turn % len(self.roles)]


def storehouse(seed: int, roles: int, turns: int) -> Storehouse:
    """Return the storehouse of a seed: an aisle and two things an agent, the first of which is moved once."""
    drawn = Random(f"storehouse {seed} {roles}")  # noqa: S311  (no secret)
    names = [f"{aisle}_keeper" for aisle in AISLES[:roles]]
    hidden = drawn.sample([f"{look} {thing}" for look in LOOKS for thing in THINGS], 2 * roles)
    crates = [f"crate {number}" for number in drawn.sample(range(11, 98), 3 * roles)]
    said, facts = _found(hidden, crates, names)
    numbers = iter(drawn.sample(range(103, 9990), 2 * turns))
    for number, name in list(_around(names, turns))[len(said) :]:
        shelf = f"shelf {next(numbers)}"
        seen = f"{shelf.capitalize()} has {next(numbers)} jars."
        said.append(Turn(number=number, agent=name, output=f"count {shelf}", outcome=seen))
    known = {name: Role(f"{name.replace('_', ' ')}: {DUTIES}", TEMPLATE) for name in names}
    text = (
        f"Keep count of a storehouse. You are {', '.join(each.replace('_', ' ') for each in names)}, one for "
        "each aisle. A crate shows what it holds only when it is opened, and is not opened again. Be ready "
        "to say in which crate a thing is now."
    )
    task = Task(id=f"storehouse-{seed}-{roles}", goal="Keep count.", text=text, domain="storehouse")
    return Storehouse(task, known, said, facts)


def _around(names: Sequence[str], count: int) -> Iterator[tuple[int, str]]:
    """Yield each turn up to a number with who speaks in it."""
    yield from ((number, names[(number - 1) % len(names)]) for number in range(1, count + 1))


def _found(hidden: list[str], crates: list[str], names: list[str]) -> tuple[list[Turn], list[Fact]]:
    """Let each agent open two crates, then carry what the one before it found first, a new fact."""
    roles = len(names)
    said: list[Turn] = []
    facts: list[Fact] = []
    for number, name in _around(names, 2 * roles):
        thing, crate = hidden[number - 1], crates[number - 1]
        seen = f"{crate.capitalize()} holds the {thing}."
        said.append(Turn(number=number, agent=name, output=f"open {crate}", outcome=seen))
        facts.append(Fact(name, number, (thing, crate)))
    for at, name in enumerate(names):
        found, number = (at - 1) % roles, len(said) + 1
        thing, crate = hidden[found], crates[2 * roles + found]
        seen = f"{crate.capitalize()} holds the {thing} now."
        said.append(Turn(number=number, agent=name, output=f"carry the {thing} to {crate}", outcome=seen))
        facts[found] = Fact(name, number, (thing, crate))
    return said, facts
