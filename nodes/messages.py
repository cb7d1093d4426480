"""Chat messages as the input of graphs: LangChain's own, or dicts with role and content."""

from collections.abc import Sequence
from typing import Annotated, Any, NamedTuple

from langchain_core.messages import BaseMessage, convert_to_messages
from pydantic import Field

from mneme.core.errors import BadInput

MESSAGES_EXAMPLE = [{"role": "user", "content": "My sister Emily lives in Portland."}]
MESSAGES_HINT = 'Give messages like {"role": "user", "content": "…"}; the last one is the user\'s.'
ChatMessages = Annotated[
    list[Any],
    Field(
        [],
        description="Chat messages instead of the text: LangChain's, or role and content; the last is the "
        "user's, and those before it say what went before.",
        examples=[MESSAGES_EXAMPLE],
        json_schema_extra={"items": {"type": "object"}},
    ),
]
"""How a graph that takes a text declares that it takes chat messages as well."""


class LastMessage(NamedTuple):
    """The last message of a user, and the turns that led up to it, oldest first."""

    text: str
    before: list[str]


def spoken(messages: Sequence[Any]) -> list[BaseMessage]:
    """Convert chat messages to LangChain's. Raises BadInput for anything else."""
    try:
        return convert_to_messages(messages)
    except (ValueError, TypeError, NotImplementedError, AttributeError) as error:  # all that LangChain raises
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise BadInput(f"messages: {reason}", MESSAGES_HINT) from error


def said_in(messages: Sequence[Any]) -> LastMessage:
    """Return the user's last message. Raises BadInput if the last message is not a user's."""
    chat = spoken(messages)
    if not chat or chat[-1].type != "human" or not chat[-1].text.strip():
        raise BadInput("messages: the last one is not a text message of the user.", MESSAGES_HINT)
    return LastMessage(chat[-1].text, [turn(each) for each in chat[:-1]])


def turn(message: BaseMessage) -> str:
    """Return a message as one turn of a conversation, in the form for agents."""
    return f"{'user' if message.type == 'human' else 'assistant'}: {message.text}"
