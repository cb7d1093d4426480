"""Messages of one user: as callers send them, as they wait to be remembered, and their outcomes."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from hashlib import sha256
from time import monotonic
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from mneme.api.operation import Operations, changes, reads
from mneme.stores.users.inbox import PRECEDING, Inbox, Letter, Message, MessageOutcome, is_new

MAX_MESSAGE_CHARS = 32_000
"""The most characters of a message: about 8000 tokens, the chatbot's window."""


class ChatMessage(BaseModel):
    """One turn of a conversation. User turns are remembered; the others give their context.

    >>> import mneme
    >>> talk = [
    ...     mneme.ChatMessage(role="assistant", content="Where do you live?"),
    ...     mneme.ChatMessage(role="user", content="I live in Oslo.", id="m1"),
    ... ]
    >>> with mneme.open("ann") as memory:
    ...     [told] = memory.remember(talk, memory_agent="rules")
    >>> told.message_id, told.status
    ('m1', 'stored')
    """

    model_config = ConfigDict(extra="ignore", strict=True, frozen=True)

    role: Literal["user", "assistant", "system"] = Field(description="Who speaks.")
    content: str = Field(max_length=MAX_MESSAGE_CHARS, description="The words.", examples=["I live in Oslo."])
    id: str = Field("", max_length=200, description="The message's id; the same id is remembered once.")
    time: str = Field("", max_length=64, description="When it was said, in ISO 8601; empty: now.")


def _as_messages(given: Any) -> Any:
    """Convert texts to messages of the user, and a single one to a list; the type checks the rest."""
    several = [given] if isinstance(given, str | Mapping | ChatMessage) else given
    if not isinstance(several, list | tuple):
        return several
    return [{"role": "user", "content": each} if isinstance(each, str) else each for each in several]


Text = Annotated[str, Field(max_length=MAX_MESSAGE_CHARS)]
Conversation = Annotated[
    Sequence[ChatMessage],
    Field(min_length=1, max_length=1000, description="What was said: a text of the user, or messages."),
    BeforeValidator(_as_messages, json_schema_input_type=Text | ChatMessage | list[Text | ChatMessage]),
]
"""Messages as the library, REST and tools take them."""


def to_remember(turns: Sequence[ChatMessage], thread: str) -> list[Message]:
    """Return the user's messages with the turns before each, as input of the graph `remember`.

    With a thread, a message without an id gets a hash of the conversation up to it, so that a conversation
    that is sent again, also with new turns, is not remembered twice.
    """
    messages: list[Message] = []
    digest = sha256(thread.encode())
    for number, turn in enumerate(turns):
        digest.update(json.dumps([turn.role, turn.content]).encode())  # JSON keeps the two apart
        if turn.role != "user":
            continue
        before = turns[max(0, number - PRECEDING) : number]
        messages.append(
            Message(
                message=turn.content,
                message_id=turn.id or (digest.hexdigest()[:32] if thread else ""),
                preceding=[f"{earlier.role}: {earlier.content}" for earlier in before],
                time=turn.time,
                thread=thread,
            )
        )
    return messages


MessageId = Annotated[str, Field(min_length=1, description="The message's id, or its first letters.")]


class Messages(Operations):
    """Operations on the messages that wait to be remembered, and on those that were set aside."""

    OWNER = "user"

    def _prepare(self) -> None:
        self._inbox = Inbox(self._ledger)

    @reads("inbox/count")
    async def waiting(self) -> int:
        """Return how many messages wait to be remembered, without those that are only read again."""
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
        """Return the memory agent's outcome for a message, by its whole id; None while the message waits.

        To forget a memory erases the outcomes of all remembered messages: None for these, too.
        """
        return await self._inbox.outcome(self._owner, message_id)

    @changes("inbox/{message_id}/retry")
    async def retry(self, message_id: MessageId) -> Letter:
        """Queue a message again that was set aside. Raises NotFound."""
        return await self._inbox.retry(self._owner, message_id)

    @changes("inbox/{message_id}/drop")
    async def drop(self, message_id: MessageId) -> Letter:
        """Close a message without remembering it. Raises NotFound."""
        return await self._inbox.drop(self._owner, message_id)


FIRST_PAUSE, MAX_PAUSE = 0.05, 0.5
"""Seconds between two looks whether a message has been remembered; doubled each time."""
Remembering = Callable[[str, str, float], Awaitable[None]]
"""A function that remembers a user's waiting messages with a memory agent's model, within some seconds."""


class Remembered(BaseModel):
    """The current outcome of a message.

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


async def remember_messages(
    inbox: Inbox, user: str, ids: Sequence[str], remembering: Remembering | None, agent: str, seconds: float
) -> Sequence[Remembered]:
    """Remember messages of the inbox with an agent; return the outcome of each, also of known ones."""
    until, before = monotonic() + seconds, [await _now(inbox, user, each) for each in ids]
    if remembering is None:
        return before
    await remembering(user, agent, seconds)
    pause = FIRST_PAUSE  # a server only starts its memory agent, and another process may have a message
    while True:
        found = [await _now(inbox, user, each) for each in ids]
        is_same = [now == then and now.outcome is None for now, then in zip(found, before, strict=True)]
        if not any(is_same) or monotonic() >= until:
            return found
        await asyncio.sleep(pause)
        pause = min(2 * pause, MAX_PAUSE)


async def _now(inbox: Inbox, user: str, message_id: str) -> Remembered:
    """Return the current outcome of a message."""
    outcome, trouble = await inbox.standing(user, message_id)
    if outcome is None:
        error = trouble["error"]
        return Remembered(message_id=message_id, status="failed" if error else "waiting", error=error)
    status: Literal["stored", "discarded"] = "discarded" if outcome["route"] == "discard" else "stored"
    return Remembered(message_id=message_id, status=status, outcome=outcome)
