"""The ledger, knowledge cards and a pool's retriever, at many sizes.

Each is compared with Qdrant without the ledger: same vectors, words and fields, one point a text, no history.
The embedder embeds up to EMBEDDED of the sentences. The vectors of the others are those of the first ones,
each moved a little at random and normalised, which keeps the structure of real embeddings.
"""

import asyncio
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from uuid import UUID, uuid4

import httpx
import numpy as np
import qdrant_edge as edge
from numpy.typing import NDArray

from mneme.evals.measuring import bytes_on_disk, ledger_at, line, seconds_of, temporary_ledger
from mneme.evals.report import Row
from mneme.graphs.retriever_training import builder as retriever_training
from mneme.models.embedding.embedders import Embedder
from mneme.nodes.sharing.choosing import chosen
from mneme.nodes.sharing.context import PoolContext
from mneme.nodes.sharing.retriever_training import MAX_GRADED_PER_TRAINING as A_STEP
from mneme.stores.cards.card import Lesson, TaskOutcome
from mneme.stores.cards.knowledge_cards import KnowledgeCards
from mneme.stores.cards.metrics import TaskRecord
from mneme.stores.ledger.base_store import LedgerStore
from mneme.stores.ledger.query import Mode
from mneme.stores.ledger.records import Change, Source, Write
from mneme.stores.ledger.words import Words, words_asked, words_of
from mneme.stores.pools.lessons import RetrieverLessons
from mneme.stores.pools.memory_pool import MemoryPool, Pair, Pooled

EMBEDDED = 2_000
WHO = ["Anna", "Ben", "Chiara", "David", "Elif", "Farid", "Greta", "Hana", "Igor", "Jun", "Katya", "Liam"]
DOES = ["loves", "bought", "lost", "talks about", "gave up", "dreams of", "repaired", "was given", "misses"]
WHAT = ["a red bicycle", "the violin", "green tea", "a cabin by the lake", "an old Volvo", "the chess club"]
WHERE = ["in Lisbon", "near the station", "at work", "in the mountains", "on Sundays", "before breakfast"]
WHY = [
    "because a friend asked",
    "although it rains",
    "to save money",
    "for the children",
    "against all advice",
]


def sentences(count: int) -> list[str]:
    """Return `count` different sentences about different people."""
    known = [f"{' '.join(parts)}." for parts in product(WHO, DOES, WHAT, WHERE, WHY)]
    random.Random(0).shuffle(known)  # noqa: S311  (sentences, no secrets)
    more = (f"{known[n % len(known)]} ({n})" for n in range(len(known), count))
    return [*known[:count], *more]


class Corpus:
    """Texts and questions with known vectors; an embedder whose work is not part of any measured time."""

    def __init__(self, name: str, texts: Sequence[str], asked: Sequence[str], vectors: NDArray[Any]) -> None:
        self.name, self.dimension = name, vectors.shape[1]
        self.texts, self.asked, self.vectors = list(texts), list(asked), vectors
        self._known = dict(zip([*texts, *asked], vectors, strict=True))

    async def embed_documents(self, texts: Sequence[str]) -> list[list[float]]:
        """Return the vectors of texts, or of their last lines."""
        # A pool embeds a pair as its prompt and its answer, a line each.
        known = (text if text in self._known else text.splitlines()[-1] for text in texts)
        return [await self.embed_query(text) for text in known]

    async def embed_query(self, text: str) -> list[float]:
        """Return the vector of a text or a question."""
        vector: list[float] = self._known[text].tolist()
        return vector


async def with_vectors(texts: Sequence[str], asked: Sequence[str], embedder: Embedder) -> Corpus:
    """Embed the questions and the first texts, and move the vectors of these for the others."""
    real = np.array(await embedder.embed_documents(list(texts[:EMBEDDED])), dtype=np.float32)
    # 0.02 a component moves a unit vector of 384 components by some 0.4: near its source, and no duplicate.
    noise = np.random.default_rng(0).normal(0, 0.02, (len(texts), real.shape[1])).astype(np.float32)
    moved = real[np.arange(len(texts)) % len(real)] + noise
    moved[: len(real)] = real  # the first ones stay as they were embedded
    moved /= np.linalg.norm(moved, axis=1, keepdims=True)
    queries = np.array([await embedder.embed_query(text) for text in asked], dtype=np.float32)
    return Corpus(embedder.name, texts, asked, np.vstack([moved, queries]))


CHANGE = Change(reason="the user said so", actor="memory agent", source=Source(thread="t1", messages=["m1"]))
BENCH_FIELDS = CHANGE.model_dump() | {"kind": "semantic", "at": "2026-01-01T00:00:00.000000Z"}
WORDS, USER = "bm25", "user"
CANDIDATES_PER_LEG = 64
"""Number of candidates of the vector and of the word search each, for ten results (`Query.candidates`)."""


class EdgeAlone:
    """Qdrant Edge in a folder, with an index on the user; an empty user means all."""

    def __init__(self, corpus: Corpus, folder: Path) -> None:
        folder.mkdir()
        self._corpus = corpus
        dense = {"dense": edge.EdgeVectorParams(size=corpus.dimension, distance=edge.Distance.Cosine)}
        words = {WORDS: edge.EdgeSparseVectorParams(modifier=edge.Modifier.Idf)}
        self.shard = edge.EdgeShard.create(str(folder), edge.EdgeConfig(vectors=dense, sparse_vectors=words))
        # As the ledger's: keeps a user's points together.
        index = edge.UpdateOperation.create_field_index(USER, edge.KeywordIndexParams(is_tenant=True))
        self.shard.update(index)

    async def write(self, rows: Sequence[int], users: Sequence[str]) -> None:
        points = [self._point(row, user) for row, user in zip(rows, users, strict=True)]
        self.shard.update(edge.UpdateOperation.upsert_points(points))

    async def search(
        self, question: int, user: str, limit: int, words: bool = False, *, in_thread: bool = False
    ) -> None:
        """Search by the vector; with `words`, by these too, for as many candidates as a blended search.

        A program whose event loop must not wait searches `in_thread`, as the ledger does.
        """
        match = [edge.FieldCondition(USER, match=edge.MatchValue(user))] if user else []
        within, text = edge.Filter(must=[*match]) if match else None, self._corpus.asked[question]
        parts: dict[str, Any] = {"dense": await self._corpus.embed_query(text)}
        parts |= {WORDS: edge.SparseVector(*words_asked(text))} if words else {}
        for name, vector in parts.items():
            nearest, count = edge.Query.Nearest(vector, name), CANDIDATES_PER_LEG if words else limit
            asked = edge.QueryRequest(count, query=nearest, filter=within, with_payload=True)
            # Two queries, as a blended search makes: Edge has no fusion that weighs as the ledger does.
            await asyncio.to_thread(self.shard.query, asked) if in_thread else self.shard.query(asked)

    def _point(self, row: int, user: str) -> edge.Point:
        dense, words, fields = stored(self._corpus, row, user)
        vectors: Any = {"dense": dense, WORDS: edge.SparseVector(*words)}
        return edge.Point(str(UUID(int=row)), vectors, fields)


class ServerAlone:
    """A collection on a Qdrant server, with an index on the user, spoken to without a library."""

    def __init__(self, corpus: Corpus, client: httpx.AsyncClient, path: str) -> None:
        self._corpus, self._client, self._path = corpus, client, path

    async def write(self, rows: Sequence[int], users: Sequence[str]) -> None:
        points = [self._point(row, user) for row, user in zip(rows, users, strict=True)]
        done = await self._client.put(f"{self._path}/points?wait=true", json={"points": points})
        done.raise_for_status()

    async def search(self, question: int, user: str, limit: int, words: bool = False) -> None:
        """Search by the vector; with `words`, by these too, for as many candidates as a blended search."""
        text, within = self._corpus.asked[question], {"must": [{"key": USER, "match": {"value": user}}]}
        parts: dict[str, Any] = {"dense": await self._corpus.embed_query(text)}
        parts |= {WORDS: words_asked(text)._asdict()} if words else {}
        common = {"filter": within, "limit": CANDIDATES_PER_LEG if words else limit, "with_payload": True}
        asked = {"searches": [{"query": each, "using": name} | common for name, each in parts.items()]}
        (await self._client.post(f"{self._path}/points/query/batch", json=asked)).raise_for_status()

    def _point(self, row: int, user: str) -> dict[str, Any]:
        dense, words, fields = stored(self._corpus, row, user)
        return {
            "id": str(UUID(int=row)),
            "vector": {"dense": dense, WORDS: words._asdict()},
            "payload": fields,
        }


def stored(corpus: Corpus, row: int, user: str) -> tuple[list[float], Words, dict[str, Any]]:
    """Return the stored form of a text: its vector, its words, its fields."""
    text = corpus.texts[row]
    place = {"namespace": ["users", user, "memories"], "key": str(row)}
    return corpus.vectors[row].tolist(), words_of(text), {USER: user, "text": text, **place, **BENCH_FIELDS}


@asynccontextmanager
async def on_server(corpus: Corpus, url: str) -> AsyncIterator[tuple[ServerAlone, str]]:
    """Create a collection and name a ledger for the comparison; both are deleted afterwards."""
    name = f"mneme-bench-{uuid4().hex}"
    path = f"/collections/{name}"
    dense = {"dense": {"size": corpus.dimension, "distance": "Cosine"}}
    layout = {"vectors": dense, "sparse_vectors": {WORDS: {"modifier": "idf"}}}
    index = {"field_name": USER, "field_schema": {"type": "keyword", "is_tenant": True}}
    async with httpx.AsyncClient(base_url=url, timeout=60) as client:
        (await client.put(path, json=layout)).raise_for_status()
        try:
            (await client.put(f"{path}/index?wait=true", json=index)).raise_for_status()
            with TemporaryDirectory() as log:
                yield ServerAlone(corpus, client, path), f"{log}|{url}?collection={name}-ledger"
        finally:
            # The ledger makes collections of its own beside the name.
            for each in (await client.get("/collections")).json()["result"]["collections"]:
                if each["name"].startswith(name):
                    await client.delete(f"/collections/{each['name']}")


EDGE = "Qdrant Edge"
QUESTION_COUNT, USERS, BATCH, CONCURRENT_WRITES, UPKEEPS, STEPS = 100, 100, 500, 50, 10, 5
HITS_PER_SEARCH, CARDS = 10, 5
BENCH_MODES: tuple[Mode, ...] = ("dense", "blend")
SCOPE = "sql_tuning"
Search = Callable[..., Awaitable[None]]
"""A search, given a question's number, a user, the number of results, and whether words count as well."""


async def embedded(size: int, embedder: Embedder) -> list[Row]:
    """Measure memories in the ledger on this machine, beside Qdrant Edge alone."""
    corpus = await memories(size, embedder)
    with TemporaryDirectory(prefix="mneme-bench-") as name:
        folder = Path(name)
        edge = EdgeAlone(corpus, folder / "alone")
        others: dict[str, Search] = {EDGE: edge.search}
        others |= {f"{EDGE} in a thread": partial(edge.search, in_thread=True)}
        rows = await _ledger_beside(edge, others, corpus, folder / "ledger", "embedded")
        edge.shard.close()
        ours, alone = (bytes_on_disk(folder / each) / size for each in ("ledger", "alone"))
        rows.append(line("memory on disk", size, [ours], "bytes", (EDGE, [alone])))
    return rows


async def served(size: int, embedder: Embedder, url: str) -> list[Row]:
    """Measure memories in the ledger on a Qdrant server, beside a collection of that server alone."""
    corpus = await memories(size, embedder)
    async with on_server(corpus, url) as (alone, location):
        return await _ledger_beside(alone, {"Qdrant server": alone.search}, corpus, location, "server")


async def memories(size: int, embedder: Embedder) -> Corpus:
    """Return memories, and other sentences as questions about them."""
    made = sentences(size + 2 * QUESTION_COUNT)
    return await with_vectors(made[:size], made[size:], embedder)


async def _ledger_beside(
    alone: EdgeAlone | ServerAlone,
    others: Mapping[str, Search],
    corpus: Corpus,
    location: Path | str,
    where: str,
) -> list[Row]:
    """Write and search alternately here and there, so that a busy machine slows both.

    `others` are the ways to search there, each with questions of its own: no record is read twice.
    """
    size, users = len(corpus.texts), [f"user{n % USERS}" for n in range(len(corpus.texts))]
    async with ledger_at(location, corpus) as ledger:
        ours, theirs = list[float](), list[float]()
        for start in range(0, size, BATCH):
            rows = range(size)[start : start + BATCH]
            writes = [_write(row, corpus.texts[row], users[row]) for row in rows]
            ours.append(1000 * await seconds_of(ledger.write(writes)) / len(rows))
            theirs.append(1000 * await seconds_of(alone.write(rows, users[start : rows.stop])) / len(rows))
        found = [line(f"write, {where}", size, ours, "ms", (next(iter(others)), theirs))]
        for mode in BENCH_MODES:

            def search(number: int, mode: Mode = mode) -> Awaitable[object]:
                mine = ("users", users[number % size], "memories")
                return ledger.search(mine, corpus.asked[number], limit=HITS_PER_SEARCH, mode=mode)

            # Records read before are cached: other questions for each way.
            for way, (name, alone_search) in enumerate(others.items()):

                def plain(
                    number: int, search: Search = alone_search, words: bool = mode == "blend"
                ) -> Awaitable[None]:
                    return search(number, users[number % size], HITS_PER_SEARCH, words)

                ours, theirs = await _in_turn(search, plain, way * QUESTION_COUNT)
                beside = f"{name}, vectors and words" if mode == "blend" else name
                found.append(line(f"search {mode}, {where}", size, ours, "ms", (beside, theirs)))
    return found


async def _in_turn(
    ours: Callable[[int], Awaitable[object]], theirs: Callable[[int], Awaitable[object]], first: int = 0
) -> tuple[list[float], list[float]]:
    """Ask QUESTION_COUNT questions of both, from `first` on; return the milliseconds, without a warm-up."""
    times = [
        (1000 * await seconds_of(ours(number)), 1000 * await seconds_of(theirs(number)))
        # The first is asked twice: once as a warm-up.
        for number in (first, *range(first, first + QUESTION_COUNT))
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
            await ask("cards, just learned")  # before the first upkeep
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
    """Measure a training step in a pool, graded by rules, and questions during it and without it."""
    corpus = await memories(size, embedder)
    some = corpus.texts[:EMBEDDED]
    # Extrapolated: embedding is linear in the number of texts, and all of them would take minutes.
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
    """Ask one question after another while other work runs; return the milliseconds."""
    going, took = asyncio.ensure_future(work), list[float]()
    while not going.done():
        began, text = time.perf_counter(), corpus.asked[len(took) % len(corpus.asked)]
        await chosen(pool, text, 3)
        took.append(1000 * (time.perf_counter() - began))
        await asyncio.sleep(0.02)  # a person reads the answer before asking again
    await going
    return took
