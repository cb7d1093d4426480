"""Wait for what another task, thread or process does."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")

PATIENCE = 240.0
"""Seconds until a wait is given up: less than pytest's limit, which would not say what was waited for."""


async def eventually(found: Callable[[], Awaitable[T]]) -> T:
    """Ask again until there is something, and return it. Raises TimeoutError where there never is."""
    async with asyncio.timeout(PATIENCE):
        while not (result := await found()):  # noqa: ASYNC110  (it changes elsewhere)
            await asyncio.sleep(0.1)
    return result


async def until(holds: Callable[[], object]) -> None:
    """Let other tasks and threads run until something holds."""
    while not holds():  # noqa: ASYNC110  (it changes elsewhere)
        await asyncio.sleep(0.005)


def wait_until(holds: Callable[[], object]) -> None:
    """Let other processes run until something holds."""
    while not holds():
        time.sleep(0.005)


class Turns:
    """Watch an event loop turn, in an `async with`: how often, and its thread's CPU seconds in one turn.

    CPU seconds, not the clock's: a busy machine does not make them more.
    """

    def __init__(self) -> None:
        self.count = 0
        self.longest = 0.0

    async def __aenter__(self) -> "Turns":
        self._watching = asyncio.create_task(self._watch())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._watching.cancel()

    async def _watch(self) -> None:
        while True:
            before = time.thread_time()
            await asyncio.sleep(0)
            self.count += 1
            self.longest = max(self.longest, time.thread_time() - before)
