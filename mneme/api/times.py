"""Time parameters of calls: the period in which a memory holds, and the time that is asked about."""

import re
from datetime import date, datetime
from typing import Annotated

from pydantic import BeforeValidator, Field

from mneme.stores.users.memory import days_of


def first_day(given: object) -> object:
    """Return the first day of a month or year, and any other time as it is. Raises ValueError."""
    if not isinstance(given, str) or not SHORT_TIME.fullmatch(given):
        return given
    if (days := days_of(given)) is None:
        raise ValueError(f"there is no day, month or year {given}")
    return days[0].isoformat()


SHORT_TIME = re.compile(r"[\d-]{1,9}")
"""A time that is shorter than a day in ISO 8601: a month or year. Pydantic takes a year for seconds."""
At = Annotated[
    date | None,
    BeforeValidator(first_day),
    Field(
        description="What held on this day (valid time); the first of a month or year.",
        examples=["2026-01-31"],
    ),
]
AsOf = Annotated[
    datetime | None,
    BeforeValidator(first_day),
    Field(
        description="What was remembered at this moment (recorded time), in ISO 8601, local time; "
        "of a day, month or year, at its beginning."
    ),
]
ISO_DAY = r"^(\d{4}(-\d\d(-\d\d)?)?)?$"
SINCE = "From when it holds: a day, month or year."
UNTIL = "The last day, month or year in which it holds."
Since = Annotated[str, Field(pattern=ISO_DAY, description=SINCE, examples=["2026-03"])]
Until = Annotated[str, Field(pattern=ISO_DAY, description=UNTIL, examples=["2026"])]
