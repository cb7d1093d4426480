"""How replies are drawn within a block: another seed, and a temperature for replies that have none.

A run of a benchmark is repeated with draws of its own; within one process, and for whoever asks there::

    with drawn(seed=3, temperature=0.7):
        await ask(…)
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace

from mneme.models.asking.responders import CallOptions

_drawn: ContextVar[tuple[int, float] | None] = ContextVar("drawn", default=None)


@contextmanager
def drawn(seed: int, temperature: float) -> Iterator[None]:
    """Draw every reply that is asked for in the block with this seed, at this temperature at least."""
    token = _drawn.set((seed, temperature))
    try:
        yield
    finally:
        _drawn.reset(token)


def as_drawn(options: CallOptions) -> CallOptions:
    """Return the options of a call as the block around it has them drawn; else as they are."""
    draw = _drawn.get()
    if draw is None:
        return options
    seed, temperature = draw
    return replace(options, seed=seed, temperature=max(options.temperature, temperature))
