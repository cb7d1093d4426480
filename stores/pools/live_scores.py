"""What pairs are worth that were answered after the examples of each version of a retriever: live scores.

They are sums, one record a version, so that a score costs one write and a comparison two reads.
"""

import math

from pydantic import BaseModel, ConfigDict, Field

from mneme.core.errors import Conflict
from mneme.stores.ledger.records import Change, Namespace, make_write
from mneme.stores.pools.memory_pool import MemoryPool

ENOUGH = 30
"""Scores of each of two versions below which they are not compared."""
Z = 1.96
TRIES = 5
"""Writers at once that one of them waits for, at most."""


class Scores(BaseModel):
    """Scores of 0 to 100, summed up."""

    model_config = ConfigDict(frozen=True)

    count: int = Field(0, ge=0)
    total: float = 0.0
    squares: float = 0.0

    @property
    def mean(self) -> float:
        return self.total / self.count if self.count else 0.0

    @property
    def error(self) -> float:
        """Return the squared standard error of the mean."""
        spread = max(0.0, self.squares / self.count - self.mean**2)
        return spread / max(1, self.count - 1)


def is_worse(now: Scores, before: Scores) -> bool:
    """Say whether scores fell beyond chance: the interval of 95 % of the difference lies below 0 (Welch)."""
    if min(now.count, before.count) < ENOUGH:
        return False
    return now.mean - before.mean + Z * math.sqrt(now.error + before.error) < 0


class LiveScores:
    """The live scores of one pool's retrievers; 0 is the untrained embedder."""

    def __init__(self, pool: MemoryPool) -> None:
        self._ledger = pool.ledger
        self.namespace: Namespace = (*pool.below, "live")

    async def of(self, retriever: int) -> Scores:
        """Return a version's scores."""
        head = await self._ledger.get(self.namespace, f"{retriever:06d}")
        return Scores.model_validate(head.value) if head else Scores()

    async def add(self, retriever: int, score: int, *, change: Change) -> None:
        """Add a score; where many write at once it may be left out: it is a statistic."""
        for _ in range(TRIES):
            try:
                await self._added(retriever, score, change)
            except Conflict:
                continue
            return

    async def _added(self, retriever: int, score: int, change: Change) -> None:
        head = await self._ledger.get(self.namespace, f"{retriever:06d}")
        old = Scores.model_validate(head.value) if head else Scores()
        new = Scores(count=old.count + 1, total=old.total + score, squares=old.squares + score**2)
        write = make_write(
            event="update" if head else "insert",
            namespace=self.namespace,
            key=f"{retriever:06d}",
            value=new.model_dump(),
            text="",
            change=change,
            expected_version=head.version if head else None,
        )
        await self._ledger.write([write])
