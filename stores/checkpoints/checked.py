"""Stored values with their checksums: a letter that the disk has changed does not pass for what was said.

The checksum of a value stands behind its kind: `msgpack#1a2b3c4d`. Values that an earlier version stored have
none, and are read as they are.
"""

import zlib
from typing import Any

from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

MARK = "#"


class Checked(JsonPlusSerializer):
    """LangGraph's serializer, which notes and compares checksums."""

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        kind, data = super().dumps_typed(obj)
        return checked(kind, data), data

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        """Return a value. Raises ValueError where it is not as it was stored."""
        kind, value = data
        if not is_whole(kind, value):
            raise ValueError("a value is not as it was stored")
        return super().loads_typed((plain(kind), value))


def checked(kind: str, data: bytes) -> str:
    """Return a kind with the checksum of a value."""
    return f"{plain(kind)}{MARK}{zlib.crc32(data):08x}"


def plain(kind: str) -> str:
    """Return a kind without a checksum."""
    return kind.partition(MARK)[0]


def is_whole(kind: str, data: bytes) -> bool:
    """Say whether a value is as it was stored, as far as its kind tells."""
    return MARK not in kind or kind == checked(kind, data)
