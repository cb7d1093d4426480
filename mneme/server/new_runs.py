"""Start new runs without the queue's delay.

Whoever adds a run wakes the queue of `langgraph dev`, which sleeps up to a second. Where the queue is another
one, such as a deployed server's or a later version's, nothing changes.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from mneme.stores.internals import runs_of_dev

RUN_LOOK_SECONDS = 0.5
"""Seconds between two checks for scheduled runs, which are due without a new run being added."""


@contextmanager
def begun_at_once() -> Iterator[None]:
    """Wake the queue of this process when a run is created, until the context ends."""
    runs = runs_of_dev()
    if runs is None:
        yield
        return
    put, following, bell = runs.put, runs.next, Bell()

    async def put_and_ring(*given: Any, **named: Any) -> Any:
        made = await put(*given, **named)
        bell.ring()
        return made

    async def next_at_once(wait: bool, *given: Any, **named: Any) -> AsyncIterator[Any]:
        if wait:
            await bell.rung(RUN_LOOK_SECONDS)
        async for each in following(False, *given, **named):  # False: it would sleep once more
            yield each

    runs.put, runs.next = staticmethod(put_and_ring), staticmethod(next_at_once)
    try:
        yield
    finally:
        runs.put, runs.next = staticmethod(put), staticmethod(following)


class Bell:
    """A signal from any thread to one waiting task; a signal that nobody awaits is kept."""

    def __init__(self) -> None:
        self._event = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None

    def ring(self) -> None:
        if self._loop is None:
            self._event.set()
            return
        with suppress(RuntimeError):  # that loop has ended
            self._loop.call_soon_threadsafe(self._event.set)

    async def rung(self, seconds: float) -> None:
        """Wait for the next ring, for so many seconds at most."""
        self._loop = asyncio.get_running_loop()
        with suppress(TimeoutError):  # then the queue looks for scheduled runs
            async with asyncio.timeout(seconds):
                await self._event.wait()
        self._event.clear()
