"""The connection to the ledger that all tools and middleware of a process share, on any event loop.

It has an event loop in its own thread.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextvars import Context
from threading import Lock
from typing import Any, TypeVar

from mneme.client.blocking import Loop
from mneme.client.memory import Door, Owned
from mneme.core.settings import settings

T = TypeVar("T")
Work = Callable[[Any], Awaitable[T]]
"""A function that works with operations on an owner's data."""

_starting = Lock()
_loops: list[Loop] = []
_doors: dict[str, Door] = {}
"""Connections by the ledger's location; only the loop's thread uses them."""


def blocking(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine on the shared loop, for a caller without an event loop. Blocks."""
    return _loop().run(work)


async def awaited(owned: Owned, work: Work[T], seconds: float | None = None) -> T:
    """Await `work` with operations on an owner's data, without blocking this event loop.

    Raises TimeoutError after `seconds`.
    """
    # An empty context: the memory agent's run is no part of the run of the agent that called it.
    return await Context().run(_loop().wait, _do(owned, work, seconds))


async def _do(owned: Owned, work: Work[T], seconds: float | None) -> T:
    location = settings().ledger_location
    if location not in _doors:  # a test changes the settings of its process
        _doors[location] = Door()
    async with asyncio.timeout(seconds):
        return await _doors[location].do(owned, work)


def close() -> None:
    """Close what is open; the next call opens it again."""
    with _starting:
        while _loops:
            _loops.pop().close()


def _loop() -> Loop:
    with _starting:
        if not _loops:
            _loops.append(Loop(_leave))
        return _loops[0]


async def _leave() -> None:
    while _doors:
        await _doors.popitem()[1].leave()
