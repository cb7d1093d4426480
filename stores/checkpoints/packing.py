"""Values as they are stored: written plainly, and taken apart without making the objects that they stand for.

There is no pickle in them and no class of ours, and they are restored through a list of plain types, so that
whoever can write to the database cannot make a reader run code. What stands for an object is LangGraph's:
MessagePack inside of an extension. So a text in a message can be replaced whatever classes are around it.
"""

import json
from typing import Any

import ormsgpack
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.types import Overwrite, Send
from pydantic import BaseModel

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
