"""Work that repeats: slow queries on SQLite, and the remedy to try first.

Each task is a query; each try carries out a remedy on the table and counts the steps of SQLite's virtual
machine, which are the same in every run. What helped one query helps the next of its shape and selectivity,
and misleads where the shape is the same and the data is not: an index on a column of which half of the rows
have one value helps nothing.
"""

import re
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from functools import partial
from random import Random
from typing import NamedTuple

from mneme.evals.compare.memory import Course, Event, Family, Outcome, Score, Situation, day, drawing

AGENT = "tuner"
TABLE_ROWS = 500
REQUIRED_GAIN = 4.0
"""Factor of fewer steps that solves a task."""
TASK_TRIES = 2
COUNTING_INTERVAL = 10
"""Steps of the virtual machine that are counted as one."""
TABLE_NAMES = ("orders", "visits", "parcels", "tickets", "rentals", "claims", "readings", "calls")
COLUMN_VALUES = (2, 100)
"""Numbers of distinct values, one of which a column has: the selectivity of an equality on it."""
NOTHING_KNOWN = 1.5
"""Expected gain of an unknown remedy."""
GAIN = re.compile(r"(\d+\.\d) times")
SHAPES = {
    "an equality on the status": "SELECT sum(amount) FROM {t} WHERE status = 1",
    "an equality on the customer": "SELECT sum(amount) FROM {t} WHERE customer = 1",
    "an equality on an expression of the note": "SELECT sum(amount) FROM {t} WHERE lower(note) = 'note 1'",
    "an order of all rows of which ten are read": "SELECT id FROM {t} ORDER BY placed LIMIT 10",
    "a subquery for each row": "SELECT count(*) FROM {t} a WHERE placed = (SELECT max(placed) FROM {t} b "
    "WHERE b.customer = a.customer)",
    "a range within one status": "SELECT count(*) FROM {t} WHERE status = 1 AND placed > 900000",
}
INDEXES_BY_REMEDY = {
    "an index on the status": "CREATE INDEX x ON {t} (status)",
    "an index on the customer": "CREATE INDEX x ON {t} (customer)",
    "an index on the note": "CREATE INDEX x ON {t} (note)",
    "an index on the lower case of the note": "CREATE INDEX x ON {t} (lower(note))",
    "an index on the time": "CREATE INDEX x ON {t} (placed)",
    "an index on customer and time": "CREATE INDEX x ON {t} (customer, placed)",
    "an index on status and time": "CREATE INDEX x ON {t} (status, placed)",
    "an index on status, then amount": "CREATE INDEX x ON {t} (status, amount)",
    "fresh statistics": "ANALYZE {t}",
}


class Table(NamedTuple):
    """A table of a course: its name, the seed of its rows, and how many values each column has."""

    name: str
    seed: int
    values: dict[str, int]

    def steps(self, sql: str, remedy: str = "") -> int:
        """Return the steps of a query after a remedy, in tens."""
        chance, counted = drawing(f"{self.name} {self.seed}"), 1
        rows = [
            (chance.randrange(self.values["status"]), chance.randrange(self.values["customer"]),
             f"Note {chance.randrange(self.values['note'])}", chance.randrange(1_000_000), chance.random())
            for _ in range(TABLE_ROWS)
        ]  # fmt: skip

        def count() -> int:
            nonlocal counted
            counted += 1
            return 0

        with closing(sqlite3.connect(":memory:")) as base:
            columns = "status, customer, note, placed, amount"
            base.execute(f"CREATE TABLE {self.name} (id INTEGER PRIMARY KEY, {columns})")
            base.executemany(f"INSERT INTO {self.name} ({columns}) VALUES (?, ?, ?, ?, ?)", rows)
            base.execute(remedy.format(t=self.name))
            # SQLite calls it every so many opcodes: no clock, the same everywhere.
            base.set_progress_handler(count, COUNTING_INTERVAL)
            base.execute(sql).fetchall()
        return counted


class Job(NamedTuple):
    """A task: its text, its shape, the known facts on its data, its table, and its cost after a remedy."""

    task: str
    shape: str
    data: str
    name: str
    cost: Callable[[str], float]


def repeated(
    family: str, jobs: Callable[[int, Random], Iterator[Job]], remedies: Sequence[str], seed: int, size: int
) -> Course:
    """Yield the course of `size` jobs, one after the other."""
    chance, failed = drawing(f"{family} {seed}"), set[tuple[str, str]]()
    for number, job in zip(range(size), jobs(seed, chance), strict=False):
        yield from _tune(job, remedies, day(number), chance, failed)


def _queries(seed: int, chance: Random) -> Iterator[Job]:
    """Draw queries on a course's tables."""
    tables = [
        Table(name, seed, {column: chance.choice(COLUMN_VALUES) for column in ("status", "customer", "note")})
        for name in TABLE_NAMES
    ]
    while True:
        table, shape = chance.choice(tables), chance.choice([*SHAPES])
        column = next((each for each in table.values if each in shape), "customer")
        data, sql = f"the {column} has {table.values[column]} values", SHAPES[shape].format(t=table.name)
        task = f"A query on {table.name} is slow. It has {shape} ({data}): {sql}"
        yield Job(task, shape, data, table.name, partial(_steps, table, sql))


def _steps(table: Table, sql: str, remedy: str = "") -> float:
    return table.steps(sql, INDEXES_BY_REMEDY.get(remedy, ""))


def _tune(
    job: Job, remedies: Sequence[str], today: str, chance: Random, failed: set[tuple[str, str]]
) -> Course:
    """Try remedies until one helps; one that failed before on this shape and data counts as misled."""
    about, left, before, misled = f"{job.shape} ({job.data})", [*remedies], job.cost(""), 0
    chance.shuffle(left)  # without memory every order of remedies is alike
    for tried in range(1, TASK_TRIES + 1):
        text = f"{job.task} Which remedy is tried next? It has to take {REQUIRED_GAIN:.0f} times fewer steps."
        answer = yield Situation(text, partial(chosen, like=(job.shape, about), left=left), tuple(left))
        remedy = answer if answer in left else left[0]
        left.remove(remedy)
        gain = before / job.cost(remedy)  # infinite cost, so no gain, where the test fails
        is_done = gain >= REQUIRED_GAIN
        said = f"{about} in {job.name}: {remedy} made it take {gain:.1f} times fewer steps"
        result = "solved" if is_done else "of no use" if gain else "it fails its test"
        yield Event(today, AGENT, f"{said}: {result}.")
        misled += (about, remedy) in failed  # it had been tried and written down
        failed |= set() if is_done else {(about, remedy)}
        if is_done or tried == TASK_TRIES:
            yield Score(Outcome(job.task, is_done, f"{said}." if is_done else "", today), tried, misled)
            return


def chosen(lines: Sequence[str], like: Sequence[str], left: Sequence[str]) -> str:
    """Choose the most helpful remedy for the same shape and data, else for the shape; else the first."""
    expected = dict.fromkeys(left, NOTHING_KNOWN)
    for words in like:  # the latest line about the most similar task counts
        for line in (each for each in reversed(lines) if words in each):
            for remedy in left:
                if f"{remedy} made" in line and (gain := GAIN.search(line)):
                    expected[remedy] = float(gain[1])
    return max(left, key=lambda each: expected[each])


WORK_FAMILY = Family("work", partial(repeated, "work", _queries, (*INDEXES_BY_REMEDY,)), (AGENT,))
