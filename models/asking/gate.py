"""Limit the concurrent calls to a model's endpoint to what it serves at once; people come first.

Ollama queues without bound and in order of arrival, so a hundred background calls would delay the one that a
person waits for. So one gate per endpoint queues the calls in this process, in two lanes:

- A place that falls free goes to a waiting call of the lane `user`, else to one of the lane `background`: in
  each to the owner (a user or a team) with the fewest places, of several owners in turn. So whoever asks for
  one reply waits for one call to end, however many another has asked for.
- When a user call finds every place taken, the background call that has run for the shortest time is
  preempted: its task is cancelled, which closes its stream, at which Ollama stops generating; it keeps
  its turn and runs again from the start when nobody waits. Model calls have no side effects, so
  only time is lost.
- A background call that began `MAX_PRIORITY_SECONDS` seconds ago and has not been let finish is spared for
  as long again. So under any load a background call that ends within that time is delayed by preemption for a
  bounded time. One that does not, because it is stalled, is preempted again, and begins anew behind the
  others; so it makes a user wait once, not until it is given up. Calls are not guaranteed a start: while user
  calls alone fill the endpoint, the background waits.

The gate serves every thread and event loop of the process: its state is guarded by one lock that is
never held across an `await`, and a waiting call is woken through its own loop.
"""

import asyncio
import sys
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from itertools import count
from typing import Literal, TypeVar

from mneme.core.settings import settings

__all__ = ["Gate", "Lane", "asking_for", "clear_gates", "gate"]

Lane = Literal["user", "background"]
Owner = tuple[Lane, str]
T = TypeVar("T")

MAX_PRIORITY_SECONDS = 30.0
CONFIG_MODULE = "langchain_core.runnables.config"
"""Module that knows the current run; used only if a graph has loaded it, since it is slow to import."""

asking_for: ContextVar[str] = ContextVar("asking_for", default="")
"""Owner of the request that the server is answering."""


@dataclass(eq=False)
class Call:
    """A call that waits at the gate or is running; `owner` is the run's owner, "" if unknown."""

    lane: Lane
    owner: str = ""
    loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.get_running_loop)
    began: float | None = None  # seconds on the monotonic clock, at its first admission
    spared: float | None = None  # the same, since when it is spared from preemption
    turn: asyncio.Event = field(default_factory=asyncio.Event)
    stop: Callable[[], object] | None = None
    preempted: bool = False


class Gate:
    """Admit up to `width` calls at once; see the module for the order."""

    def __init__(
        self, width: int, patience: float = MAX_PRIORITY_SECONDS, longest: float = MAX_PRIORITY_SECONDS
    ) -> None:
        self.width = width
        self.patience, self.longest = patience, longest
        self._lock = threading.RLock()  # reentrant: `_preempt` runs under it, and from a timer without it
        self._running: list[Call] = []
        self._waiting: list[Call] = []
        self._admissions, self._admitted = count(1), Counter[Owner]()
        """The number of each owner's latest admission in a lane."""

    async def run(self, lane: Lane, work: Callable[[], Awaitable[T]], owner: str = "") -> T:
        """Run the work once there is a place, and return its result; background work may be restarted.

        The default owner is that of the current request or run; "" if unknown.
        """
        owner = owner or asking_for.get()
        if not owner and (runs := sys.modules.get(CONFIG_MODULE)) is not None:
            # set by the server or the command line
            owner = str(runs.ensure_config().get("metadata", {}).get("owner", ""))
        call = Call(lane, owner)
        while True:
            try:
                with self._lock:
                    call.turn = asyncio.Event()  # a new one: the callback of an earlier turn may still come
                    self._waiting.append(call)
                    self._admit()
                    waits = call not in self._running
                    if waits and lane == "user":
                        self._preempt()
                        call.loop.call_later(self.longest, self._preempt)  # a spared call has had its time
                if waits:
                    await call.turn.wait()
                return await (work() if lane == "user" else self._preemptible(call, work))
            except _Preempted:
                continue
            finally:
                with self._lock:
                    for place in (self._running, self._waiting):
                        if call in place:
                            place.remove(call)
                    self._admit()

    def waiting(self, lane: Lane) -> int:
        """Return how many calls of a lane wait for a place."""
        return sum(call.lane == lane for call in self._waiting)

    def running(self, lane: Lane) -> int:
        """Return how many calls of a lane have a place."""
        return sum(call.lane == lane for call in self._running)

    async def _preemptible(self, call: Call, work: Callable[[], Awaitable[T]]) -> T:
        """Run background work as a separate task, so that it alone can be cancelled."""
        earlier = _cancellations()
        task = asyncio.ensure_future(work())
        with self._lock:
            call.stop = task.cancel
            if call.preempted:  # between its admission and this line
                task.cancel()
        try:
            return await task
        except asyncio.CancelledError:
            # A caller that was cancelled itself must see that, even if its call was preempted too.
            if call.preempted and _cancellations() == earlier:
                raise _Preempted from None
            raise

    def _admit(self) -> None:
        """Give each free place to the next call in line; the caller holds the lock."""
        # Calls on a loop that was closed meanwhile can no longer give their places back.
        self._running = [call for call in self._running if not call.loop.is_closed()]
        while self._waiting and len(self._running) < self.width:
            held = Counter((each.lane, each.owner) for each in self._running)
            call = min(
                self._waiting,
                key=lambda each: (
                    each.lane != "user",
                    held[each.lane, each.owner],
                    each.began is None,  # a preempted call keeps its turn
                    self._admitted[each.lane, each.owner],  # who was admitted longest ago
                ),
            )
            self._waiting.remove(call)
            call.began = call.began or time.monotonic()  # a preempted call keeps it, to be spared in time
            call.preempted, call.stop = False, None
            if _on_loop(call, call.turn.set):
                self._running.append(call)
                self._admitted[call.lane, call.owner] = next(self._admissions)

    def _preempt(self) -> None:
        """Stop one background call unless enough are already stopping for the users who wait.

        A call that began `patience` seconds ago is spared at first, for `longest` seconds from then on.
        """
        with self._lock:
            if sum(call.preempted for call in self._running) >= self.waiting("user"):
                return
            now, willing = time.monotonic(), list[Call]()
            for call in self._running:
                if call.lane == "background" and not call.preempted:
                    is_spared = now - (call.began or 0.0) >= self.patience
                    call.spared = (call.spared or now) if is_spared else call.spared
                    if not is_spared or now - (call.spared or now) >= self.longest:
                        willing.append(call)
            if not willing:
                return
            chosen = max(willing, key=lambda call: call.began or 0.0)  # the least work is lost
            if chosen.spared is not None:
                chosen.began = chosen.spared = None  # its protection is used up
            chosen.preempted = True
            if chosen.stop is not None:  # else its task begins later, and sees that it was preempted
                _on_loop(chosen, chosen.stop)


class _Preempted(Exception):  # noqa: N818  (an event, not an error)
    """A user call took the place of this background call."""


def _cancellations() -> int:
    """Return how often cancellation of the current task was requested; preemption cancels another task."""
    task = asyncio.current_task()
    return task.cancelling() if task is not None else 0


def _on_loop(call: Call, action: Callable[[], object]) -> bool:
    """Schedule a callback on the call's own event loop; return whether that loop still runs."""
    if call.loop.is_closed():
        return False
    try:
        call.loop.call_soon_threadsafe(action)
    except RuntimeError:  # closed between the question and the call
        return False
    return True


_gates: dict[str, Gate] = {}
_guard = threading.Lock()


def gate(endpoint: str) -> Gate:
    """Return the gate of an endpoint (its URL), one per process."""
    with _guard:
        return _gates.setdefault(endpoint.rstrip("/"), Gate(settings().parallel))


def clear_gates() -> None:
    """Drop all gates, after endpoints or their width have changed; none may be in use."""
    with _guard:
        _gates.clear()
