"""Valid time: since when and until when a memory holds, beside the ledger's recorded time.

A day is given as far as it is known: `2026-03-14`, `2026-03` or `2026`. `since` takes the first day of it and
`until` the last. A version that is a change ends the one before it; one that is a correction, an addition or
an edit takes over its time.
"""

from calendar import monthrange
from collections.abc import Sequence
from datetime import date, timedelta
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from mneme.stores.ledger.records import Version

Holding = Literal["now", "later", "past"]


class Past(BaseModel):
    """What a memory said before a change, and from and until when that held, as far as known."""

    model_config = ConfigDict(frozen=True)

    content: str
    since: str = ""
    until: str = ""

    @property
    def text(self) -> str:
        """What was true, with its time."""
        return f"{f'Until {self.until}' if self.until else 'Before'}: {self.content}"


def first_day(day: str) -> date | None:
    """Return the first day of a day, month or year; None where it is none."""
    return _date(day, "-01-01")


def last_day(day: str) -> date | None:
    """Return the last day of a day, month or year; None where it is none."""
    first = _date(day, "-12-01")
    if first is None or len(day) >= 10:
        return first
    return first.replace(day=monthrange(first.year, first.month)[1])


def _date(day: str, filled: str) -> date | None:
    try:
        return date.fromisoformat(day[:10] + filled[len(day[:10]) - 4 :] if len(day) < 10 else day[:10])
    except ValueError:
        return None


def holding(since: str, until: str, today: date) -> Holding:
    """Say whether something holds on a day, will, or did."""
    begins, ends = first_day(since), last_day(until)
    if begins and begins > today:
        return "later"
    return "past" if ends and ends < today else "now"


def overlaps(one: tuple[str, str], other: tuple[str, str]) -> bool:
    """Tell whether two times from `since` until `until` share a day; what is not known is open."""
    (begins, ends), (other_begins, other_ends) = (
        (first_day(since) or date.min, last_day(until) or date.max) for since, until in (one, other)
    )
    return begins <= other_ends and other_begins <= ends


def holds(text: str, since: str, until: str) -> str:
    """Add to a text since when and until when it holds, as far as known."""
    known = [f"{word} {day}" for word, day in (("from", since), ("until", until)) if day]
    return f"{text} ({', '.join(known)})" if known else text


def valid_at(history: Sequence[Version], day: date) -> Version | None:
    """Return the version of a memory that held on a day, from its whole history; None where none did.

    Time that is not known is taken for any time, but for what a change replaced.
    """
    is_separate = True
    for version in reversed(history):
        value = version.value
        state = holding(_field(value, "since"), _field(value, "until"), day)
        if is_separate and state != "later":
            return version if state == "now" and version.live else None
        is_separate = value.get("is_change") is True
    return None


def day_before(day: str) -> str:
    """Return the day before a day, month or year begins; empty where it is none."""
    begins = first_day(day)
    return f"{begins - timedelta(days=1)}" if begins else ""


def _field(value: Any, name: str) -> str:
    found = value.get(name)
    return found if isinstance(found, str) else ""
