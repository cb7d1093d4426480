"""Costs and results of a run in the household, counted alike for every method; lapses of agents."""

from collections.abc import Awaitable, Callable
from functools import wraps
from random import Random
from typing import Any, TypeVar, cast

from typing_extensions import TypedDict

from mneme.models.asking.counting import counting

Node = TypeVar("Node", bound=Callable[..., Awaitable[dict[str, Any]]])


class Counters(TypedDict, total=False):
    """Costs and results of a run, counted alike for every method.

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


def sum_counters(before: Counters, more: Counters) -> Counters:
    """Add counters up."""
    total: Any = dict(before)
    for name, count in more.items():
        total[name] = total.get(name, 0) + count
    return total  # type: ignore[no-any-return]


def with_counters(node: Node) -> Node:
    """Add calls, tokens and repairs of a node's questions to its update; a decorator."""

    @wraps(node)
    async def counting_node(state: Any, runtime: Any) -> dict[str, Any]:
        with counting() as asked:
            update = await node(state, runtime)
        took = Counters(
            calls=asked["calls"],
            prompt_tokens=asked["prompt_tokens"],
            reply_tokens=asked["reply_tokens"],
            repaired=asked["calls"] - asked["questions"],  # each further call of a question is a repair
        )
        return {**update, "counters": sum_counters(update.get("counters", {}), took)}

    return cast(Node, counting_node)


def lapse(share: float, options: int, *marks: Any) -> int | None:
    """Return a random option in this share of the cases, seeded by the marks; else None."""
    # Drawn from the marks alone, so that a replayed step draws the same.
    chance = Random(":".join(str(mark) for mark in marks))  # noqa: S311
    return chance.randrange(options) if options and chance.random() < share else None
