"""What has become of messages that were given to be remembered, and waiting for it."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import Literal

from pydantic import BaseModel, Field

from mneme.stores.users.inbox import Inbox, MessageOutcome

FIRST_PAUSE, LONGEST_PAUSE = 0.05, 0.5
"""Seconds between two looks whether a message has been remembered; doubled each time."""

Remembering = Callable[[str, str, float], Awaitable[None]]
"""Lets what waits of a user be remembered by a memory agent's model, and waits so many seconds at most."""


class Remembered(BaseModel):
    """What has become of a message so far.

    >>> import mneme
    >>> with mneme.open("ann") as memory:
    ...     [told, idle] = memory.remember(["I have a cat.", "Hm."], memory_agent="rules")
    >>> told.status, idle.status
    ('stored', 'discarded')
    """

    message_id: str
    status: Literal["stored", "discarded", "waiting", "failed"] = Field(
        description="`failed`: the last attempt did; it is tried again, or set aside after several."
    )
    outcome: MessageOutcome | None = None
    error: str = ""


@dataclass(frozen=True)
class Said:
    """Messages of a user that are in the inbox, by their ids."""

    inbox: Inbox
    user: str
    ids: Sequence[str]

    async def remembered(
        self, remembering: Remembering | None, memory_agent: str, seconds: float
    ) -> Sequence[Remembered]:
        """Have them remembered; return what became of each once none is as before and open, or in time."""
        until, before = monotonic() + seconds, await self.now()
        if remembering is None:
            return before
        await remembering(self.user, memory_agent, seconds)
        pause = FIRST_PAUSE
        while True:
            found = await self.now()
            is_same = [now == then and now.outcome is None for now, then in zip(found, before, strict=True)]
            if not any(is_same) or monotonic() >= until:
                return found
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    async def now(self) -> Sequence[Remembered]:
        """Return what has become of each so far."""
        return [await self._one(each) for each in self.ids]

    async def _one(self, message_id: str) -> Remembered:
        outcome, trouble = await self.inbox.standing(self.user, message_id)
        if outcome is None:
            error = trouble["error"]
            return Remembered(message_id=message_id, status="failed" if error else "waiting", error=error)
        status: Literal["stored", "discarded"] = "discarded" if outcome["route"] == "discard" else "stored"
        return Remembered(message_id=message_id, status=status, outcome=outcome)
