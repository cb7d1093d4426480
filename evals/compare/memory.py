"""The interface of a memory in the comparison, a small class with three methods, and of a course of tasks.

A memory of your own is given to `mneme compare --memory my_module:MyMemory`, or by an entry point of the
group `mneme.memories`. `examples/compare_memory.py` is a whole one.

A course is a generator of steps that whoever plays it answers. It yields events, which a memory observes;
situations, which are answered from what the memory recalls; and at the end of each task its score. What is
needed later is not shown again later, some of it changes, and some of it is false, so that nothing but a
memory helps.
"""

import re
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from random import Random
from typing import NamedTuple

from mneme.models.embedding.embedders import Embedder
from mneme.stores.ledger.ledger import Ledger


class Event(NamedTuple):
    """An event: its text, who said, did or saw it, and its day (an ISO date; empty: not known)."""

    day: str
    who: str
    text: str

    @property
    def line(self) -> str:
        """Return the event as one line, as memories of raw events store it."""
        return f"{f'[{self.day}] ' if self.day else ''}{self.who}: {self.text}"


class Outcome(NamedTuple):
    """The end of a task: the task, its success, and the world's lesson, if any."""

    task: str
    success: bool
    lesson: str
    day: str


@dataclass(frozen=True)
class Place:
    """Resources of a memory while it is played: a name and a folder of its own, and services.

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
        """Store an event; called once for each event, in order."""

    async def recall(self, situation: str, budget: int) -> Sequence[str]:
        """Return texts that help in a situation, best first; what exceeds the budget of tokens is cut off."""
        return []

    async def end_of_task(self, outcome: Outcome) -> None:
        """Learn from how a task ended."""


UNKNOWN = "not known"
FIRST_DAY = date(2026, 1, 5)
ISO_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
Reader = Callable[[Sequence[str]], str]
"""Answers a situation from the recalled texts alone, without a model."""


class Situation(NamedTuple):
    """A question or a choice: `choices` are all possible answers; none: a short free text."""

    text: str
    by_rules: Reader
    choices: Sequence[str] = ()


class Score(NamedTuple):
    """The end of a task: its outcome, the steps that it took, and how often something outdated misled."""

    outcome: Outcome
    steps: int = 1
    stale: int = 0


Step = Event | Situation | Score
Course = Generator[Step, str, None]


class Family(NamedTuple):
    """A kind of work: its courses by seed and size, and who takes part."""

    name: str
    make: Callable[[int, int], Course]
    roles: Sequence[str]


def drawing(name: str) -> Random:
    """Return the random generator of a course: the same for the same name."""
    return Random(name)  # noqa: S311  (a course, no secret)


def day(number: int) -> str:
    """Return the ISO date of a day of a course."""
    return (FIRST_DAY + timedelta(days=number)).isoformat()


def latest(lines: Sequence[str]) -> list[str]:
    """Return lines with the latest day first; lines of one day, or without a day, keep their ranking."""
    return sorted(lines, key=day_of, reverse=True)


def day_of(line: str) -> str:
    """Return the first date in a line; empty without one."""
    found = ISO_DATE.search(line)
    return found[0] if found else ""


def says(line: str, word: str) -> bool:
    """Return whether a line has a whole word, in any case."""
    return re.search(rf"(?<!\w){re.escape(word)}(?!\w)", line, re.IGNORECASE) is not None
