"""One plain form of what members of a team tell one another: `I found <wine> (72) in <kitchen> (11).`

Whatever else a message says is left to a language model.
"""

import re
from collections.abc import Iterator
from typing import Literal

from pydantic import BaseModel

Act = Literal["go to explore", "will check", "will take", "bring", "found", "checked", "explored"]
CLAIMS: tuple[Act, ...] = ("go to explore", "will check", "will take")
_THING = re.compile(r"<([^<>]+)> \((\d+)\)")
_ONE = r"<[^<>]+> \(\d+\)"

_SENTENCE = re.compile(
    r"I (go to explore|will check|will take|bring|found|checked|explored) "
    rf"({_ONE}(?:, {_ONE})*)( in <([^<>]+)> \((\d+)\))?\."
)


class Sentence(BaseModel):
    """One thing that was said: an act, what it is about, and where."""

    act: Act
    about: list[tuple[str, int]]
    place: tuple[str, int] | None = None

    def __str__(self) -> str:
        about = ", ".join(f"<{name}> ({number})" for name, number in self.about)
        where = f" in <{self.place[0]}> ({self.place[1]})" if self.place else ""
        return f"I {self.act} {about}{where}."


def news_in(text: str) -> list[int]:
    """Return the ids of the things and places that a message brings news of."""
    news = [each for each in sentences_of(text) if each.act not in CLAIMS]
    return [number for each in news for _, number in each.about]


def sentences_of(text: str) -> Iterator[Sentence]:
    """Read the sentences of the plain form that a text has."""
    for act, about, _, place, number in _SENTENCE.findall(text):
        things = [(name, int(each)) for name, each in _THING.findall(about)]
        yield Sentence(act=act, about=things, place=(place, int(number)) if place else None)
