"""Fill the tables of a SQLite database that has statements but no rows."""

import random
import sqlite3
from collections.abc import Mapping, Sequence
from datetime import timedelta

from mneme.environments.sql_tuning.generating import SECONDS, WORDS, Row
from mneme.environments.sql_tuning.schemas import END

REFERENCED = 50
"""A table that others refer to has one row for so many of theirs."""
NULLS = 0.01
CONSTANT = 0.02
"""How often a column has a constant that the query compares it with."""
TIMES = ("DATE", "TIME", "_AT", "_ON")
Known = Mapping[tuple[str, str], Sequence[object]]
"""Constants that a query compares a column with, by table and column."""


def fill(made: sqlite3.Connection, rows: int, known: Known) -> list[str]:
    """Fill each empty table, those that others refer to first; return the names of those filled."""
    tables = [name for (name,) in made.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    empty = [
        table
        for table in tables
        if not table.startswith("sqlite_") and not made.execute(f'SELECT 1 FROM "{table}" LIMIT 1').fetchone()
    ]
    refers = {
        table: {key[3]: key[2] for key in made.execute(f'PRAGMA foreign_key_list("{table}")')}
        for table in empty
    }
    referred = {other for each in refers.values() for other in each.values()}
    sizes = {table: max(10, rows // REFERENCED) if table in referred else rows for table in empty}
    for table in sorted(empty, key=lambda each: each not in referred):
        _Filler(table, sizes, refers[table], known).fill(made)
    return empty


class _Filler:
    """What the cells of one table are drawn from."""

    def __init__(self, table: str, sizes: Mapping[str, int], refers: Mapping[str, str], known: Known) -> None:
        self.table, self.size = table, sizes[table]
        self._refers = {name: sizes.get(other, REFERENCED) for name, other in refers.items()}
        self._known = known
        self._dice = random.Random(table)  # noqa: S311

    def fill(self, made: sqlite3.Connection) -> None:
        """Insert the rows; one that a constraint refuses is left out."""
        columns = [row for row in made.execute(f'PRAGMA table_xinfo("{self.table}")') if not row[6]]
        names = ", ".join(f'"{column[1]}"' for column in columns)
        drawn = ([self._cell(column, number) for column in columns] for number in range(1, self.size + 1))
        marks = ", ".join("?" * len(columns))
        made.executemany(f'INSERT OR IGNORE INTO "{self.table}" ({names}) VALUES ({marks})', drawn)

    def _cell(self, column: Row, number: int) -> object:
        name, kind, not_null, key = str(column[1]), str(column[2]).upper(), column[3], column[5]
        if key == 1 and "INT" in kind:
            return number
        if name in self._refers:
            return 1 + int(self._dice.random() ** 2 * self._refers[name])
        if not not_null and self._dice.random() < NULLS:
            return None
        known = self._known.get((self.table, name))
        return (
            self._dice.choice(known) if known and self._dice.random() < CONSTANT else self._drawn(name, kind)
        )

    def _drawn(self, name: str, kind: str) -> object:
        if any(each in kind or name.lower().endswith(each.lower()) for each in TIMES):
            return f"{END - timedelta(seconds=self._dice.randrange(SECONDS)):%Y-%m-%d %H:%M:%S}"
        if "INT" in kind:
            return self._dice.randrange(max(10, self.size // 10))
        if any(each in kind for each in ("REAL", "FLOA", "DOUB", "NUM", "DEC")):
            return round(self._dice.lognormvariate(4, 1), 2)
        return f"{self._dice.choice(WORDS)}-{self._dice.randrange(1000)}"
