"""The rows of threads in Postgres, where a checkpoint's larger values stand in a table of their own."""

import asyncio
from typing import Any, NamedTuple

from langgraph.checkpoint.base import BaseCheckpointSaver

from mneme.stores.checkpoints.guarding import to_the_end
from mneme.stores.checkpoints.postgres import Connection, PostgresCheckpoints
from mneme.stores.checkpoints.rows import Change, Kept, Stored, Value, changed, kept

_THREADS = """SELECT * FROM (
        SELECT DISTINCT ON (thread_id) thread_id, checkpoint_id, metadata,
            count(*) OVER (PARTITION BY thread_id) AS count
        FROM checkpoints WHERE checkpoint_ns = '' ORDER BY thread_id, checkpoint_id DESC) AS latest
    ORDER BY checkpoint_id"""


class Column(NamedTuple):
    """Where values are: how a value and its kind are read, and how a new one is written."""

    select: str
    update: str


_COLUMNS = (
    Column(
        "SELECT ctid::text AS key, 'json' AS kind, convert_to(checkpoint::text, 'UTF8') AS data "
        "FROM checkpoints WHERE thread_id = %s FOR UPDATE",
        "UPDATE checkpoints SET checkpoint = convert_from(%s, 'UTF8')::jsonb WHERE ctid = %s::tid",
    ),
    *(
        Column(
            f"SELECT ctid::text AS key, type AS kind, blob AS data "  # noqa: S608 - constants
            f"FROM {table} WHERE thread_id = %s FOR UPDATE",
            f"UPDATE {table} SET blob = %s WHERE ctid = %s::tid",  # noqa: S608
        )
        for table in ("checkpoint_blobs", "checkpoint_writes")
    ),
)


class PostgresRows:
    """The rows of a Postgres database."""

    def __init__(self, saver: BaseCheckpointSaver[str]) -> None:
        assert isinstance(saver, PostgresCheckpoints)
        self._saver = saver

    async def threads(self) -> list[Kept]:
        with self._saver.storage_failures():
            async with self._saver.pool.connection() as connection:
                found = await (await connection.execute(_THREADS)).fetchall()
        return [kept(row["thread_id"], row["checkpoint_id"], row["count"], row["metadata"]) for row in found]

    async def values(self, thread_id: str) -> list[Value]:
        with self._saver.storage_failures():
            async with self._saver.pool.connection() as connection:
                columns = [await _stored(connection, column, thread_id) for column in _COLUMNS]
        return [(kind, data) for stored in columns for _, kind, data in stored if data]

    async def rewrite(self, thread_id: str, change: Change) -> int:
        with self._saver.storage_failures():
            return await to_the_end(self._rewrite(thread_id, change))

    async def _rewrite(self, thread_id: str, change: Change) -> int:
        async with self._saver.pool.connection() as connection, connection.transaction():
            return sum([await _rewritten(connection, column, thread_id, change) for column in _COLUMNS])

    async def finish(self) -> None:
        """Do nothing: Postgres overwrites the old rows later, when it vacuums and recycles its log."""


async def _rewritten(connection: Connection, column: Column, thread_id: str, change: Change) -> int:
    new = await asyncio.to_thread(changed, await _stored(connection, column, thread_id), change)
    for pair in new:
        await connection.execute(column.update, pair)
    return len(new)


async def _stored(connection: Connection, column: Column, thread_id: str) -> list[Stored]:
    found: list[dict[str, Any]] = await (await connection.execute(column.select, (thread_id,))).fetchall()
    return [(row["key"], row["kind"], bytes(row["data"] or b"")) for row in found]
