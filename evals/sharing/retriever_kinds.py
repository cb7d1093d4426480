"""Measure whether the trained retriever finds more memories of the asker's kind than the untrained one.

A pool is filled and learned from through the graph, grading by rules. Then each test question, none of which
is nearly in the pool, is looked up in several ways; counted is the share of the first three that are of the
agent whose question it is. Differences are paired by question, with a bootstrap interval of 95 %.

The loss and its settings were chosen on the shipped pairs and on the authors' plans and poems, the weight of
grades and the rule of the gate on the shipped pairs after a first look at all pools; the settings of the
re-scorer on the shipped pairs. So `logic`, `logic and shipped` and, in part, `single` measure; the others do
not.
"""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean

import numpy as np
from pydantic import BaseModel, Field

from mneme.core.settings import settings
from mneme.evals.measuring import temporary_ledger
from mneme.evals.options import RUNS, EmbedderName, Fresh, Out
from mneme.evals.report import Journal, Progress, Report, Row, digest, open_journal, table
from mneme.evals.sharing.authors import FOLDERS, clean, distinct, read_authors
from mneme.evals.sharing.data import Item, read_items, split
from mneme.graphs.retriever_training import builder
from mneme.models.embedding.embedders import Embedder, open_embedder
from mneme.models.retriever.retriever import Learning
from mneme.nodes.sharing.choosing import Choice, chosen
from mneme.nodes.sharing.context import PoolContext
from mneme.nodes.sharing.exchange import keep
from mneme.nodes.sharing.pools import retrievers_of
from mneme.nodes.sharing.retriever_judging import SHOWN, gain
from mneme.stores.ledger.base_store import LedgerStore
from mneme.stores.ledger.records import Change
from mneme.stores.pools.memory_pool import MemoryPool, Pair
from mneme.stores.pools.retrievers import Gain

STORED = Change(reason="stored", actor="evaluation")
LOGIC = "unconventional_logic"
LEARNINGS: tuple[Learning, ...] = ("projection", "reranker")
WAYS: dict[str, tuple[Choice, Learning | None]] = {
    "untrained": (Choice(), None),
    "BM25": (Choice(retrieval="bm25"), None),
    "hybrid, untrained": (Choice(retrieval="hybrid"), None),
    "trained": (Choice(), "projection"),
    "trained, diverse": (Choice(diversity=0.3), "projection"),
    "hybrid, trained": (Choice(retrieval="hybrid"), "projection"),
    "reranked": (Choice(), "reranker"),
}
"""How examples are chosen, and what the version learned that serves; None: the untrained embedder."""


class Options(BaseModel):
    """Which data, and where results go."""

    data: Path | None = Field(
        None, description="A clone of the authors' repository; default: the shipped pairs alone."
    )
    seed: int = Field(1, description="Draws the split of the shipped pairs.")
    embedder: EmbedderName = ""
    out: Out = RUNS
    fresh: Fresh = False


class Setting(BaseModel):
    """A pool to be filled, the questions that it is asked, and how many were left out as known to it."""

    pool: list[Item]
    asked: list[Item]
    flagged: int = 0


async def run(options: Options, progress: Progress = lambda done, of, what: None) -> Report:
    """Measure every pool; go on where an interrupted run stopped."""
    found = await asyncio.to_thread(_settings, options)
    embedder = await open_embedder(options.embedder or settings().embedder)
    items = digest({name: each.model_dump() for name, each in found.items()})
    configuration: Row = {"items": items, "embedder": embedder.name, "ways": [*WAYS]}
    journal = open_journal(options.out, "retriever_kinds", configuration, fresh=options.fresh)
    for number, (name, setting) in enumerate(found.items()):
        if name not in journal:
            journal.add(name, {"pool": name, **await measure(setting, embedder)})
        progress(number + 1, len(found), name)
    return report([journal[name] for name in found], journal, embedder.name)


def _settings(options: Options) -> dict[str, Setting]:
    """Return the pools by name."""
    made = split(read_items(None), options.seed)
    shipped = [*made.archived, *made.new]
    found = {"shipped": Setting(pool=shipped, asked=made.test)}
    if options.data is None:
        return found
    parts = {domain: read_authors(options.data, domain) for domain in FOLDERS}
    theirs = {domain: [*each.archived, *each.new] for domain, each in parts.items()}
    logic = [each for each in shipped if each.domain == LOGIC]
    found |= {name.split("_")[-1]: _setting(theirs[name], parts[name].test) for name in FOLDERS}
    found["logic and shipped"] = _setting([*theirs[LOGIC], *logic], parts[LOGIC].test)
    pool = [item for each in theirs.values() for item in each]
    found["single"] = _setting(pool, [item for each in parts.values() for item in each.test])
    return found


def _setting(pool: list[Item], tests: list[Item]) -> Setting:
    memories = distinct(pool)
    asked = clean(distinct(tests), memories)
    return Setting(pool=memories, asked=asked, flagged=len(tests) - len(asked))


async def measure(setting: Setting, embedder: Embedder) -> Row:
    """Fill a pool for each way to learn, let its retriever learn, look up every question in every way."""
    shares, learned = dict[str, list[float]](), dict[Learning, Row]()
    async with temporary_ledger(Once(embedder)) as ledger:
        for learning in LEARNINGS:
            pool = MemoryPool(ledger, learning, "single_pool")
            await keep(pool, [_pair(item) for item in setting.pool], change=STORED)
            context = PoolContext(team=learning, pools="single", grader="rules", learning=learning)
            await builder.compile(store=LedgerStore(ledger)).ainvoke({"pool": pool.pool}, context=context)
            for name, (choice, by) in WAYS.items():
                if (by or LEARNINGS[0]) == learning:
                    shares[name] = await _shares(setting, pool, choice, trained=by is not None)
            learned[learning] = await _learned(pool)
    return {
        "memories": len(setting.pool),
        "asked": len(setting.asked),
        "flagged": setting.flagged,
        "shares": shares,
        "learned": learned,
    }


async def _learned(pool: MemoryPool) -> Row:
    retrievers = await retrievers_of(pool)
    versions = [{"kept": each.kept, "reason": each.reason} for each in await retrievers.all()]
    return {"serving": await retrievers.serving(), "versions": versions}


class Once:
    """An embedder that makes each vector once, for pools of the same memories."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder, self._known = embedder, dict[str, list[float]]()
        self.name, self.dimension = embedder.name, embedder.dimension

    async def embed_documents(self, texts: Sequence[str]) -> list[list[float]]:
        """Return the vectors of the texts."""
        new = [text for text in dict.fromkeys(texts) if text not in self._known]
        if new:
            self._known |= dict(zip(new, await self._embedder.embed_documents(new), strict=True))
        return [self._known[text] for text in texts]

    async def embed_query(self, text: str) -> list[float]:
        """Return the vector of a question."""
        return await self._embedder.embed_query(text)


def _pair(item: Item) -> Pair:
    return Pair(prompt=item.question, answer=item.answer, agent=item.agent, domain=item.domain, score=100)


async def _shares(setting: Setting, pool: MemoryPool, choice: Choice, *, trained: bool) -> list[float]:
    """Return of each question the share of what is found that is of its agent."""
    found = []
    for item in setting.asked:
        _, memories = await chosen(pool, item.question, SHOWN, choice, untrained=not trained)
        found.append(fmean(each.pair.agent == item.agent for each in memories) if memories else 0.0)
    return found


def report(rows: list[Row], journal: Journal, embedder: str) -> Report:
    """Put the pools into one table, and their differences into another."""
    columns = ("pool", "memories", "asked", "left out", *WAYS)
    cells = [
        [
            row["pool"], f"{row['memories']}", f"{row['asked']}", f"{row['flagged']}",
            *(f"{fmean(row['shares'][way]):.3f}" for way in WAYS),
        ]
        for row in rows
    ]  # fmt: skip
    others = [way for way in WAYS if way != "untrained"]
    differences = [[row["pool"], *(str(_gain(row, way)) for way in others)] for row in rows]
    tables = [
        table(f"Share of the first {SHOWN} that are of the asker's kind", columns, cells),
        table("Against the untrained retriever, paired, 95 %", ("pool", *others), differences),
    ]
    notes = [
        "Left out: test questions that, or whose answers, are nearly in the pool or nearly asked before.",
        *(f"{row['pool']}, {each}: {_serving(row['learned'][each])}" for row in rows for each in LEARNINGS),
        (__doc__ or "").split("\n\n")[-1].replace("\n", " ").strip(),
    ]
    summary = {
        row["pool"]: {
            way: {"share": fmean(row["shares"][way]), **_gain(row, way).model_dump()} for way in WAYS
        }
        for row in rows
    }
    return Report("retriever_kinds", embedder, journal.path, rows, summary, tables, [], notes)


def _gain(row: Row, way: str) -> Gain:
    return gain(np.array(row["shares"][way]), np.array(row["shares"]["untrained"]))


def _serving(learned: Row) -> str:
    if not learned["versions"]:
        return "nothing trained"
    return str(learned["versions"][learned["serving"] - 1 if learned["serving"] else -1]["reason"])
