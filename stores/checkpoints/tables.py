"""The tables of checkpoints, in SQLite and in Postgres.

All values of a thread are in three columns: `checkpoints.checkpoint`, `writes.value` and `items.value`. Each
has its `type` beside it, and both are as `serde.dumps_typed` returns them; to change one in place is safe: no
other row depends on it. `checkpoints.metadata` is JSON with names and ids; `lists` has what `spans` are.
"""

from typing import NamedTuple

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
