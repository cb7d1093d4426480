"""Choose the memories that an agent is shown: by meaning or words, no two nearly the same, diverse if wanted.

`diversity` is the weight w of maximal marginal relevance (Carbonell and Goldstein 1998): each next memory has
the highest (1 - w)·cos(question, memory) - w·max cos(memory, one chosen before).
"""

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from mneme.models.retriever.reranker import OTHERS
from mneme.models.retriever.retriever import Matrix
from mneme.nodes.sharing.pools import LookUp, look_up
from mneme.stores.ledger.query import Mode
from mneme.stores.pools.memory_pool import MemoryPool, Pooled
from mneme.stores.pools.near_duplicates import near_to_any

DEPTH = 40
"""Memories that are found where they are to be ordered anew."""
SPARE = 5
"""Memories that are looked at beyond those shown, in case some are nearly the same."""
WIDE = 4
"""Times more memories that are looked at where they are to be diverse."""
Retrieval = Literal["dense", "bm25", "hybrid"]
MODES: dict[Retrieval, Mode] = {"dense": "dense", "bm25": "bm25", "hybrid": "blend"}
"""Hybrid adds BM25's share to the cosine: a fusion by rank lost to either part."""


class Choice(BaseModel):
    """How memories are chosen."""

    model_config = ConfigDict(frozen=True)

    retrieval: Retrieval = "dense"
    diversity: float = Field(0.0, ge=0, le=1)


async def chosen(  # noqa: PLR0913 (one name for each thing a caller may say)
    pool: MemoryPool, question: str, shots: int, choice: Choice, *, without: str = "", untrained: bool = False
) -> tuple[int, list[Pooled]]:
    """Return the number of the retriever and the memories for a question, the best first.

    None is nearly the same as one before it, or as the answer `without`; none was rated down by a person.
    """
    asked = LookUp() if untrained else await look_up(pool, question)
    favours = {} if choice.retrieval == "bm25" else asked.favours
    wanted = shots * (WIDE if choice.diversity else 1) + SPARE
    mode = MODES[choice.retrieval]
    found = await found_by(pool, question, wanted, vector=asked.vector, favours=favours, mode=mode)
    distinct, said = list[Pooled](), [without] if without else []
    for each in found:
        if not each.pair.is_rated_down and not near_to_any(each.pair.answer, said):
            distinct.append(each)
            said.append(each.pair.answer)
    if choice.diversity:
        distinct = await _diverse(pool, distinct, shots, choice.diversity)
    return asked.number, distinct[:shots]


async def _diverse(pool: MemoryPool, found: list[Pooled], shots: int, weight: float) -> list[Pooled]:
    """Choose by maximal marginal relevance; as they are where the embedder is absent."""
    vectors = await pool.ledger.vectors_by_ids([pool.point(each.key) for each in found])
    if len(vectors) < len(found):
        return found
    rows = np.array([vectors[pool.point(each.key)] for each in found], dtype=np.float32)
    relevance: Matrix = np.array([each.similarity or 0.0 for each in found], dtype=np.float32)
    alike, taken = rows @ rows.T, list[int]()
    while len(taken) < min(shots, len(found)):
        redundant = alike[:, taken].max(axis=1) if taken else np.zeros_like(relevance)
        worth = (1 - weight) * relevance - weight * redundant
        worth[taken] = -np.inf
        taken.append(int(worth.argmax()))
    return [found[at] for at in taken]


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
