"""Lists in checkpoints: each message is stored once, in however many it is.

A checkpoint has all of a graph's state, and a chat makes six of them a turn: with the messages in each, a
conversation would take space that grows with the square of its turns. So a list of messages, or of dicts, is
taken out of the checkpoint. Its items are numbered by thread and channel, in `items`; the list is the numbers
`first` to `last` of its `spans`, in the order of their places; and the checkpoint says how many there are. A
list that only grows is one span.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import count, groupby
from operator import itemgetter
from typing import Any, TypeGuard

from langchain_core.messages import BaseMessage
from langgraph.checkpoint.serde.base import SerializerProtocol

from mneme.stores.checkpoints.tables import Place
from mneme.stores.database import Cursor

COUNT = "mneme: items of a list that is stored apart"
"""The only key of the dict that stands in a checkpoint where the list was."""

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


def taken_out(values: dict[str, Any]) -> tuple[dict[str, Any], dict[str, list[Any]]]:
    """Return the values of a checkpoint with the sizes of lists in place of lists, and the lists."""
    lists = {channel: value for channel, value in values.items() if _is_apart(value)}
    return values | {channel: {COUNT: len(value)} for channel, value in lists.items()}, lists


def inherit(cursor: Cursor, place: Place, parent: str, channel: str) -> bool:
    """Give a checkpoint a list of its parent; return False where the parent has none stored apart."""
    given = (place.checkpoint_id, place.thread_id, place.checkpoint_ns, parent, channel)
    return cursor.execute(_INHERIT, given).rowcount > 0


def add_list(cursor: Cursor, place: Place, channel: str, items: Sequence[tuple[str, bytes]]) -> None:
    """Give a checkpoint a list; of its items, store those that the thread's channel does not have."""
    rows = cursor.execute(_KNOWN_ITEMS, (place.thread_id, channel)).fetchall()
    known = {(kind, value): number for kind, value, number in rows}
    unknown = [item for item in dict.fromkeys(items) if item not in known]
    new = dict(zip(unknown, count(max(known.values(), default=-1) + 1), strict=False))
    added = [(place.thread_id, channel, number, *item) for item, number in new.items()]
    cursor.executemany(_ADD_ITEM, added)
    spans = enumerate(_spans((known | new)[item] for item in items))
    cursor.executemany(_ADD_SPAN, [(*place, channel, at, *span) for at, span in spans])


def put_back(cursor: Cursor, place: Place, values: dict[str, Any], serde: SerializerProtocol) -> None:
    """Put its lists into the values of a checkpoint. Raises ValueError where items are missing."""
    counts = {
        channel: value[COUNT]
        for channel, value in values.items()
        if isinstance(value, dict) and value.keys() == {COUNT}
    }
    if not counts:
        return
    lists = {
        channel: [serde.loads_typed((kind, value)) for _, kind, value in items]
        for channel, items in groupby(cursor.execute(_LISTS, place).fetchall(), itemgetter(0))
    }
    if counts != {channel: len(items) for channel, items in lists.items()}:
        raise ValueError(f"thread {place.thread_id} has lost items of {', '.join(counts)}")
    values |= lists


def unused(cursor: Cursor, thread: str) -> list[tuple[str, str, int, int]]:
    """Return the thread, channel, first and last number of items that no list of a thread has any more."""
    ends = dict.fromkeys((row[0] for row in cursor.execute(_CHANNELS, (thread,)).fetchall()), 0)
    gaps = list[tuple[str, str, int, int]]()
    for channel, first, last in cursor.execute(_SPANS, (thread,)).fetchall():
        if first > ends[channel]:
            gaps.append((thread, channel, ends[channel], first - 1))
        ends[channel] = max(ends[channel], last + 1)
    return [*gaps, *((thread, channel, end, MAX_NUMBER) for channel, end in ends.items())]


def _is_apart(value: object) -> TypeGuard[list[Any]]:
    """Say whether a value is stored apart: a list of messages or of dicts."""
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(each, BaseMessage | dict) for each in value)
    )


def _spans(numbers: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Yield the first and the last number of each run of consecutive numbers."""
    for _, run in groupby(enumerate(numbers), lambda each: each[1] - each[0]):
        within = [number for _, number in run]
        yield within[0], within[-1]
