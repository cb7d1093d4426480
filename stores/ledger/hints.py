"""What a question says of the record that it asks for: a name, a day, a month or a year, "when".

A record answers with the fields `entities`, `time` and `kind` of its value; without a time it answers with
the day on which it was first written. Hints only raise a record's score. They exclude nothing, since a
question may well name another day than the one on which its answer was told.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, timedelta
from functools import lru_cache
from typing import Any, NamedTuple

MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
TIMES = frozenset([*MONTHS, "today", "yesterday", "last", "this"])
"""One of these, or a year, is in each name of a period."""
TIMELESS = "semantic"
"""The kind of record that "when" does not ask for: a standing fact."""

_WORD = re.compile(r"\w+")
_ISO = re.compile(r"\b((?:19|20)\d\d)-(\d\d)(?:-(\d\d))?\b")
_YEAR = re.compile(r"\b((?:19|20)\d\d)\b")
_BEFORE = r"\b(?:(\d{1,2})(?:st|nd|rd|th)?(?:\s+of)?\s+)?"
_AFTER = r"(?:\s+(\d{1,2})(?:st|nd|rd|th)?)?\b(?:,?\s+(?:of\s+)?((?:19|20)\d\d))?\b"
_DATED = re.compile(f"{_BEFORE}({'|'.join(MONTHS)}){_AFTER}", re.IGNORECASE)
_MODAL = re.compile(
    r"(?<!in )(?<!on )(?<!of )(?<!last )(?<!this )(?<!since )(?<!\d )\b(?:may|march)\b(?! \d)"
)
_RELATIVE = re.compile(r"\b(today|yesterday|(?:last|this) (?:week|month|year))\b", re.IGNORECASE)


class Period(NamedTuple):
    """A day, a month or a year; None stands for any."""

    year: int | None = None
    month: int | None = None
    day: int | None = None

    def holds(self, moment: date) -> bool:
        """Say whether a day is in this period."""
        found = (moment.year, moment.month, moment.day)
        return all(wanted in (None, is_) for wanted, is_ in zip(self, found, strict=True))


class Hints(NamedTuple):
    """What a question hints at; make one with `hints_of`."""

    words: frozenset[str]
    periods: tuple[Period, ...]
    asks_when: bool

    def names(self, value: Mapping[str, Any]) -> bool:
        """Say whether the question names one of the record's entities."""
        named = value.get("entities")
        listed = named if isinstance(named, list) else []
        entities = [words_in(each) for each in listed if isinstance(each, str)]
        return any(words and words <= self.words for words in entities)

    def dates(self, value: Mapping[str, Any], written: date) -> bool:
        """Say whether the record is from a period that the question names."""
        moment = _day_of(value.get("time")) or written
        return any(period.holds(moment) for period in self.periods)

    def suits(self, value: Mapping[str, Any]) -> bool:
        """Say whether the question asks when something was, and the record is of the kind that happens."""
        return self.asks_when and value.get("kind", TIMELESS) != TIMELESS


@lru_cache(maxsize=64)  # a message is looked up in several places
def hints_of(question: str, today: date) -> Hints:
    """Read the hints of a question; `today` is what yesterday, last month and the like count from."""
    words = words_in(question)
    asks_when = "when" in words or question.lower().startswith("what date")
    may_name_one = words & TIMES or "19" in question or "20" in question
    return Hints(words, tuple(_periods(question, today)) if may_name_one else (), asks_when)


@lru_cache(maxsize=4096)  # the same names are on many records
def words_in(text: str) -> frozenset[str]:
    """Return the words of a text without their case; of `Ann's` the name alone."""
    return frozenset(_WORD.findall(re.sub("['\u2019]s\\b", "", text.casefold())))


def _periods(question: str, today: date) -> Iterator[Period]:
    for year, month, day in _ISO.findall(question):
        yield Period(int(year), int(month), int(day) if day else None)
    rest = _MODAL.sub("", _ISO.sub("", question))
    for before, month, after, year in _DATED.findall(rest):
        day, number = before or after, MONTHS.index(month.lower()) + 1
        yield Period(int(year) if year else None, number, int(day) if day else None)
    for year in _YEAR.findall(_DATED.sub("", rest)):
        yield Period(int(year))
    for words in _RELATIVE.findall(question):
        yield from _relative(words.lower(), today)


def _relative(words: str, today: date) -> Sequence[Period]:
    if words in ("today", "yesterday"):
        return [Period(*(today - timedelta(days=words == "yesterday")).timetuple()[:3])]
    which, unit = words.split()
    if unit == "week":
        monday = today - timedelta(days=today.weekday() + 7 * (which == "last"))
        return [Period(*(monday + timedelta(days=number)).timetuple()[:3]) for number in range(7)]
    if unit == "year":
        return [Period(today.year - (which == "last"))]
    within = today.replace(day=1) - timedelta(days=which == "last")
    return [Period(within.year, within.month)]


def _day_of(time: Any) -> date | None:
    try:
        return date.fromisoformat(time[:10]) if isinstance(time, str) else None
    except ValueError:
        return None
