"""Query tuning on PostgreSQL: in a transaction that is rolled back, on a connection of its own.

The user's tables are only selected from: a solution's statements see temporary copies alone, which hide the
tables of the same names and go with the transaction.

Times are wall-clock seconds as the client sees them, of one process of the server.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Literal

import psycopg
import sqlglot

from mneme.core.errors import StorageFailure
from mneme.environments.sql_tuning.databases import (
    MAX_ROWS,
    Database,
    DatabaseCopy,
    catalogue_of,
    names_of,
    quoted,
)
from mneme.environments.sql_tuning.records import ColumnFacts, Failed, Kind, Late, Limits, Row

MAX_READ_SECONDS = 120
"""Maximum seconds to read the rows of one table."""
COLUMN_KINDS: Mapping[str, Kind] = {
    **dict.fromkeys(("smallint", "integer", "bigint"), "whole"),
    **dict.fromkeys(("real", "double precision", "numeric"), "real"),
    **dict.fromkeys(("text", "character varying"), "text"),
}


class PostgresDatabase(Database):
    """The schema that a database's URL leads to."""

    dialect: Literal["postgres"] = "postgres"
    clock: Literal["wall"] = "wall"

    def __init__(self, url: str, taken: Sequence[str] | None = None, most: int = MAX_ROWS) -> None:
        """Open a schema, to work on copies with at most so many rows of tables `taken`; None: all."""
        self._url, self._most = url, most
        with connected(url) as connection:
            found = connection.execute("SELECT coalesce(current_schema(), 'public')")
            self._place = str(found.fetchall()[0][0])
            tables = connection.execute(
                "SELECT relname FROM pg_class WHERE relnamespace = %s::regnamespace "
                "AND relkind IN ('r', 'p') AND has_table_privilege(oid, 'SELECT') ORDER BY oid",
                (quoted(self._place),),
            ).fetchall()
            names = [name for (name,) in tables if taken is None or name in taken]
            self.columns = {name: columns_of(connection, self._place, name) for name in names}
        self.catalogue = catalogue_of(self.columns)
        self.key = f"{url} {self._place} {names} {most}"

    @contextmanager
    def copy(self, limits: Limits) -> Iterator["PostgresCopy"]:
        """Yield a transaction in which indexes can be created; it is rolled back at the end."""
        with self._apart() as connection:
            for table in self.columns:
                self._take(connection, table)
            yield PostgresCopy(connection, limits)

    @contextmanager
    def twin(self, query: str, limits: Limits) -> Iterator["PostgresCopy"]:
        """Yield temporary tables of the same names, with rows that distinguish rewritings."""
        with self._apart() as connection:
            for table, rows in self._adversarial(query, connection, f"{quoted(self._place)}."):
                self._like(connection, table)
                _insert(connection, table, self.columns[table], rows)
            yield PostgresCopy(connection, limits)

    def smaller(self, by: int) -> "PostgresDatabase":
        """Return the same schema with copies of fewer rows."""
        return PostgresDatabase(self._url, [*self.columns], max(100, self._most // by))

    @contextmanager
    def _apart(self) -> Iterator[psycopg.Connection]:
        """Begin a transaction that is rolled back, in which only temporary tables are seen."""
        with connected(self._url) as connection:
            try:
                with connection.transaction(force_rollback=True):
                    _run(connection, f"SET LOCAL statement_timeout = {MAX_READ_SECONDS * 1000}")
                    # A name without a schema then means a temporary table, or the server's catalogue.
                    _run(connection, "SET LOCAL search_path = pg_temp")
                    yield connection
            except psycopg.OperationalError as error:
                hint = "Start it, and try again."
                raise StorageFailure(f"PostgreSQL no longer answers: {error}", hint) from error

    def _like(self, connection: psycopg.Connection, table: str) -> None:
        """Make a temporary table like another, with its indexes; it hides the other until the end."""
        _run(
            connection,
            f"CREATE TEMPORARY TABLE {quoted(table)} (LIKE {self._named(table)} INCLUDING DEFAULTS "
            "INCLUDING CONSTRAINTS INCLUDING INDEXES) ON COMMIT DROP",
        )

    def _take(self, connection: psycopg.Connection, table: str) -> None:
        """Copy the rows of a table; of a large one, a sample of its pages."""
        self._like(connection, table)
        # reltuples is -1 (0 before PostgreSQL 14) where a table was never analysed.
        estimated = "SELECT greatest(reltuples, 1) FROM pg_class WHERE oid = %s::regclass"
        rows = connection.execute(estimated, (self._named(table),)).fetchall()[0][0]
        share = 100.0 * self._most / float(rows)
        # REPEATABLE: the copies of one trial hold the same rows.
        sample = f" TABLESAMPLE SYSTEM ({share}) REPEATABLE (1)" if share < 100 else ""
        names = names_of(self.columns[table])
        _run(
            connection,
            f"INSERT INTO {quoted(table)} ({names}) OVERRIDING SYSTEM VALUE "
            f"SELECT {names} FROM {self._named(table)}{sample} LIMIT {self._most}",
        )
        _run(connection, f"ANALYZE {quoted(table)}")  # autovacuum does not see temporary tables

    def _named(self, table: str) -> str:
        return f"{quoted(self._place)}.{quoted(table)}"


class PostgresCopy(DatabaseCopy):
    """A transaction in which statements of a solution run."""

    clock = time.perf_counter

    def __init__(self, connection: psycopg.Connection, limits: Limits) -> None:
        self._connection, self._limits = connection, limits
        # Parallel workers start only while the server has some free: times would not be comparable.
        connection.execute("SET LOCAL max_parallel_workers_per_gather = 0")

    def prepare(self, sql: str) -> None:
        """Run a preparatory statement."""
        with self._guarded(sql, self._limits.seconds, writing=True):
            self._connection.execute(_rewritten(sql))

    def plan(self, sql: str) -> str:
        """Describe how a query would run, a step on each line."""
        with self._guarded(sql, self._limits.seconds):
            found = self._connection.execute(b"EXPLAIN (COSTS OFF) " + _rewritten(sql))
            return "\n".join(line for (line,) in found)

    def size(self) -> int:
        """Return the size of all tables and indexes."""
        found = self._connection.execute(
            "SELECT coalesce(sum(pg_relation_size(oid)), 0) FROM pg_class "
            "WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'i')"
        )
        return int(found.fetchall()[0][0])

    def indexes(self, table: str) -> list[str]:
        """Return the statements of a table's indexes."""
        found = self._connection.execute(
            "SELECT indexdef FROM pg_indexes "
            "WHERE schemaname = current_schema() AND tablename = %s AND indexname <> %s",
            (table, f"{table}_pkey"),
        )
        return [str(sql) for (sql,) in found]

    @contextmanager
    def _cursor(self, sql: str) -> Iterator[Any]:
        """Open a server-side cursor, which sends no more rows than are fetched."""
        with self._connection.cursor("trial") as cursor:
            cursor.execute(_rewritten(sql))
            yield cursor

    @contextmanager
    def _guarded(self, sql: str, seconds: float, *, writing: bool = False) -> Iterator[None]:
        try:
            with self._connection.transaction():  # a savepoint: after an error, the copy can still be used
                _run(self._connection, f"SET LOCAL statement_timeout = {int(seconds * 1000)}")
                if not writing:  # unlike other settings, this one ends with the savepoint
                    self._connection.execute("SET LOCAL transaction_read_only = on")
                yield
        except psycopg.errors.QueryCanceled as late:
            raise Late(sql, seconds) from late
        except (psycopg.Error, UnicodeError) as error:
            # Further lines quote the statement and point into it.
            raise Failed(f"PostgreSQL says: {str(error).partition(chr(10))[0]}") from error


def connected(url: str) -> AbstractContextManager[psycopg.Connection]:
    """Connect to a server. Raises StorageFailure where none answers."""
    try:
        return psycopg.connect(url, autocommit=True, connect_timeout=10)
    except psycopg.Error as error:
        raise StorageFailure(f"PostgreSQL does not answer: {error}", hint="Check the URL.") from error


def columns_of(connection: psycopg.Connection, place: str, table: str) -> list[ColumnFacts]:
    """Return the columns that rows are inserted with, and what they hold."""
    found = connection.execute(
        "SELECT a.attname, format_type(a.atttypid, NULL), a.attnotnull, coalesce(i.indisprimary, false) "
        "FROM pg_attribute a LEFT JOIN pg_index i ON i.indrelid = a.attrelid AND i.indisprimary "
        "AND i.indkey[0] = a.attnum WHERE a.attrelid = %s::regclass AND a.attnum > 0 "
        "AND NOT a.attisdropped AND a.attgenerated = '' ORDER BY a.attnum",
        (f"{quoted(place)}.{quoted(table)}",),
    )
    return [
        ColumnFacts(name=name, kind=COLUMN_KINDS.get(kind, "other"), nullable=not not_null, key=key)
        for name, kind, not_null, key in found.fetchall()
    ]


def _rewritten(sql: str) -> bytes:
    """Write a statement anew from its parse, so that the server gets nothing that the guard has not seen."""
    return sqlglot.parse_one(sql, read="postgres").sql("postgres", comments=False).encode()


def _run(connection: psycopg.Connection, statement: str) -> None:
    """Run a statement of this module, made of quoted names and numbers."""
    connection.execute(statement.encode())


def _insert(
    connection: psycopg.Connection, table: str, columns: Sequence[ColumnFacts], rows: Sequence[Row]
) -> None:
    """Insert rows; one that a constraint or a type refuses is left out."""
    marks = ", ".join(["%s"] * len(columns))
    names = names_of(columns).replace("%", "%%")  # psycopg reads % as a parameter
    into = f"INSERT INTO {quoted(table)} ({names}) OVERRIDING SYSTEM VALUE"
    statement = f"{into} VALUES ({marks}) ON CONFLICT DO NOTHING".encode()
    for row in rows:
        try:
            with connection.transaction():  # a savepoint, since a refused row would end the transaction
                connection.execute(statement, row)
        except (psycopg.errors.IntegrityError, psycopg.errors.DataError):
            continue
