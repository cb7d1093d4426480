"""The rows of threads in an SQLite file."""

import asyncio
import json
from itertools import groupby
from operator import itemgetter
from typing import Any

import ormsgpack

from mneme.stores.checkpoints.checked import checked, plain
from mneme.stores.checkpoints.guarding import to_the_end
from mneme.stores.checkpoints.packing import MSGPACK
from mneme.stores.checkpoints.rows import Change, Kept, Value, changed, kept
from mneme.stores.checkpoints.sqlite import SqliteCheckpoints

_THREADS = """SELECT thread_id, max(checkpoint_id), count(*), CAST(metadata AS TEXT)
    FROM checkpoints WHERE checkpoint_ns = '' GROUP BY thread_id ORDER BY 2"""
_WHOLE = """SELECT type, checkpoint FROM checkpoints WHERE thread_id = :thread
    UNION ALL SELECT type, value FROM writes WHERE thread_id = :thread"""
_ITEMS = "SELECT channel, value FROM items WHERE thread_id = ? AND type GLOB ? ORDER BY channel, number"
_VALUES = [
    (
        f"SELECT rowid, type, {column} FROM {table} WHERE thread_id = ?",  # noqa: S608 - constants
        f"UPDATE {table} SET type = ?, {column} = ? WHERE rowid = ?",  # noqa: S608
    )
    for table, column in (("checkpoints", "checkpoint"), ("writes", "value"), ("items", "value"))
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

    async def values(self, thread_id: str) -> list[Value]:
        """Return all values; of a channel's items, one list in which each reply is behind its message."""
        with self._saver.storage_failures():
            async with self._saver.lock:
                whole = await self._saver.conn.execute_fetchall(_WHOLE, {"thread": thread_id})
                items = await self._saver.conn.execute_fetchall(_ITEMS, (thread_id, f"{MSGPACK}*"))
        lists = ([value for _, value in of_one] for _, of_one in groupby(items, itemgetter(0)))
        return [
            *((plain(kind), data) for kind, data in whole if data),
            *((MSGPACK, _as_list(values)) for values in lists),
        ]

    async def rewrite(self, thread_id: str, change: Change) -> int:
        with self._saver.storage_failures():
            return await to_the_end(self._rewrite(thread_id, change))

    async def _rewrite(self, thread_id: str, change: Change) -> int:
        connection, count = self._saver.conn, 0
        async with self._saver.transaction():
            await connection.execute("BEGIN IMMEDIATE")
            for select, update in _VALUES:
                found = await connection.execute_fetchall(select, (thread_id,))
                kinds = {key: plain(kind) for key, kind, _ in found}
                stored = [(key, kinds[key], data) for key, _, data in found]
                new = await asyncio.to_thread(changed, stored, change)
                rows = [(checked(kinds[key], data), data, key) for data, key in new]
                await connection.executemany(update, rows)
                count += len(new)
        return count

    async def finish(self) -> None:
        await self._saver.empty_log()


def _as_list(values: list[bytes]) -> bytes:
    """Return values in MessagePack as one list in MessagePack."""
    return ormsgpack.packb([ormsgpack.Fragment(value) for value in values])


def _read(metadata: str | None) -> dict[str, Any]:
    try:
        found = json.loads(metadata or "{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
