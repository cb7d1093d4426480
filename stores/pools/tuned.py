"""The models that were tuned on a pool's memories (§5); the memories stay in the pool.

Other agents are answered for by other models, and the retriever learns from all memories: what one model has
learned is no less an example to the others. So a promotion says who answers from now on, and no more.
"""

from collections.abc import Sequence

from mneme.stores.ledger.records import Change
from mneme.stores.pools.memory_pool import MemoryPool
from mneme.stores.tuned_models import ArchiveWrites, TunedModels

DUE_MEMORIES = 200
"""New memories from which on a consolidation is due."""


class PoolModels(TunedModels):
    """The consolidations of one pool."""

    command = "share consolidate"

    def __init__(self, pool: MemoryPool) -> None:
        super().__init__(pool.ledger, pool.below)
        self._pool = pool

    async def due(self, *, model: str = "") -> Sequence[str]:
        """Return why a consolidation is due: a new base model, or enough new memories since the last one."""
        standing = await self._standing()
        new = await self._pool.count() - (standing[-1].cards if standing else 0)
        changed = bool(model and standing and standing[-1].model not in ("", model))
        reasons = [(new >= DUE_MEMORIES, f"{new} new memories"), (changed, f"a new base model: {model}")]
        return [why for holds, why in reasons if holds]

    async def _learned(
        self, tag: str, keep: Sequence[str], only: Sequence[str] | None, change: Change
    ) -> ArchiveWrites:
        """Return the memories that a model learned, which stay."""
        return ArchiveWrites([*(only or ())], await self._pool.count())
