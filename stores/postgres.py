"""PostgreSQL, for teams: an extra, whose connections mend themselves where the server was away."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Self

import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg_pool import ConnectionPool, PoolTimeout

from mneme.core.errors import BadInput, MnemeError, StorageFailure
from mneme.stores.database import Cursor, Database

POSTGRES_CONNECT_SECONDS = 5
POOL_SIZE = 8
OUR_TABLES = """SELECT format('%I.%I', schemaname, tablename) FROM pg_tables
    WHERE schemaname = current_schema()
    AND (schemaname = 'mneme_checkpoints' OR starts_with(tablename, 'ledger_'))"""
SETUP_LOCK = 0x6D6E656D66  # "mnemf": not that of the checkpoints

logging.getLogger("psycopg.pool").setLevel(logging.ERROR)  # what it warns of, our refusal says


class QuestionCursor(psycopg.Cursor[Any]):
    """A cursor whose parameters are marked by `?`, as in SQLite."""

    def execute(self, query: Any, params: Any = None, **options: Any) -> Self:
        # Bytes, since psycopg's types take a text only if it is a literal.
        return super().execute(str(query).replace("?", "%s").encode(), params, **options)

    def executemany(self, query: Any, params_seq: Any, **options: Any) -> None:
        if params_seq:
            super().executemany(str(query).replace("?", "%s").encode(), params_seq, **options)


class Postgres(Database):
    """A database with a pool of connections; a setting has its URL, and its tables may have a schema."""

    blob, text, locked = "BYTEA", 'TEXT COLLATE "C"', " FOR UPDATE"
    alone = f"SELECT pg_advisory_xact_lock({SETUP_LOCK})"
    taken, writers = "SELECT pg_advisory_xact_lock(hashtext(?))", POOL_SIZE
    serial, compact = "BIGINT", ""
    errors = (psycopg.Error, PoolTimeout)
    # Postgres reads no JSON with a zero character: what has one counts as a text.
    field = r"CASE WHEN strpos(e.body, '\u0000') = 0 THEN e.body::json #>> '{{value,{}}}' ELSE e.body END"
    snapshot = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"

    def __init__(self, url: str, setting: str = "MNEME_LEDGER", schema: str = "") -> None:
        self.place, self._setting = database_name(url, setting), setting
        self._found_in = f"SET search_path TO {schema}" if schema else ""
        settings = {
            "autocommit": True,
            "connect_timeout": POSTGRES_CONNECT_SECONDS,
            "cursor_factory": QuestionCursor,
        }
        self._pool = ConnectionPool(
            url,
            kwargs=settings,
            min_size=1,
            max_size=POOL_SIZE,
            timeout=POSTGRES_CONNECT_SECONDS,
            reconnect_timeout=POSTGRES_CONNECT_SECONDS,  # else it would wait for minutes after a long failure
            check=ConnectionPool.check_connection,
            configure=self._configure,
            open=False,
        )
        try:
            self._pool.open(wait=True, timeout=POSTGRES_CONNECT_SECONDS)
        except BaseException as failure:
            self._pool.close()
            if isinstance(failure, self.errors):
                raise self.refusal(failure) from failure
            raise

    @contextmanager
    def writing(self) -> Iterator[Cursor]:
        with self.reading() as cursor:
            cursor.execute("BEGIN")
            yield cursor
            cursor.execute("COMMIT")

    def erased(self) -> None:
        """Do nothing: Postgres overwrites deleted rows later (VACUUM, recycling of its write-ahead log)."""

    def vacuum(self) -> None:
        """Rewrite our tables, each locked meanwhile, and Postgres's statistics, which have samples of them.

        The user must own the tables. The statistics are rewritten for the owner of the database alone, and
        those of an empty table stay as they are.
        """
        with self.reading() as cursor:
            for (table,) in cursor.execute(OUR_TABLES).fetchall():
                cursor.execute(f"VACUUM (FULL, ANALYZE) {table}")
            cursor.execute("VACUUM FULL pg_statistic")

    def close(self) -> None:
        self._pool.close()

    def _configure(self, connection: psycopg.Connection[Any]) -> None:
        if self._found_in:
            connection.execute(self._found_in)

    @contextmanager
    def _connected(self) -> Iterator[psycopg.Connection[Any]]:
        try:
            with self._pool.connection() as connection:
                yield connection
        except self.errors as failure:
            raise self.refusal(failure) from failure

    def refusal(self, failure: Exception) -> MnemeError:
        return StorageFailure(
            f"Postgres at {self.place} failed: {first_line(failure)}.",
            f"Check that the server runs and that {self._setting} has its address, user and password.",
        )


def first_line(failure: Exception) -> str:
    """Return the first line of a driver's message."""
    return (str(failure).strip().splitlines() or [type(failure).__name__])[0]


def database_name(url: str, setting: str) -> str:
    """Return host, port and name of the database at a URL, without user and password. Raises BadInput."""
    try:
        parts = conninfo_to_dict(url)
    except psycopg.ProgrammingError:
        # Without the cause: the driver's message repeats the address, and with it the password.
        raise BadInput(
            f"The Postgres URL in {setting} cannot be read.",
            "It looks like postgresql://user:password@host:5432/database.",
        ) from None
    return f"{parts.get('host', 'localhost')}:{parts.get('port', 5432)}/{parts.get('dbname', '')}"
