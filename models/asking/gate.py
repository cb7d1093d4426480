"""Let as many calls through to a model's endpoint as it serves at once, people first.

Ollama queues without bound and in order of arrival, so a hundred background calls would stand before
the one a person waits for. One gate per endpoint therefore holds them back on our side, in two lanes:

- A place that falls free goes to the oldest waiting call of the lane `user`, else to a call of the lane
  `background`: of the owner (a user or a team) with the fewest places, of several owners in turn.
- When a background call finds every place taken and another owner's background has more than an equal share
  of the places, the youngest call of that owner is preempted, as below: its share is never taken from it.
- When a user call finds every place taken, the background call that has run for the shortest time is
  preempted: its task is cancelled, which closes its stream, at which Ollama stops generating; it keeps
  its turn and runs again from the start when nobody waits. Model calls have no side effects, so
  only time is lost.
- A background call that began `PATIENCE` seconds ago and has not been let finish is spared for as long
  again. So under any load a background call that ends within that time is delayed by preemption for a
  bounded time. One that does not, because it is stalled, is preempted again, and begins anew behind the
  others; so it makes a user wait once, not until it is given up. Calls are not guaranteed a start: while user
  calls alone fill the endpoint, the background waits.

The gate serves every thread and event loop of the process: its state is guarded by one lock that is
never held across an `await`, and a waiting call is woken through its own loop.
"""

import asyncio
import threading
import time
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeVar

from mneme.core.settings import settings

Lane = Literal["user", "background"]


@dataclass(eq=False)
class Call:
    """One call that waits at the gate or runs behind it; `owner` is whose run it is, "" if unknown."""

    lane: Lane
    owner: str = ""
    loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.get_running_loop)
    began: float | None = None
    spared: float | None = None
    turn: "asyncio.Future[None] | None" = None
    stop: Callable[[], object] | None = None
    preempted: bool = False


class Turns:
    """The background calls that wait."""

    def __init__(self) -> None:
        self._lines: dict[str, deque[Call]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._lines.values()))

    def add(self, call: Call) -> None:
        """Put a call at the end of its owner's line; one that was preempted keeps its turn."""
        if call.began is None:
            self._lines.setdefault(call.owner, deque()).append(call)
            return
        line = self._lines.pop(call.owner, deque())
        line.appendleft(call)
        self._lines = {call.owner: line, **self._lines}

    def next(self, running: Iterable[Call]) -> Call | None:
        """Take the first call of the owner with the fewest places; of several owners, in turn."""
        if not self._lines:
            return None
        held = _held(running)
        owner = min(self._lines, key=lambda each: held[each])
        line = self._lines.pop(owner)
        call = line.popleft()
        if line:
            self._lines[owner] = line  # behind the others
        return call

    def drop(self, call: Call) -> None:
        """Take a call out of its line, if it stands there."""
        line = self._lines.get(call.owner, deque())
        if call in line:
            line.remove(call)
        if not line:
            self._lines.pop(call.owner, None)

    def beyond_its_share(self, call: Call, running: Sequence[Call]) -> Call | None:
        """Return a running call whose place is due to a waiting one: its owner has more than an equal share.

        It is the youngest, so the calls that an owner has within its share run to their end.
        """
        held = _held(each for each in running if not each.preempted)
        places = sum(each.lane == "background" for each in running)
        share = max(1, places // len(held.keys() | self._lines.keys()))
        beyond = [each for each in running if not each.preempted and held[each.owner] > share]
        beyond = [each for each in beyond if each.lane == "background"]
        if held[call.owner] >= share or not beyond:
            return None
        return max(beyond, key=lambda each: (held[each.owner], each.began or 0.0))


def _held(running: Iterable[Call]) -> Counter[str]:
    """Count the background calls of each owner."""
    return Counter(each.owner for each in running if each.lane == "background")


__all__ = ["Gate", "Lane", "clear_gates", "gate"]

T = TypeVar("T")

PATIENCE = 30.0


class Gate:
    """Admit up to `width` calls at once; see the module for the order."""

    def __init__(self, width: int, patience: float = PATIENCE, longest: float = PATIENCE) -> None:
        self.width = width
        self.patience, self.longest = patience, longest
        self._lock = threading.Lock()
        self._running: list[Call] = []
        self._users: deque[Call] = deque()
        self._background = Turns()

    async def run(self, lane: Lane, work: Callable[[], Awaitable[T]], owner: str = "") -> T:
        """Return what the work returns, once there is a place; background work may be begun repeatedly."""
        call = Call(lane, owner)
        while True:
            try:
                turn = self._queue(call)
                if turn is not None:
                    await turn
                return await self._perform(call, work)
            except _Preempted:
                continue
            finally:
                with self._lock:
                    for place in (self._running, self._users):
                        if call in place:
                            place.remove(call)
                    self._background.drop(call)
                    self._admit()

    def waiting(self, lane: Lane) -> int:
        """Return how many calls of a lane wait for a place."""
        return len(self._users if lane == "user" else self._background)

    def running(self, lane: Lane) -> int:
        """Return how many calls of a lane have a place."""
        return sum(call.lane == lane for call in self._running)

    async def _perform(self, call: Call, work: Callable[[], Awaitable[T]]) -> T:
        """Run the work; as a task of its own in the background lane, so that it alone can be cancelled."""
        if call.lane == "user":
            return await work()
        earlier = _cancellations()
        task = asyncio.ensure_future(work())
        with self._lock:
            call.stop = task.cancel
            if call.preempted:
                task.cancel()
        try:
            return await task
        except asyncio.CancelledError:
            if call.preempted and _cancellations() == earlier:
                raise _Preempted from None
            raise

    def _queue(self, call: Call) -> "asyncio.Future[None] | None":
        """Take a free place, or stand in line and preempt where that helps."""
        with self._lock:
            call.turn = call.loop.create_future()
            if call.lane == "user":
                self._users.append(call)
            else:
                self._background.add(call)
            self._admit()
            if call in self._running:
                return None
            if call.lane == "user":
                self._preempt()
                call.loop.call_later(self.longest, self._preempt_stalled)
            elif other := self._background.beyond_its_share(call, self._running):
                _stop(other)
            return call.turn

    def _admit(self) -> None:
        """Give every free place to the next in line; the lock is held."""
        self._running = [call for call in self._running if not call.loop.is_closed()]
        while len(self._running) < self.width and (
            call := (self._users.popleft() if self._users else self._background.next(self._running))
        ):
            call.began = call.began or time.monotonic()
            call.preempted = False
            call.stop = None
            self._running.append(call)
            if not _wake(call):
                self._running.remove(call)

    def _preempt(self) -> None:
        """Stop one background call unless enough are already stopping for the users who wait."""
        stopping = sum(call.preempted for call in self._running)
        if stopping >= len(self._users):
            return
        willing = [call for call in self._running if self._may_be_preempted(call)]
        if not willing:
            return
        chosen = max(willing, key=lambda c: c.began or 0.0)
        if chosen.spared is not None:
            chosen.began = chosen.spared = None  # it has had its time
        _stop(chosen)

    def _preempt_stalled(self) -> None:
        """Look again once a call that was spared has had its time."""
        with self._lock:
            if self._users:
                self._preempt()

    def _may_be_preempted(self, call: Call) -> bool:
        """Say whether the call may be stopped for a user; note when it was spared first."""
        if call.lane != "background" or call.preempted:
            return False
        now = time.monotonic()
        if now - (call.began or 0.0) < self.patience:
            return True
        call.spared = call.spared or now
        return now - call.spared >= self.longest


class _Preempted(Exception):  # noqa: N818  (an event, not an error)
    """A user call took the place of this background call."""


def _stop(call: Call) -> None:
    """Preempt a call, now or as soon as it can be stopped; the lock is held."""
    call.preempted = True
    if call.stop is not None:
        _on_loop(call, call.stop)


def _cancellations() -> int:
    """Return how often the current task was asked to stop, which a preemption does not count towards."""
    task = asyncio.current_task()
    return task.cancelling() if task is not None else 0


def _wake(call: Call) -> bool:
    def resolve() -> None:
        if call.turn is not None and not call.turn.done():
            call.turn.set_result(None)

    return _on_loop(call, resolve)


def _on_loop(call: Call, action: Callable[[], object]) -> bool:
    """Have the call's own loop do something; return whether that loop still runs."""
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
    """Return the process's one gate to an endpoint (its URL)."""
    with _guard:
        return _gates.setdefault(endpoint.rstrip("/"), Gate(settings().parallel))


def clear_gates() -> None:
    """Drop every gate, for endpoints that are gone or have another width now; none may be in use."""
    with _guard:
        _gates.clear()
