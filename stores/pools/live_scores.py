"""Live scores: the scores of pairs answered with the examples that each version of a retriever found.

They are sums, one record a version, so that a score costs one write and a comparison two reads.
"""

import math

from pydantic import BaseModel, Field

from mneme.stores.ledger.records import Change
from mneme.stores.pools.memory_pool import MemoryPool
from mneme.stores.shelf import Shelf, kind_of

MIN_SCORES = 30
"""Scores of each of two versions below which they are not compared."""
Z = 1.96  # for 95 %: the mean of 30 scores is nearly normal


class Scores(BaseModel, frozen=True):
    """Scores of 0 to 100, summed up."""

    count: int = Field(0, ge=0)
    total: float = 0.0
    squares: float = 0.0

    @property
    def mean(self) -> float:
        return self.total / self.count if self.count else 0.0

    @property
    def error(self) -> float:
        """Return the squared standard error of the mean."""
        spread = max(0.0, self.squares / self.count - self.mean**2)  # rounding may make it negative
        return spread / max(1, self.count - 1)  # the sample's variance, spread * n / (n - 1), over n


def is_worse(now: Scores, before: Scores) -> bool:
    """Return whether scores fell beyond chance: the 95 % interval of the difference is below 0 (Welch)."""
    if min(now.count, before.count) < MIN_SCORES:
        return False
    return now.mean - before.mean + Z * math.sqrt(now.error + before.error) < 0


class LiveScores:
    """The live scores of one pool's retrievers; 0 is the untrained embedder."""

    def __init__(self, pool: MemoryPool) -> None:
        self._kept = Shelf(pool.ledger, (*pool.below, "live"), kind_of(Scores))

    async def of(self, retriever: int) -> Scores:
        """Return a version's scores."""
        return await self._kept.find(f"{retriever:06d}") or Scores()

    async def add(self, retriever: int, score: int, *, change: Change) -> None:
        """Add a score."""

        def decide(old: Scores) -> tuple[Scores, str]:
            new = Scores(count=old.count + 1, total=old.total + score, squares=old.squares + score**2)
            return new, change.reason

        key = f"{retriever:06d}"
        if await self._kept.find(key) is None:
            await self._kept.add_new(key, Scores(), change=change)
        await self._kept.change(key, decide, change)
