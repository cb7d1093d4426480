"""The models that were tuned on a pool's memories (§5); the memories stay in the pool.

Other agents are answered for by other models, and the retriever learns from all memories: what one model has
learned is no less an example to the others. So a promotion says who answers from now on, and no more.
"""

from collections.abc import Sequence
from datetime import UTC, datetime

from mneme.stores.ledger.records import Change
from mneme.stores.ledger.writing import retry_on_conflict
from mneme.stores.pools.memory_pool import MemoryPool
from mneme.stores.tuned_models import Archive, TunedModels

GROWN = 200
"""New memories from which on a consolidation is due."""


class PoolModels(TunedModels):
    """The consolidations of one pool."""

    def __init__(self, pool: MemoryPool) -> None:
        super().__init__(pool.ledger, pool.below)
        self._pool = pool

    async def due(self, *, model: str = "") -> Sequence[str]:
        """Return why a consolidation is due: a new base model, or GROWN memories more than at the last."""
        standing = await self._standing()
        new = await self._pool.count() - (standing[-1].cards if standing else 0)
        changed = bool(model and standing and standing[-1].model not in ("", model))
        reasons = [(new >= GROWN, f"{new} new memories"), (changed, f"a new base model: {model}")]
        return [why for holds, why in reasons if holds]

    @retry_on_conflict
    async def archive(
        self, tag: str, *, change: Change, model: str = "", only: Sequence[str] = (), serves: str = ""
    ) -> Archive:
        """Let a tuned model answer from now on; `only` names the memories that it learned, which stay.

        Raises BadInput where the tag is taken.
        """
        await self._check_free(tag)
        before = await self._before(serves)
        made = Archive(
            tag=tag,
            at=datetime.now(UTC),
            model=model,
            cards=await self._pool.count(),
            ids=[*only],
            serves=serves,
            before=before,
        )
        await self._ledger.write(await self._promoting(made, change))
        return made

    @retry_on_conflict
    async def take_back(self, *, change: Change) -> Archive:
        """Let the model before the latest one answer again. Raises BadInput where there is none."""
        last = await self._last("See `mneme share consolidate --status`.")
        undone, writes = await self._undoing(last, change)
        await self._ledger.write(writes)
        return undone
