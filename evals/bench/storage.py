"""The ledger, knowledge cards and a pool's retriever, at many sizes."""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from mneme.evals.bench.alone import CHANGE, EdgeAlone, ServerAlone, on_server
from mneme.evals.bench.corpus import EMBEDDED, Corpus, sentences, with_vectors
from mneme.evals.measuring import bytes_on_disk, ledger_at, line, seconds_of, temporary_ledger
from mneme.evals.report import Row
from mneme.graphs.retriever_training import builder as retriever_training
from mneme.models.embedding.embedders import Embedder
from mneme.nodes.sharing.choosing import chosen
from mneme.nodes.sharing.context import PoolContext
from mneme.nodes.sharing.retriever_training import AT_ONCE as A_STEP
from mneme.stores.cards.card import Lesson, TaskOutcome
from mneme.stores.cards.knowledge_cards import KnowledgeCards
from mneme.stores.cards.metrics import TaskRecord
from mneme.stores.ledger.base_store import LedgerStore
from mneme.stores.ledger.query import Mode
from mneme.stores.ledger.records import Write
from mneme.stores.pools.lessons import RetrieverLessons
from mneme.stores.pools.memory_pool import MemoryPool, Pair, Pooled

EDGE = "Qdrant Edge"
QUESTIONS, USERS, BATCH, CONCURRENT_WRITES, UPKEEPS, STEPS = 100, 100, 500, 50, 10, 5
LIMIT, CARDS = 10, 5
MODES: tuple[Mode, ...] = ("dense", "blend")
SCOPE = "sql_tuning"


async def embedded(size: int, embedder: Embedder) -> list[Row]:
    """Measure memories in the ledger on this machine, beside Qdrant Edge alone."""
    corpus = await memories(size, embedder)
    with TemporaryDirectory(prefix="mneme-bench-") as name:
        folder = Path(name)
        edge = EdgeAlone(corpus, folder / "alone")
        rows = await _ledger_beside(edge, EDGE, corpus, folder / "ledger", "embedded")
        edge.shard.close()
        ours, alone = (bytes_on_disk(folder / each) / size for each in ("ledger", "alone"))
        rows.append(line("memory on disk", size, [ours], "bytes", (EDGE, [alone])))
    return rows


async def served(size: int, embedder: Embedder, url: str) -> list[Row]:
    """Measure memories in the ledger on a Qdrant server, beside a collection of that server alone."""
    corpus = await memories(size, embedder)
    async with on_server(corpus, url) as (alone, location):
        return await _ledger_beside(alone, "Qdrant server", corpus, location, "server")


async def memories(size: int, embedder: Embedder) -> Corpus:
    """Return memories and, to ask for them, other sentences."""
    made = sentences(size + QUESTIONS)
    return await with_vectors(made[:size], made[size:], embedder)


async def _ledger_beside(
    alone: EdgeAlone | ServerAlone, name: str, corpus: Corpus, location: Path | str, where: str
) -> list[Row]:
    """Write and search in turn here and there, so that a busy machine slows both."""
    size, users = len(corpus.texts), [f"user{n % USERS}" for n in range(len(corpus.texts))]
    async with ledger_at(location, corpus) as ledger:
        ours, theirs = list[float](), list[float]()
        for start in range(0, size, BATCH):
            rows = range(size)[start : start + BATCH]
            writes = [_write(row, corpus.texts[row], users[row]) for row in rows]
            ours.append(1000 * await seconds_of(ledger.write(writes)) / len(rows))
            theirs.append(1000 * await seconds_of(alone.write(rows, users[start : rows.stop])) / len(rows))
        found = [line(f"write, {where}", size, ours, "ms", (name, theirs))]
        for mode in MODES:

            def search(number: int, mode: Mode = mode) -> Awaitable[object]:
                mine = ("users", users[number % size], "memories")
                return ledger.search(mine, corpus.asked[number], limit=LIMIT, mode=mode)

            def plain(number: int, words: bool = mode == "blend") -> Awaitable[None]:
                return alone.search(number, users[number % size], LIMIT, words)

            ours, theirs = await _in_turn(search, plain)
            beside = f"{name}, vectors and words" if mode == "blend" else name
            found.append(line(f"search {mode}, {where}", size, ours, "ms", (beside, theirs)))
    return found


async def _in_turn(
    ours: Callable[[int], Awaitable[object]], theirs: Callable[[int], Awaitable[object]]
) -> tuple[list[float], list[float]]:
    """Ask each question here and there; return the milliseconds. The first only warms up."""
    times = [
        (1000 * await seconds_of(ours(number)), 1000 * await seconds_of(theirs(number)))
        for number in (0, *range(QUESTIONS))
    ]
    return [here for here, _ in times[1:]], [there for _, there in times[1:]]


def _write(row: int, text: str, user: str) -> Write:
    value, namespace = {"content": text, "kind": "semantic"}, ("users", user, "memories")
    return Write(event="insert", namespace=namespace, key=str(row), value=value, text=text, change=CHANGE)


async def cards(size: int, embedder: Embedder) -> list[Row]:
    """Measure retrieval of knowledge cards by the paper's weights, beside plain vector search."""
    corpus = await memories(size, embedder)
    with TemporaryDirectory(prefix="mneme-bench-") as folder:
        alone = EdgeAlone(corpus, Path(folder) / "alone")
        async with temporary_ledger(corpus) as ledger:
            base, found = KnowledgeCards(ledger, "bench"), list[Row]()

            async def ask(part: str) -> None:
                ours, theirs = await _in_turn(
                    lambda number: base.retrieve(corpus.asked[number], CARDS, scope=SCOPE),
                    lambda number: alone.search(number, "", CARDS),
                )
                found.append(line(part, size, ours, "ms", (EDGE, theirs)))

            await alone.write(range(size), [""] * size)
            learned = [1000 * await seconds_of(_learn(base, text)) for text in corpus.texts]
            found.append(line("learn a card", size, learned, "ms"))
            await ask("cards, just learned")
            await base.keep_up()
            upkept = [1000 * await seconds_of(_keep_up(base, number)) for number in range(UPKEEPS)]
            found.append(line("upkeep after a task", size, upkept, "ms"))
        alone.shard.close()
    return found


async def _learn(base: KnowledgeCards, claim: str) -> None:
    confidence, lesson = 0.4 + 0.1 * (len(claim) % 7), Lesson(claim=claim, scope=SCOPE)
    outcome = TaskOutcome(task=lesson.card_id, success=True, confidence=confidence)
    await base.create(lesson, outcome, change=CHANGE)


async def _keep_up(base: KnowledgeCards, number: int) -> None:
    await base.tasks.add(TaskRecord(id=f"task {number}", solved=True, seconds=1, iterations=1))
    await base.keep_up()


async def retriever(size: int, embedder: Embedder) -> list[Row]:
    """Measure a training step in a pool, graded by rules, and questions beside it and without it."""
    corpus = await memories(size, embedder)
    some = corpus.texts[:EMBEDDED]
    anew = await seconds_of(embedder.embed_documents(some)) * size / len(some)
    asked = random.Random(0).sample(corpus.texts, size)  # noqa: S311  (a corpus, no secret)
    pairs = [
        Pair(prompt=question, answer=text, agent=f"agent {n % 3}", domain="bench", score=90)
        for n, (question, text) in enumerate(zip(asked, corpus.texts, strict=True))
    ]
    async with temporary_ledger(corpus) as ledger:
        pool, count = MemoryPool(ledger, "bench", "bench"), min(STEPS, (size // A_STEP - 1) // 2)
        for start in range(0, size, CONCURRENT_WRITES):
            await asyncio.gather(
                *(pool.add(each, change=CHANGE) for each in pairs[start : start + CONCURRENT_WRITES])
            )
        waiting = (pairs[start : start + A_STEP] for start in range(0, size, A_STEP))
        await _train(pool, next(waiting))
        steps = [await seconds_of(_train(pool, next(waiting))) for _ in range(count)]
        alone = await _questions(pool, corpus, asyncio.sleep(1))
        beside = [
            ms for _ in range(count) for ms in await _questions(pool, corpus, _train(pool, next(waiting)))
        ]
    return [
        line("retriever, training step", size, steps, "s", ("embedding anew", [anew])),
        line("question while it trains", size, beside, "ms", ("no training", alone)),
    ]


async def _train(pool: MemoryPool, pairs: Sequence[Pair]) -> None:
    lessons, graph = RetrieverLessons(pool), retriever_training.compile(store=LedgerStore(pool.ledger))
    await lessons.open_all([Pooled(key=each.key, pair=each) for each in pairs], change=CHANGE)
    await graph.ainvoke({"pool": pool.pool}, context=PoolContext(team=pool.team, grader="rules"))


async def _questions(pool: MemoryPool, corpus: Corpus, work: Awaitable[None]) -> list[float]:
    """Ask one question after the other while something goes on; return the milliseconds."""
    going, took = asyncio.ensure_future(work), list[float]()
    while not going.done():
        began, text = time.perf_counter(), corpus.asked[len(took) % len(corpus.asked)]
        await chosen(pool, text, 3)
        took.append(1000 * (time.perf_counter() - began))
        await asyncio.sleep(0.02)
    await going
    return took
