"""How a thread's checkpoints are stored and pruned; this module avoids LangGraph, which is slow to import.

All values of a thread are in three columns: `checkpoints.checkpoint`, `writes.value` and `items.value`. Each
has its `type` beside it; both are as `serde.dumps_typed` returns them, with a checksum after the type
(missing in values of earlier versions). A value can be changed with its type: no other row depends on it.
`checkpoints.metadata` is JSON with names and ids.

A checkpoint has the whole state of a graph, and a chat writes six per turn: with the messages in each, the
size of a conversation would grow with the square of its turns. So each message is stored once, however many
lists contain it: a list of messages, or of dicts, is stored apart from the checkpoint. Its items are in
`items`, numbered by thread and channel; the list is the numbers `first` to `last` of its `spans`, in the
order of `place`; the checkpoint has its length. A list that only grows is one span.

A turn begins with an input; resuming continues it. A kept turn keeps the checkpoint that it started from, so
that it can be repeated, and all later checkpoints, writes and interrupts.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from itertools import count, groupby
from operator import itemgetter
from typing import Any, NamedTuple
from uuid import UUID
from zlib import crc32

from mneme.stores.database import Cursor

CHECKPOINT_TABLES = """
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
    """The location of a checkpoint."""

    thread_id: str
    checkpoint_ns: str
    checkpoint_id: str


VALUE_COLUMNS = {"checkpoints": "checkpoint", "writes": "value", "items": "value"}
"""The columns that hold the content of a thread."""
CHECKPOINT_COLUMNS = {
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
_KNOWN = """SELECT checkpoint_ns, checkpoint_id, parent_checkpoint_id, metadata FROM checkpoints
    WHERE thread_id = ?"""
UUID_VERSION = 6
EPOCH = datetime(1582, 10, 15, tzinfo=UTC)  # from which the time in a UUID counts, in ticks of 100 ns
Value = tuple[str, bytes]
"""The kind of a value, and its bytes."""
MSGPACK = "msgpack"
KINDS = (MSGPACK, "json", "null", "bytes", "bytearray")
"""The kinds of values."""
SUM = ":"
"""The separator between a value's kind and its checksum."""
At = tuple[str, str]
"""The address of a checkpoint within a thread: its namespace and its id, which rises with the time."""
COUNT = "mneme: items of a list that is stored apart"
"""The only key of the dict that replaces a list in a checkpoint."""

MAX_NUMBER = 2**31 - 1
_INHERIT = """INSERT INTO spans (thread_id, checkpoint_ns, checkpoint_id, channel, place, first, last)
    SELECT thread_id, checkpoint_ns, ?, channel, place, first, last FROM spans
    WHERE thread_id = ? AND checkpoint_ns = ? AND checkpoint_id = ? AND channel = ?"""
_ADD_SPAN = "INSERT INTO spans VALUES (?, ?, ?, ?, ?, ?, ?)"
_KNOWN_ITEMS = "SELECT type, value, number FROM items WHERE thread_id = ? AND channel = ?"
_ADD_ITEM = "INSERT INTO items (thread_id, channel, number, type, value) VALUES (?, ?, ?, ?, ?)"
_CHANNELS = "SELECT DISTINCT channel FROM items WHERE thread_id = ?"
_SPANS = "SELECT DISTINCT channel, first, last FROM spans WHERE thread_id = ? ORDER BY channel, first"
_LISTS = """SELECT s.channel, i.type, i.value
    FROM spans AS s CROSS JOIN items AS i
    WHERE i.thread_id = s.thread_id AND i.channel = s.channel AND i.number BETWEEN s.first AND s.last
    AND s.thread_id = ? AND s.checkpoint_ns = ? AND s.checkpoint_id = ?
    ORDER BY s.channel, s.place, i.number"""


def summed(kind: str, data: bytes) -> Value:
    """Return a value as it is stored: its kind followed by a checksum, and its bytes."""
    return f"{kind}{SUM}{crc32(data):08x}", data


def intact(stored: Value) -> Value:
    """Return the kind and the bytes of a stored value. Raises ValueError if its checksum does not match."""
    (kind, _, checksum), data = stored[0].partition(SUM), stored[1]
    if kind not in KINDS or (checksum and checksum != f"{crc32(data):08x}"):
        raise ValueError("it is not what was written")
    return kind, data


class ThreadSummary(NamedTuple):
    """A thread with checkpoints: the metadata of the latest, their number, and the time of the last write."""

    id: str
    metadata: dict[str, Any]
    checkpoints: int
    at: datetime


def threads_of(cursor: Cursor) -> list[ThreadSummary]:
    """Return all threads, the latest written last."""
    return [
        ThreadSummary(thread, metadata_of(text), count, time_of(checkpoint))
        for thread, text, count, checkpoint in cursor.execute(_THREADS).fetchall()
    ]


def metadata_of(text: str | bytes | None) -> dict[str, Any]:
    """Return the metadata of a checkpoint; empty if it cannot be read."""
    try:
        found = json.loads(text or "{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def time_of(checkpoint: str) -> datetime:
    """Return the time at which a checkpoint was made."""
    return EPOCH + timedelta(microseconds=ticks(checkpoint) // 10)


def ticks(checkpoint: str) -> int:
    """Return the time in a checkpoint's id, a UUID of version 6; 0 for an id of another form."""
    with suppress(ValueError):
        known = UUID(checkpoint)
        # 60 bits with the version's digit between them.
        return int(known.hex[:12] + known.hex[13:16], 16) if known.version == UUID_VERSION else 0
    return 0


class CheckpointHead(NamedTuple):
    """A checkpoint without its state."""

    namespace: str
    id: str
    parent: str | None
    metadata: dict[str, Any]

    @property
    def at(self) -> At:
        return self.namespace, self.id

    @property
    def is_call(self) -> bool:
        """Whether it belongs to a subgraph's call: its namespace has a colon and the task's id."""
        return ":" in self.namespace

    @property
    def root(self) -> str | None:
        """The id of the root's checkpoint that called it."""
        return (self.metadata.get("parents") or {}).get("")


def known_in(cursor: Cursor, thread: str) -> list[CheckpointHead]:
    """Return the checkpoints of a thread."""
    rows = cursor.execute(_KNOWN, (thread,)).fetchall()
    return [CheckpointHead(namespace, id, parent, metadata_of(text)) for namespace, id, parent, text in rows]


class Prunable(NamedTuple):
    """The checkpoints that can be deleted, and a test whether writes without a checkpoint can be, too."""

    old: set[At]
    is_before: Callable[[str, str], bool]


def uses_deltas(known: Sequence[CheckpointHead]) -> bool:
    """Return whether the state is stored as differences, so that the latest checkpoint needs older ones."""
    return any("counters_since_delta_snapshot" in each.metadata for each in known)


def before_turns(known: Sequence[CheckpointHead], turns: int) -> Prunable | None:
    """Return what a thread's last turns do not need; None if it has fewer turns or stores differences."""
    roots = [each for each in known if not each.namespace]
    inputs = sorted((each.id for each in roots if each.metadata.get("source") == "input"), reverse=True)
    if len(inputs) < turns or uses_deltas(known):
        return None  # stored differences need all earlier ones
    first, latest = inputs[turns - 1], _latest(known)
    begun_from = {each.parent for each in roots if each.id >= first}

    # A subgraph's checkpoints go with the root's one that called it; of a subgraph with its own memory, whose
    # namespace has no task's id, the latest stays.
    def is_old(each: CheckpointHead) -> bool:
        if each.is_call:
            return each.root is not None and each.root < first and each.root not in begun_from
        return each.id not in begun_from if not each.namespace else each.id < latest[each.namespace]

    return Prunable({each.at for each in known if each.id < first and is_old(each)}, lambda _, id: id < first)


def before_latest(known: Sequence[CheckpointHead]) -> Prunable:
    """Return all but the latest checkpoint of each namespace, and all checkpoints of ended calls."""
    latest = _latest(known)
    called = {each.id for each in known if not each.namespace} - {latest.get("")}
    last = [each for each in known if each.id == latest[each.namespace]]
    ended = {each.namespace for each in last if each.is_call and each.root in called}

    def is_before(namespace: str, id: str) -> bool:
        return namespace in ended or id < latest.get(namespace, "")

    return Prunable({each.at for each in known if is_before(*each.at)}, is_before)


def _latest(known: Sequence[CheckpointHead]) -> dict[str, str]:
    return {each.namespace: each.id for each in sorted(known, key=lambda each: each.id)}


def put_list(
    cursor: Cursor, place: Place, channel: str, values: Iterable[tuple[str, bytes]], parent: str | None
) -> None:
    """Store a checkpoint's list: that of the parent, if named and stored apart, else these values."""
    if parent:
        given = (place.checkpoint_id, place.thread_id, place.checkpoint_ns, parent, channel)
        if cursor.execute(_INHERIT, given).rowcount > 0:
            return  # 0 rows: an earlier version kept the parent's list within the checkpoint
    items = [*values]
    rows = cursor.execute(_KNOWN_ITEMS, (place.thread_id, channel)).fetchall()
    # By content: a list that grew by one message has all the others again, which are stored already.
    known = {(kind.partition(SUM)[0], stored): number for kind, stored, number in rows}
    unknown = [item for item in dict.fromkeys(items) if item not in known]
    new = dict(zip(unknown, count(max(known.values(), default=-1) + 1), strict=False))
    added = [(place.thread_id, channel, number, *summed(*item)) for item, number in new.items()]
    cursor.executemany(_ADD_ITEM, added)
    numbers, spans = known | new, list[tuple[int, int]]()  # the first and the last of each run of numbers
    for number in [numbers[item] for item in items]:
        if spans and number == spans[-1][1] + 1:
            spans[-1] = (spans[-1][0], number)
        else:
            spans.append((number, number))
    cursor.executemany(_ADD_SPAN, [(*place, channel, at, *span) for at, span in enumerate(spans)])


def put_back(cursor: Cursor, place: Place, values: dict[str, Any], restored: Callable[[Value], Any]) -> None:
    """Put the lists back into a checkpoint's values. Raises ValueError if items are missing."""
    counts = {
        channel: value[COUNT]
        for channel, value in values.items()
        if isinstance(value, dict) and value.keys() == {COUNT}
    }
    if not counts:
        return
    lists = {
        channel: [restored((kind, value)) for _, kind, value in items]
        for channel, items in groupby(cursor.execute(_LISTS, place).fetchall(), itemgetter(0))
    }
    if counts != {channel: len(items) for channel, items in lists.items()}:
        raise ValueError(f"thread {place.thread_id} has lost items of {', '.join(counts)}")
    values |= lists


def unused(cursor: Cursor, thread: str) -> list[tuple[str, str, int, int]]:
    """Return (thread, channel, first, last number) of items that are in no list of the thread any more."""
    ends = dict.fromkeys((row[0] for row in cursor.execute(_CHANNELS, (thread,)).fetchall()), 0)
    gaps = list[tuple[str, str, int, int]]()
    for channel, first, last in cursor.execute(_SPANS, (thread,)).fetchall():
        if first > ends[channel]:  # spans come in order, so what lies between two is in no list
            gaps.append((thread, channel, ends[channel], first - 1))
        ends[channel] = max(ends[channel], last + 1)
    return [*gaps, *((thread, channel, end, MAX_NUMBER) for channel, end in ends.items())]
