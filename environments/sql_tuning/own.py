"""A database of the user's own: read once into a copy, a large one in part, and never written to."""

import hashlib
import sqlite3
from collections.abc import Callable
from contextlib import AbstractContextManager, closing
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal
from urllib.parse import quote

from mneme.core.errors import BadInput, needs
from mneme.environments.sql_tuning.adversarial import constants_of
from mneme.environments.sql_tuning.filling import fill
from mneme.environments.sql_tuning.records import Limits
from mneme.environments.sql_tuning.sqlite import (
    SqliteCopy,
    columns_of,
    copied,
    folder,
    quoted,
    statements_of,
    twin_of,
)

if TYPE_CHECKING:
    from mneme.environments.sql_tuning.postgres_own import OwnPostgres
    from mneme.environments.sql_tuning.tasks import TuningTask

WHOLE = 64 * 2**20
"""Bytes of a database that is copied whole; of a larger one, rows are taken."""
MOST_ROWS = 300_000
"""Rows that are taken of each table of a large database."""
Tables = dict[str, dict[str, str]]
Step = Callable[[int], int]


def is_postgres(database: str) -> bool:
    """Say whether a database is named by PostgreSQL's URL."""
    return database.startswith(("postgresql://", "postgres://"))


def open_own(task: "TuningTask", rows: int) -> "OwnSqlite | OwnPostgres":
    """Open the copy of a task's own database."""
    if is_postgres(task.database):
        with needs("PostgreSQL", "postgres"):
            from mneme.environments.sql_tuning.postgres_own import OwnPostgres  # noqa: PLC0415  (an extra)
        return OwnPostgres(task.database, MOST_ROWS, task.tables)
    if task.database:
        return OwnSqlite(_copy_of(task.database))
    return OwnSqlite(_made(task.ddl, task.query, rows))


def tables_of(database: str, ddl: str, query: str, rows: int) -> Tables:
    """Return an own database's tables and views, with their columns. Raises BadInput, StorageFailure."""
    if is_postgres(database):
        with needs("PostgreSQL", "postgres"):
            from mneme.environments.sql_tuning.postgres_own import OwnPostgres  # noqa: PLC0415  (an extra)
        with closing(OwnPostgres(database, MOST_ROWS)) as opened:
            return opened.catalogue
    return OwnSqlite(_copy_of(database) if database else _made(ddl, query, rows)).catalogue


class OwnSqlite:
    """A copy of a SQLite file, in this process's folder."""

    dialect: Literal["sqlite"] = "sqlite"
    clock: Literal["cpu"] = "cpu"

    def __init__(self, copy: Path, by: int = 1) -> None:
        self._file = copy if by == 1 else _thinned(copy, by)
        self.key = f"own {self._file}"
        with closing(self._open()) as opened:
            self.catalogue: Tables = _catalogue(opened)

    def _open(self) -> sqlite3.Connection:
        return sqlite3.connect(f"file:{quote(str(self._file))}?mode=ro", uri=True)

    def copy(self, limits: Limits) -> AbstractContextManager[SqliteCopy]:
        """Yield a copy in memory, which is deleted at the end."""
        return copied(self._open, self.catalogue, limits)

    def again(self) -> "OwnSqlite":
        """Return this: each copy is its own."""
        return self

    def twin(self, query: str, limits: Limits) -> AbstractContextManager[SqliteCopy]:
        """Yield the same tables in memory, with rows that tell rewritings apart."""
        return twin_of(self._open, self.catalogue, query, limits)

    def smaller(self, by: int) -> "OwnSqlite":
        """Return the copy with so many times fewer rows in its large tables."""
        return OwnSqlite(self._file, by)

    def close(self) -> None:
        """Do nothing: the copy serves others of this process."""


def _catalogue(opened: sqlite3.Connection) -> Tables:
    """Return tables and views with their columns, the key first."""
    names = opened.execute(
        "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite%'"
    ).fetchall()
    found: Tables = {}
    for (name,) in names:
        columns = opened.execute(f"PRAGMA table_info({quoted(name)})").fetchall()
        ordered = sorted(columns, key=lambda column: column[5] != 1)
        found[name] = {column[1]: _affinity(column[2]) for column in ordered}
    return found


def _affinity(declared: str) -> str:
    said = declared.upper()
    if "INT" in said:
        return "INTEGER"
    return "REAL" if any(word in said for word in ("REAL", "FLOA", "DOUB", "NUM", "DEC")) else "TEXT"


def _copy_of(database: str) -> Path:
    """Copy a file of the user's, read only, once for each state of it."""
    file = Path(database)
    if not file.is_file():
        raise BadInput(f"There is no database {database}.", "Give a SQLite file, or postgresql://….")
    state = file.stat()
    return _read(str(file.resolve()), state.st_mtime_ns, state.st_size)


@cache
def _read(database: str, changed: int, size: int) -> Path:
    target = folder() / f"own-{hashlib.sha256(f'{database} {changed} {size}'.encode()).hexdigest()[:16]}.db"
    target.unlink(missing_ok=True)
    try:
        with (
            closing(sqlite3.connect(f"file:{quote(database)}?mode=ro", uri=True)) as original,
            closing(sqlite3.connect(target, uri=True, isolation_level=None)) as copy,
        ):
            if size <= WHOLE:
                original.backup(copy)
            else:
                _sample(original, copy, database, partial(_step, most=MOST_ROWS))
            copy.execute("PRAGMA journal_mode = DELETE")
    except sqlite3.Error as unreadable:
        raise BadInput(
            f"{database} cannot be read as a SQLite database: {unreadable}", "Check the file."
        ) from unreadable
    return target


@cache
def _thinned(whole: Path, by: int) -> Path:
    target = whole.with_name(f"{whole.stem}-by-{by}.db")
    target.unlink(missing_ok=True)
    with (
        closing(sqlite3.connect(whole)) as original,
        closing(sqlite3.connect(target, uri=True, isolation_level=None)) as copy,
    ):
        _sample(original, copy, str(whole), lambda rows: by if rows > 1000 else 1)
    return target


def _step(rows: int, most: int) -> int:
    return -(-rows // most) if rows > most else 1


def _sample(original: sqlite3.Connection, copy: sqlite3.Connection, database: str, step: Step) -> None:
    """Take every so manieth row of each table: small tables stay whole, so that joins find partners."""
    statements = statements_of(original)
    copy.execute("ATTACH ? AS source", (f"file:{quote(database)}?mode=ro",))
    copy.execute("BEGIN")
    tables = [each for each in statements if each.upper().startswith("CREATE TABLE")]
    for statement in tables:
        copy.execute(statement)
    for (name,) in original.execute(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%' "
        "AND sql NOT LIKE 'CREATE VIRTUAL%'"
    ).fetchall():
        _take(original, copy, name, step)
    for statement in statements:
        if statement not in tables:
            copy.execute(statement)
    copy.execute("COMMIT")
    copy.execute("DETACH source")


def _take(original: sqlite3.Connection, copy: sqlite3.Connection, table: str, step: Step) -> None:
    columns = ", ".join(quoted(column.name) for column in columns_of(original, table))
    (rows,) = original.execute(f"SELECT COUNT(*) FROM {quoted(table)}").fetchone()
    by = step(rows)
    try:
        where = f" WHERE rowid % {by} = 0" if by > 1 else ""
        copy.execute(
            f"INSERT INTO {quoted(table)} ({columns}) SELECT {columns} FROM source.{quoted(table)}{where}"
        )
    except sqlite3.OperationalError:  # a table WITHOUT ROWID
        copy.execute(
            f"INSERT INTO {quoted(table)} ({columns}) SELECT {columns} FROM source.{quoted(table)} "
            f"LIMIT {max(1, rows // by)}"
        )


@cache
def _made(ddl: str, query: str, rows: int) -> Path:
    """Run the statements of a schema in a file of this process's, and fill the tables that stay empty."""
    target = folder() / f"ddl-{hashlib.sha256(f'{ddl} {query} {rows}'.encode()).hexdigest()[:16]}.db"
    target.unlink(missing_ok=True)
    with closing(sqlite3.connect(target, isolation_level=None)) as made:
        made.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
        try:
            made.executescript(ddl)
        except sqlite3.Error as wrong:
            raise BadInput(
                f"The schema cannot be made: SQLite says: {wrong}", "Give CREATE TABLE … as SQLite reads it."
            ) from wrong
        made.execute("BEGIN")
        fill(made, rows, constants_of(query, _catalogue(made), "sqlite"))
        made.execute("COMMIT")
    return target
