"""Measure retrieval from very many knowledge cards, flat and by clusters, beside plain vector search.

The cards are those of the worlds' own generators (`card_corpus.py`), at the volumes of the paper's §10. Each
query is asked of Qdrant Edge directly (the nearest vectors, no history, no weights) and of the
cards one after the other, in one process, so that the ratio of the two holds whatever else the machine
does. The embedding is not part of any time. Beside the latency stands how often the weights over the
most similar cards give what the weights over all cards would, and, once there are clusters, how many of
the flat retrieval's cards are still found.

Cards that were learned one by one lie scattered among their versions; they are asked as they then lie, and
again after upkeep has put them side by side.
"""

import asyncio
import random
import resource
import statistics
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from pydantic import BaseModel, Field

from mneme.core.settings import settings
from mneme.evals.engine.corpus import QUERIES, Corpus
from mneme.evals.engine.engines import LookUpEmbedder, RawEdge
from mneme.evals.learning import card_corpus
from mneme.evals.measuring import latency, seconds_of, temporary_ledger
from mneme.evals.options import RUNS, EmbedderName, Fresh, Out, Positive
from mneme.evals.report import Journal, Progress, Report, Row, open_journal, table
from mneme.models.embedding.embedders import open_embedder
from mneme.stores.cards.card import Card, TaskOutcome
from mneme.stores.cards.knowledge_cards import KnowledgeCards
from mneme.stores.cards.ranking import derived, ranking
from mneme.stores.cards.settings import CardSettings
from mneme.stores.cards.task_log import TaskRecord
from mneme.stores.ledger.ledger import Ledger
from mneme.stores.ledger.records import Change

LIMIT = 5
PROBED = (1, 2, 4, 8, 16, 32)
TARGET_AT, TARGET_MS = 20_000, 10.0
AT_ONCE = 50
UPKEPT = 10
SCOPE = "sql_tuning"
"""The scope of the tasks that ask."""
LEARNED = Change(reason="learned", actor="monitor")


class Options(BaseModel):
    """What to measure, and where results go."""

    sizes: list[Positive] = Field(
        [400, 5_000, 20_000, 50_000], min_length=1, description="Number of cards; the default is §10's table."
    )
    embedded: Positive = Field(20_000, description="How many cards are embedded; the others are moved ones.")
    embedder: EmbedderName = ""
    out: Out = RUNS
    fresh: Fresh = False


async def run(options: Options, progress: Progress = lambda done, of, what: None) -> Report:
    """Measure at every size, and report them together."""
    embedder = await open_embedder(options.embedder or settings().embedder)
    configuration: Row = {"embedder": embedder.name, "queries": QUERIES, "limit": LIMIT}
    configuration |= {"cards": "of the worlds", "embedded": options.embedded, "times": "wall and processor"}
    journal = open_journal(options.out, "cards_scale", configuration, fresh=options.fresh)
    waiting = [size for size in options.sizes if str(size) not in journal]
    for number, size in enumerate(waiting):
        corpus = await card_corpus.make(size, embedder, options.out, options.embedded)
        journal.add(str(size), await measure(corpus))
        progress(number + 1, len(waiting), f"{size} cards")
    return report([journal[str(size)] for size in options.sizes], journal, embedder.name, options.embedded)


async def measure(corpus: Corpus) -> Row:
    """Measure one corpus in a folder of its own that is removed again."""
    with TemporaryDirectory(prefix="mneme-cards-") as folder:
        raw = RawEdge(corpus, Path(folder) / "raw")
        await raw.open()
        await raw.insert()
        async with temporary_ledger(LookUpEmbedder(corpus)) as ledger:
            row = await _measured(corpus, raw, ledger)
        await raw.close()
        return row


async def _measured(corpus: Corpus, raw: RawEdge, ledger: Ledger) -> Row:
    before, cards = _resident(), KnowledgeCards(ledger, "scale")
    await _tasks(cards, 0, cards.settings.inactive_tasks)  # before the cards: none of them is inactive yet
    took = await seconds_of(_learn(corpus, cards))
    await cards.retrieve(corpus.asked[0], LIMIT, scope=SCOPE)  # indexes the weights' fields and the scope
    _, scattered = await _asked(corpus, raw, cards)
    compact_s = await seconds_of(ledger.compact())
    await cards.retrieve(corpus.asked[0], LIMIT, scope=SCOPE)  # indexes them in the new files
    flat, row = await _asked(corpus, raw, cards)
    row |= {"scattered": scattered, "compact_s": compact_s}
    row["memory_mb"] = _resident() - before
    everything = {card.id: card for card in await cards.records.list()}
    row |= {"cards": len(everything), "learn_s": took, "agreement": _agreement(corpus, everything, flat)}
    row["upkeep_ms"] = await _upkeep(cards)
    row["cluster_s"] = await seconds_of(cards.clusters.make())
    usual, row["probed"] = cards.settings, []
    for probed in PROBED:
        cards.settings = usual.model_copy(update={"probed": probed})
        found, timed = await _asked(corpus, raw, cards)
        row["probed"].append({"probed": probed, "recall": _recall(found, flat), **timed})
    return row


def _resident() -> float:
    """Return the memory of this process in MB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1e6


async def _tasks(cards: KnowledgeCards, first: int, count: int) -> None:
    for number in range(first, first + count):
        await cards.tasks.add(TaskRecord(id=f"task {number}", solved=True, seconds=1, iterations=1))


async def _upkeep(cards: KnowledgeCards) -> float:
    """Return the median time in ms of the upkeep after a task, where nothing is due."""
    await cards.upkeep.run()
    took = []
    for number in range(UPKEPT):
        await _tasks(cards, cards.settings.inactive_tasks + number, 1)
        took.append(await seconds_of(cards.upkeep.run()))
    return 1000 * statistics.median(took)


async def _learn(corpus: Corpus, cards: KnowledgeCards) -> None:
    """Make every lesson a card, of different confidence and success."""
    chance, known = random.Random(0), card_corpus.by_text(len(corpus.texts))  # noqa: S311 (a corpus)

    async def learn(number: int, text: str) -> None:
        first = TaskOutcome(task=f"t{number}", success=True, confidence=chance.uniform(0.4, 1))
        made = await cards.create(known[text], first, change=LEARNED)
        if number % 3 == 0:
            more = TaskOutcome(task=f"u{number}", success=chance.random() < 0.8)
            await cards.reinforce(made.card.id, more, change=LEARNED)

    numbered = list(enumerate(corpus.texts))
    for start in range(0, len(numbered), AT_ONCE):
        await asyncio.gather(*(learn(n, text) for n, text in numbered[start : start + AT_ONCE]))


async def _asked(corpus: Corpus, raw: RawEdge, cards: KnowledgeCards) -> tuple[list[list[str]], Row]:
    """Ask every query of both; return what the cards gave, and how long each took, by wall and by processor.

    The processor's time is that of all threads: what a busy machine makes others wait for is not in it.
    """
    found: list[list[str]] = []
    walls, cpus = [], []
    for number, text in enumerate(corpus.asked):
        marks = [_now()]
        await raw.search(number, None, LIMIT)
        marks.append(_now())
        hits = await cards.retrieve(text, LIMIT, scope=SCOPE)
        marks.append(_now())
        wall, cpu = np.diff(np.array(marks), axis=0).T
        walls.append(wall)
        cpus.append(cpu)
        found.append([hit.card.id for hit in hits])
    sides = ("raw", "cards")
    row: Row = {}
    for side, wall, cpu in zip(sides, np.array(walls).T, np.array(cpus).T, strict=True):
        row |= {**latency(side, wall.tolist()), **latency(f"{side}_cpu", cpu.tolist())}
    return found, row


def _now() -> tuple[float, float]:
    return time.perf_counter(), time.process_time()


def _agreement(corpus: Corpus, cards: dict[str, Card], flat: Sequence[Sequence[str]]) -> float:
    """Return the share of found cards that the weights over all cards would have found as well."""
    limits, now = CardSettings(), time.time() / 86_400
    rows, ids, standing = [], [], []
    known = card_corpus.by_text(len(corpus.texts))
    for row, text in enumerate(corpus.texts):
        card = cards[known[text].card_id]
        if card.shelf == "active" and card.scope == SCOPE:
            factors = {"confidence": card.confidence, **derived(card, limits)}
            rows.append(row)
            ids.append(card.id)
            standing.append(sum(ranking(limits).parts(0.0, factors, now, now).values()))
    best = []
    for query in corpus.queries:
        scores = 0.40 * (corpus.vectors[rows] @ query) + np.array(standing)
        best.append([ids[n] for n in np.argsort(-scores)[:LIMIT]])
    return _recall(flat, best)


def _recall(found: Sequence[Sequence[str]], truth: Sequence[Sequence[str]]) -> float:
    pairs = zip(found, truth, strict=True)
    return float(np.mean([len({*some} & {*wanted}) / len(wanted) for some, wanted in pairs]))


def report(rows: list[Row], journal: Journal, embedder: str, embedded: int) -> Report:
    """Report what was measured, and whether it reaches the target."""
    columns = (
        "cards",
        "learn s",
        "raw p50 ms",
        "raw p95",
        "cards p50 ms",
        "cards p95",
        "p95 ×",
        "cpu: raw p50 ms",
        "cards p50",
        "cards p95",
        "as over all",
    )
    flat = [
        [
            *(row["cards"], row["learn_s"], row["raw_p50_ms"], row["raw_p95_ms"]),
            *(row["cards_p50_ms"], row["cards_p95_ms"], _ratio(row)),
            *(row["raw_cpu_p50_ms"], row["cards_cpu_p50_ms"], row["cards_cpu_p95_ms"], row["agreement"]),
        ]
        for row in rows
    ]
    clustered = [
        [
            row["cards"],
            row["cluster_s"],
            each["probed"],
            each["recall"],
            each["cards_p50_ms"],
            each["cards_p95_ms"],
        ]
        for row in rows
        for each in row["probed"]
    ]
    targets = against_targets(rows)
    tables = [
        table(f"Flat retrieval of {LIMIT} by the paper's weights, beside plain vector search", columns, flat),
        table(
            "As learned one by one, and after upkeep has put the cards side by side; processor time",
            ("cards", "p50 ms", "p95", "upkeep of the files, s", "p50 ms after", "p95 after", "raw p95"),
            [_ordered(row) for row in rows],
        ),
        table(
            "By clusters: recall is against the flat retrieval",
            ("cards", "clustering s", "clusters probed", "recall", "p50 ms", "p95"),
            clustered,
        ),
        table("The scaling table of §10", SCALES, [_scale(row) for row in rows]),
        table("Targets", ("target", "measured", "reached"), targets, figures=False),
    ]
    notes = [
        f"Vectors of {embedder}; beyond {embedded} cards those of the first ones, moved a little.",
        "One process on one machine: the paper's shards are Qdrant's own, on a server (docs/scaling.md).",
        f"The weights rank the {CardSettings().candidates} most similar cards; “as over all” is how often "
        "that gives a card that the weights over all cards give as well.",
    ]
    summary = {"rows": rows, "targets": targets}
    return Report("cards_scale", "no model", journal.path, rows, summary, tables, [], notes)


SCALES = (
    *("scale", "cards", "the paper's strategy", "here", "p50 ms", "p95 ms"),
    *("memory MB", "recall", "upkeep ms"),
)
VOLUMES = (
    (500, "small", "in-memory vector search"),
    (5_000, "medium", "vector database, caching"),
    (20_000, "large", "distributed search, hierarchical index"),
    (10**9, "enterprise", "shards, clusters of cards"),
)


def _ordered(row: Row) -> list[object]:
    """Return a line of what the order of the files does."""
    scattered = (row["scattered"]["cards_cpu_p50_ms"], row["scattered"]["cards_cpu_p95_ms"])
    after = (row["cards_cpu_p50_ms"], row["cards_cpu_p95_ms"], row["raw_cpu_p95_ms"])
    return [row["cards"], *scattered, row["compact_s"], *after]


def _scale(row: Row) -> list[object]:
    """Return a line of §10's table: by clusters where retrieval would use them."""
    usual = CardSettings()
    scale, theirs = next((name, strategy) for most, name, strategy in VOLUMES if row["cards"] <= most)
    used = next((each for each in row["probed"] if each["probed"] == usual.probed), None)
    is_clustered = row["cards"] > usual.clustered_over and used is not None
    timed, recall = (used, used["recall"]) if is_clustered and used else (row, row["agreement"])
    ours = f"{usual.probed} nearest clusters" if is_clustered else "all vectors, exactly"
    figures = (timed["cards_p50_ms"], timed["cards_p95_ms"], row["memory_mb"], recall, row["upkeep_ms"])
    return [scale, row["cards"], theirs, ours, *figures]


def _ratio(row: Row) -> float:
    return float(row["cards_p95_ms"] / row["raw_p95_ms"])


def against_targets(rows: Sequence[Row]) -> list[tuple[str, str, str]]:
    """Compare the latency with its target, at the size that the target is for."""
    return [
        (
            f"p95 at {row['cards']} cards under {TARGET_MS:g} ms",
            f"{row['cards_p95_ms']:.3g}",
            "yes" if row["cards_p95_ms"] < TARGET_MS else "no",
        )
        for row in rows
        if row["cards"] == TARGET_AT
    ]
