"""Values as they are stored: written plainly, and taken apart without making the objects that they stand for.

There is no pickle in them and no class of ours, and they are restored through a list of plain types, so that
whoever can write to the database cannot make a reader run code. What stands for an object is LangGraph's:
MessagePack inside of an extension. So a text in a message can be replaced whatever classes are around it.

A checkpoint has all of a graph's state, and a chat makes six of them a turn: with the messages in each, a
conversation would take space that grows with the square of its turns. So each message is stored once, in
however many lists it is: a list of messages, or of dicts, is taken out of the checkpoint. Its items are
numbered by thread and channel, in `items`; the list is the numbers `first` to `last` of its `spans`, in the
order of their places; and the checkpoint says how many there are. A list that only grows is one span.
"""

import json
from collections.abc import Iterable
from itertools import count, groupby
from operator import itemgetter
from typing import Any

import ormsgpack
from langchain_core.messages import BaseMessage
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.types import Overwrite, Send
from pydantic import BaseModel

from mneme.stores.checkpoints.tables import Place
from mneme.stores.database import Cursor

EXTENSIONS = range(8)
"""LangGraph's own codes; the bytes of any other are kept as they are."""
OPTIONS = ormsgpack.OPT_NON_STR_KEYS | ormsgpack.OPT_REPLACE_SURROGATES
Value = tuple[str, bytes]
"""A value's kind and the value."""
JSON = "json"
MSGPACK = "msgpack"


class Extension:
    """An object in MessagePack, by the code of its kind."""

    def __init__(self, code: int, inside: Any) -> None:
        self.code, self.inside = code, inside


def unpack(kind: str, data: bytes) -> Any:
    """Return a stored value; None for a kind that holds no text. Raises ValueError where it is damaged."""
    if kind == JSON:
        return json.loads(data)
    if kind != MSGPACK:
        return None
    return ormsgpack.unpackb(data, ext_hook=_extension, option=ormsgpack.OPT_NON_STR_KEYS)


def pack(kind: str, value: Any) -> bytes:
    """Return a value as it is stored."""
    if kind == JSON:
        return json.dumps(value, ensure_ascii=False).encode()
    return ormsgpack.packb(value, default=_as_extension, option=OPTIONS)


def _extension(code: int, data: bytes) -> Extension:
    return Extension(code, unpack(MSGPACK, data) if code in EXTENSIONS else data)


def _as_extension(value: Any) -> ormsgpack.Ext:
    if not isinstance(value, Extension):
        raise TypeError(f"{type(value)} was not unpacked from a checkpoint")
    packed = pack(MSGPACK, value.inside) if value.code in EXTENSIONS else value.inside
    return ormsgpack.Ext(value.code, packed)


class PlainSerializer(JsonPlusSerializer):
    """Write models of our own as plain JSON values; restore LangGraph's safe types and no other."""

    def __init__(self) -> None:
        super().__init__(pickle_fallback=False, allowed_msgpack_modules=None)

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        return super().dumps_typed(_plain(obj))


def _plain(value: Any) -> Any:
    if type(value) is dict:
        return {key: _plain(each) for key, each in value.items()}
    if type(value) in (list, tuple):
        return type(value)(map(_plain, value))
    if isinstance(value, Send):
        return Send(value.node, _plain(value.arg), timeout=value.timeout)
    if isinstance(value, Overwrite):
        return Overwrite(_plain(value.value))
    is_ours = isinstance(value, BaseModel) and type(value).__module__.startswith("mneme.")
    return value.model_dump(mode="json") if is_ours else value


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
