"""Eight agents that answer, store and train at once: is a pair lost, does an answer wait, does memory grow?

`python -m mneme.evals.sharing.stress --seconds 60` prints what it counted, and fails where it does not hold.
Its answers are timed beside trainings and, before those begin, without: the ratio is what a training costs.
Answered by rules, on the embedded ledger with the bundled embedder.
"""

import argparse
import asyncio
import json
import os
import resource
import tempfile
import time
from collections.abc import Sequence
from itertools import count
from statistics import median
from typing import Any

from mneme.core.settings import settings
from mneme.graphs.memory_sharing import builder as memory_sharing
from mneme.graphs.retriever_training import builder as retriever_training
from mneme.library import PAIRS
from mneme.library.agents.agent import AGENTS, load_agent
from mneme.models.embedding.embedders import open_embedder
from mneme.nodes.sharing.context import PoolContext, SharingContext
from mneme.nodes.sharing.exchange import keep
from mneme.stores.ledger.base_store import LedgerStore
from mneme.stores.ledger.ledger import Ledger, open_ledger
from mneme.stores.ledger.records import Change
from mneme.stores.pools.memory_pool import MemoryPool, Pair

AT_ONCE = 8
ALONE = 0.25
"""Share of the time in which nothing trains, for comparison."""
GROWTH = 400
"""MiB that the process may grow by after the warm-up: many times what the pairs themselves take."""
WAITING = 10
"""Times the median without training from which on a slow answer is no longer the processor's doing."""
POOL = "single_pool"
ROLES = {"grader": "rules", "pools": "single"}


async def stress(seconds: float) -> dict[str, Any]:
    """Run for so many seconds; return what was counted."""
    with tempfile.TemporaryDirectory() as home:
        os.environ["MNEME_HOME"] = home
        settings.cache_clear()
        ledger = await open_ledger(f"{home}/ledger", await open_embedder("bundled"))
        try:
            return await _run(ledger, seconds)
        finally:
            await ledger.close()


async def _run(ledger: Ledger, seconds: float) -> dict[str, Any]:
    pool = MemoryPool(ledger, "local", POOL)
    seeded = sum(await keep(pool, _seeds(), change=Change(reason="seed", actor="stress")))
    numbers = count()
    warm = await _agents(ledger, numbers, 0.01)
    alone = await _agents(ledger, numbers, seconds * ALONE)
    before = _memory()
    trainings: list[float] = []
    training = asyncio.create_task(_train(ledger, trainings))
    beside = await _agents(ledger, numbers, seconds * (1 - ALONE))
    training.cancel()
    await asyncio.gather(training, return_exceptions=True)
    stored = [each["key"] for each, _ in [*warm, *alone, *beside] if each["stored"]]
    held = [each.key async for each in pool.pairs()]
    return {
        "answers": len(alone) + len(beside),
        "stored": len(stored),
        "lost": len(set(stored) - set(held)),
        "twice": len(held) - len(set(held)) + len(stored) - len(set(stored)),
        "unaccounted": len(held) - seeded - len(stored),
        "trainings": len(trainings),
        "seconds_alone": median(took for _, took in alone),
        "seconds_beside": median(took for _, took in beside),
        "slowest_beside": max(took for _, took in beside),
        "training_seconds": median(trainings) if trainings else None,
        "grown_mib": round(_memory() - before),
    }


def _seeds() -> list[Pair]:
    return [
        Pair(
            prompt=item["question"],
            answer=item["answer"],
            agent=name,
            domain=load_agent(name).domain,
            score=100,
        )
        for name in AGENTS
        for item in map(json.loads, (PAIRS / f"{name}.jsonl").read_text(encoding="utf-8").splitlines())
    ]


async def _agents(ledger: Ledger, numbers: "count[int]", seconds: float) -> list[tuple[Any, float]]:
    """Let eight agents ask and store until the time is over; return each result with its seconds."""
    graph = memory_sharing.compile(store=LedgerStore(ledger))
    ends = time.monotonic() + seconds
    found: list[tuple[Any, float]] = []

    async def agent(name: str) -> None:
        context = SharingContext(agent=name, answerer="rules", scorer="rules", threshold=0, **ROLES)
        while time.monotonic() < ends:
            question = f"Write about stone {next(numbers) // 2}."  # each is asked twice: some pairs are one
            began = time.monotonic()
            found.append(
                (await graph.ainvoke({"question": question}, context=context), time.monotonic() - began)
            )

    await asyncio.gather(*(agent(name) for name in AGENTS[:AT_ONCE]))
    return found


async def _train(ledger: Ledger, trainings: list[float]) -> None:
    """Train again and again; note the seconds of each training."""
    graph = retriever_training.compile(store=LedgerStore(ledger))
    while True:
        began = time.monotonic()
        await graph.ainvoke({"pool": POOL}, context=PoolContext(**ROLES))
        trainings.append(time.monotonic() - began)
        await asyncio.sleep(0)


def _memory() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def waited(counted: dict[str, Any]) -> bool:
    """Say whether an answer took as long as a training, and far longer than answers without any do."""
    slowest = counted["slowest_beside"]
    return bool(slowest > WAITING * counted["seconds_alone"] and slowest > counted["training_seconds"])


def failures(counted: dict[str, Any]) -> Sequence[str]:
    """Say what does not hold."""
    wrong = [f"{name}: {counted[name]}" for name in ("lost", "twice", "unaccounted") if counted[name]]
    if not counted["trainings"]:
        wrong.append("no training ended")
    elif waited(counted):
        wrong.append(f"an answer took {counted['slowest_beside']:.2f} s: it waited for a training's end")
    if counted["grown_mib"] > GROWTH:
        wrong.append(f"the process grew by {counted['grown_mib']} MiB")
    return wrong


def main() -> None:
    options = argparse.ArgumentParser(description="Eight agents answering, storing and training at once.")
    options.add_argument("--seconds", type=float, default=60)
    counted = asyncio.run(stress(options.parse_args().seconds))
    print(json.dumps(counted, indent=1))
    if wrong := failures(counted):
        raise SystemExit("; ".join(wrong))


if __name__ == "__main__":
    main()
