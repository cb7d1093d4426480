"""Waiting until another process closes the embedded ledger, instead of failing."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from math import inf
from pathlib import Path
from time import monotonic
from typing import TypeVar

from mneme.client.announcement import ANSWER_SECONDS, running_server
from mneme.core.errors import LedgerInUse, StorageFailure
from mneme.core.settings import settings
from mneme.stores.ledger.ledger import is_server
from mneme.stores.ledger.line import Line, pause
from mneme.stores.ledger.owner import in_use, named, owner_of

T = TypeVar("T")
SILENT = 1.0
"""Seconds of waiting that nobody is told of."""
ASKING = 1.0
"""The least that a server gets to answer, however little time is left."""

log = logging.getLogger(__name__)


async def in_turn(
    work: Callable[[], Awaitable[T]], instead: Callable[[LedgerInUse], Awaitable[T]] | None = None
) -> T | str:
    """Do what needs the ledger for itself once it is free, or return the address of a server that has it.

    Whoever comes first is first. It waits `settings().wait` seconds, anew whenever fewer are before it, and
    says once for whom; a server that hangs can make that a second longer. What can be done `instead` is done
    after a moment, unless it raises StorageFailure. Raises LedgerInUse, and what the two raise.
    """
    location = settings().ledger_location
    if is_server(location):
        return await work()
    line, patience = Line(Path(location).expanduser()), Patience(settings().wait)
    try:
        found = await _wait(work, line, Patience(min(patience.seconds, SILENT), moves=False))
        if found is None and instead is not None:
            with suppress(StorageFailure):
                return await instead(in_use(line.folder))
        if found is None and patience.left > 0:
            await asyncio.to_thread(_say, line.folder, patience.left)
            found = await _wait(work, line, patience)
        return await work() if found is None else found  # the last attempt raises, and says who has it
    finally:
        await asyncio.to_thread(line.leave)


async def alone(work: Callable[[], Awaitable[T]]) -> T:
    """Do what no server does for a command, once the ledger is free. Raises LedgerInUse."""
    found = await in_turn(work)
    if isinstance(found, str):
        raise LedgerInUse(f"The server at {found} has the ledger open.", "Stop it first.")
    return found


class Patience:
    """So many seconds; where the line `moves` they begin anew whenever fewer are before this process.

    Many short commands beside one another take long together, and none of them should give up for that; who
    waits for a single one gives up in time. Nobody gets in before who waits, so there is an end to it.
    """

    def __init__(self, seconds: float, *, moves: bool = True) -> None:
        self.seconds, self._moves = seconds, moves
        self._until, self._fewest = monotonic() + seconds, inf

    @property
    def left(self) -> float:
        return self._until - monotonic()

    def note(self, before: int) -> None:
        """Note how many are before this process now."""
        if self._moves and before < self._fewest < inf:
            self._until = monotonic() + self.seconds
        self._fewest = min(before, self._fewest)


async def _wait(work: Callable[[], Awaitable[T]], line: Line, patience: Patience) -> T | str | None:
    """Do the work in turn, or find a server; return None when time is over."""
    while True:
        before = await asyncio.to_thread(line.before)
        patience.note(before)
        if not before:
            with suppress(LedgerInUse):
                return await work()
        seconds = min(max(patience.left, ASKING), ANSWER_SECONDS)
        if url := await asyncio.to_thread(running_server, seconds):
            return url
        if patience.left <= 0:
            return None
        await asyncio.to_thread(line.stand)
        await asyncio.sleep(pause(before))


def _say(folder: Path, left: float) -> None:
    holder = named(owner_of(folder))
    log.warning("Another process%s has the ledger at %s open; waiting up to %.0f s.", holder, folder, left)
