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
from mneme.environments.sql_tuning.adversarial import ColumnFacts, Kind, rows_for
from mneme.environments.sql_tuning.analysis import Catalogue
from mneme.environments.sql_tuning.failures import Failed, Late, Stopped
from mneme.environments.sql_tuning.generating import Row, draw
from mneme.environments.sql_tuning.records import Limits
from mneme.environments.sql_tuning.schemas import Schema

CHUNK = 200


class PostgresWorld:
    """A database that does not change; `copy` gives a transaction that is rolled back."""

    dialect: Literal["postgres"] = "postgres"
    clock: Literal["wall"] = "wall"

    def __init__(self, schema: Schema, seed: int, rows: int, url: str) -> None:
        self.catalogue: Catalogue = schema.tables()
        self._made_of = (schema, seed, rows, url)
        self._place = f"mneme_sql_{schema.name}_{seed}_{rows}"
        self.key = f"{url} {self._place}"
        self._connection = connected(url)
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

    def again(self) -> "PostgresWorld":
        """Return the same schema on a connection of its own."""
        return PostgresWorld(*self._made_of)

    @contextmanager
    def twin(self, query: str, limits: Limits) -> Iterator["PostgresCopy"]:
        """Yield the same tables with rows that tell rewritings apart; they are rolled back."""
        with self.copy(limits):
            yield temporary(self._connection, self._place, self.catalogue, query, limits)

    def smaller(self, by: int) -> "PostgresWorld":
        """Return the same schema with so many times fewer rows."""
        schema, seed, rows, url = self._made_of
        return PostgresWorld(schema, seed, max(100, rows // by), url)

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
        with self._guarded(sql, writing=True):
            self._connection.execute(_rewritten(sql))

    def ask(self, sql: str, seconds: float | None = None) -> tuple[list[Row], float]:
        """Run a query, for so many seconds at most; give its rows and the seconds it took."""
        with self._guarded(sql, seconds=seconds):
            before = time.perf_counter()
            rows = self._rows(_rewritten(sql))
            return rows, time.perf_counter() - before

    def plan(self, sql: str) -> str:
        """Describe how a query would run, a step on each line."""
        with self._guarded(sql):
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
    def _guarded(self, sql: str, *, writing: bool = False, seconds: float | None = None) -> Iterator[None]:
        most = seconds or self._limits.seconds
        try:
            with self._connection.transaction():
                self._connection.execute(f"SET LOCAL statement_timeout = {int(most * 1000)}")
                if not writing:
                    self._connection.execute("SET LOCAL transaction_read_only = on")
                yield
        except psycopg.errors.QueryCanceled as late:
            raise Late(sql, most) from late
        except (psycopg.Error, UnicodeError) as error:
            raise Failed(f"PostgreSQL says: {str(error).partition(chr(10))[0]}") from error


def temporary(
    connection: psycopg.Connection, place: str, catalogue: Catalogue, query: str, limits: Limits
) -> PostgresCopy:
    """Return temporary tables of the same names and columns, with rows that tell rewritings apart."""
    facts = {table: columns_of(connection, place, table) for table in catalogue}
    real = {table: _some_rows(connection, place, table, facts[table]) for table in catalogue}
    for table, rows in rows_for(query, catalogue, "postgres", facts, real).items():
        like(connection, place, table)
        _insert(connection, table, facts[table], rows)
    found = connection.execute("SELECT nspname FROM pg_namespace WHERE oid = pg_my_temp_schema()").fetchone()
    return PostgresCopy(connection, str(found[0]) if found else place, limits)


def like(connection: psycopg.Connection, place: str, table: str) -> None:
    """Make a temporary table like another, with its indexes; it hides the other, and goes at the end."""
    connection.execute(
        words.SQL(
            "CREATE TEMPORARY TABLE {} (LIKE {} INCLUDING DEFAULTS INCLUDING CONSTRAINTS INCLUDING INDEXES) "
            "ON COMMIT DROP"
        ).format(words.Identifier(table), words.Identifier(place, table))
    )


def columns_of(connection: psycopg.Connection, place: str, table: str) -> list[ColumnFacts]:
    """Return the columns that rows are inserted with, and what they hold."""
    found = connection.execute(
        "SELECT a.attname, format_type(a.atttypid, NULL), a.attnotnull, coalesce(i.indisprimary, false) "
        "FROM pg_attribute a LEFT JOIN pg_index i ON i.indrelid = a.attrelid AND i.indisprimary "
        "AND i.indkey[0] = a.attnum WHERE a.attrelid = %s::regclass AND a.attnum > 0 "
        "AND NOT a.attisdropped AND a.attgenerated = '' ORDER BY a.attnum",
        (words.Identifier(place, table).as_string(),),
    )
    return [
        ColumnFacts(name=name, kind=KINDS.get(kind, "other"), nullable=not not_null, key=key)
        for name, kind, not_null, key in found.fetchall()
    ]


KINDS: dict[str, Kind] = {
    **dict.fromkeys(("smallint", "integer", "bigint"), "whole"),
    **dict.fromkeys(("real", "double precision", "numeric"), "real"),
    **dict.fromkeys(("text", "character varying"), "text"),
}


def _some_rows(
    connection: psycopg.Connection, place: str, table: str, columns: Sequence[ColumnFacts]
) -> list[Row]:
    names = words.SQL(", ").join(words.Identifier(column.name) for column in columns)
    source = words.Identifier(place, table)
    return connection.execute(words.SQL("SELECT {} FROM {} LIMIT 200").format(names, source)).fetchall()


def _insert(
    connection: psycopg.Connection, table: str, columns: Sequence[ColumnFacts], rows: Sequence[Row]
) -> None:
    """Insert rows; one that a constraint or a type refuses is left out."""
    names = words.SQL(", ").join(words.Identifier(column.name) for column in columns)
    marks = words.SQL(", ").join(words.Placeholder() * len(columns))
    statement = words.SQL("INSERT INTO {} ({}) OVERRIDING SYSTEM VALUE VALUES ({}) ON CONFLICT DO NOTHING")
    with connection.cursor() as cursor:
        for row in rows:
            try:
                with connection.transaction():
                    cursor.execute(statement.format(words.Identifier(table), names, marks), row)
            except (psycopg.errors.IntegrityError, psycopg.errors.DataError):
                continue


def connected(url: str) -> psycopg.Connection:
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
