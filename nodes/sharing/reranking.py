"""Order what a search found anew, by what the retriever that serves says of a question's kind."""

from collections.abc import Mapping, Sequence

from mneme.models.retriever.reranker import OTHERS
from mneme.stores.pools.memory_pool import Pooled

DEPTH = 40
"""Memories that are found where they are to be ordered anew."""


def depth(wanted: int, favours: Mapping[str, float]) -> int:
    """Return how many memories to look up, so that there is something to order."""
    return max(wanted, DEPTH) if favours else wanted


def reranked(found: Sequence[Pooled], favours: Mapping[str, float]) -> list[Pooled]:
    """Return the memories, the best first: similarity plus what their agents are favoured by."""
    if not favours:
        return list(found)
    others = favours[OTHERS]
    return sorted(found, key=lambda each: -((each.similarity or 0) + favours.get(each.pair.agent, others)))
