"""What a memory is to the comparison: a small class with three methods.

A memory of your own is given to `mneme compare --memory my_module:MyMemory`, or by an entry point of the
group `mneme.memories`. `examples/compare_memory.py` is a whole one.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from mneme.models.embedding.embedders import Embedder
from mneme.stores.ledger.ledger import Ledger


class Event(NamedTuple):
    """Something that was said, done or seen, by whom, and on which day (an ISO date; empty: not known)."""

    day: str
    who: str
    text: str

    @property
    def line(self) -> str:
        """Return it as one line: a memory that keeps raw events keeps this."""
        return f"{f'[{self.day}] ' if self.day else ''}{self.who}: {self.text}"


class Outcome(NamedTuple):
    """How a task ended: what was to be done, whether it was done, and what the world taught, if it did."""

    task: str
    success: bool
    lesson: str
    day: str


@dataclass(frozen=True)
class Place:
    """Where a memory lives while it is played: a name and a folder of its own, and what it may work with.

    `who` answers the memory's own questions; `roles` are the names that events come from.
    """

    name: str
    folder: Path
    ledger: Ledger
    embedder: Embedder
    who: str
    roles: Sequence[str]


class Memory:
    """Remember nothing: what every other memory is compared with."""

    def __init__(self, place: Place) -> None:
        self.place = place

    async def observe(self, event: Event) -> None:
        """Take in what happened; called once for each event, in order."""

    async def recall(self, situation: str, budget: int) -> Sequence[str]:
        """Return texts that help in a situation, best first; what exceeds the budget of tokens is cut off."""
        return []

    async def end_of_task(self, outcome: Outcome) -> None:
        """Learn from how a task ended."""
