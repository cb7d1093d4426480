"""A log in PostgreSQL, for teams: an extra, whose connections mend themselves where the server was away."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg_pool import ConnectionPool, PoolTimeout

from mneme.core.errors import BadInput, StorageFailure
from mneme.stores.ledger.database import Cursor

CONNECT_SECONDS = 5
POOL_SIZE = 8
SETUP_LOCK = 0x6D6E656D66  # "mnemf": not that of the checkpoints
SNAPSHOT = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"


class _Cursor:
    """A cursor that takes `?` for what is given."""

    def __init__(self, cursor: psycopg.Cursor[Any]) -> None:
        self._cursor = cursor
        self.fetchone, self.fetchall = cursor.fetchone, cursor.fetchall

    def execute(self, statement: str, given: Sequence[Any] = (), /) -> Cursor:
        self._cursor.execute(statement.replace("?", "%s").encode(), given)
        return self

    def executemany(self, statement: str, rows: Sequence[Sequence[Any]], /) -> object:
        if rows:
            self._cursor.executemany(statement.replace("?", "%s").encode(), rows)
        return self

    def __iter__(self) -> Iterator[Any]:
        return iter(self._cursor)


class Postgres:
    """A database with a pool of connections."""

    blob, text, locked = "BYTEA", 'TEXT COLLATE "C"', " FOR UPDATE"

    def __init__(self, url: str) -> None:
        self.place = _place(url)
        settings = {"autocommit": True, "connect_timeout": CONNECT_SECONDS}
        self._pool = ConnectionPool(
            url,
            kwargs=settings,
            min_size=1,
            max_size=POOL_SIZE,
            timeout=CONNECT_SECONDS,
            reconnect_timeout=CONNECT_SECONDS,  # else it would wait for minutes after a long failure
            check=ConnectionPool.check_connection,
            open=False,
        )
        try:
            with self._failing():
                self._pool.open(wait=True, timeout=CONNECT_SECONDS)
        except BaseException:
            self._pool.close()
            raise

    @contextmanager
    def reading(self, *, snapshot: bool = False) -> Iterator[Cursor]:
        with self._failing(), self._pool.connection() as connection:
            if snapshot:
                connection.execute(SNAPSHOT)
            try:
                yield _Cursor(connection.cursor())
            finally:
                if snapshot and not connection.closed:
                    connection.execute("COMMIT")

    @contextmanager
    def writing(self) -> Iterator[Cursor]:
        with self._failing(), self._pool.connection() as connection, connection.transaction():
            yield _Cursor(connection.cursor())

    @contextmanager
    def alone(self) -> Iterator[Cursor]:
        """Give a cursor to whoever makes tables, while others that want to do so wait."""
        with self.writing() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(?)", (SETUP_LOCK,))
            yield cursor

    def erased(self) -> None:
        """Do nothing: Postgres overwrites deleted rows later (VACUUM, recycling of its write-ahead log)."""

    def close(self) -> None:
        self._pool.close()

    @contextmanager
    def _failing(self) -> Iterator[None]:
        try:
            yield
        except (psycopg.Error, PoolTimeout) as failure:
            reason = (str(failure).splitlines() or [type(failure).__name__])[0]
            raise StorageFailure(
                f"Postgres at {self.place} failed: {reason}.",
                "Check that the server runs and that MNEME_LEDGER has its address, user and password.",
            ) from failure


def _place(url: str) -> str:
    """Name the database without its user and password."""
    try:
        parts = conninfo_to_dict(url)
    except psycopg.ProgrammingError:
        # Without the cause: the driver's message repeats the address, and with it the password.
        raise BadInput(
            "The Postgres URL in MNEME_LEDGER cannot be read.",
            "It looks like postgresql://user:password@host:5432/database.",
        ) from None
    return f"{parts.get('host', 'localhost')}:{parts.get('port', 5432)}/{parts.get('dbname', '')}"
