"""Relative dates made absolute, where the time of the message makes that safe."""

from collections.abc import Sequence
from datetime import date, datetime, timedelta

from prompts.language.lexicon import NUMBER_WORDS
from prompts.language.words import Token

_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_DAY_WORDS = {"yesterday": -1, "today": 0, "tonight": 0, "tomorrow": 1}
_UNITS = {"day": 1, "week": 7}


def parse_time(time: str) -> date | None:
    """Return the day of an ISO 8601 time; nothing where there is none."""
    try:
        return datetime.fromisoformat(time).date()
    except ValueError:
        return None


def absolute(tokens: Sequence[Token], number: int, today: date) -> tuple[str, int] | None:
    """Return the absolute words for the relative date at a token, and how many tokens it takes."""
    low = tokens[number].low
    following = tokens[number + 1].low if number + 1 < len(tokens) else ""
    if low in _DAY_WORDS:
        return f"on {today + timedelta(days=_DAY_WORDS[low])}", 1
    if low in {"last", "next"}:
        found = _neighbour(following, today, -1 if low == "last" else 1)
        return (found, 2) if found else None
    third = tokens[number + 2].low if number + 2 < len(tokens) else ""
    if third == "ago":
        found = _ago(low, following.rstrip("s"), today)
        return (found, 3) if found else None
    return None


def _neighbour(word: str, today: date, step: int) -> str:
    """Return last or next week, month, year or weekday."""
    if word in _DAYS:
        return f"on {_weekday(today, _DAYS.index(word), step)}"
    if word == "night" and step < 0:
        return f"in the night of {today + timedelta(days=step)}"
    if word == "week":
        monday = today - timedelta(days=today.weekday()) + timedelta(weeks=step)
        return f"in the week of {monday}"
    if word == "month":
        return f"in {_shift_months(today, step):%B %Y}"
    return f"in {today.year + step}" if word == "year" else ""


def _weekday(today: date, weekday: int, step: int) -> date:
    """Return the nearest such weekday strictly before or after today."""
    ahead = (weekday - today.weekday()) % 7
    return today + timedelta(days=(ahead or 7) if step > 0 else (ahead - 7))


def _shift_months(day: date, months: int) -> date:
    total = day.year * 12 + day.month - 1 + months
    return date(total // 12, total % 12 + 1, 1)


def _ago(count: str, unit: str, today: date) -> str:
    number = NUMBER_WORDS.get(count, "1" if count in {"a", "an"} else count)
    if not number.isdigit() or int(number) > 200:
        return ""
    if unit in _UNITS:
        return (
            f"on {today - timedelta(days=int(number) * _UNITS[unit])}"
            if unit == "day"
            else (f"around {today - timedelta(weeks=int(number))}")
        )
    if unit == "month":
        return f"in {_shift_months(today, -int(number)):%B %Y}"
    return f"in {today.year - int(number)}" if unit == "year" else ""
