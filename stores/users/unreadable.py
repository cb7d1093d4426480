"""Records that another program wrote and that cannot be read: passed over, and named once."""

import logging
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import TypeVar

from pydantic import ValidationError

from mneme.core.errors import BadInput, first_fault
from mneme.stores.ledger.records import Value, Version

log = logging.getLogger(__name__)
Read = TypeVar("Read")


def readable(read: Callable[[Version], Read], versions: Iterable[Version]) -> list[Read]:
    """Read records; pass over those that cannot be read, with one warning for each."""
    found: list[Read] = []
    for version in versions:
        try:
            found.append(read(version))
        except ValidationError as broken:
            _warn(version.key, version.version, first_fault(broken))
    return found


@lru_cache(maxsize=4096)
def _warn(key: str, version: int, reason: str) -> None:
    """Say it once in this process, not with every search."""
    log.warning("Record %s, version %d, is passed over: %s %s", key, version, reason, _advice(key))


def read_one(read: Callable[[Version], Read], version: Version) -> Read:
    """Read a record that was asked for by its key. Raises BadInput where it cannot be read."""
    try:
        return read(version)
    except ValidationError as broken:
        raise BadInput(
            f"Record {version.key} cannot be read: {first_fault(broken)}", _advice(version.key)
        ) from broken


def check(read: Callable[[Value], object], value: Value) -> None:
    """Refuse a value that could not be read back. Raises BadInput."""
    try:
        read(value)
    except ValidationError as broken:
        raise BadInput(f"its value is not a memory: {first_fault(broken)}") from broken


def _advice(key: str) -> str:
    return f"`mneme memories history {key}` shows it as it is; `mneme memories forget {key}` erases it."
