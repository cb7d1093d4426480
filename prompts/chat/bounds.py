"""What the memory agent's questions share: the bounds of what is written, and the checks that are certain."""

import re
from datetime import datetime
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from mneme.prompts.chat.evidence import located

MAX_CHARS = 1000
"""Characters a memory may have: longer ones are documents, not memories."""
MAX_ITEMS = 12
"""Memories that a model writes of one message, and names and relations that one memory has, at most."""
DAY = re.compile(r"\d{4}(?:-\d\d(?:-\d\d)?)?")


def _day(value: Any) -> Any:
    """Keep the date of a text, and nothing of a text without one: a wrong date is no reason to ask again."""
    found = DAY.search(value) if isinstance(value, str) else None
    return found[0] if found else "" if isinstance(value, str) else value


Name = Annotated[str, Field(max_length=80)]
Relation = Annotated[str, Field(max_length=200)]
Content = Annotated[str, Field(max_length=MAX_CHARS)]
Quote = Annotated[str, Field(max_length=MAX_CHARS)]
Day = Annotated[str, BeforeValidator(_day), Field(max_length=10)]
"""A day, a month or a year: `2026-03-14`, `2026-03`, `2026`; empty where it is not known."""


def check_quote(message: str, quote: str, where: str) -> None:
    """Reject a quote that is empty or that the message does not have."""
    if not quote.strip():
        raise ValueError(f"{where} is empty: copy the words of the message that say so.")
    if not located(quote, message):
        raise ValueError(f"{where} is not in the message: copy it letter for letter.")


def check_content(content: str, where: str) -> None:
    """Reject an empty content."""
    if not content.strip():
        raise ValueError(f"{where} is empty: write one sentence that can be understood by itself.")


def check_index(index: int, count: int) -> None:
    """Reject a number that was not offered."""
    if not 0 <= index < count:
        offered = f"0 to {count - 1}" if count else "none"
        raise ValueError(f"index {index} is not among the memories offered ({offered}).")


def moment(time: str) -> str:
    """Return an ISO 8601 time as a question shows it, with the day of the week: `Mon 2026-03-02 12:00`."""
    try:
        return f"{datetime.fromisoformat(time):%a %Y-%m-%d %H:%M}"
    except ValueError:
        return time
