"""Watch a streamed reply: remove its thinking, and end a reply that repeats itself or takes too long."""

import asyncio
import math
import re
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import aclosing
from typing import Any, TypeVar, cast

from langchain_core.messages import AIMessageChunk
from langchain_core.outputs import ChatGenerationChunk

from mneme.models.asking.replies import Endless, LeakedThinking, Unusable, calls_in

HIDDEN_TAGS = "think(?:ing)?|tool_call"
OPENING_TAG = re.compile(f"<(?:{HIDDEN_TAGS})>", re.IGNORECASE)
CLOSING_TAG = re.compile(f"</(?:{HIDDEN_TAGS})>", re.IGNORECASE)
TAGS = ("<think>", "<thinking>", "<tool_call>", "</think>", "</thinking>", "</tool_call>")
MAX_TAG_CHARS = max(map(len, TAGS))
CALL_STARTS = ("{", "[{", "```json", "[TOOL_CALLS]", "<|python_tag|>", "<function")


class ThinkingFilter:
    """A filter that passes on the answer of a streamed reply, never its thinking.

    With `hold`, nothing passes before a closing tag or the end: for models whose template writes the opening
    tag, so that thinking looks like the answer until it ends. Text that begins like a tool call is also held
    to its end, and refused if it is one.
    """

    def __init__(self, hold: bool = False) -> None:
        self._hold = hold
        self._buffer = ""
        self._thinking = False
        self.said = ""

    def feed(self, text: str) -> str:
        """Return the part of the text that may be shown now."""
        self._buffer += text
        return self._show("".join(iter(self._step, None)))

    def end(self) -> str:
        """Return the remaining text to show, without thinking that never ended."""
        rest = "" if self._thinking else self._buffer
        self._buffer = ""
        if not self.said and calls_in(rest):
            raise Unusable("Answer in plain words; no tools are offered.", rest)
        return self._show(rest)

    def _step(self) -> str | None:
        """Move past one tag or up to a possible one; None when more text is needed."""
        opening, closing = OPENING_TAG.search(self._buffer), CLOSING_TAG.search(self._buffer)
        if closing and (self._thinking or not opening or closing.start() < opening.start()):
            if self.said and not self._thinking:  # the template wrote the opening tag: thinking was shown
                raise LeakedThinking("The thinking was not marked as such.", self.said)
            self._thinking = self._hold = False
            self._buffer = self._buffer[closing.end() :]
            return ""
        if self._thinking:
            self._buffer = self._buffer[-MAX_TAG_CHARS:]  # the closing tag may come in two parts
            return None
        if opening:
            self._thinking = True
            shown, self._buffer = self._buffer[: opening.start()], self._buffer[opening.end() :]
            return shown
        start = self._buffer.lstrip()
        like_a_call = any(start.startswith(mark) or mark.startswith(start) for mark in CALL_STARTS)
        if self._hold or (like_a_call and not self.said):  # a tool call, or what may become one, is held back
            return None
        # The longest end of the text that may become a tag is kept back; the rest can be shown.
        end = self._buffer[-MAX_TAG_CHARS:].lower()
        begun = (len(end) - at for at in range(len(end)) if any(tag.startswith(end[at:]) for tag in TAGS))
        ready = len(self._buffer) - next(begun, 0)
        shown, self._buffer = self._buffer[:ready], self._buffer[ready:]
        return shown or None

    def _show(self, text: str) -> str:
        text = text if self.said else text.lstrip()
        self.said += text
        return text


SAME_TOKENS = 30
"""Repetitions of one token, ignoring spaces, that count as endless: Ollama breaks off at 32."""
CYCLE_CHARS = 240
"""Minimum characters, some 60 to 100 tokens, of repetitions that count as endless."""
CYCLES = 4
"""Minimum repetitions that count as endless; short ones must also fill CYCLE_CHARS."""
MAX_CYCLE_CHARS = 160
MAX_NUMBERED_ITEMS = 8
"""Items that differ only in numbers which any JSON reply may have; more if its schema allows more."""
DIGIT_RUN = re.compile(r"\d+")
MANY_WORDS, POOR_WORDS = 100, 5
"""Free text of at least this many words with at most so few different ones is babble."""
LETTER_RUN = re.compile(r"[^\W\d_]+")


class RepetitionDetector:
    """Detect endless repetition in a stream; `counted` items may differ only in numbers; None: any number."""

    def __init__(self, counted: int | None = None) -> None:
        self.tail = ""
        self._counted = counted
        self._last = ""
        self._same = 0

    def sees(self, token: str) -> bool:
        """Take the next token, and return whether the reply has become endless."""
        word = token.strip()
        self._same = self._same + 1 if word == self._last else 1
        self._last = word
        # Long enough for the repetitions that `repeats` looks for, at their longest.
        self.tail = (self.tail + token)[-MAX_CYCLE_CHARS * ((self._counted or CYCLES) + 2) :]
        return self._same >= SAME_TOKENS or repeats(self.tail, self._counted)


def repeats(text: str, counted: int | None = None) -> bool:
    """Return whether a text ends in repetitions, or in more than `counted` items that differ only in numbers.

    Free text (None) may count, but must not continue with the same few words in any order.
    """
    if counted is None:
        said = LETTER_RUN.findall(text[-1000:].casefold())[1:]  # the first may be cut off
        is_babble = len(said) >= MANY_WORDS and len(set(said)) <= POOR_WORDS
        return is_babble or _circles(text, CYCLES)
    return _circles(text, CYCLES) or _circles(DIGIT_RUN.sub("0", text), counted + 1)


def _circles(text: str, cycles: int) -> bool:
    """Return whether a text ends in at least this many cycles of any period up to MAX_CYCLE_CHARS."""
    if len(text) < CYCLE_CHARS:
        return False
    for period in range(1, min(MAX_CYCLE_CHARS, len(text) // cycles) + 1):
        end = text[-max(CYCLE_CHARS, period * cycles) :]
        # It has the period if it equals itself moved by that; the last letter alone rules most periods out.
        if text[-1] == text[-1 - period] and end[period:] == end[:-period]:
            return True
    return False


def countable(schema: dict[str, Any] | None) -> int | None:
    """Return how many items that differ only in numbers a reply may have; None: any, in free text."""
    return None if schema is None else max([MAX_NUMBERED_ITEMS, *_lengths(schema)])


def _lengths(node: Any) -> Iterator[int]:
    if isinstance(node, dict):
        if isinstance(longest := node.get("maxItems"), int):
            yield longest
        node = list(node.values())
    if isinstance(node, list):
        for each in node:
            yield from _lengths(each)


Part = TypeVar("Part", bound=AIMessageChunk | ChatGenerationChunk)


async def watched(
    stream: AsyncIterator[Part],
    counted: int | None,
    idle: float,
    longest: float,
    first: float | None = None,
) -> AsyncGenerator[Part, None]:
    """Pass a reply on; its first part may take `first` seconds, each further one `idle`, and all `longest`.

    Raises `TimeoutError` if a part does not come in time, and `Endless` if the reply takes too long or
    repeats itself, with the text so far, which may be partly usable.
    """
    circle, said, patience, end = RepetitionDetector(counted), "", first, math.inf
    # Closing the stream closes its connection, at which Ollama stops generating.
    async with aclosing(cast(AsyncGenerator[Part, None], stream)) as parts:
        while True:
            async with asyncio.timeout(patience):
                part = await anext(parts, None)
            if part is None:
                return
            text, now = str(part.text), asyncio.get_running_loop().time()
            said += text
            end = min(end, now + longest)  # from the first part on: loading a model is no part of the reply
            if now >= end:
                raise Endless(f"The reply took longer than {longest:g} seconds (MNEME_REPLY_SECONDS).", said)
            if text and circle.sees(text):
                raise Endless("The reply repeats itself.", said)
            yield part
            patience = idle
