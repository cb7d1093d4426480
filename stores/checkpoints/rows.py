"""The rows of threads in the database of checkpoints: which there are, and their values, to be rewritten."""

import asyncio
import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple, Protocol
from uuid import UUID

from langgraph.checkpoint.base import BaseCheckpointSaver

from mneme.stores.checkpoints.guarding import to_the_end
from mneme.stores.checkpoints.sqlite import SqliteCheckpoints

Change = Callable[[str, bytes], bytes]
"""Given a value's kind and its bytes, return the bytes that take their place, or the same."""
Stored = tuple[Any, str, bytes]
"""A row's key, its value's kind and the value."""
UUID_LENGTH = 36
EPOCH = datetime(1582, 10, 15, tzinfo=UTC)


class Kept(NamedTuple):
    """A thread that has checkpoints: the metadata of the latest, their number, and when it was written."""

    id: str
    metadata: dict[str, Any]
    checkpoints: int
    at: datetime


class Rows(Protocol):
    """The rows of a database of checkpoints."""

    async def threads(self) -> list[Kept]:
        """Return all threads, those written last at the end."""

    async def rewrite(self, thread_id: str, change: Change) -> int:
        """Put all values of a thread through `change` in one transaction; return how many became others."""

    async def finish(self) -> None:
        """Erase what the database still holds of the values that were replaced, as far as it can."""


def rows_of(saver: BaseCheckpointSaver[str]) -> Rows:
    """Return the rows behind a saver of ours."""
    if isinstance(saver, SqliteCheckpoints):
        return SqliteRows(saver)
    from mneme.stores.checkpoints.rows_postgres import PostgresRows  # noqa: PLC0415  (an extra)

    return PostgresRows(saver)


_THREADS = """SELECT thread_id, max(checkpoint_id), count(*), CAST(metadata AS TEXT)
    FROM checkpoints WHERE checkpoint_ns = '' GROUP BY thread_id ORDER BY 2"""
_VALUES = [
    (
        f"SELECT rowid, type, {column} FROM {table} WHERE thread_id = ?",  # noqa: S608 - constants
        f"UPDATE {table} SET {column} = ? WHERE rowid = ?",  # noqa: S608
    )
    for table, column in (("checkpoints", "checkpoint"), ("writes", "value"))
]


class SqliteRows:
    """The rows of an SQLite file."""

    def __init__(self, saver: SqliteCheckpoints) -> None:
        self._saver = saver

    async def threads(self) -> list[Kept]:
        with self._saver.storage_failures():
            async with self._saver.lock:
                found = await self._saver.conn.execute_fetchall(_THREADS)
        return [kept(thread, last, count, _read(metadata)) for thread, last, count, metadata in found]

    async def rewrite(self, thread_id: str, change: Change) -> int:
        with self._saver.storage_failures():
            return await to_the_end(self._rewrite(thread_id, change))

    async def _rewrite(self, thread_id: str, change: Change) -> int:
        connection, count = self._saver.conn, 0
        async with self._saver.lock:
            await connection.execute("BEGIN IMMEDIATE")
            try:
                for select, update in _VALUES:
                    found = await connection.execute_fetchall(select, (thread_id,))
                    stored = [(key, kind, data) for key, kind, data in found]
                    new = await asyncio.to_thread(changed, stored, change)
                    await connection.executemany(update, new)
                    count += len(new)
                await connection.commit()
            except BaseException:
                await connection.rollback()
                raise
        return count

    async def finish(self) -> None:
        await self._saver.empty_log()


def kept(thread: str, checkpoint: str, count: int, metadata: dict[str, Any]) -> Kept:
    """Describe a thread by its latest checkpoint, whose id begins with the time (a UUID of version 6)."""
    number = UUID(checkpoint).int if len(checkpoint) == UUID_LENGTH else 0
    ticks = (number >> 96 << 28) | ((number >> 80 & 0xFFFF) << 12) | (number >> 64 & 0xFFF)
    return Kept(thread, metadata, count, EPOCH + timedelta(microseconds=ticks // 10))


def changed(stored: Sequence[Stored], change: Change) -> list[tuple[bytes, Any]]:
    """Return the new values of those that a change makes different, each with its row's key."""
    pairs = ((key, data, change(kind, data)) for key, kind, data in stored if data)
    return [(new, key) for key, data, new in pairs if new != data]


def _read(metadata: str | None) -> dict[str, Any]:
    try:
        found = json.loads(metadata or "{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
