"""Which replies say again what a memory says."""

import re
from collections.abc import Callable

from mneme.stores.ledger.words import words_of
from mneme.stores.users.traces import Told

ENOUGH = 2
"""Words in common that make a reply a repetition, where no name and no number is among them."""
MARK = re.compile(r"\d+|(?<![.!?] )(?<!^)\b[A-Z]\w+")
"""A number, or a word with a capital that does not begin a sentence."""
OURS = frozenset(words_of("user users").indices)
"""The words that every memory has."""


def repeating(told: Told) -> Callable[[str], bool]:
    """Return a test of replies: those with a name, a number or two telling words of the memory.

    A reply puts things in its own words, so it is not looked for as it stands. It is better to erase a reply
    too many, which costs little, than to leave one that gives the memory away.
    """
    known = [words for text in told.texts if (words := _telling(text))]
    marks = _telling(" ".join(each for text in told.texts for each in MARK.findall(text)))

    def repeats(reply: str) -> bool:
        said = _telling(reply)
        return bool(said & marks) or any(len(said & each) >= min(ENOUGH, len(each)) for each in known)

    return repeats


def _telling(text: str) -> frozenset[int]:
    """Return the stems of the words of a text that are no stop words, as the search weighs them."""
    return frozenset(words_of(text).indices) - OURS
