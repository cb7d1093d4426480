"""Notice when a reply goes round in circles, or counts up for ever."""

import re
from collections.abc import Iterator
from typing import Any

from mneme.models.asking.unusable import Endless

SAME_TOKENS = 30
"""The same token so often in a row is endless, whatever space is around it: Ollama breaks off at 32."""
CYCLE_CHARS = 240
"""Characters, some 60 to 100 tokens, that repetitions fill before they count as endless."""
CYCLES = 4
"""Repetitions that are endless, where they are long; shorter ones fill CYCLE_CHARS."""
LONGEST_CYCLE = 160
COUNTED = 8
"""Items that numbers alone tell apart which any reply in JSON may have; more where its schema allows more."""
DIGITS = re.compile(r"\d+")
MANY_WORDS, POOR_WORDS = 100, 5
"""So many words of free text, of which no more than so many differ, are babble."""
WORDS = re.compile(r"[^\W\d_]+")


class RepetitionDetector:
    """Watch a stream; `counted` items that numbers alone tell apart may follow each other; None: any."""

    def __init__(self, counted: int | None = None) -> None:
        self.tail = ""
        self._counted = counted
        self._last = ""
        self._same = 0

    def watch(self, token: str) -> None:
        """Take the next token; raise `Endless` where the reply has become endless."""
        if self.sees(token):
            raise Endless("The reply repeats itself.")

    def sees(self, token: str) -> bool:
        """Take the next token, and tell whether the reply has become endless."""
        word = token.strip()
        self._same = self._same + 1 if word == self._last else 1
        self._last = word
        self.tail = (self.tail + token)[-LONGEST_CYCLE * ((self._counted or CYCLES) + 2) :]
        return self._same >= SAME_TOKENS or repeats(self.tail, self._counted)


def repeats(text: str, counted: int | None = None) -> bool:
    """Tell whether a text ends in a circle, or in more than `counted` items that numbers alone tell apart.

    Free text (None) may count, but not go on with the same few words in any order.
    """
    if counted is None:
        return _circles(text, CYCLES) or _is_babble(text)
    return _circles(text, CYCLES) or _circles(DIGITS.sub("0", text), counted + 1)


def _circles(text: str, cycles: int) -> bool:
    """Tell whether a text ends in a circle of any period; asked at every token, so most periods end early."""
    if len(text) < CYCLE_CHARS:
        return False
    periods = range(1, min(LONGEST_CYCLE, len(text) // cycles) + 1)
    return any(text[-1] == text[-1 - period] and _circle(text, period, cycles) for period in periods)


def _circle(text: str, period: int, cycles: int) -> bool:
    """Tell whether the text's last characters repeat those that stand a period before them."""
    end = text[-max(CYCLE_CHARS, period * cycles) :]
    return end[period:] == end[:-period]


def _is_babble(text: str) -> bool:
    words = WORDS.findall(text[-1000:].casefold())[1:]  # the first may be cut
    return len(words) >= MANY_WORDS and len(set(words)) <= POOR_WORDS


def countable(schema: dict[str, Any] | None) -> int | None:
    """Return how many items that numbers alone tell apart a reply may have; None: any, in free text."""
    return None if schema is None else max([COUNTED, *_lengths(schema)])


def _lengths(node: Any) -> Iterator[int]:
    if isinstance(node, dict):
        if isinstance(longest := node.get("maxItems"), int):
            yield longest
        node = list(node.values())
    if isinstance(node, list):
        for each in node:
            yield from _lengths(each)
