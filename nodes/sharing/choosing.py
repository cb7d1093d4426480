"""Choose the memories that an agent is shown: the most similar, no two nearly the same."""

from collections.abc import Mapping, Sequence

from mneme.nodes.sharing.pools import LookUp, look_up
from mneme.stores.pools.memory_pool import MemoryPool, Pooled
from mneme.stores.provenance import current_keys
from mneme.stores.write_gate import near_to_any

RERANKED_DEPTH = 40
"""Minimum memories that are retrieved if they are then reranked."""
EXTRA_CANDIDATES = 5
"""Memories that are retrieved beyond those shown, since some may be nearly the same."""


async def chosen(
    pool: MemoryPool, question: str, shots: int, *, without: str = ""
) -> tuple[int, list[Pooled]]:
    """Return the number of the retriever and the memories for a question, the best first.

    None is nearly the same as one before it, or as the answer `without`; none was rated down by a person, or
    rests on something out of date.
    """
    asked = await look_up(pool, question)
    found = await found_by(pool, question, shots + EXTRA_CANDIDATES, asked)
    hold = await current_keys(pool.ledger, pool.namespace, (each.key for each in found))
    distinct, said = list[Pooled](), [without] if without else []
    for each in found:
        if each.key in hold and not each.pair.is_rated_down and not near_to_any(each.pair.answer, said):
            distinct.append(each)
            said.append(each.pair.answer)
    return asked.number, distinct[:shots]


async def found_by(pool: MemoryPool, question: str, wanted: int, asked: LookUp) -> list[Pooled]:
    """Return the memories that a search finds, best first: similarity plus the favour of their agents.

    Where there are favours, RERANKED_DEPTH memories at least are looked at.
    """
    depth = max(wanted, RERANKED_DEPTH) if asked.favours else wanted
    return reranked(await pool.retrieve(question, depth, vector=asked.vector), asked.favours)


def reranked(found: Sequence[Pooled], favours: Mapping[str, float]) -> list[Pooled]:
    """Return the memories, the best first: similarity plus the favour of their agents."""
    if not favours:
        return list(found)
    from mneme.models.retriever.reranker import UNSEEN_AGENT  # noqa: PLC0415  (NumPy is slow to import)

    others = favours[UNSEEN_AGENT]  # of agents that no training saw: as by chance
    return sorted(found, key=lambda each: -((each.similarity or 0) + favours.get(each.pair.agent, others)))
