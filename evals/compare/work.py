"""Work that repeats: slow queries on SQLite, and the remedy to try first.

Each task is a query; each try carries out a remedy on the table and counts the steps of SQLite's virtual
machine, which are the same in every run. What helped one query helps the next of its shape and selectivity,
and misleads where the shape is the same and the data is not: an index on a column of which half of the rows
have one value helps nothing.
"""

import re
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from random import Random
from typing import NamedTuple

from mneme.evals.compare.course import Course, Family, Score, Situation, day, drawing
from mneme.evals.compare.memory import Event, Outcome

AGENT = "tuner"
ROWS = 500
WANTED = 4.0
"""How many times fewer steps solve a task."""
TRIES = 2
COUNTED = 10
"""Steps of the virtual machine from one count to the next."""
TABLES = ("orders", "visits", "parcels", "tickets", "rentals", "claims", "readings", "calls")
VALUES = (2, 100)
"""How many values a column may have: the selectivity of an equality on it."""
NOTHING_KNOWN = 1.5
"""The gain that is expected of a remedy of which nothing is known."""
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
REMEDIES = {
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
        """Count, in tens, the steps that a query takes after a remedy."""
        chance, counted = drawing(f"{self.name} {self.seed}"), 1
        rows = [
            (chance.randrange(self.values["status"]), chance.randrange(self.values["customer"]),
             f"Note {chance.randrange(self.values['note'])}", chance.randrange(1_000_000), chance.random())
            for _ in range(ROWS)
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
            base.set_progress_handler(count, COUNTED)
            base.execute(sql).fetchall()
        return counted


def work(seed: int, size: int) -> Course:
    """Tune so many queries, one after the other."""
    chance, failed = drawing(f"work {seed}"), set[tuple[str, str]]()
    tables = [
        Table(name, seed, {column: chance.choice(VALUES) for column in ("status", "customer", "note")})
        for name in TABLES
    ]
    for number in range(size):
        yield from _tune(chance.choice(tables), chance.choice([*SHAPES]), day(number), chance, failed)


def _tune(table: Table, shape: str, today: str, chance: Random, failed: set[tuple[str, str]]) -> Course:
    """Try remedies until one helps; a try that failed on the same shape and data before was misled."""
    column = next((each for each in table.values if each in shape), "customer")
    about = f"{shape} (the {column} has {table.values[column]} values)"
    sql, left = SHAPES[shape].format(t=table.name), list(REMEDIES)
    chance.shuffle(left)
    task = f"A query on {table.name} is slow. It has {about}: {sql}"
    before, misled = table.steps(sql), 0
    for tried in range(1, TRIES + 1):
        text = f"{task} Which remedy is tried next? It has to take {WANTED:.0f} times fewer steps."
        answer = yield Situation(text, lambda lines: chosen(lines, (shape, about), left), tuple(left))
        remedy = answer if answer in left else left[0]
        left.remove(remedy)
        gain = before / table.steps(sql, REMEDIES[remedy])
        is_done, said = (
            gain >= WANTED,
            f"{about} in {table.name}: {remedy} made it take {gain:.1f} times fewer steps",
        )
        yield Event(today, AGENT, f"{said}: {'solved' if is_done else 'of no use'}.")
        misled += (about, remedy) in failed
        failed |= set() if is_done else {(about, remedy)}
        if is_done or tried == TRIES:
            yield Score(Outcome(task, is_done, f"{said}." if is_done else "", today), tried, misled)
            return


def chosen(lines: Sequence[str], like: Sequence[str], left: Sequence[str]) -> str:
    """Choose what helped most where shape and data were alike, else where the shape was; else the first."""
    expected = dict.fromkeys(left, NOTHING_KNOWN)
    for words in like:  # what is said last, of what is most alike, counts
        for line in (each for each in reversed(lines) if words in each):
            for remedy in left:
                if f"{remedy} made" in line and (gain := GAIN.search(line)):
                    expected[remedy] = float(gain[1])
    return max(left, key=lambda each: expected[each])


WORK = Family("work", work, (AGENT,))
