"""Order what a search found anew, by what the retriever that serves says of a question's kind."""

from collections.abc import Mapping, Sequence

from mneme.models.retriever.reranker import OTHERS
from mneme.stores.ledger.query import Mode
from mneme.stores.pools.memory_pool import MemoryPool, Pooled

DEPTH = 40
"""Memories that are found where they are to be ordered anew."""


async def found_by(  # noqa: PLR0913  (what a search takes, and what it is ordered by)
    pool: MemoryPool,
    question: str,
    wanted: int,
    *,
    vector: Sequence[float] | None,
    favours: Mapping[str, float],
    mode: Mode = "dense",
) -> list[Pooled]:
    """Return what a search finds, in its new order; DEPTH memories at least where there is one."""
    deep = max(wanted, DEPTH) if favours else wanted
    return reranked(await pool.retrieve(question, deep, vector=vector, mode=mode), favours)


def reranked(found: Sequence[Pooled], favours: Mapping[str, float]) -> list[Pooled]:
    """Return the memories, the best first: similarity plus what their agents are favoured by."""
    if not favours:
        return list(found)
    others = favours[OTHERS]
    return sorted(found, key=lambda each: -((each.similarity or 0) + favours.get(each.pair.agent, others)))
