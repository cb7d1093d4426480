"""Count the questions that a piece of work asks, those that were repaired, and those never answered."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from typing_extensions import TypedDict


class Asked(TypedDict):
    """Questions asked of a model or of rules; `repaired` were asked again, `refused` got no usable answer."""

    questions: int
    repaired: int
    refused: int


NOTHING = Asked(questions=0, repaired=0, refused=0)
_current: ContextVar[Asked | None] = ContextVar("asked", default=None)


def added(one: Asked, other: Asked) -> Asked:
    """Return the sum of two counts; a graph's channel begins with an empty one."""
    first, second = NOTHING | one, NOTHING | other
    return Asked(
        questions=first["questions"] + second["questions"],
        repaired=first["repaired"] + second["repaired"],
        refused=first["refused"] + second["refused"],
    )


def in_words(asked: Asked) -> str:
    """Say what was asked, for the last line of a command."""
    unanswered = f"{asked['refused']} without a usable answer"
    return f"{asked['questions']} questions, {asked['repaired']} repaired, {unanswered}."


@contextmanager
def counting() -> Iterator[Asked]:
    """Count the questions asked within; the count grows while they are."""
    asked = NOTHING.copy()
    token = _current.set(asked)
    try:
        yield asked
    finally:
        _current.reset(token)


def count(attempts: int, is_answered: bool) -> None:
    """Count a question that took so many attempts."""
    asked = _current.get()
    if asked is not None:
        asked["questions"] += 1
        asked["repaired"] += is_answered and attempts > 1
        asked["refused"] += not is_answered
