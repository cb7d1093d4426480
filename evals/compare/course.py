"""A course of tasks, as a generator of steps that whoever plays it answers.

A course yields events, which a memory observes; situations, which are answered from what the memory recalls;
and at the end of each task its score. What is needed later is not shown again later, some of it changes, and
some of it is false, so that nothing but a memory helps.
"""

import re
from collections.abc import Callable, Generator, Sequence
from datetime import date, timedelta
from random import Random
from typing import NamedTuple

from mneme.evals.compare.memory import Event, Outcome

UNKNOWN = "not known"
BEGIN = date(2026, 1, 5)
DATED = re.compile(r"\d{4}-\d{2}-\d{2}")
Reader = Callable[[Sequence[str]], str]
"""Answers a situation from the recalled texts alone, without a model."""


class Situation(NamedTuple):
    """Something to answer or to choose: `choices` are all that can be answered; none: a short free text."""

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
    """Return what draws a course: the same for the same name."""
    return Random(name)  # noqa: S311  (a course, no secret)


def day(number: int) -> str:
    """Return the ISO date of a day of a course."""
    return (BEGIN + timedelta(days=number)).isoformat()


def latest(lines: Sequence[str]) -> list[str]:
    """Return lines, those of later days first; of one day, and without a day, the better-ranked first."""
    return sorted(lines, key=day_of, reverse=True)


def day_of(line: str) -> str:
    """Return the first date in a line; empty where there is none."""
    found = DATED.search(line)
    return found[0] if found else ""


def says(line: str, word: str) -> bool:
    """Say whether a line has a word, whole, in any case."""
    return re.search(rf"(?<!\w){re.escape(word)}(?!\w)", line, re.IGNORECASE) is not None
