"""The query-tuning world on SQLite: a file per schema, seed and size; each run works on a copy in memory.

Times are the thread's CPU seconds: the copy is in memory, so that nothing waits for a disk, and a
neighbour on the same machine does not slow the clock.
"""

import atexit
import shutil
import sqlite3
import tempfile
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from functools import cache, partial
from pathlib import Path
from typing import Literal

from mneme.environments.sql_tuning.adversarial import ColumnFacts, Kind, rows_for
from mneme.environments.sql_tuning.analysis import Catalogue
from mneme.environments.sql_tuning.failures import Failed, Late, Refused, Stopped
from mneme.environments.sql_tuning.generating import Row, draw
from mneme.environments.sql_tuning.records import Limits
from mneme.environments.sql_tuning.schemas import Schema

KEPT = 24  # databases that are kept; beyond that the oldest is created again when needed
STEPS = 20_000  # of SQLite's machine between two looks at the clock: about a millisecond
CHUNK = 200
REAL_ROWS = 200  # of which those that tell rewritings apart take cells

ASKING = {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_RECURSIVE}
PREPARING = ASKING | {
    sqlite3.SQLITE_CREATE_INDEX,
    sqlite3.SQLITE_REINDEX,
    sqlite3.SQLITE_ANALYZE,
    sqlite3.SQLITE_INSERT,
    sqlite3.SQLITE_UPDATE,
    sqlite3.SQLITE_DELETE,
    sqlite3.SQLITE_CREATE_TABLE,
    sqlite3.SQLITE_TRANSACTION,
}
CATALOGUE = ("sqlite_master", "sqlite_schema", "sqlite_stat1", "sqlite_stat4", "sqlite_sequence")
FILE_FUNCTIONS = ("load_extension", "readfile", "writefile", "edit", "fts3_tokenizer")
ENDLESS_FUNCTIONS = (
    "printf",
    "format",
)  # one call can run without end, and the time limit is not checked during it

Mode = Literal["own", "asking", "preparing"]


class SqliteWorld:
    """A database that does not change; `copy` gives copies in memory."""

    dialect: Literal["sqlite"] = "sqlite"
    clock: Literal["cpu"] = "cpu"

    def __init__(self, schema: Schema, seed: int, rows: int) -> None:
        self.catalogue: Catalogue = schema.tables()
        self.key = f"sqlite {schema.name} {seed} {rows}"
        self._made_of = (schema, seed, rows)
        _open(*self._made_of).close()

    def copy(self, limits: Limits) -> AbstractContextManager["SqliteCopy"]:
        """Yield a copy in memory, which is deleted at the end."""
        return copied(partial(_open, *self._made_of), self.catalogue, limits)

    def again(self) -> "SqliteWorld":
        """Return this: each copy is its own."""
        return self

    def twin(self, query: str, limits: Limits) -> AbstractContextManager["SqliteCopy"]:
        """Yield the same tables in memory, with rows that tell rewritings apart."""
        return twin_of(partial(_open, *self._made_of), self.catalogue, query, limits)

    def smaller(self, by: int) -> "SqliteWorld":
        """Return the same schema with so many times fewer rows."""
        schema, seed, rows = self._made_of
        return SqliteWorld(schema, seed, max(100, rows // by))

    def close(self) -> None:
        """Do nothing: the made database serves others of this process."""


class SqliteCopy:
    """A temporary copy in which statements of a solution run."""

    def __init__(self, copy: sqlite3.Connection, tables: Sequence[str], limits: Limits) -> None:
        self._copy = copy
        self._tables = {name.lower() for name in tables}
        self._limits = limits
        self._mode: Mode = "own"
        self._denied = ""
        self._deadline = self._seconds = 0.0
        copy.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 1_000_000)
        copy.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
        copy.setlimit(sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 1_000)
        copy.set_authorizer(self._authorize)
        copy.set_progress_handler(self._is_late, STEPS)

    def prepare(self, sql: str) -> None:
        """Run a preparatory statement."""
        with self._as("preparing", sql):
            self._copy.execute(sql)

    def ask(self, sql: str, seconds: float | None = None) -> tuple[list[Row], float]:
        """Run a query, for so many seconds at most; give its rows and the seconds it took."""
        with self._as("asking", sql, seconds):
            before = time.thread_time()
            rows = self._rows(sql)
            return rows, time.thread_time() - before

    def plan(self, sql: str) -> str:
        """Describe how a query would run, a step on each line."""
        with self._as("asking", sql):
            steps = self._copy.execute(f"EXPLAIN QUERY PLAN {sql}").fetchall()
        return _indented(steps)

    def size(self) -> int:
        """Give the size of everything in the copy."""
        pages, free, size = (
            self._copy.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("page_count", "freelist_count", "page_size")
        )
        return int((pages - free) * size)

    def indexes(self, table: str) -> list[str]:
        """Give the statements of a table's indexes."""
        wanted = "SELECT sql FROM sqlite_master WHERE type = 'index' AND tbl_name = ? AND sql IS NOT NULL"
        return [str(sql) for (sql,) in self._copy.execute(wanted, (table,))]

    def _rows(self, sql: str) -> list[Row]:
        cursor = self._copy.execute(sql)
        rows: list[Row] = []
        size = 0
        while chunk := cursor.fetchmany(CHUNK):
            rows += chunk
            size += sum(len(cell) for row in chunk for cell in row if isinstance(cell, (str, bytes)))
            if len(rows) > self._limits.rows:
                raise Stopped(f"The result has more than {self._limits.rows} rows.")
            if size > self._limits.characters:
                raise Stopped(f"The result has more than {self._limits.characters} characters.")
        return rows

    @contextmanager
    def _as(self, mode: Mode, sql: str, seconds: float | None = None) -> Iterator[None]:
        self._mode, self._denied = mode, ""
        self._seconds = seconds or self._limits.seconds
        self._deadline = time.thread_time() + self._seconds
        try:
            yield
        except (sqlite3.Error, sqlite3.Warning, UnicodeError) as error:
            raise self._as_failure(error, sql) from error
        finally:
            self._mode = "own"

    def _as_failure(self, error: Exception, sql: str) -> Exception:
        if self._denied:
            return Refused(self._denied)
        if getattr(error, "sqlite_errorname", "") == "SQLITE_INTERRUPT":
            return Late(sql, self._seconds)
        return Failed(f"SQLite says: {error}")

    def _is_late(self) -> int:
        return int(self._mode != "own" and time.thread_time() > self._deadline)

    def _authorize(
        self, action: int, first: str | None, second: str | None, database: str | None, _: str | None
    ) -> int:
        """Allow what the mode allows; SQLite calls this for each part of a statement."""
        if self._mode == "own":
            return sqlite3.SQLITE_OK
        self._denied = self._objection(action, (first or "").lower(), (second or "").lower(), database)
        return sqlite3.SQLITE_DENY if self._denied else sqlite3.SQLITE_OK

    def _objection(self, action: int, first: str, second: str, database: str | None) -> str:
        if action == sqlite3.SQLITE_FUNCTION:
            return (
                f"The function {second!r} is refused." if second in FILE_FUNCTIONS + ENDLESS_FUNCTIONS else ""
            )
        if action not in (PREPARING if self._mode == "preparing" else ASKING):
            return f"A statement of this kind may not do that (SQLite's action {action} on {first!r})."
        if action == sqlite3.SQLITE_READ:
            return self._objection_to_reading(first, named=database is not None)
        writes = action in (sqlite3.SQLITE_INSERT, sqlite3.SQLITE_UPDATE, sqlite3.SQLITE_DELETE)
        if writes or action == sqlite3.SQLITE_CREATE_TABLE:
            return "" if first in CATALOGUE else f"Nothing may be written into {first!r}."
        return ""

    def _objection_to_reading(self, table: str, *, named: bool) -> str:
        """Object to reading other tables; what is named without a database is a part of the query."""
        if not named or table in self._tables or (self._mode == "preparing" and table in CATALOGUE):
            return ""
        return f"The table {table!r} may not be read."


@contextmanager
def copied(
    opened: Callable[[], sqlite3.Connection], catalogue: Catalogue, limits: Limits
) -> Iterator[SqliteCopy]:
    """Yield a copy in memory of a database, which is deleted at the end."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as copy:
        with closing(opened()) as original:
            original.backup(copy)
        yield SqliteCopy(copy, list(catalogue), limits)


@contextmanager
def twin_of(
    opened: Callable[[], sqlite3.Connection], catalogue: Catalogue, query: str, limits: Limits
) -> Iterator[SqliteCopy]:
    """Yield the tables of a database in memory, with the rows of `adversarial` instead of its own."""
    with (
        closing(sqlite3.connect(":memory:", isolation_level=None)) as twin,
        closing(opened()) as original,
    ):
        for statement in statements_of(original):
            twin.execute(statement)
        facts = {table: columns_of(original, table) for table in catalogue if is_table(original, table)}
        real = {table: _some_rows(original, table, facts[table]) for table in facts}
        for table, rows in rows_for(query, catalogue, "sqlite", facts, real).items():
            insert(twin, table, facts[table], rows)
        yield SqliteCopy(twin, list(catalogue), limits)


def statements_of(database: sqlite3.Connection) -> list[str]:
    """Return the statements that make a database's tables, views and indexes."""
    found = database.execute(
        "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' "
        "AND type IN ('table', 'view', 'index') AND sql NOT LIKE 'CREATE VIRTUAL%' "
        "ORDER BY type = 'index', type = 'view'"
    )
    return [str(sql) for (sql,) in found]


def is_table(database: sqlite3.Connection, name: str) -> bool:
    """Say whether a name is a table's, not a view's."""
    found = database.execute("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?", (name,))
    return found.fetchone() is not None


def columns_of(database: sqlite3.Connection, table: str) -> list[ColumnFacts]:
    """Return the columns that rows are inserted with: none that SQLite computes."""
    found = database.execute(f"PRAGMA table_xinfo({quoted(table)})").fetchall()
    return [
        ColumnFacts(name=name, kind=kind_of(declared), nullable=not not_null and not key, key=key == 1)
        for _, name, declared, not_null, _, key, hidden in found
        if not hidden
    ]


def kind_of(declared: str) -> Kind:
    """Return what a column holds, by SQLite's rules of affinity."""
    said = declared.upper()
    if "INT" in said:
        return "whole"
    if any(word in said for word in ("CHAR", "CLOB", "TEXT")) or any(w in said for w in ("DATE", "TIME")):
        return "text"
    return "other" if not said or "BLOB" in said else "real"


def insert(
    database: sqlite3.Connection, table: str, columns: Sequence[ColumnFacts], rows: Sequence[Row]
) -> None:
    """Insert rows; one that a constraint of the table refuses is left out."""
    names = ", ".join(quoted(column.name) for column in columns)
    marks = ", ".join("?" * len(columns))
    database.executemany(f"INSERT OR IGNORE INTO {quoted(table)} ({names}) VALUES ({marks})", rows)


def quoted(name: str) -> str:
    """Write a name as SQLite reads any name."""
    return '"' + name.replace('"', '""') + '"'


def _some_rows(database: sqlite3.Connection, table: str, columns: Sequence[ColumnFacts]) -> list[Row]:
    names = ", ".join(quoted(column.name) for column in columns)
    return database.execute(f"SELECT {names} FROM {quoted(table)} LIMIT {REAL_ROWS}").fetchall()


def _indented(steps: Sequence[Row]) -> str:
    depth: dict[object, int] = {0: -1}
    lines = []
    for step, parent, _, words in steps:
        depth[step] = depth.get(parent, -1) + 1
        lines.append(f"{'  ' * depth[step]}{words}")
    return "\n".join(lines)


_making = threading.Lock()
_made: OrderedDict[tuple[str, int, int], Path] = OrderedDict()


@cache
def folder() -> Path:
    """Make the folder of this process's databases, which goes with it."""
    folder = Path(tempfile.mkdtemp(prefix="mneme-sql-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _open(schema: Schema, seed: int, rows: int) -> sqlite3.Connection:
    """Open a database for copying, made on first use."""
    key = (schema.name, seed, rows)
    with _making:
        if key not in _made:
            _made[key] = _make(folder() / f"{schema.name}-{seed}-{rows}.db", schema, seed, rows)
        _made.move_to_end(key)
        if len(_made) > KEPT:
            _made.popitem(last=False)[1].unlink()
        return sqlite3.connect(f"file:{_made[key]}?mode=ro", uri=True)


def _make(path: Path, schema: Schema, seed: int, rows: int) -> Path:
    path.unlink(missing_ok=True)  # a making that was interrupted
    made = sqlite3.connect(path, isolation_level=None)
    try:
        made.execute("PRAGMA journal_mode = OFF")
        made.execute("PRAGMA synchronous = OFF")
        made.execute("BEGIN")
        drawn = draw(schema, seed, rows)
        for table, columns in schema.tables().items():
            key, *others = columns
            declared = [
                f"{key} INTEGER PRIMARY KEY",
                *(f"{name} {columns[name]} NOT NULL" for name in others),
            ]
            made.execute(f"CREATE TABLE {table} ({', '.join(declared)})")
            marks = ", ".join("?" * len(columns))
            made.executemany(f"INSERT INTO {table} VALUES ({marks})", drawn[table])
        made.execute("COMMIT")
    finally:
        made.close()
    return path
