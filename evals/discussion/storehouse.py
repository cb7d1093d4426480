"""A world whose facts are never shown again, drawn by seed: crates that are opened once, and things moved.

Each agent looks after its own aisle. In two rounds each opens a crate; in the third each carries what the
agent before it found first to another crate. Then shelves are counted, turn by turn, and no observation says
again where anything is. What is asked is where things are now: of what was moved, whoever found it remembers
the wrong place, unless it has heard of the other's turn.
"""

from collections.abc import Iterator
from random import Random
from typing import Any

from mneme.environments.turns import Turn
from mneme.evals.discussion.puzzle import Fact, Puzzle, Question, around
from mneme.nodes.task_memories.interface import Role, Task

AISLES = ("north", "south", "east", "west", "upper", "lower", "inner", "outer")
LOOKS = ("brass", "green", "wooden", "striped", "long", "dented", "white", "copper", "folded")
THINGS = ("key", "lamp", "rope", "bell", "map", "valve", "kettle", "saw", "mirror")
ROUNDS = 3
"""Rounds in which facts are said."""
ALIGNED: dict[str, Any] = {
    "shelves_counted": ["What a shelf was observed to have"],
    "where_things_are": ["The crate that each thing was observed in last, one fact each"],
    "next_step": "What to do next",
}
MOST_ROLES = len(AISLES)


def storehouse(seed: int, roles: int, turns: int, template: dict[str, Any] | None = None) -> Puzzle:
    """Return the puzzle of a seed: one agent an aisle, two things each, of which the first is moved once."""
    drawn = Random(f"storehouse {seed} {roles}")  # noqa: S311  (no secret)
    names = [f"{aisle}_keeper" for aisle in AISLES[:roles]]
    pairs = [f"{look} {thing}" for look in LOOKS for thing in THINGS]
    hidden = drawn.sample(pairs, 2 * roles)
    crates = [f"crate {number}" for number in drawn.sample(range(11, 98), 3 * roles)]
    said, facts = _found(hidden, crates, names)
    numbers = iter(drawn.sample(range(103, 9990), 2 * turns))
    for number, name in list(around(names, turns))[len(said) :]:
        shelf = f"shelf {next(numbers)}"
        seen = f"{shelf.capitalize()} has {next(numbers)} jars."
        said.append(Turn(number=number, agent=name, output=f"count {shelf}", outcome=seen))
    duties = "opens crates and counts shelves of its own aisle."
    known = {name: Role(f"{name.replace('_', ' ')}: {duties}", template or ALIGNED) for name in names}
    task = Task(
        id=f"storehouse-{seed}-{roles}", goal="Keep count.", text=_told_to(names), domain="storehouse"
    )
    questions = list(_questions(hidden, facts, crates, drawn))
    return Puzzle("storehouse", task, known, said, facts, questions)


def _told_to(names: list[str]) -> str:
    return (
        f"Keep count of a storehouse. You are {', '.join(each.replace('_', ' ') for each in names)}, one for "
        "each aisle. A crate shows what it holds only when it is opened, and is not opened again. Be ready "
        "to say in which crate a thing is now."
    )


def _found(hidden: list[str], crates: list[str], names: list[str]) -> tuple[list[Turn], list[Fact]]:
    """Let each agent open two crates, then carry what the one before it found first, a new fact."""
    roles = len(names)
    said: list[Turn] = []
    facts: list[Fact] = []
    for number, name in around(names, 2 * roles):
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


def _questions(hidden: list[str], facts: list[Fact], crates: list[str], drawn: Random) -> Iterator[Question]:
    """Ask for every thing, in any order; all crates that were ever opened or filled are the options."""
    options = tuple(drawn.sample(crates, len(crates)))
    for at in drawn.sample(range(len(hidden)), len(hidden)):
        right = options.index(facts[at].needles[1])
        yield Question(f"In which crate is the {hidden[at]} now?", options, right, (at,))
