"""Calls of coroutines from code that has no event loop."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Coroutine
from functools import wraps
from inspect import iscoroutinefunction
from typing import Any, TypeVar

T = TypeVar("T")


class Loop:
    """An event loop in a thread of its own."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="mneme", daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine and wait for its result; an interrupted wait cancels it. Blocks."""
        waits = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return waits.result()
        except BaseException:
            waits.cancel()
            raise

    def wait(self, work: Coroutine[Any, Any, T]) -> Awaitable[T]:
        """Start a coroutine, for another loop to await its result; whoever cancels that cancels it."""
        return asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._loop))

    def close(self) -> None:
        """End the thread."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class Blocking:
    """An object whose coroutines are waited for; what it consists of is blocking, too."""

    def __init__(self, of: Any, loop: Loop) -> None:
        self._of, self._loop = of, loop

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._of, name)
        if iscoroutinefunction(value):
            return self._waiting(value)
        return value if isinstance(value, str) else Blocking(value, self._loop)

    def __dir__(self) -> list[str]:
        return dir(self._of)

    def _waiting(self, function: Callable[..., Coroutine[Any, Any, T]]) -> Callable[..., T]:
        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> T:
            return self._loop.run(function(*args, **kwargs))

        return call
