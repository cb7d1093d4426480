"""What questions of the memory agent share: what is written has bounds and is held to what was said."""

from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

from mneme.core.evidence import located, unsupported

LONGEST = 1000
"""Characters a memory may have: longer ones are documents, not memories."""
MOST = 12
"""Memories that one message gives, and names and relations that one memory has, at most."""
Name = Annotated[str, Field(max_length=80)]
Relation = Annotated[str, Field(max_length=200)]
Content = Annotated[str, Field(max_length=LONGEST)]
Quote = Annotated[str, Field(max_length=LONGEST)]


def hold_quote(message: str, quote: str, where: str) -> None:
    """Reject a quote that is empty or that the message does not hold."""
    if not quote.strip():
        raise ValueError(f"{where} is empty: copy the words of the message that say so.")
    if not located(quote, message):
        raise ValueError(f"{where} is not in the message: copy it letter for letter.")


def hold_content(content: str, where: str) -> None:
    """Reject an empty content."""
    if not content.strip():
        raise ValueError(f"{where} is empty: write one self-contained sentence.")


def hold_support(content: str, sources: Sequence[str], where: str) -> None:
    """Reject a name, a number or a negation that no source has."""
    if strange := unsupported(content, sources):
        raise ValueError(f"{where} has {strange}, which nobody said: write only what was said.")


def hold_index(index: int, count: int) -> None:
    """Reject a number that was not offered."""
    if not 0 <= index < count:
        offered = f"0 to {count - 1}" if count else "none"
        raise ValueError(f"index {index} is not among the memories offered ({offered}).")
