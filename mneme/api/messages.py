"""Chat messages as callers send them, and as the inbox takes them."""

import json
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from mneme.stores.users.inbox import PRECEDING, Message

MAX_MESSAGE_CHARS = 32_000
"""The most characters of a message: about 8000 tokens, the chatbot's window."""


class ChatMessage(BaseModel):
    """One turn of a conversation. The user's are remembered; the others say what they refer to.

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
    """Return texts as messages of the user, and one as a list; the rest is for the type to check."""
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
        digest.update(json.dumps([turn.role, turn.content]).encode())
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
