"""Choose the memories that an agent is shown: by meaning or words, no two nearly the same, diverse if wanted.

`diversity` is the weight w of maximal marginal relevance (Carbonell and Goldstein 1998): each next memory has
the highest (1 - w)·cos(question, memory) - w·max cos(memory, one chosen before).
"""

from collections.abc import Sequence
from typing import Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from mneme.models.retriever.retriever import Matrix
from mneme.nodes.sharing.pools import LookUp, look_up
from mneme.nodes.sharing.reranking import found_by
from mneme.stores.ledger.query import Mode
from mneme.stores.pools.memory_pool import MemoryPool, Pooled
from mneme.stores.pools.near_duplicates import near_to_any

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
    distinct = _distinct([each for each in found if not each.pair.is_rated_down], without)
    if choice.diversity:
        distinct = await _diverse(pool, distinct, shots, choice.diversity)
    return asked.number, distinct[:shots]


def _distinct(found: Sequence[Pooled], without: str) -> list[Pooled]:
    kept, said = list[Pooled](), [without] if without else []
    for each in found:
        if not near_to_any(each.pair.answer, said):
            kept.append(each)
            said.append(each.pair.answer)
    return kept


async def _diverse(pool: MemoryPool, found: list[Pooled], shots: int, weight: float) -> list[Pooled]:
    """Choose by maximal marginal relevance; as they are where the embedder is absent."""
    vectors = await pool.ledger.vectors_by_ids([pool.point(each.key) for each in found])
    if len(vectors) < len(found):
        return found
    likeness = np.array([vectors[pool.point(each.key)] for each in found], dtype=np.float32)
    relevance = np.array([each.similarity or 0.0 for each in found], dtype=np.float32)
    return [found[at] for at in _marginal(relevance, likeness @ likeness.T, shots, weight)]


def _marginal(relevance: Matrix, alike: Matrix, shots: int, weight: float) -> list[int]:
    taken = list[int]()
    while len(taken) < min(shots, len(relevance)):
        redundant = alike[:, taken].max(axis=1) if taken else np.zeros_like(relevance)
        worth = (1 - weight) * relevance - weight * redundant
        worth[taken] = -np.inf
        taken.append(int(worth.argmax()))
    return taken
