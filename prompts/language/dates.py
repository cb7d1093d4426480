"""Relative dates made absolute, where the time of the message makes that safe."""

from collections.abc import Sequence
from datetime import date, datetime, timedelta

from prompts.language.lexicon import NUMBER_WORDS
from prompts.language.words import Token

_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_DAY_WORDS = {"yesterday": -1, "today": 0, "tonight": 0, "tomorrow": 1}
_STEPS = {"last": -1, "this": 0, "next": 1}
_STEP_WORDS = {step: word for word, step in _STEPS.items()}
_SEASONS = frozenset(["spring", "summer", "autumn", "fall", "winter"])


def parse_time(time: str) -> date | None:
    """Return the day of an ISO 8601 time; nothing where there is none to count dates from."""
    try:
        day = datetime.fromisoformat(time).date()
    except ValueError:
        return None
    return day if 1000 < day.year < 9000 else None


def absolute(tokens: Sequence[Token], number: int, today: date) -> tuple[str, int] | None:
    """Return the absolute words for the relative date at a token, and how many tokens it takes."""
    low = tokens[number].low
    words = [token.low for token in tokens[number : number + 3]] + ["", ""]
    if low in _DAY_WORDS:
        return f"on {today + timedelta(days=_DAY_WORDS[low])}", 1
    if low in _STEPS:
        found = _neighbour(words[1], today, _STEPS[low])
        return (found, 2) if found else None
    if words[2] == "ago":
        found = _away(low, words[1], today, -1)
        return (found, 3) if found else None
    found = _away(words[1], words[2], today, 1) if low == "in" and _ends(tokens, number + 3) else ""
    return (found, 3) if found else None


def _neighbour(word: str, today: date, step: int) -> str:
    """Return last, this or next week, month, year, weekday or season; nothing for other words."""
    if word in _DAYS and step:
        return f"on {_weekday(today, _DAYS.index(word), step)}"
    if word in {"morning", "afternoon", "evening"} and not step:
        return f"on {today}"
    if word == "night" and step < 0:
        return f"in the night of {today + timedelta(days=step)}"
    if word in _SEASONS:
        return f"{_STEP_WORDS[step]} {word} (as of {today})"
    monday = today - timedelta(days=today.weekday()) + timedelta(weeks=step)
    periods = {
        "week": f"in the week of {monday}",
        "weekend": f"on the weekend of {monday + timedelta(days=5)}",
        "month": f"in {_shift_months(today, step):%B %Y}",
        "year": f"in {today.year + step}",
    }
    return periods.get(word, "")


def _weekday(today: date, weekday: int, step: int) -> date:
    """Return the nearest such weekday strictly before or after today."""
    ahead = (weekday - today.weekday()) % 7
    return today + timedelta(days=(ahead or 7) if step > 0 else (ahead - 7))


def _shift_months(day: date, months: int) -> date:
    total = day.year * 12 + day.month - 1 + months
    return date(total // 12, total % 12 + 1, 1)


def _away(count: str, unit: str, today: date, direction: int) -> str:
    """Return the date so many days, weeks, months or years before or after today."""
    number = NUMBER_WORDS.get(count, "1" if count in {"a", "an"} else count)
    if not number.isdigit() or int(number) > 200:
        return ""
    steps = direction * int(number)
    dates = {
        "day": f"on {today + timedelta(days=steps)}",
        "week": f"around {today + timedelta(weeks=steps)}",
        "month": f"in {_shift_months(today, steps):%B %Y}",
        "year": f"in {today.year + steps}",
    }
    return dates.get(unit.rstrip("s"), "")


def _ends(tokens: Sequence[Token], number: int) -> bool:
    """Say whether `in two weeks` is a date: not so in `in two weeks of training`, `in two years' time`."""
    return number >= len(tokens) or tokens[number].tag not in {"NN", "NNP", "JJ", "POS", "IN"}
