"""Lists in SQLite checkpoints: each message is stored once, however many checkpoints have it.

A checkpoint has all of a graph's state, and a chat makes six of them a turn: with the messages in each, a
conversation would take space that grows with the square of its turns. So a list of messages, or of dicts, is
taken out of the checkpoint. Its items are numbered by thread and channel, in `items`; the list is the numbers
`first` to `last` of its `spans`, in the order of their places; and the checkpoint says how many there are. A
list that only grows is one span.

All values of a thread are in three columns: `checkpoints.checkpoint`, `writes.value` and `items.value`. Each
has its `type` beside it, and both are as `serde.dumps_typed` returns them; to change one in place is safe: no
other row depends on it.
`checkpoints.metadata` is JSON with names and ids.
"""

import json
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from itertools import count, groupby
from operator import itemgetter
from typing import Any, NamedTuple, TypeGuard

from langchain_core.messages import BaseMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    get_checkpoint_metadata,
)
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

COUNT = "mneme: items of a list that is stored apart"
"""The only key of the dict that stands in a checkpoint where the list was."""

LIST_TABLES = (
    """CREATE TABLE IF NOT EXISTS items (
        thread_id TEXT NOT NULL, channel TEXT NOT NULL, number INTEGER NOT NULL,
        type TEXT NOT NULL, value BLOB NOT NULL, PRIMARY KEY (thread_id, channel, number))""",
    """CREATE TABLE IF NOT EXISTS spans (
        thread_id TEXT NOT NULL, checkpoint_ns TEXT NOT NULL, checkpoint_id TEXT NOT NULL,
        channel TEXT NOT NULL, place INTEGER NOT NULL, first INTEGER NOT NULL, last INTEGER NOT NULL,
        PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id, channel, place),
        FOREIGN KEY (thread_id, checkpoint_ns, checkpoint_id) REFERENCES checkpoints
        ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED) WITHOUT ROWID""",
)
# The gaps between a channel's spans are few. To look for a span of each item takes seconds in a long thread.
SWEEP_ITEMS = """
    WITH used AS MATERIALIZED (SELECT DISTINCT channel, first, last FROM spans WHERE thread_id = :thread),
    gaps AS (
        SELECT channel, first - 1 AS until, coalesce(max(last) OVER (PARTITION BY channel
            ORDER BY first, last ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), -1) AS after FROM used
        UNION ALL SELECT channel, 9e18, max(last) FROM used GROUP BY channel),
    real AS MATERIALIZED (SELECT * FROM gaps WHERE after < until)
    DELETE FROM items AS i WHERE thread_id = :thread AND (channel NOT IN (SELECT channel FROM used) OR EXISTS
        (SELECT 1 FROM real WHERE real.channel = i.channel AND number > after AND number <= until))"""
"""Delete the items of a thread that no list has; a list is deleted with its checkpoint."""

_PUT = """INSERT OR REPLACE INTO checkpoints
    (thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id, type, checkpoint, metadata)
    VALUES (?, ?, ?, ?, ?, ?, ?)"""
_INHERIT = """INSERT INTO spans (thread_id, checkpoint_ns, checkpoint_id, channel, place, first, last)
    SELECT thread_id, checkpoint_ns, ?, channel, place, first, last FROM spans
    WHERE thread_id = ? AND checkpoint_ns = ? AND checkpoint_id = ?
    AND channel IN (SELECT value FROM json_each(?)) RETURNING channel"""
_ADD_SPAN = "INSERT INTO spans VALUES (?, ?, ?, ?, ?, ?, ?)"
_KNOWN_ITEMS = "SELECT type, value, number FROM items WHERE thread_id = ? AND channel = ?"
_ADD_ITEM = "INSERT INTO items (thread_id, channel, number, type, value) VALUES (?, ?, ?, ?, ?)"
_LISTS = """SELECT s.channel, i.type, i.value
    FROM spans AS s CROSS JOIN items AS i
    ON i.thread_id = s.thread_id AND i.channel = s.channel AND i.number BETWEEN s.first AND s.last
    WHERE s.thread_id = ? AND s.checkpoint_ns = ? AND s.checkpoint_id = ?
    ORDER BY s.channel, s.place, i.number"""
_EXISTS = "SELECT 1 FROM checkpoints WHERE thread_id = ? AND checkpoint_ns = ? AND checkpoint_id = ?"


class Place(NamedTuple):
    """Where a checkpoint is."""

    thread_id: str
    checkpoint_ns: str
    checkpoint_id: str


class ListsApart(AsyncSqliteSaver):
    """LangGraph's saver, with lists of messages and of dicts outside of the checkpoints."""

    # The fast way reads lists out of the stored checkpoints; this one asks `aget_tuple` for them.
    aget_delta_channel_history = BaseCheckpointSaver.aget_delta_channel_history

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[None]:
        """Keep all that is written within, or nothing of it; the first statement must write."""
        async with self.lock:
            try:
                yield
                await self.conn.commit()
            except BaseException:
                await self.conn.rollback()
                raise

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Save a checkpoint and its lists; of their items, only those that the thread does not have yet."""
        given, values = config["configurable"], checkpoint["channel_values"]
        parent = given.get("checkpoint_id")
        place = Place(str(given["thread_id"]), given["checkpoint_ns"], checkpoint["id"])
        lists = {channel: value for channel, value in values.items() if _is_apart(value)}
        counts = {channel: {COUNT: len(value)} for channel, value in lists.items()}
        stored = self.serde.dumps_typed({**checkpoint, "channel_values": {**values, **counts}})
        described = json.dumps(get_checkpoint_metadata(config, metadata), ensure_ascii=False)
        async with self.transaction():
            await self.conn.execute(_PUT, (*place, parent, *stored, described.encode("utf-8", "ignore")))
            inherited = await self._inherit(
                place, parent, [each for each in lists if each not in new_versions]
            )
            for channel in lists.keys() - inherited:
                await self._add_list(place, channel, lists[channel])
        return {"configurable": place._asdict()}

    async def _inherit(self, place: Place, parent: str | None, channels: Sequence[str]) -> set[str]:
        """Give a checkpoint lists of its parent; return those that the parent has stored apart."""
        if not channels or parent is None:
            return set()
        source = (place.checkpoint_id, place.thread_id, place.checkpoint_ns, parent, json.dumps(channels))
        return {channel for (channel,) in await self.conn.execute_fetchall(_INHERIT, source)}

    async def _add_list(self, place: Place, channel: str, value: list[Any]) -> None:
        items = [self.serde.dumps_typed(item) for item in value]
        numbers = await self._numbers(place.thread_id, channel, items)
        spans = [(*place, channel, at, *span) for at, span in enumerate(_spans(numbers))]
        await self.conn.executemany(_ADD_SPAN, spans)

    async def _numbers(self, thread_id: str, channel: str, items: Sequence[tuple[str, bytes]]) -> list[int]:
        """Return the items' numbers, storing those that the thread's channel does not have yet."""
        rows = await self.conn.execute_fetchall(_KNOWN_ITEMS, (thread_id, channel))
        known = {(kind, value): number for kind, value, number in rows}
        unknown = [item for item in dict.fromkeys(items) if item not in known]
        new = dict(zip(unknown, count(max(known.values(), default=-1) + 1), strict=False))
        added = [(thread_id, channel, number, *item) for item, number in new.items()]
        await self.conn.executemany(_ADD_ITEM, added)
        return [(known | new)[item] for item in items]

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Read a checkpoint with its lists. Raises ValueError where items are missing."""
        found = await super().aget_tuple(config)
        return found and await self._whole(found)

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """List checkpoints with their lists, newest first. Raises ValueError where items are missing."""
        found = [each async for each in super().alist(config, filter=filter, before=before, limit=limit)]
        for each in found:
            if whole := await self._whole(each):
                yield whole

    async def _whole(self, found: CheckpointTuple) -> CheckpointTuple | None:
        """Put its lists into a checkpoint; return None where somebody deleted it meanwhile.

        Raises ValueError where items are missing.
        """
        at = found.config["configurable"]
        place = Place(str(at["thread_id"]), at.get("checkpoint_ns", ""), found.checkpoint["id"])
        values = found.checkpoint["channel_values"]
        counts = {channel: value[COUNT] for channel, value in values.items() if _is_count(value)}
        if not counts:
            return found
        async with self.lock:
            rows = await self.conn.execute_fetchall(_LISTS, place)
            is_there = bool(await self.conn.execute_fetchall(_EXISTS, place))
        lists = {
            channel: [self.serde.loads_typed((kind, value)) for _, kind, value in items]
            for channel, items in groupby(rows, itemgetter(0))
        }
        if counts != {channel: len(items) for channel, items in lists.items()}:
            if is_there:
                raise ValueError(f"thread {place.thread_id} has lost items of {', '.join(counts)}")
            return None
        values |= lists
        return found


def _is_apart(value: object) -> TypeGuard[list[Any]]:
    """Say whether a value is stored apart: a list of messages or of dicts."""
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(each, BaseMessage | dict) for each in value)
    )


def _is_count(value: object) -> bool:
    return isinstance(value, dict) and value.keys() == {COUNT}


def _spans(numbers: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Yield the first and the last number of each run of consecutive numbers."""
    for _, run in groupby(enumerate(numbers), lambda each: each[1] - each[0]):
        within = [number for _, number in run]
        yield within[0], within[-1]
