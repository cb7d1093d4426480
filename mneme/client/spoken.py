"""Messages as a program has them, in our form."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Protocol

from pydantic import ValidationError

from mneme.api.inbox import ChatMessage
from mneme.core.errors import BadInput, first_fault


class LangChainMessage(Protocol):
    """A message of LangChain's, which is slow to import."""

    @property
    def type(self) -> str: ...
    @property
    def content(self) -> Any: ...


Spoken = str | LangChainMessage | ChatMessage | Mapping[str, Any]
"""A message as a program has it: the user's words, or a chat message in LangChain's or anybody's form."""
SPOKEN_ROLES: Mapping[str, Literal["user", "assistant", "system"]] = {
    "human": "user",
    "ai": "assistant",
    "system": "system",
}


def chat_messages(given: Spoken | Sequence[Spoken]) -> list[ChatMessage]:
    """Convert messages to Mneme's form, without those of tools. Raises BadInput for an invalid one."""
    several = given if isinstance(given, Sequence) and not isinstance(given, str) else [given]
    try:
        found = [_chat_message(each) for each in several]
    except ValidationError as error:
        from mneme.nodes.messages import MESSAGES_HINT  # noqa: PLC0415  (slow to import)

        raise BadInput(f"messages: {first_fault(error)}", MESSAGES_HINT) from error
    return [each for each in found if each is not None]


def _chat_message(given: Spoken) -> ChatMessage | None:
    if isinstance(given, ChatMessage):
        return given
    if isinstance(given, str):
        return ChatMessage(role="user", content=given)
    from mneme.nodes.messages import spoken  # noqa: PLC0415  (slow to import)

    time = str(given.get("time") or "") if isinstance(given, Mapping) else ""
    (message,) = spoken([dict(given) if isinstance(given, Mapping) else given])
    role = SPOKEN_ROLES.get(message.type)
    return ChatMessage(role=role, content=message.text, id=message.id or "", time=time) if role else None
