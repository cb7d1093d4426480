"""Count the questions that a piece of work asks, and estimate the tokens of texts and messages."""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, cast

from typing_extensions import TypedDict

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage

CHARS_PER_TOKEN = 3.3  # English has 4 to 5: the estimate is rather too high than too low
TOKENS_PER_MESSAGE = 8  # what a chat template writes around a message
TOKENS_PER_PICTURE = 1600
"""Maximum tokens of the context that a picture takes; models differ from 256 to this."""


class Asked(TypedDict):
    """Questions asked of a model or of rules; `repaired` were asked again, `refused` got no usable answer.

    `calls` are all attempts. Their tokens are those that the server reports; where rules or a script answer,
    an estimate for the words that a model would have read and written.
    """

    questions: int
    calls: int
    repaired: int
    refused: int
    prompt_tokens: int
    reply_tokens: int


NOTHING = Asked(questions=0, calls=0, repaired=0, refused=0, prompt_tokens=0, reply_tokens=0)
_current: ContextVar[Asked | None] = ContextVar("asked", default=None)


def sum_counts(one: Asked, other: Asked) -> Asked:
    """Return the sum of two counts; a graph's channel begins with an empty one."""
    first, second = cast(dict[str, int], NOTHING | one), cast(dict[str, int], NOTHING | other)
    return cast(Asked, {name: first[name] + second[name] for name in NOTHING})


def tokens_in(asked: Asked) -> int:
    """Return the tokens that were read and written."""
    return asked["prompt_tokens"] + asked["reply_tokens"]


def in_words(asked: Asked) -> str:
    """Describe the questions asked, for the last line of a command."""
    unanswered = f"{asked['refused']} without a usable answer"
    questions = f"{asked['questions']} question{'s' * (asked['questions'] != 1)}"
    return f"{questions} to agents, {asked['repaired']} repaired, {unanswered}."


@contextmanager
def counting() -> Iterator[Asked]:
    """Count the questions asked within the block, also for the blocks around it."""
    asked, outer = NOTHING.copy(), _current.get()
    token = _current.set(asked)
    try:
        yield asked
    finally:
        _current.reset(token)
        # In `finally`: what a block asked before it failed was paid for.
        if outer is not None:
            outer.update(sum_counts(outer, asked))


def count(attempts: int, is_answered: bool, prompt_tokens: int, reply_tokens: int) -> None:
    """Count a question with its number of attempts and its tokens."""
    asked = _current.get()
    if asked is not None:
        asked["questions"] += 1
        asked["calls"] += attempts
        asked["repaired"] += is_answered and attempts > 1
        asked["refused"] += not is_answered
        asked["prompt_tokens"] += prompt_tokens
        asked["reply_tokens"] += reply_tokens


def tokens(text: str) -> int:
    """Estimate a text's tokens, rather too many than too few."""
    plain = len(text.encode("ascii", "ignore"))
    # A letter outside ASCII counts as one token.
    return math.ceil(plain / CHARS_PER_TOKEN + len(text) - plain)


def tokens_of(messages: "Sequence[BaseMessage]") -> int:
    """Estimate the tokens that messages take in the context."""
    seen = TOKENS_PER_PICTURE * pictures_in(messages)
    return seen + sum(TOKENS_PER_MESSAGE + tokens(text_and_calls(message)) for message in messages)


def pictures_in(messages: "Sequence[BaseMessage]") -> int:
    """Count the pictures in messages."""
    blocks = (block for message in messages if isinstance(message.content, list) for block in message.content)
    return sum(isinstance(block, dict) and block.get("type") == "image_url" for block in blocks)


def text_and_calls(message: "BaseMessage") -> str:
    """Return the parts of a message that cost tokens: its text and its tool calls."""
    calls = getattr(message, "tool_calls", None)
    return f"{message.text}{calls or ''}"
