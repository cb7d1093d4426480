"""Values: the dates, times, amounts and measures in a text, each with its type."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from prompts.language import lexicon as lx
from prompts.language.entities import canonical
from prompts.language.words import Token

_UNITS = {
    "lb": "weight", "lbs": "weight", "pound": "weight", "kg": "weight", "kilo": "weight",
    "kilogram": "weight", "stone": "weight", "mile": "distance", "km": "distance", "kilometre": "distance",
    "kilometer": "distance", "euro": "money", "dollar": "money", "buck": "money", "usd": "money",
    "eur": "money", "quid": "money", "%": "share", "percent": "share", "hour": "hours",
    "minute": "minutes", "mg": "dose", "cm": "length",
}  # fmt: skip
_SIGNS = {"$": "money", "€": "money", "£": "money"}
_ENDINGS = (
    ("%", "share"),
    ("kg", "weight"),
    ("lbs", "weight"),
    ("lb", "weight"),
    ("km", "distance"),
    ("mg", "dose"),
)
_MEASURES = frozenset(_UNITS.values())
_RANKS = {
    word: str(number)
    for number, word in enumerate(
        ["first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth"], 1
    )
}
_ORDINAL = ("st", "nd", "rd", "th")


@dataclass(frozen=True)
class Value:
    """A value: its type, its norm, by which equals are known, and its place in the text."""

    kind: str
    norm: str
    start: int
    end: int

    @property
    def measured(self) -> bool:
        """Say whether its unit tells what is measured."""
        return self.kind in _MEASURES


def values_of(tokens: Sequence[Token]) -> Iterator[Value]:
    """Yield the values of tagged tokens from left to right."""
    number = 0
    while number < len(tokens):
        found = _value(tokens, number)
        if found is None:
            number += 1
            continue
        value, length = found
        yield value
        number += length


def _value(tokens: Sequence[Token], number: int) -> tuple[Value, int] | None:
    for read in (_date, _weekday, _clock, _rank, _amount):
        found = read(tokens, number)
        if found is not None:
            kind, norm, length = found
            return Value(kind, norm, tokens[number].start, tokens[number + length - 1].end), length
    return None


def _at(tokens: Sequence[Token], number: int) -> str:
    return tokens[number].low if number < len(tokens) else ""


def _day(low: str) -> str:
    bare = low.removesuffix(low[-2:]) if low.endswith(_ORDINAL) else low
    return bare.lstrip("0") if bare.isdigit() and int(bare) <= 31 else ""


def _date(tokens: Sequence[Token], number: int) -> tuple[str, str, int] | None:
    """Read `14 June`, `June 14th`, `June`, `the 14th`, `2026-03-09`."""
    low, following = _at(tokens, number), _at(tokens, number + 1)
    if len(low) == 10 and low[4] == low[7] == "-" and low.replace("-", "").isdigit():
        return "date", low, 1
    month = low in lx.MONTHS and (tokens[number].text[:1].isupper() or low not in {"may", "march"})
    if month:
        day = _day(following) if following else ""
        return ("date", f"{low[:3]} {day}", 2) if day else ("date", low[:3], 1)
    if low[0].isdigit() and _day(low):
        skip = 2 if following == "of" else 1
        if _at(tokens, number + skip) in lx.MONTHS:
            return "date", f"{_at(tokens, number + skip)[:3]} {_day(low)}", skip + 1
        if low.endswith(_ORDINAL) and number and _at(tokens, number - 1) == "the":
            return "date", _day(low), 1
    return None


def _weekday(tokens: Sequence[Token], number: int) -> tuple[str, str, int] | None:
    low = _at(tokens, number)
    bare = low.removesuffix("s") if low not in lx.WEEKDAYS else low
    return ("weekday", bare[:3], 1) if bare in lx.WEEKDAYS and bare not in {"sat", "sun"} else None


def _clock(tokens: Sequence[Token], number: int) -> tuple[str, str, int] | None:
    low, following = _at(tokens, number), _at(tokens, number + 1)
    if not low[0].isdigit():
        return ("clock", low, 1) if low in {"noon", "midnight"} else None
    if low.endswith(("am", "pm")) or (":" in low and low.replace(":", "").isdigit()):
        return "clock", low.removesuffix("am").removesuffix("pm").removesuffix(":00"), 1
    if following in {"am", "pm", "o'clock"}:
        return "clock", low.removesuffix(":00"), 2
    return None


def _rank(tokens: Sequence[Token], number: int) -> tuple[str, str, int] | None:
    """Read `third grade`, `4th grade`."""
    low, following = _at(tokens, number), tokens[number + 1 : number + 2]
    rank = _RANKS.get(low) or (low[:-2] if low.endswith(_ORDINAL) and low[:-2].isdigit() else "")
    return (f"rank:{canonical(following[0].lemma)}", rank, 1) if rank and following else None


def _amount(tokens: Sequence[Token], number: int) -> tuple[str, str, int] | None:
    """Read `$820`, `128 lbs`, `4 employees`, `2017`; `iPhone 12` is a name."""
    token, low = tokens[number], tokens[number].low
    if number and tokens[number - 1].tag == "NNP":
        return None
    if low[0] in _SIGNS and len(low) > 1:
        return _SIGNS[low[0]], low[1:].replace(",", ""), 1
    for ending, kind in _ENDINGS:
        if low.endswith(ending) and low[0].isdigit():
            return kind, low.removesuffix(ending), 1
    if token.tag != "CD" or not token.lemma[:1].isdigit() or low.endswith(_ORDINAL):
        return None
    return _counted(token.lemma.replace(",", ""), tokens[number + 1 : number + 2])


def _counted(norm: str, following: Sequence[Token]) -> tuple[str, str, int]:
    """Return what a number counts: a unit, the noun after it, or nothing (a year, a bare number)."""
    units = [
        _UNITS[word] for token in following for word in (canonical(token.lemma), token.low) if word in _UNITS
    ]
    if units:
        return units[0], norm, 2
    if norm.isdigit() and len(norm) == 4 and norm[:2] in {"19", "20"}:
        return "year", norm, 1
    nouns = [canonical(token.lemma) for token in following if token.tag in {"NN", "NNP", "JJ"}]
    return f"count:{nouns[0]}" if nouns else "number", norm, 1
