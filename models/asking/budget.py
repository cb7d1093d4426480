"""Make a prompt fit the context, since Ollama would cut it silently and answer all the same."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from mneme.core.errors import PromptTooLong

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage

Messages = Sequence["BaseMessage"]
CHARS_PER_TOKEN = 3.3
TOKENS_PER_MESSAGE = 8
TOKENS_PER_PICTURE = 1600
"""What a picture takes of the context at most; models differ from 256 to this."""
CUT_BELOW = 0.8
CUT_FROM = 256
LAST_OF_ALPHABETS = "\u2e80"


def tokens(text: str) -> int:
    """Estimate a text's tokens, rather too many than too few: English has 4 to 5 characters a token."""
    plain = len(text.encode("ascii", "ignore"))
    return math.ceil(plain / CHARS_PER_TOKEN + len(text) - plain)


def tokens_of(messages: Messages) -> int:
    """Estimate what messages take of the context."""
    seen = TOKENS_PER_PICTURE * pictures_in(messages)
    return seen + sum(TOKENS_PER_MESSAGE + tokens(_all_of(message)) for message in messages)


def pictures_in(messages: Messages) -> int:
    """Count the pictures in messages."""
    blocks = (block for message in messages if isinstance(message.content, list) for block in message.content)
    return sum(isinstance(block, dict) and block.get("type") == "image_url" for block in blocks)


def fit(system: Messages, history: Messages, task: Messages, room: int) -> "list[BaseMessage]":
    """Return system text, history and task within `room` tokens; the oldest whole turns are dropped."""
    from langchain_core.messages import trim_messages  # noqa: PLC0415  (slow to import)

    pinned = tokens_of(system) + tokens_of(task)
    if pinned > room:
        raise PromptTooLong(
            f"The prompt needs about {pinned} tokens; the model's context leaves {room}.",
            "Shorten the message, or raise MNEME_NUM_CTX.",
        )
    latest = trim_messages(
        list(history), max_tokens=room - pinned, token_counter=tokens_of, strategy="last", start_on="human"
    )
    return [*system, *latest, *task]


def refuse_if_cut(messages: Messages, read: int) -> None:
    """Raise where the server says it read far fewer tokens than the prompt can have had."""
    least = 0  # tokens that there surely are: the words of a text, or a quarter of its ideographs
    for text in map(_all_of, messages):
        foreign = sum(character > LAST_OF_ALPHABETS for character in text)
        least += max(len(text.split()), foreign // 4)
    if read and least >= CUT_FROM and read < CUT_BELOW * least:
        raise PromptTooLong(
            f"Ollama read {read} tokens of a prompt of at least {least}: it was cut.",
            "The server's context is smaller than MNEME_NUM_CTX; see `mneme doctor`.",
        )


def _all_of(message: "BaseMessage") -> str:
    """Return what of a message costs tokens: its text and the tool calls in it."""
    calls = getattr(message, "tool_calls", None)
    return f"{message.text}{calls or ''}"
