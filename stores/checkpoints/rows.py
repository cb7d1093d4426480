"""The rows of threads in the database of checkpoints: which there are, and their values, to be rewritten."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

Change = Callable[[str, bytes], bytes]
"""Given a value's kind and its bytes, return the bytes that take their place, or the same."""
Value = tuple[str, bytes]
"""A value's kind and the value."""
Stored = tuple[Any, str, bytes]
"""A row's key, its value's kind and the value."""
UUID_LENGTH = 36
EPOCH = datetime(1582, 10, 15, tzinfo=UTC)


class Kept(NamedTuple):
    """A thread that has checkpoints: the metadata of the latest, their number, and when it was written."""

    id: str
    metadata: dict[str, Any]
    checkpoints: int
    at: datetime


def kept(thread: str, checkpoint: str, count: int, metadata: dict[str, Any]) -> Kept:
    """Describe a thread by its latest checkpoint, whose id begins with the time (a UUID of version 6)."""
    number = UUID(checkpoint).int if len(checkpoint) == UUID_LENGTH else 0
    ticks = (number >> 96 << 28) | ((number >> 80 & 0xFFFF) << 12) | (number >> 64 & 0xFFF)
    return Kept(thread, metadata, count, EPOCH + timedelta(microseconds=ticks // 10))


def changed(stored: Sequence[Stored], change: Change) -> list[tuple[bytes, Any]]:
    """Return the new values of those that a change makes different, each with its row's key."""
    pairs = ((key, data, change(kind, data)) for key, kind, data in stored if data)
    return [(new, key) for key, data, new in pairs if new != data]
