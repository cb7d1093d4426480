"""Take names and figures out of a lesson, so that it says what to do and not whose tasks taught it (§11.4).

A word stays where it is *public*: in the world's own language of patterns and features, or in an English
dictionary. All else is a name: what was a table, column or function in the team's own tasks (in any
inflection, however ordinary the word), what the caller says is private, what is quoted, addresses, paths,
words with digits, underscores or inner capitals, capitalised words within a sentence, and every word that
the dictionary lacks. The same name is the same placeholder within a card, and no figure stays.

What it cannot see: a name that is an ordinary English word, in small letters, and was in no logged task; and
what the lesson itself gives away, since to say when something helps is its purpose.
"""

import re
from collections.abc import Collection, Iterable
from functools import lru_cache
from importlib import import_module
from typing import Any

from mneme.stores.cards.card import DeprecatedApproach, FailureMode, Lesson, Rule

FIGURE, NAME = "[figure]", "[name {}]"
PLACEHOLDER = re.compile(r"\[(?:figure|name \d+)\]")
FIGURE_PIECE = re.compile(r"(?<![\w.])\d[\d.,:/-]*(?<![.,:/-])(?![\w])")
"""A figure, a date or a time by itself; within a word it makes the word a name."""
PIECES = re.compile(
    r"(?P<quoted>`[^`\n]+`|\"[^\"\n]+\"|(?<!\w)'[^'\n]+'(?!\w))"
    r"|(?P<abbreviation>\b(?:e\.g|i\.e)\b)"
    rf"|(?P<figure>{FIGURE_PIECE.pattern})"
    r"|(?P<address>\w+://[^\s)\]]+|[\w.+-]+@[\w.-]+\w|~?(?:[/\\][\w.-]+)+[/\\]?|\w+(?:[./\\:@]+\w+)+)"
    r"|(?P<word>\w+(?:['’]\w+)?)"
)
WORDS = re.compile(r"\w+")
BEGINS = re.compile(r"(?:^|[.:;!?(\[\"'\n])\s*$")
FUNCTION_WORDS = frozenset(
    re.findall(
        r"\S+",
        """
        a about above across after again against all almost along already also although always among
        an and any anything are around as at away be because been before behind being below beneath
        beside besides between beyond both but by can cannot could did do does down during each
        either else enough even ever every everything few for from further had has have he hence her
        here his how however if in instead into is it its itself just least less like many may me
        might more most much must my near neither never no nobody none nor not nothing now of off
        often on once one only onto or other others our out over own per perhaps quite rather same
        several shall she should since so some something soon still such than that the their them
        themselves then there these they this those though through throughout thus till to together
        too toward towards twice under unless until up upon us very was we were what whatever when
        where whereas whether which while who whole whom whose why will with within without would
        yet you your don't doesn't isn't can't won't aren't wasn't didn't ms kb mb gb sql
        """,
    )
)
"""Words that the dictionary of inflected words does not hold, and units."""


class Abstraction:
    """What makes one team's lessons abstract: the words that are public, and those that are the team's."""

    def __init__(self, public: Iterable[str] = (), private: Iterable[str] = ()) -> None:
        self._public = {word for text in public for word in WORDS.findall(text.casefold())}
        self._private = {form for name in private for form in _forms(name.casefold())}
        self.names: set[str] = set()
        """The names that were taken out so far, in small letters; they are not for the receiver."""
        self.figures = 0
        """How many figures were taken out so far."""

    def lesson(self, lesson: Lesson) -> Lesson:
        """Return a lesson without names and figures, and without the tasks in which approaches failed."""
        known: dict[str, str] = {}

        def plain(text: str) -> str:
            return self._plain(text, known)

        return Lesson(
            claim=plain(lesson.claim),
            rationale=plain(lesson.rationale),
            rules=[
                Rule(condition=plain(each.condition), pattern=plain(each.pattern)) for each in lesson.rules
            ],
            deprecated_approaches=[
                DeprecatedApproach(
                    approach=plain(each.approach),
                    reason=plain(each.reason),
                    # without the figure of what it gained, that it falls short is not known elsewhere
                    condition=plain(each.condition) if each.gained is None else "",
                )
                for each in lesson.deprecated_approaches
            ],
            failure_modes=[
                FailureMode(**{name: plain(text) for name, text in each.model_dump().items()})
                for each in lesson.failure_modes
            ],
            tags=list(dict.fromkeys(map(plain, lesson.tags))),
            scope=lesson.scope if lesson.scope.casefold() in self._public else plain(lesson.scope),
        )

    def _plain(self, text: str, known: dict[str, str]) -> str:
        """Return a text with placeholders, numbered as the card has used them so far."""

        def put(piece: re.Match[str]) -> str:
            said = piece[0]
            if piece["figure"]:
                self.figures += 1
                return FIGURE
            begins = bool(BEGINS.search(text[: piece.start()]))
            if piece["abbreviation"] or (piece["word"] and self._may_stay(said, begins)):
                return said
            if not piece["word"] and {*WORDS.findall(said.casefold())} <= self._public:
                return said
            name = min(_forms(said.strip("`\"'").casefold().replace("’", "'").removesuffix("'s")))
            self.names.add(name)
            return known.setdefault(name, NAME.format(len(known) + 1))

        return PIECES.sub(put, text)

    def _may_stay(self, word: str, begins: bool) -> bool:
        small = word.casefold().replace("’", "'").removesuffix("'s")
        if small in self._public:
            return True
        if _forms(small) & self._private or re.search(r"[\d_]", word):
            return False
        capital = word[0].isupper() and not word.isupper()
        if any(letter.isupper() for letter in word[1:]) and not word.isupper():
            return False
        if small in FUNCTION_WORDS or len(word) == 1:
            return True
        return (begins or not capital) and _is_english(small)


def leaks(text: str, names: Collection[str]) -> list[str]:
    """Return which of some names still stand in a text as words, in any inflection."""
    there = {form for word in WORDS.findall(text.casefold()) for form in _forms(word)}
    return sorted(name for name in names if name.casefold() in there)


@lru_cache(maxsize=65_536)
def _forms(word: str) -> frozenset[str]:
    """Return a word and what it may be an inflection of, in small letters."""
    return frozenset({word, *(each for lemmas in _lemmas(word).values() for each in lemmas)})


@lru_cache(maxsize=65_536)
def _is_english(word: str) -> bool:
    return any(kind != "PROPN" for kind in _lemmas(word))


def _lemmas(word: str) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = _dictionary().getAllLemmas(word)
    return found


@lru_cache(maxsize=1)
def _dictionary() -> Any:
    return import_module("lemminflect")  # half a second, for those who share alone
