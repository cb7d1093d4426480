"""Whose background call is next: a line for each owner, so that many calls of one do not hold up another."""

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

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
