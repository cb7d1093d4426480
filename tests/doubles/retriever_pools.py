"""Pools from which a retriever learns, and its versions, for tests."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import numpy as np

from mneme.graphs.retriever_training import builder
from mneme.nodes.sharing.context import PoolContext
from mneme.nodes.sharing.pools import retrievers_of
from mneme.stores.ledger.base_store import LedgerStore
from mneme.stores.ledger.ledger import open_ledger
from mneme.stores.ledger.records import Change
from mneme.stores.pools.lessons import RetrieverLessons
from mneme.stores.pools.memory_pool import MemoryPool, Pair, Pooled
from mneme.stores.pools.retrievers import Retriever, Retrievers
from tests.doubles.embedding import WordEmbedder

SEEDS = Path(__file__).parents[2] / "library" / "pairs"
STORED = Change(reason="stored", actor="test")
QUESTION = "Write a pun about a baker and his oven."


@asynccontextmanager
async def opened(home: Path) -> AsyncIterator[MemoryPool]:
    """Open the pool of a home."""
    ledger = await open_ledger(str(home / "ledger"), WordEmbedder())
    yield MemoryPool(ledger, "local", "wit")
    await ledger.close()


def shipped(*agents: str, few: int | None = None) -> list[Pair]:
    """Give shipped pairs whose questions name their kind: the double of an embedder knows words alone."""
    items = [
        (agent, json.loads(line))
        for agent in agents
        for line in (SEEDS / f"{agent}.jsonl").read_text(encoding="utf-8").splitlines()[:few]
    ]
    return [
        Pair(
            prompt=f"{agent}! {item['question']}", answer=item["answer"], agent=agent, domain="wit", score=90
        )
        for agent, item in items
    ]


async def store(pool: MemoryPool, pairs: list[Pair]) -> None:
    for pair in pairs:
        await pool.add(pair, change=STORED)
        await RetrieverLessons(pool).open_all([Pooled(key=pair.key, pair=pair)], change=STORED)


async def train(pool: MemoryPool, **context: Any) -> dict[str, Any]:
    graph = builder.compile(store=LedgerStore(pool.ledger))
    given = PoolContext(**{"grader": "rules", "learning": "projection", **context})
    ended: dict[str, Any] = await graph.ainvoke({"pool": pool.pool}, context=given)
    return ended


async def kept_version(pool: MemoryPool, seed: int = 0) -> tuple[Retrievers, Retriever]:
    """Train on all that waits; return the version that was kept last."""
    await train(pool, seed=seed)
    retrievers = await retrievers_of(pool)
    kept = [each for each in await retrievers.all() if each.kept]
    assert kept, "the shipped jokes and puzzles teach something"
    return retrievers, kept[-1]


async def successor(retrievers: Retrievers, first: Retriever, by: float = -1.0) -> Retriever:
    """Let a second version serve, with other weights."""
    weights = await retrievers.weights(first.number)
    name = await asyncio.to_thread(retrievers.store, weights | {"up": np.float32(by) * weights["up"]})
    number = await retrievers.count() + 1
    second = first.model_copy(update={"number": number, "parent": first.number, "weights": name})
    await retrievers.record(second, change=STORED)
    await retrievers.serve(number, instead_of=first.number, change=STORED)
    await retrievers.prune()
    return second


def stems(home: Path) -> list[str]:
    return [each.stem for each in home.glob("retrievers/*/*")]


def file_of(home: Path, version: Retriever) -> Path:
    (found,) = (home / "retrievers").glob(f"*/{version.weights}.safetensors")
    return found
