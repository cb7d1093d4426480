"""What a run in the household cost and how it went, counted alike for every method; lapses of those asked."""

from random import Random
from typing import Any

from typing_extensions import TypedDict

from mneme.models.asking.asking import Answered
from mneme.prompts.prompt import REPAIRS


class Counters(TypedDict, total=False):
    """What a run cost and how it went, counted alike for every method.

    `rounds` counts those in which was decided, `unallocated` those of them in which MiTa's members followed
    their proposals, since no allocation was usable: then it was not MiTa that played. `frames` counts those
    that a vision model was shown, `blind` those of them without a usable answer, in which nothing was
    recognised.
    """

    rounds: int
    conflicts: int
    redundant: int
    lost_steps: int
    forestalled: int
    messages: int
    calls: int
    prompt_tokens: int
    reply_tokens: int
    repaired: int
    fallbacks: int
    unallocated: int
    frames: int
    blind: int


def added(before: Counters, more: Counters) -> Counters:
    """Add counters up."""
    total: Any = dict(before)
    for name, count in more.items():
        total[name] = total.get(name, 0) + count
    return total  # type: ignore[no-any-return]


def answered(*each: Answered[Any]) -> Counters:
    """Count the calls, tokens and repairs of some answers."""
    return Counters(
        calls=sum(one.attempts for one in each),
        prompt_tokens=sum(one.prompt_tokens for one in each),
        reply_tokens=sum(one.reply_tokens for one in each),
        repaired=sum(one.attempts - 1 for one in each),
    )


def unusable(decisions: int = 1, repairs: int = REPAIRS) -> Counters:
    """Count an answer that stayed unusable after every repair; its tokens are not known any more."""
    return Counters(calls=repairs + 1, repaired=repairs, fallbacks=decisions)


def lapse(share: float, options: int, *marks: Any) -> int | None:
    """Return a possible choice at random in this share of the cases, decided by the marks; else nothing."""
    chance = Random(":".join(str(mark) for mark in marks))  # noqa: S311
    return chance.randrange(options) if options and chance.random() < share else None
