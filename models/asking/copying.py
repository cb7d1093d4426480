"""See whether a reply repeats a worked example instead of answering what was asked.

A small model copies the example's sentence for whatever it is given, and where the copy is valid it would be
taken. A sentence of an example counts as copied unless its words stand in what was asked as well.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from mneme.models.asking.json_objects import objects

QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')
WORD = re.compile(r"\w+")
LEAST_WORDS = 4
"""A shorter text is a name or a turn of speech, which two answers may share."""
SUPPORTED = 0.6
"""The share of a sentence's longer words that what was asked has where it can be an answer to it."""
LONGER = 4


def copied(examples: Sequence[str], asked: str, reply: str) -> str:
    """Return the sentence of an example that a reply repeats; empty where it repeats none."""
    known = {*_words(asked)}
    said = [_words(text) for found in objects(reply) for text in _texts(found)]
    for example in examples:
        for sentence in QUOTED.findall(example):
            words = _words(sentence)
            if len(words) >= LEAST_WORDS and not _supported(words, known) and _stands_in(words, said):
                return str(sentence)
    return ""


def _words(text: str) -> list[str]:
    return WORD.findall(text.casefold())


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _texts(each)


def _supported(words: Sequence[str], known: set[str]) -> bool:
    longer = [word for word in words if len(word) >= LONGER] or words
    return sum(word in known for word in longer) >= SUPPORTED * len(longer)


def _stands_in(words: list[str], said: Iterable[list[str]]) -> bool:
    size = len(words)
    return any(text[at : at + size] == words for text in said for at in range(len(text) - size + 1))
