"""Compare the trained retriever with the untrained one, BM25, and examples drawn at random.

For each test question every way ranks the pool's memories. Those that any way puts among its first ten are
graded as the retriever's lessons are (eq. 1), with the test question's standard answer, which no pool holds;
the v/2 that contradict it least count as useful (§3.2). What no way found is not judged, as in
TREC's pooling.
"""

import asyncio
import hashlib
import random
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Literal, get_args

from mneme.evals.report import Row
from mneme.evals.sharing.data import Item
from mneme.library.agents.agent import load_agent
from mneme.models.asking.asking import ask
from mneme.nodes.sharing.choosing import EXTRA_CANDIDATES, found_by
from mneme.nodes.sharing.context import PoolContext
from mneme.nodes.sharing.exchange import Exchange, answer, example_of
from mneme.nodes.sharing.pools import LookUp, look_up
from mneme.nodes.sharing.retriever_judging import EXAMPLES_PER_PROMPT
from mneme.prompts.sharing.grading import Comparison, grade_contradiction
from mneme.stores.pools.memory_pool import MemoryPool, Pooled

Way = Literal["trained", "untrained", "BM25", "random"]
WAYS: tuple[Way, ...] = get_args(Way)
JUDGED_DEPTH = 10
MAX_CONTRADICTION = 100.0
"""Contradiction, in per cent, of a way that found nothing."""
LABELS_PER_QUESTION: int = PoolContext.model_fields["labels"].default


@dataclass(frozen=True)
class Judging:
    """The pool from which examples are chosen, who answers after them, who grades them."""

    pool: MemoryPool
    answerer: str
    grader: str
    seed: int


async def judge(item: Item, judging: Judging, trained_answer: str) -> dict[Way, Row]:
    """Return for each way its memories and the answer; the graph has answered for the trained one."""
    ranked = {way: await _ranked(item, way, judging) for way in WAYS}
    grades = await _grades(item, {each.key: each for found in ranked.values() for each in found}, judging)
    useful = set(sorted(grades, key=lambda key: (grades[key], key))[: LABELS_PER_QUESTION // 2])
    found = dict[Way, Row]()
    for way, memories in ranked.items():
        shown, keys = memories[:EXAMPLES_PER_PROMPT], [each.key for each in memories]
        own = trained_answer if way == "trained" else await _answered(item, shown, judging)
        found[way] = {
            "shown": keys[:EXAMPLES_PER_PROMPT],
            "recall@3": fmean(key in keys[:EXAMPLES_PER_PROMPT] for key in useful) if useful else 0.0,
            "recall@10": fmean(key in keys for key in useful) if useful else 0.0,
            "contradiction": fmean(grades[each.key] for each in shown) if shown else MAX_CONTRADICTION,
            "own agent": own_share(shown, item.agent),
            "answer": own,
        }
    return found


async def _ranked(item: Item, way: Way, judging: Judging) -> list[Pooled]:
    """Return the first memories by one way; no answer twice, as in the graph."""
    found = await _found(item, way, judging)
    # Reversed: of equal answers the first found stays.
    distinct = {each.pair.answer: each for each in reversed(found)}
    kept = {each.key for each in distinct.values()}
    return [each for each in found if each.key in kept][:JUDGED_DEPTH]


async def _found(item: Item, way: Way, judging: Judging) -> list[Pooled]:
    pool, wanted = judging.pool, JUDGED_DEPTH + EXTRA_CANDIDATES
    if way == "random":
        memories = [each async for each in pool.pairs()]
        seed = int(hashlib.sha256(f"{judging.seed}/{item.id}".encode()).hexdigest()[:8], 16)
        draw = random.Random(seed)  # noqa: S311  (a sample, no secret)
        return draw.sample(memories, min(wanted, len(memories)))
    if way == "BM25":
        return await pool.retrieve(item.question, wanted, mode="bm25")
    return await nearest(pool, item.question, wanted, trained=way == "trained")


async def nearest(pool: MemoryPool, question: str, wanted: int, *, trained: bool) -> list[Pooled]:
    """Return what the retriever that serves finds, or else the embedder as it is."""
    asked = await look_up(pool, question) if trained else LookUp()
    return await found_by(pool, question, wanted, asked)


async def _grades(item: Item, memories: dict[str, Pooled], judging: Judging) -> dict[str, int]:
    """Return for each memory, in per cent, how likely it leads to an answer against the standard one."""
    asked = [
        Comparison(example=example_of(each.pair), question=item.question, answer=item.answer)
        for each in memories.values()
    ]
    graded = await asyncio.gather(
        *(ask(grade_contradiction, each, judging.grader, lane="background") for each in asked)
    )
    return {key: answered.value.percent for key, answered in zip(memories, graded, strict=True)}


def own_share(shown: Sequence[Pooled], agent: str) -> float:
    """Return the share of memories that are of the asker's kind."""
    return fmean(each.pair.agent == agent for each in shown) if shown else 0.0


async def _answered(item: Item, examples: Sequence[Pooled], judging: Judging) -> str:
    exchange = Exchange(load_agent(item.agent), item.question)
    answered, _ = await answer(exchange, examples, judging.answerer)
    return answered.value
