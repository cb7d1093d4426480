"""Measure how long a training step of the retriever takes in a large pool, and whether answers wait for it.

A pool of made-up memories is trained on through the graph, grading by rules. Beside it stands what the same
machine takes in the same run to embed the memories anew, which a retriever with vectors of its own for
memories would have to do after each step (counted up from a part), and how long questions take beside a
training and without one. Every second step is left to itself: that one's time is a step's.
"""

import asyncio
import random
import time
from collections.abc import Awaitable, Sequence
from typing import Annotated
from uuid import uuid4

import numpy as np
from pydantic import BaseModel, Field

from mneme.core.settings import settings
from mneme.evals.engine import corpus as engine_corpus
from mneme.evals.engine.corpus import Corpus
from mneme.evals.engine.engines import LookUpEmbedder
from mneme.evals.measuring import seconds_of, temporary_ledger
from mneme.evals.options import RUNS, EmbedderName, Fresh, Out
from mneme.evals.report import Journal, Progress, Report, Row, open_journal, table
from mneme.graphs.retriever_training import builder
from mneme.models.embedding.embedders import Embedder, open_embedder
from mneme.nodes.sharing.context import PoolContext
from mneme.nodes.sharing.pools import look_up
from mneme.nodes.sharing.retriever_training import AT_ONCE as TOGETHER
from mneme.stores.ledger.base_store import LedgerStore
from mneme.stores.ledger.records import Change
from mneme.stores.pools.lessons import RetrieverLessons
from mneme.stores.pools.memory_pool import MemoryPool, Pair, Pooled

POOL = "speed"
STORED = Change(reason="stored", actor="evaluation")
AGENTS = ("one", "two", "three")
AT_ONCE, WARM, STEPS = 50, 9, 10
"""Memories stored together; steps until the latest lessons are a full window, and those that are measured."""
LEAST = 3 * TOGETHER
"""Memories of three steps: one warms up, one is left to itself, one has questions beside it."""
EMBEDDED = 400
TARGET_S = 2.0


class Options(BaseModel):
    """What to measure, and where results go."""

    sizes: list[Annotated[int, Field(ge=LEAST)]] = Field(
        [100, 1_000, 10_000], min_length=1, description=f"Number of memories, {LEAST} at least."
    )
    embedder: EmbedderName = ""
    out: Out = RUNS
    fresh: Fresh = False


async def run(options: Options, progress: Progress = lambda done, of, what: None) -> Report:
    """Measure at every size, and report them together."""
    embedder = await open_embedder(options.embedder or settings().embedder)
    configuration: Row = {"embedder": embedder.name, "steps": STEPS}
    journal = open_journal(options.out, "retriever_speed", configuration, fresh=options.fresh)
    waiting = [size for size in options.sizes if str(size) not in journal]
    for number, size in enumerate(waiting):
        corpus = engine_corpus.load(await engine_corpus.make(size, embedder, options.out))
        journal.add(str(size), await measure(corpus, embedder))
        progress(number + 1, len(waiting), f"{size} memories")
    return report([journal[str(size)] for size in options.sizes], journal, embedder.name)


async def measure(corpus: Corpus, embedder: Embedder) -> Row:
    """Measure one size in a folder of its own that is removed again."""
    async with temporary_ledger(ByLastLine(corpus)) as ledger:
        pool = MemoryPool(ledger, f"speed-{uuid4().hex}", POOL)
        pairs = await _fill(pool, corpus)
        row = await _measured(pool, corpus, pairs)
    some = corpus.texts[:EMBEDDED]
    took = await seconds_of(embedder.embed_documents(some))
    return row | {"embed_anew_s": took * len(corpus.texts) / len(some)}


class ByLastLine(LookUpEmbedder):
    """Take a memory, whose question and answer are sentences of the corpus, for its answer."""

    async def embed_documents(self, texts: Sequence[str]) -> list[list[float]]:
        """Return the vectors of the texts' last lines."""
        return await super().embed_documents([text.splitlines()[-1] for text in texts])


async def _fill(pool: MemoryPool, corpus: Corpus) -> list[Pair]:
    """Make every sentence the answer to another one, of three agents in turn; return the memories."""
    asked = random.Random(0).sample(corpus.texts, len(corpus.texts))  # noqa: S311 (a corpus, not a secret)
    pairs = [
        Pair(prompt=question, answer=text, agent=AGENTS[number % len(AGENTS)], domain=POOL, score=90)
        for number, (question, text) in enumerate(zip(asked, corpus.texts, strict=True))
    ]
    for start in range(0, len(pairs), AT_ONCE):
        await asyncio.gather(*(pool.add(each, change=STORED) for each in pairs[start : start + AT_ONCE]))
    return pairs


async def _measured(pool: MemoryPool, corpus: Corpus, pairs: Sequence[Pair]) -> Row:
    lessons, graph = RetrieverLessons(pool), builder.compile(store=LedgerStore(pool.ledger))
    context = PoolContext(team=pool.team, grader="rules")

    async def step() -> Row:
        return dict(await graph.ainvoke({"pool": POOL}, context=context))

    async def arrive(number: int) -> None:
        """Let the memories of one step wait to be learned from: a training takes all that wait."""
        for pair in pairs[number * TOGETHER : (number + 1) * TOGETHER]:
            await lessons.open(Pooled(key=pair.key, pair=pair), change=STORED)

    whole = len(pairs) // TOGETHER  # a pool of 100 has three steps, the first of which warms up
    measured = min(STEPS, whole - 1)
    warm = min(WARM, whole - measured)
    for number in range(warm):
        await arrive(number)
        await step()
    alone, _ = await _asked(pool, corpus, asyncio.sleep(1.0))
    steps = list[Row]()
    for number in range(warm, warm + measured):
        await arrive(number)
        is_alone = (number - warm) % 2 == 0
        began, used = time.perf_counter(), time.process_time()
        beside, ended = (None, await step()) if is_alone else await _asked(pool, corpus, step())
        took, used = time.perf_counter() - began, time.process_time() - used
        version = ended["retriever"] or {}
        times = {"step_s": took, "cpu_s": used, "train_s": version.get("seconds")}
        steps.append(times | {"beside_ms": beside})
    by_themselves = [each for each in steps if each["beside_ms"] is None]
    return {
        "memories": len(pairs),
        "step_s": _median([each["step_s"] for each in by_themselves]),
        "cpu_s": _median([each["cpu_s"] for each in by_themselves]),
        "train_s": _median([each["train_s"] for each in steps if each["train_s"]]),
        "question_alone_ms": alone,
        "question_beside_ms": _median([each["beside_ms"] for each in steps if each["beside_ms"]]),
        "steps": steps,
    }


def _median(seconds: Sequence[float]) -> float | None:
    """Return the median of the steps that trained; None: none did, and their time says nothing."""
    return float(np.median(seconds)) if seconds else None


async def _asked(pool: MemoryPool, corpus: Corpus, work: Awaitable[Row | None]) -> tuple[float, Row]:
    """Ask one question after the other while something goes on; return the 95th percentile in ms."""
    going, took, number = asyncio.ensure_future(work), list[float](), 0
    while not going.done():
        start = time.perf_counter()
        asked = corpus.asked[number % len(corpus.asked)]
        vector = (await look_up(pool, asked)).vector
        await pool.retrieve(asked, 3, vector=vector)
        took.append(time.perf_counter() - start)
        number += 1
        await asyncio.sleep(0.02)
    return float(np.percentile(took or [np.nan], 95)) * 1000, await going or {}


def report(rows: Sequence[Row], journal: Journal, embedder: str) -> Report:
    """Put the sizes into one table."""
    columns = (
        "memories",
        "training step, s",
        "CPU, s",
        "training, s",
        "embedding anew, s",
        "ratio",
        "question, ms",
    )
    cells = [
        [
            f"{row['memories']:,}",
            f"{row['step_s']:.2f}",
            f"{row['cpu_s']:.2f}",
            f"{row['train_s']:.2f}" if row["train_s"] is not None else "nothing trained",
            f"{row['embed_anew_s']:.1f}",
            f"{row['step_s'] / row['embed_anew_s']:.3f}",
            f"{row['question_alone_ms']:.0f} alone, {row['question_beside_ms']:.0f} beside a training",
        ]
        for row in rows
    ]
    notes = [
        f"A step grades {TOGETHER} memories by rules, trains, judges and serves; at most {TARGET_S:.0f} s "
        "are wanted on 2 idle cores. There is nothing to index anew: only the query encoder is trained.",
        "CPU is that of the process during a step: where other programs take the cores, the step waits for "
        "them and the CPU does not.",
        "Questions are the 95th percentile of finding 3 examples, the embedding of the question left out.",
    ]
    summary = {str(row["memories"]): {k: v for k, v in row.items() if k != "steps"} for row in rows}
    tables = [table("A training step in a pool", columns, cells)]
    return Report("retriever_speed", embedder, journal.path, list(rows), summary, tables, [], notes)
