"""Lists in checkpoints: each message is stored once, in however many it is.

A checkpoint has all of a graph's state, and a chat makes six of them a turn: with the messages in each, a
conversation would take space that grows with the square of its turns. So a list of messages, or of dicts, is
taken out of the checkpoint. Its items are numbered by thread and channel, in `items`; the list is the numbers
`first` to `last` of its `spans`, in the order of their places; and the checkpoint says how many there are. A
list that only grows is one span.
"""

from collections.abc import Iterable
from itertools import count, groupby
from operator import itemgetter
from typing import Any

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
    lists = {
        channel: value
        for channel, value in values.items()
        if isinstance(value, list) and value and all(isinstance(each, BaseMessage | dict) for each in value)
    }
    return values | {channel: {COUNT: len(value)} for channel, value in lists.items()}, lists


def put_list(
    cursor: Cursor, place: Place, channel: str, values: Iterable[tuple[str, bytes]], parent: str | None
) -> None:
    """Give a checkpoint a list: that of its parent, where one is named and has it apart, else these values.

    Of the values those are stored that the thread's channel does not have.
    """
    if parent:
        given = (place.checkpoint_id, place.thread_id, place.checkpoint_ns, parent, channel)
        if cursor.execute(_INHERIT, given).rowcount > 0:
            return
    items = [*values]
    rows = cursor.execute(_KNOWN_ITEMS, (place.thread_id, channel)).fetchall()
    known = {(kind, stored): number for kind, stored, number in rows}
    unknown = [item for item in dict.fromkeys(items) if item not in known]
    new = dict(zip(unknown, count(max(known.values(), default=-1) + 1), strict=False))
    added = [(place.thread_id, channel, number, *item) for item, number in new.items()]
    cursor.executemany(_ADD_ITEM, added)
    numbers, spans = known | new, list[tuple[int, int]]()  # the first and the last of each run of numbers
    for number in [numbers[item] for item in items]:
        if spans and number == spans[-1][1] + 1:
            spans[-1] = (spans[-1][0], number)
        else:
            spans.append((number, number))
    cursor.executemany(_ADD_SPAN, [(*place, channel, at, *span) for at, span in enumerate(spans)])


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
