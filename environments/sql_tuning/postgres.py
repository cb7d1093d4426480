"""The query-tuning world on PostgreSQL: created once in its own schema; every change is rolled back.

Times are wall-clock seconds as the client sees them, of one process: helpers that start when the machine
happens to be free would make them incomparable. Statements run as the parser read them, written
anew, so that nothing reaches the server that the guard has not seen.
"""

import time
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal

import psycopg
import sqlglot
from psycopg import sql as words

from mneme.core.errors import StorageFailure
from mneme.environments.sql_tuning.failures import Failed, Stopped
from mneme.environments.sql_tuning.generating import Row, draw
from mneme.environments.sql_tuning.records import Limits
from mneme.environments.sql_tuning.schemas import Schema

CHUNK = 200


class PostgresWorld:
    """A database that does not change; `copy` gives a transaction that is rolled back."""

    dialect: Literal["postgres"] = "postgres"
    clock: Literal["wall"] = "wall"

    def __init__(self, schema: Schema, seed: int, rows: int, url: str) -> None:
        self.catalogue = schema.tables()
        self._place = f"mneme_sql_{schema.name}_{seed}_{rows}"
        self.key = f"{url} {self._place}"
        self._connection = _connected(url)
        try:
            if _make(self._connection, self._place, schema, seed, rows):
                _vacuum(self._connection, self._place, schema)
        except psycopg.Error as error:
            self._connection.close()
            raise StorageFailure(f"PostgreSQL could not make the tables: {error}") from error

    @contextmanager
    def copy(self, limits: Limits) -> Iterator["PostgresCopy"]:
        """Yield a transaction in which indexes can be created; it is rolled back at the end."""
        place = words.Identifier(self._place)
        try:
            with self._connection.transaction(force_rollback=True):
                self._connection.execute(words.SQL("SET LOCAL search_path = {}").format(place))
                yield PostgresCopy(self._connection, self._place, limits)
        except psycopg.OperationalError as error:
            raise StorageFailure(
                f"PostgreSQL no longer answers: {error}", hint="Start it, and open again."
            ) from error

    def close(self) -> None:
        """Close the connection; the made tables stay for the next."""
        self._connection.close()


class PostgresCopy:
    """A transaction in which statements of a solution run."""

    def __init__(self, connection: psycopg.Connection, place: str, limits: Limits) -> None:
        self._connection = connection
        self._place = place
        self._limits = limits
        connection.execute(f"SET LOCAL statement_timeout = {int(limits.seconds * 1000)}")
        connection.execute("SET LOCAL max_parallel_workers_per_gather = 0")

    def prepare(self, sql: str) -> None:
        """Run a preparatory statement."""
        with self._guarded(writing=True):
            self._connection.execute(_rewritten(sql))

    def ask(self, sql: str) -> tuple[list[Row], float]:
        """Run a query; give its rows and the seconds it took."""
        with self._guarded():
            before = time.perf_counter()
            rows = self._rows(_rewritten(sql))
            return rows, time.perf_counter() - before

    def plan(self, sql: str) -> str:
        """Describe how a query would run, a step on each line."""
        with self._guarded():
            steps = self._connection.execute(b"EXPLAIN (COSTS OFF) " + _rewritten(sql)).fetchall()
        return "\n".join(line for (line,) in steps)

    def size(self) -> int:
        """Give the size of all tables and indexes."""
        return int(self._one("SELECT coalesce(sum(pg_relation_size(c.oid)), 0) FROM pg_class c WHERE ") or 0)

    def indexes(self, table: str) -> list[str]:
        """Give the statements of a table's indexes."""
        found = self._connection.execute(
            "SELECT indexdef FROM pg_indexes WHERE schemaname = %s AND tablename = %s AND indexname <> %s",
            (self._place, table, f"{table}_pkey"),
        )
        return [str(sql) for (sql,) in found]

    def _one(self, query: str) -> Any:
        where = "c.relnamespace = %s::regnamespace AND c.relkind IN ('r', 'i')"
        row = self._connection.execute((query + where).encode(), (self._place,)).fetchone()
        return row[0] if row else None

    def _rows(self, query: bytes) -> list[Row]:
        """Fetch through a cursor of the server's, which sends no more than is wanted."""
        rows: list[Row] = []
        size = 0
        with self._connection.cursor("trial") as cursor:
            cursor.itersize = CHUNK
            cursor.execute(query)
            while chunk := cursor.fetchmany(CHUNK):
                rows += [_comparable(row) for row in chunk]
                size += sum(len(cell) for row in chunk for cell in row if isinstance(cell, (str, bytes)))
                if len(rows) > self._limits.rows:
                    raise Stopped(f"The result has more than {self._limits.rows} rows.")
                if size > self._limits.characters:
                    raise Stopped(f"The result has more than {self._limits.characters} characters.")
        return rows

    @contextmanager
    def _guarded(self, *, writing: bool = False) -> Iterator[None]:
        try:
            with self._connection.transaction():
                if not writing:
                    self._connection.execute("SET LOCAL transaction_read_only = on")
                yield
        except psycopg.errors.QueryCanceled as late:
            message = f"The statement ran longer than {self._limits.seconds:g} s and was stopped."
            raise Stopped(message) from late
        except (psycopg.Error, UnicodeError) as error:
            raise Failed(f"PostgreSQL says: {str(error).partition(chr(10))[0]}") from error


def _connected(url: str) -> psycopg.Connection:
    try:
        return psycopg.connect(url, autocommit=True, connect_timeout=10)
    except psycopg.Error as error:
        raise StorageFailure(f"PostgreSQL does not answer: {error}", hint="Check the URL.") from error


def _comparable(row: Row) -> Row:
    """Write an array or a document out, so that rows can be counted."""
    return tuple(cell if isinstance(cell, Hashable) else repr(cell) for cell in row)


def _rewritten(sql: str) -> bytes:
    return sqlglot.parse_one(sql, read="postgres").sql("postgres", comments=False).encode()


def _make(connection: psycopg.Connection, place: str, schema: Schema, seed: int, rows: int) -> bool:
    """Make the tables where they are not there yet, and tell so; two makers at once make them once."""
    with connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(hashtext(%s))", (place,))
        if connection.execute("SELECT to_regnamespace(%s)", (place,)).fetchone() != (None,):
            return False
        connection.execute(words.SQL("CREATE SCHEMA {}").format(words.Identifier(place)))
        drawn = draw(schema, seed, rows)
        for table, columns in schema.tables().items():
            name = words.Identifier(place, table)
            connection.execute(words.SQL("CREATE TABLE {} ({})").format(name, _declared(columns)))
            with connection.cursor().copy(words.SQL("COPY {} FROM STDIN").format(name)) as copy:
                for row in drawn[table]:
                    copy.write_row(row)
    return True


def _vacuum(connection: psycopg.Connection, place: str, schema: Schema) -> None:
    """Run VACUUM ANALYZE: index-only scans need the visibility map."""
    for table in schema.tables():
        connection.execute(words.SQL("VACUUM (ANALYZE) {}").format(words.Identifier(place, table)))


def _declared(columns: dict[str, Any]) -> words.Composed:
    """Declare columns; texts sort byte by byte, as in SQLite."""
    types = {"INTEGER": "bigint", "TEXT": 'text COLLATE "C"'}
    parts: Sequence[words.Composed] = [
        words.SQL("{} {} {}").format(
            words.Identifier(name),
            words.SQL(types[kind]),
            words.SQL("NOT NULL" if n else "PRIMARY KEY"),
        )
        for n, (name, kind) in enumerate(columns.items())
    ]
    return words.SQL(", ").join(parts)
