"""Waiting until another process closes the embedded ledger, instead of failing."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path
from time import monotonic
from typing import TypeVar

from mneme.client.announcement import ANSWER_SECONDS, running_server
from mneme.core.errors import LedgerInUse
from mneme.core.settings import settings
from mneme.stores.ledger.ledger import is_server
from mneme.stores.ledger.line import Line, pause
from mneme.stores.ledger.owner import named, owner_of

T = TypeVar("T")
SILENT = 1.0
"""Seconds of waiting that nobody is told of."""
ASKING = 1.0
"""The least that a server gets to answer, however little time is left."""

log = logging.getLogger(__name__)


async def in_turn(work: Callable[[], Awaitable[T]]) -> T | str:
    """Do what needs the ledger for itself once it is free, or return the address of a server that has it.

    Whoever comes first is first. It waits `settings().wait` seconds at most, and says once for whom; a server
    that hangs can make that a second longer. Raises LedgerInUse, and what the work raises.
    """
    location = settings().ledger_location
    if is_server(location):
        return await work()
    line, until = Line(Path(location).expanduser()), monotonic() + settings().wait
    try:
        return await _wait(work, line, until)
    finally:
        await asyncio.to_thread(line.leave)


async def alone(work: Callable[[], Awaitable[T]]) -> T:
    """Do what no server does for a command, once the ledger is free. Raises LedgerInUse."""
    found = await in_turn(work)
    if isinstance(found, str):
        raise LedgerInUse(f"The server at {found} has the ledger open.", "Stop it first.")
    return found


async def _wait(work: Callable[[], Awaitable[T]], line: Line, until: float) -> T | str:
    said, silent_until = False, monotonic() + SILENT
    while True:
        refusal, late = None, monotonic() >= until
        before = await asyncio.to_thread(line.before)
        if late or not before:
            try:
                return await work()
            except LedgerInUse as taken:
                refusal = taken
        left = max(until - monotonic(), ASKING)
        if url := await asyncio.to_thread(running_server, min(left, ANSWER_SECONDS)):
            return url
        if late and refusal is not None:
            raise refusal
        if not said and monotonic() >= silent_until:
            said = await asyncio.to_thread(_say, line.folder, until - monotonic())
        await asyncio.to_thread(line.stand)
        await asyncio.sleep(pause(before))


def _say(folder: Path, left: float) -> bool:
    holder = named(owner_of(folder))
    log.warning(
        "Another process%s has the ledger at %s open; waiting up to %.0f s more.", holder, folder, left
    )
    return True
