"""A puzzle of what survives: a conversation whose facts are said once, and questions that need them.

The turns are drawn by seed and not spoken by a model, so that every memory is given the same; measured is the
memory. Whether a fact is in a context is looked up by the puzzle itself: a fact is there where one sentence
or entry holds all its needles, such as the name of a place and a number that is said nowhere else.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from mneme.environments.turns import Turn
from mneme.nodes.task_memories.interface import Role, Task

SENTENCE_END = re.compile(r"(?<=[.!?;])\s+|\n")


@dataclass(frozen=True)
class Fact:
    """What only its owner knows, said in one turn alone."""

    owner: str
    turn: int
    needles: tuple[str, ...]

    def stands_in(self, context: str) -> bool:
        """Tell whether one sentence or entry of a context says it."""
        return any(self._in(said) for said in SENTENCE_END.split(context))

    def _in(self, said: str) -> bool:
        return all(re.search(rf"\b{re.escape(each)}\b", said, re.IGNORECASE) for each in self.needles)


@dataclass(frozen=True)
class Question:
    """A question with its options, the place of the right one, and the places of the facts that it needs."""

    text: str
    options: tuple[str, ...]
    answer: int
    needs: tuple[int, ...]


@dataclass(frozen=True)
class Puzzle:
    """A conversation of several agents in turn, what of it are facts, and what is asked at its end."""

    kind: str
    task: Task
    roles: Mapping[str, Role]
    turns: Sequence[Turn]
    facts: Sequence[Fact]
    questions: Sequence[Question]

    @property
    def roles_differ(self) -> bool:
        """Tell whether agents have expertise of their own, and not one task each of the same kind."""
        return self.kind == "hidden profile"

    def next_speaker(self, turn: int) -> str:
        """Return who speaks after that turn: agents speak in turn."""
        return list(self.roles)[turn % len(self.roles)]


def around(names: Sequence[str], count: int) -> Iterator[tuple[int, str]]:
    """Yield the turns that are still to come up to a number, each with who speaks in it."""
    for number in range(1, count + 1):
        yield number, names[(number - 1) % len(names)]
