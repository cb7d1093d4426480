"""Operations on the messages of one user that are still to be remembered, and what becomes of them."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from time import monotonic
from typing import Annotated, Literal

from pydantic import BaseModel, Field

from mneme.api.operation import Operations, changes, reads
from mneme.stores.users.inbox import Inbox, Letter, MessageOutcome, is_new

MessageId = Annotated[str, Field(min_length=1, description="The message's id, or its first letters.")]


class Messages(Operations):
    """Operations on the messages that wait to be remembered, and on those that were set aside."""

    OWNER = "user"

    def _prepare(self) -> None:
        self._inbox = Inbox(self._ledger)

    @reads("inbox/count")
    async def waiting(self) -> int:
        """Return how many messages are still to be remembered, but for those that are only read again."""
        return sum(map(is_new, await self._inbox.pending(self._owner)))

    @reads("inbox")
    async def list(self) -> Sequence[Letter]:
        """Return the messages that are still to be remembered, and those that were set aside."""
        return await self._inbox.letters(self._owner)

    @reads("inbox/{message_id}")
    async def get(self, message_id: MessageId) -> Letter:
        """Return one message of the inbox. Raises NotFound."""
        return await self._inbox.letter(self._owner, message_id)

    @reads("inbox/{message_id}/outcome")
    async def outcome(self, message_id: MessageId) -> MessageOutcome | None:
        """Return what the memory agent did with a message, by its whole id; None while the message waits."""
        return await self._inbox.outcome(self._owner, message_id)

    @changes("inbox/{message_id}/retry")
    async def retry(self, message_id: MessageId) -> Letter:
        """Let a message that was set aside wait again. Raises NotFound."""
        return await self._inbox.retry(self._owner, message_id)

    @changes("inbox/{message_id}/drop")
    async def drop(self, message_id: MessageId) -> Letter:
        """Close a message without remembering it. Raises NotFound."""
        return await self._inbox.drop(self._owner, message_id)


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
