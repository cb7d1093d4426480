"""The tables of checkpoints, and the threads in them, without LangGraph, which is slow to import.

All values of a thread are in three columns: `checkpoints.checkpoint`, `writes.value` and `items.value`. Each
has its `type` beside it, and both are as `serde.dumps_typed` returns them; to change one in place is safe: no
other row depends on it. `checkpoints.metadata` is JSON with names and ids.
"""

import json
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

from mneme.stores.database import Cursor

TABLES = """
CREATE TABLE IF NOT EXISTS checkpoints (thread_id {text} NOT NULL, checkpoint_ns {text} NOT NULL DEFAULT '',
    checkpoint_id {text} NOT NULL, parent_checkpoint_id {text}, type TEXT, checkpoint {blob}, metadata TEXT,
    PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id));
CREATE TABLE IF NOT EXISTS writes (thread_id {text} NOT NULL, checkpoint_ns {text} NOT NULL DEFAULT '',
    checkpoint_id {text} NOT NULL, task_id {text} NOT NULL, task_path {text} NOT NULL DEFAULT '',
    idx INTEGER NOT NULL, channel {text} NOT NULL, type TEXT, value {blob},
    PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id, task_id, idx));
CREATE TABLE IF NOT EXISTS items (thread_id {text} NOT NULL, channel {text} NOT NULL, number INTEGER NOT NULL,
    type TEXT NOT NULL, value {blob} NOT NULL, PRIMARY KEY (thread_id, channel, number));
CREATE TABLE IF NOT EXISTS spans (thread_id {text} NOT NULL, checkpoint_ns {text} NOT NULL,
    checkpoint_id {text} NOT NULL, channel {text} NOT NULL, place INTEGER NOT NULL, first INTEGER NOT NULL,
    last INTEGER NOT NULL, PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id, channel, place),
    FOREIGN KEY (thread_id, checkpoint_ns, checkpoint_id) REFERENCES checkpoints
    ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED);
"""


class Place(NamedTuple):
    """Where a checkpoint is."""

    thread_id: str
    checkpoint_ns: str
    checkpoint_id: str


VALUES = {"checkpoints": "checkpoint", "writes": "value", "items": "value"}
"""The columns that hold what a thread is about."""
COLUMNS = {
    "checkpoints": (*Place._fields, "parent_checkpoint_id", "type", "checkpoint", "metadata"),
    "writes": (*Place._fields, "task_id", "idx", "task_path", "channel", "type", "value"),
    "items": ("thread_id", "channel", "number", "type", "value"),
    "spans": (*Place._fields, "channel", "place", "first", "last"),
}
_THREADS = """SELECT c.thread_id, c.metadata, latest.count, c.checkpoint_id FROM checkpoints AS c JOIN
    (SELECT thread_id, max(checkpoint_id) AS last, count(*) AS count FROM checkpoints
     WHERE checkpoint_ns = '' GROUP BY thread_id) AS latest
    ON latest.thread_id = c.thread_id AND latest.last = c.checkpoint_id
    WHERE c.checkpoint_ns = '' ORDER BY c.checkpoint_id"""
UUID_VERSION = 6
EPOCH = datetime(1582, 10, 15, tzinfo=UTC)


class Kept(NamedTuple):
    """A thread that has checkpoints: the metadata of the latest, their number, and when it was written."""

    id: str
    metadata: dict[str, Any]
    checkpoints: int
    at: datetime


def threads_of(cursor: Cursor) -> list[Kept]:
    """Return all threads, those written last at the end."""
    return [
        Kept(thread, metadata_of(text), count, time_of(checkpoint))
        for thread, text, count, checkpoint in cursor.execute(_THREADS).fetchall()
    ]


def metadata_of(text: str | bytes | None) -> dict[str, Any]:
    """Return the metadata of a checkpoint; nothing where it cannot be read."""
    try:
        found = json.loads(text or "{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def time_of(checkpoint: str) -> datetime:
    """Return when a checkpoint was made."""
    return EPOCH + timedelta(microseconds=ticks(checkpoint) // 10)


def ticks(checkpoint: str) -> int:
    """Return the time in a checkpoint's id, which is a UUID of version 6; 0 where it is another's."""
    with suppress(ValueError):
        known = UUID(checkpoint)
        return int(known.hex[:12] + known.hex[13:16], 16) if known.version == UUID_VERSION else 0
    return 0
