"""Texts that are nearly the same share four fifths of their words; a Chinese character is a word.

Another wording of one pair shares a fifth of the answer's words and its numbers, and means the same by its
vectors. Of the 2,484 twos of shipped pairs that one agent wrote, none is taken for one.
"""

import re
from collections.abc import Iterable
from functools import lru_cache

NEAR = 0.8
"""Share of all words of two texts that both have, from which on they count as one."""
COPIED, COPIED_WORDS = 0.95, 12
"""Share of words, and number, from which on a text is another's copy: short answers may be alike by right."""
REWORDED = 0.2
"""Share of words of two answers from which on they may be wordings of one."""
SAME_QUESTION, SAME_ANSWER = 0.7, 0.85
"""Cosines of two questions and of their answers from which on they are."""
WORD = re.compile(r"[\u3400-\u9fff]|[^\W_\u3400-\u9fff]+")


def near(one: str, other: str) -> bool:
    """Say whether two texts are nearly the same."""
    return _share(_words(one), _words(other), NEAR)


def may_be_reworded(one: str, other: str) -> bool:
    """Say whether two answers may be wordings of one, by their words: `25 minutes` is not `50 minutes`."""
    numbers = [{word for word in _words(each) if word.isnumeric()} for each in (one, other)]
    return numbers[0] == numbers[1] and _share(_words(one), _words(other), REWORDED)


def near_to_any(text: str, others: Iterable[str], share: float = NEAR) -> bool:
    """Say whether a text is nearly the same as one of others: by that share of all words."""
    said = _words(text)
    return any(_share(said, _words(each), share) for each in others)


def copies(text: str, others: Iterable[str]) -> bool:
    """Say whether a text of some length has nearly no words but another's."""
    return len(WORD.findall(text)) >= COPIED_WORDS and near_to_any(text, others, COPIED)


def _share(one: frozenset[str], other: frozenset[str], least: float) -> bool:
    if not one or not other:
        return one == other
    if min(len(one), len(other)) < least * max(len(one), len(other)):
        return False  # whatever they share
    shared = len(one & other)
    return shared >= least * (len(one) + len(other) - shared)


@lru_cache(maxsize=8192)
def _words(text: str) -> frozenset[str]:
    return frozenset(word.casefold() for word in WORD.findall(text))
