"""Query tuning on SQLite: one file for each database of this process, and copies of it in memory.

The file is drawn for a schema that comes with Mneme, made by CREATE TABLE statements, or read from a file of
the user's own, which is never written to. Times are the thread's CPU seconds: the copy is in memory, so that
nothing waits for a disk, and a neighbour on the same machine does not slow the clock.
"""

import atexit
import hashlib
import shutil
import sqlite3
import tempfile
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from functools import cache, partial
from pathlib import Path
from typing import Literal
from urllib.parse import quote

from mneme.core.errors import BadInput
from mneme.environments.sql_tuning.analysis import qualified
from mneme.environments.sql_tuning.databases import (
    MAX_ROWS,
    Database,
    DatabaseCopy,
    catalogue_of,
    names_of,
    quoted,
)
from mneme.environments.sql_tuning.generating import Schema, constants_of, draw, filled
from mneme.environments.sql_tuning.records import ColumnFacts, Failed, Kind, Late, Limits, Refused, Row

MAX_DATABASE_FILES = 24  # files that are kept; beyond that the oldest is made again when needed
STEPS_BETWEEN_CHECKS = 20_000  # of SQLite's machine between two looks at the clock: about a millisecond
MAX_COPIED_BYTES = 64 * 2**20
"""Maximum bytes of a user's database that is copied whole; a larger one is sampled."""

READING = {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_RECURSIVE}
WRITING = {sqlite3.SQLITE_INSERT, sqlite3.SQLITE_UPDATE, sqlite3.SQLITE_DELETE, sqlite3.SQLITE_CREATE_TABLE}
INDEXING = {sqlite3.SQLITE_CREATE_INDEX, sqlite3.SQLITE_REINDEX, sqlite3.SQLITE_ANALYZE}
PREPARING = READING | WRITING | INDEXING | {sqlite3.SQLITE_TRANSACTION}
CATALOGUE = ("sqlite_master", "sqlite_schema", "sqlite_stat1", "sqlite_stat4", "sqlite_sequence")
REFUSED_FUNCTIONS = (
    *("load_extension", "readfile", "writefile", "edit", "fts3_tokenizer"),
    *("printf", "format"),  # one call can run without end, and the time limit is not checked during it
)
FILLABLE = "type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'"
READABLE = "type IN ('table', 'view')"

Mode = Literal["own", "asking", "preparing"]
Make = Callable[[sqlite3.Connection], None]


class SqliteDatabase(Database):
    """A database in a file of this process's, made on first use."""

    dialect: Literal["sqlite"] = "sqlite"
    clock: Literal["cpu"] = "cpu"

    def __init__(self, key: str, make: Make) -> None:
        self.key, self._make = key, make
        with closing(self._open()) as opened:
            self.columns = columns_of(opened)
            self.catalogue = catalogue_of(columns_of(opened, READABLE))

    @classmethod
    def drawn(cls, schema: Schema, seed: int, rows: int) -> "SqliteDatabase":
        """Draw the rows of a schema that comes with Mneme."""
        return cls(f"sqlite {schema.name} {seed} {rows}", partial(_draw, schema, seed, rows))

    @classmethod
    def declared(cls, ddl: str, query: str, rows: int) -> "SqliteDatabase":
        """Run CREATE TABLE statements, and fill the tables that stay empty. Raises BadInput."""
        return cls(f"ddl {ddl} {query} {rows}", partial(_declare, ddl, query, rows))

    @classmethod
    def read(cls, database: str) -> "SqliteDatabase":
        """Read a user's file, once for each state of it. Raises BadInput."""
        file = Path(database).resolve()
        if not file.is_file():
            raise BadInput(f"There is no database {database}.", "Give a SQLite file, or postgresql://….")
        state = file.stat()
        return cls(f"own {file} {state.st_mtime_ns} {state.st_size}", partial(_read, file, state.st_size))

    @contextmanager
    def copy(self, limits: Limits) -> Iterator["SqliteCopy"]:
        """Yield a copy in memory, which is deleted at the end."""
        # Without an isolation level, sqlite3 begins no transaction of its own before a statement.
        with closing(sqlite3.connect(":memory:", isolation_level=None)) as copy:
            with closing(self._open()) as original:
                original.backup(copy)
            yield SqliteCopy(copy, limits, list(self.catalogue))

    @contextmanager
    def twin(self, query: str, limits: Limits) -> Iterator["SqliteCopy"]:
        """Yield the same tables in memory, with rows that distinguish rewritings."""
        with closing(sqlite3.connect(":memory:", isolation_level=None)) as twin:
            with closing(self._open()) as original:
                for statement in statements_of(original):
                    twin.execute(statement)
                for table, rows in self._adversarial(query, original):
                    insert(twin, table, self.columns[table], rows)
            yield SqliteCopy(twin, limits, list(self.catalogue))

    def smaller(self, by: int) -> "SqliteDatabase":
        """Return the database with so many times fewer rows in its large tables, at least about 100 each."""

        def thinned(target: sqlite3.Connection) -> None:
            with closing(self._open()) as original:
                (_, _, file) = original.execute("PRAGMA database_list").fetchone()
                _sample(original, target, file, lambda rows: min(by, rows // 100) if rows > 1000 else 1)

        return SqliteDatabase(f"{self.key} by {by}", thinned)

    def _open(self) -> sqlite3.Connection:
        """Open the file for reading, made on first use."""
        file = _folder() / f"{hashlib.sha256(self.key.encode()).hexdigest()[:16]}.db"
        with _making:
            if self.key not in _made:
                file.unlink(missing_ok=True)  # a making that was interrupted
                # As a URI, so that ATTACH in `_sample` takes one, too: with mode=ro.
                with closing(sqlite3.connect(file, uri=True, isolation_level=None)) as made:
                    self._make(made)
                _made[self.key] = file
            _made.move_to_end(self.key)
            if len(_made) > MAX_DATABASE_FILES:
                _made.popitem(last=False)[1].unlink()  # an open connection can still read it
            return sqlite3.connect(f"file:{file}?mode=ro", uri=True)


class SqliteCopy(DatabaseCopy):
    """A copy in memory in which statements of a solution run."""

    clock = time.thread_time

    def __init__(self, copy: sqlite3.Connection, limits: Limits, tables: Sequence[str]) -> None:
        self._connection, self._limits = copy, limits
        self._tables = {name.lower() for name in tables}
        self._mode: Mode = "own"
        self._denied = ""
        self._deadline = 0.0
        # The deadline is not looked at within one function call, so a call may not grow without end.
        copy.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 1_000_000)
        copy.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)  # no other file is opened
        copy.setlimit(sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 1_000)  # matching may take the square of it
        copy.set_authorizer(self._authorize)  # SQLite's own judgement, beside that of `guard`
        copy.set_progress_handler(
            lambda: int(self._mode != "own" and time.thread_time() > self._deadline), STEPS_BETWEEN_CHECKS
        )

    def prepare(self, sql: str) -> None:
        """Run a preparatory statement."""
        with self._guarded(sql, self._limits.seconds, writing=True):
            self._connection.execute(sql)

    def size(self) -> int:
        """Return the size of everything in the copy."""
        pages, free, size = (
            self._connection.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("page_count", "freelist_count", "page_size")
        )
        return int((pages - free) * size)  # pages that a deletion has freed stay in the file

    def indexes(self, table: str) -> list[str]:
        """Return the statements of a table's indexes."""
        wanted = "SELECT sql FROM sqlite_master WHERE type = 'index' AND tbl_name = ? AND sql IS NOT NULL"
        return [str(sql) for (sql,) in self._connection.execute(wanted, (table,))]

    def _cursor(self, sql: str) -> AbstractContextManager[sqlite3.Cursor]:
        return closing(self._connection.execute(sql))

    def plan(self, sql: str) -> str:
        """Describe how a query would run, a step on each line."""
        depth: dict[object, int] = {0: -1}
        lines = []
        with self._guarded(sql, self._limits.seconds):
            steps = self._connection.execute(f"EXPLAIN QUERY PLAN {sql}").fetchall()
        for step, parent, _, words in steps:
            depth[step] = depth.get(parent, -1) + 1
            lines.append(f"{'  ' * depth[step]}{words}")
        return "\n".join(lines)

    @contextmanager
    def _guarded(self, sql: str, seconds: float, *, writing: bool = False) -> Iterator[None]:
        self._mode, self._denied = "preparing" if writing else "asking", ""
        self._deadline = time.thread_time() + seconds
        try:
            yield
        except (sqlite3.Error, sqlite3.Warning, UnicodeError) as error:
            if self._denied:
                raise Refused(self._denied) from error
            if getattr(error, "sqlite_errorname", "") == "SQLITE_INTERRUPT":
                raise Late(sql, seconds) from error
            raise Failed(f"SQLite says: {error}") from error
        finally:
            self._mode = "own"

    def _authorize(
        self, action: int, first: str | None, second: str | None, database: str | None, _: str | None
    ) -> int:
        """Return SQLite's code: allowed or denied by the mode. It is asked for each part of a statement."""
        name, function, prepares = (first or "").lower(), (second or "").lower(), self._mode == "preparing"
        # COUNT(*), and what a WITH clause names, is read without naming a database.
        known = database is None or name in self._tables or (prepares and name in CATALOGUE)
        self._denied = ""
        if self._mode == "own":
            return sqlite3.SQLITE_OK
        if action == sqlite3.SQLITE_FUNCTION:
            if function in REFUSED_FUNCTIONS:
                self._denied = f"The function {function!r} is refused."
        elif action not in (PREPARING if prepares else READING):
            self._denied = f"A statement of this kind may not do that (SQLite's action {action} on {name!r})."
        elif action in WRITING and name not in CATALOGUE:  # CREATE INDEX and ANALYZE write into those
            self._denied = f"Nothing may be written into {name!r}."
        elif action == sqlite3.SQLITE_READ and not known:
            self._denied = f"The table {name!r} may not be read."
        return sqlite3.SQLITE_DENY if self._denied else sqlite3.SQLITE_OK


def statements_of(database: sqlite3.Connection) -> list[str]:
    """Return the statements that make a database's tables, views and indexes."""
    found = database.execute(
        "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' "
        "AND type IN ('table', 'view', 'index') AND sql NOT LIKE 'CREATE VIRTUAL%' "
        "ORDER BY type = 'index', type = 'view'"
    )
    return [str(sql) for (sql,) in found]


def columns_of(database: sqlite3.Connection, kinds: str = FILLABLE) -> dict[str, list[ColumnFacts]]:
    """Return the columns of each table that rows are inserted with: none that SQLite computes."""
    columns = dict[str, list[ColumnFacts]]()
    listed = f"SELECT name FROM sqlite_master WHERE {kinds} AND name NOT GLOB 'sqlite*'"
    found = [
        (table, *column)
        for (table,) in database.execute(listed).fetchall()
        for column in database.execute(f"PRAGMA table_xinfo({quoted(table)})").fetchall()
    ]
    for table, _, name, declared, not_null, _, key, hidden in found:
        if hidden:  # a generated column, or an argument of a virtual table
            continue
        words = declared.upper()
        kind: Kind = "real"  # as SQLite's rules of affinity have it
        is_time = "DATE" in words or "TIME" in words
        if "INT" in words:
            kind = "whole"
        elif is_time or any(word in words for word in ("CHAR", "CLOB", "TEXT")):
            kind = "text"
        elif not words or "BLOB" in words:
            kind = "other"
        nullable = not not_null and not key
        facts = ColumnFacts(name=name, kind=kind, nullable=nullable, key=key == 1, is_time=is_time)
        columns.setdefault(table, []).append(facts)
    return columns


def insert(
    database: sqlite3.Connection, table: str, columns: Sequence[ColumnFacts], rows: Iterable[Row]
) -> None:
    """Insert rows; one that a constraint of the table refuses is left out."""
    marks = ", ".join("?" * len(columns))
    database.executemany(
        f"INSERT OR IGNORE INTO {quoted(table)} ({names_of(columns)}) VALUES ({marks})", rows
    )


_making = threading.RLock()  # re-entered: `smaller` opens the whole database to make the thinned one
_made: OrderedDict[str, Path] = OrderedDict()


@cache
def _folder() -> Path:
    """Create the folder of this process's databases, which is deleted with the process."""
    folder = Path(tempfile.mkdtemp(prefix="mneme-sql-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _draw(schema: Schema, seed: int, rows: int, made: sqlite3.Connection) -> None:
    # No journal: an interrupted making is begun anew.
    made.executescript("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; BEGIN")
    drawn = draw(schema, seed, rows)
    for table, columns in schema.tables().items():
        key, *others = columns
        declared = [f"{key} INTEGER PRIMARY KEY", *(f"{name} {columns[name]} NOT NULL" for name in others)]
        made.execute(f"CREATE TABLE {table} ({', '.join(declared)})")
        marks = ", ".join("?" * len(columns))
        made.executemany(f"INSERT INTO {table} VALUES ({marks})", drawn[table])
    made.execute("COMMIT")


def _declare(ddl: str, query: str, rows: int, made: sqlite3.Connection) -> None:
    made.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)  # the user's script makes tables, and opens no file
    try:
        made.executescript(ddl)
    except sqlite3.Error as wrong:
        hint = "Give CREATE TABLE … as SQLite reads it."
        raise BadInput(f"The schema cannot be made: SQLite says: {wrong}", hint) from wrong
    made.execute("BEGIN")
    known = constants_of(qualified(query, catalogue_of(columns_of(made, READABLE)), "sqlite"))
    columns = {
        table: found
        for table, found in columns_of(made).items()
        if not made.execute(f"SELECT 1 FROM {quoted(table)} LIMIT 1").fetchone()
    }
    keys = {table: made.execute(f"PRAGMA foreign_key_list({quoted(table)})").fetchall() for table in columns}
    refers = {table: {each[3]: each[2] for each in found} for table, found in keys.items()}
    for table, drawn in filled(columns, refers, rows, known):
        insert(made, table, columns[table], drawn)
    made.execute("COMMIT")


def _read(file: Path, size: int, copy: sqlite3.Connection) -> None:
    try:
        with closing(sqlite3.connect(f"file:{quote(str(file))}?mode=ro", uri=True)) as original:
            if size <= MAX_COPIED_BYTES:
                original.backup(copy)
            else:
                _sample(original, copy, str(file), lambda rows: -(-rows // MAX_ROWS))
        # A backup keeps the mode WAL, in which readers leave files beside the database.
        copy.execute("PRAGMA journal_mode = DELETE")
    except sqlite3.Error as wrong:
        raise BadInput(f"{file} cannot be read as a SQLite database: {wrong}", "Check the file.") from wrong


def _sample(
    original: sqlite3.Connection, copy: sqlite3.Connection, file: str, step: Callable[[int], int]
) -> None:
    """Take every n-th row of each table: small tables stay whole, so that joins find partners."""
    statements = statements_of(original)
    tables = [each for each in statements if each.upper().startswith("CREATE TABLE")]
    copy.execute("ATTACH ? AS source", (f"file:{quote(file)}?mode=ro",))
    copy.execute("BEGIN")
    for statement in tables:
        copy.execute(statement)
    for name, facts in columns_of(original).items():
        table, columns = quoted(name), names_of(facts)
        (rows,) = original.execute(f"SELECT COUNT(*) FROM {table}").fetchone()
        by = max(1, step(rows))
        taken = f"INSERT INTO {table} ({columns}) SELECT {columns} FROM source.{table}"
        try:
            copy.execute(f"{taken} WHERE rowid % {by} = 0" if by > 1 else taken)
        except sqlite3.OperationalError:  # a table WITHOUT ROWID
            copy.execute(f"{taken} LIMIT {max(1, rows // by)}")
    for statement in statements:
        if statement not in tables:  # indexes last: to keep them up to date for each row takes longer
            copy.execute(statement)
    copy.execute("COMMIT")
    copy.execute("DETACH source")
