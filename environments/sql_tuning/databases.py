"""Common part of SQLite and PostgreSQL: a database that stays unchanged, and copies for solutions."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, ClassVar, Literal

from mneme.environments.sql_tuning.generating import adversarial_rows
from mneme.environments.sql_tuning.guard import Dialect
from mneme.environments.sql_tuning.records import ColumnFacts, Kind, Limits, Row, Stopped

ROWS_PER_FETCH = 200  # so few that a result over the limits is noticed before memory is full
SIGNIFICANT_DIGITS = 10
"""Significant digits of a floating-point number: a sum in another order differs in the last ones."""
MAX_ROWS = 300_000
"""Maximum number of rows that are copied from each table of a large database."""
REAL_ROWS = 200
"""Rows of each table whose cells are mixed into adversarial rows."""
SQL_TYPES: Mapping[Kind, str] = {"whole": "INTEGER", "real": "REAL", "text": "TEXT", "other": "OTHER"}


class DatabaseCopy(ABC):
    """A temporary copy in which statements of a solution run."""

    clock: ClassVar[Callable[[], float]]
    _limits: Limits

    @abstractmethod
    def prepare(self, sql: str) -> None:
        """Run a preparatory statement."""

    def ask(self, sql: str, seconds: float | None = None) -> tuple[list[Row], float]:
        """Run a query, for so many seconds at most; return its rows and the seconds it took.

        Floating-point numbers are rounded to SIGNIFICANT_DIGITS.
        """
        clock = type(self).clock  # mypy would take `self.clock` for a bound method
        with self._guarded(sql, seconds or self._limits.seconds):
            before = clock()  # both databases compute rows while they are fetched, so that fetching counts
            rows, size = list[Row](), 0
            with self._cursor(sql) as cursor:
                while chunk := cursor.fetchmany(ROWS_PER_FETCH):
                    rows += chunk
                    size += sum(len(cell) for row in chunk for cell in row if isinstance(cell, (str, bytes)))
                    if len(rows) > self._limits.rows:
                        raise Stopped(f"The result has more than {self._limits.rows} rows.")
                    if size > self._limits.characters:
                        raise Stopped(f"The result has more than {self._limits.characters} characters.")
            took = clock() - before
        return [tuple(map(_comparable, row)) for row in rows], took

    @abstractmethod
    def plan(self, sql: str) -> str:
        """Describe how a query would run, a step on each line."""

    @abstractmethod
    def size(self) -> int:
        """Return the size of all tables and indexes."""

    @abstractmethod
    def indexes(self, table: str) -> list[str]:
        """Return the statements of a table's indexes."""

    @abstractmethod
    def _guarded(self, sql: str, seconds: float, *, writing: bool = False) -> AbstractContextManager[None]:
        """Limit the time and the access of the code inside. Raises Refused, Late, Failed."""

    @abstractmethod
    def _cursor(self, sql: str) -> AbstractContextManager[Any]: ...


def _comparable(cell: Any) -> Hashable:
    if isinstance(cell, float):
        return float(f"{cell:.{SIGNIFICANT_DIGITS}g}")
    return cell if isinstance(cell, Hashable) else repr(cell)  # PostgreSQL's arrays and documents


class Database(ABC):
    """An unchanged database: one that Mneme includes, or a snapshot of the user's own."""

    dialect: Dialect
    clock: Literal["cpu", "wall"]
    key: str
    columns: Mapping[str, Sequence[ColumnFacts]]
    """The columns of each table; views are left out, since nothing can be inserted into them."""
    catalogue: dict[str, dict[str, str]]
    """Tables and views, with their columns and types, the key first."""

    @abstractmethod
    def copy(self, limits: Limits) -> AbstractContextManager[DatabaseCopy]:
        """Yield a copy, whose changes are discarded at the end. Several can be open at a time."""

    @abstractmethod
    def twin(self, query: str, limits: Limits) -> AbstractContextManager[DatabaseCopy]:
        """Yield the same tables with rows that distinguish rewritings."""

    @abstractmethod
    def smaller(self, by: int) -> "Database":
        """Return the same database with so many times fewer rows."""

    def _adversarial(self, query: str, connection: Any, place: str = "") -> Iterable[tuple[str, list[Row]]]:
        """Draw rows for each table of a query, with some of the real ones between."""
        real = dict[str, list[Row]]()
        for table, columns in self.columns.items():
            chosen = f"SELECT {names_of(columns)} FROM {place}{quoted(table)} LIMIT {REAL_ROWS}"
            # psycopg's types want bytes where a statement is put together; sqlite3 takes text alone.
            real[table] = connection.execute(chosen.encode() if place else chosen).fetchall()
        return adversarial_rows(query, self.catalogue, self.dialect, self.columns, real).items()


def catalogue_of(columns: Mapping[str, Sequence[ColumnFacts]]) -> dict[str, dict[str, str]]:
    """Return tables with their columns and types, the key first."""
    return {
        table: {each.name: SQL_TYPES[each.kind] for each in sorted(found, key=lambda column: not column.key)}
        for table, found in columns.items()
    }


def quoted(name: str) -> str:
    """Quote a name in the way that both databases accept."""
    return '"' + name.replace('"', '""') + '"'


def names_of(columns: Sequence[ColumnFacts]) -> str:
    """List columns as a statement does."""
    return ", ".join(quoted(column.name) for column in columns)
