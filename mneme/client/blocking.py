"""Calls of coroutines from code that has no event loop."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import Future
from functools import wraps
from typing import Any, TypeVar

from mneme.core.errors import BadInput
from mneme.stores.internals import before_executors_end

T = TypeVar("T")


class Loop:
    """An event loop in a thread of its own.

    `leave` runs there on closing; the end of the process closes the loop, too.
    """

    def __init__(self, leave: Callable[[], Coroutine[Any, Any, object]]) -> None:
        self._leave = leave
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="mneme", daemon=True)
        self._thread.start()
        _running.add(self)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine and wait for its result; an interrupted wait cancels it. Blocks."""
        waits = self._start(work)
        try:
            return waits.result()
        except BaseException:  # Ctrl-C, too: the work would go on unseen
            waits.cancel()
            raise

    def wait(self, work: Coroutine[Any, Any, T]) -> Awaitable[T]:
        """Start a coroutine, for another loop to await its result; whoever cancels that cancels it."""
        return asyncio.wrap_future(self._start(work))

    def _start(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        if self._loop.is_closed():
            work.close()
            raise BadInput("This memory is closed.", "Open it again: `with mneme.open() as memory:`")
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def close(self) -> None:
        """Run `leave`, and end the thread."""
        _running.discard(self)
        if not self._thread.is_alive():  # this process was forked from the one that has the thread
            return
        try:
            self.run(self._leave())
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()


_running: set[Loop] = set()


def _close_all() -> None:
    for loop in [*_running]:  # a copy: `close` takes the loop out
        loop.close()


before_executors_end(_close_all)


class Blocking:
    """A synchronous proxy of an object and its parts; coroutines run on a loop in another thread."""

    def __init__(self, of: Any, loop: Loop) -> None:
        self.of, self.loop = of, loop

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.of, name)
        if isinstance(found, str):  # the user's and the team's name; whatever cannot be called is a part
            return found
        if not callable(found):
            return Blocking(found, self.loop)

        @wraps(found)
        def call(*args: Any, **kwargs: Any) -> Any:
            return self.loop.run(found(*args, **kwargs))

        return call

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *dir(self.of)]
