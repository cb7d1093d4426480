"""What has become of messages that were given to be remembered, and waiting for it."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
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


async def remembered(
    inbox: Inbox, user: str, ids: Sequence[str], remembering: Remembering | None, agent: str, seconds: float
) -> Sequence[Remembered]:
    """Have messages of the inbox remembered by an agent; return what became of each, in time or before."""
    until, before = monotonic() + seconds, [await _now(inbox, user, each) for each in ids]
    if remembering is None:
        return before
    await remembering(user, agent, seconds)
    pause = FIRST_PAUSE
    while True:
        found = [await _now(inbox, user, each) for each in ids]
        is_same = [now == then and now.outcome is None for now, then in zip(found, before, strict=True)]
        if not any(is_same) or monotonic() >= until:
            return found
        await asyncio.sleep(pause)
        pause = min(2 * pause, LONGEST_PAUSE)


async def _now(inbox: Inbox, user: str, message_id: str) -> Remembered:
    """Return what has become of a message so far."""
    outcome, trouble = await inbox.standing(user, message_id)
    if outcome is None:
        error = trouble["error"]
        return Remembered(message_id=message_id, status="failed" if error else "waiting", error=error)
    status: Literal["stored", "discarded"] = "discarded" if outcome["route"] == "discard" else "stored"
    return Remembered(message_id=message_id, status=status, outcome=outcome)
