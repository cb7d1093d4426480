"""Comparison of retrievers over many splits of pools: do they find memories of the asker's kind?

Items are split by seed as in `memory_sharing`. A pool for each domain, and one for all, holds the standard
answers of all but the test; its retriever learns from them through the graph, graded by rules. Counted is the
share of the first three memories found for a test question that are of its own agent; no test item is nearly
in the pool. Differences to the untrained embedder are paired, with a bootstrap interval of 95 %.
"""

import asyncio
from collections.abc import Sequence
from functools import partial
from itertools import chain
from statistics import fmean

from mneme.evals.measuring import home_beside, in_environment, ledger_at
from mneme.evals.report import Journal, Progress, Report, Row, digest, table
from mneme.evals.sharing.data import Item, Split, SplitOptions, read_items, split
from mneme.evals.sharing.pool_runs import MAX_SHOTS, PoolRun, Pools, pools_of
from mneme.evals.sharing.retrievers import nearest, own_share
from mneme.models.retriever.retriever import Learning
from mneme.nodes.sharing.context import SharingContext
from mneme.nodes.sharing.pools import retrievers_of
from mneme.nodes.sharing.retriever_judging import gain
from mneme.stores.ledger.ledger import Ledger
from mneme.stores.pools.memory_pool import MemoryPool

LEARNINGS: tuple[Learning, ...] = ("reranker", "projection")
UNTRAINED_COLUMN = "untrained"
Options = SplitOptions


async def run(options: Options, progress: Progress = lambda done, of, what: None) -> Report:
    """Fill each pool of each split, let it learn, and look its test questions up."""
    items = await asyncio.to_thread(read_items, options.data)
    embedder = await options.opened_embedder()
    told = {"items": digest({item.id: item.model_dump() for item in items}), "embedder": embedder.name}
    journal = options.journal("retrievers", told)
    home = home_beside(journal)
    cases = {
        f"{seed}/{pool}": (seed, kind, pool, own)
        for seed in options.seeds
        for kind, pool, own in pools_of(await asyncio.to_thread(split, items, seed))
    }
    with in_environment({"MNEME_HOME": str(home.resolve())}):
        async with ledger_at(home / "ledger", embedder) as ledger:
            rows = await journal.play(cases, partial(_measured, ledger, journal), progress)
    return report(rows, journal, embedder.name)


async def _measured(ledger: Ledger, journal: Journal, case: tuple[int, Pools, str, Split]) -> Row:
    """Return by way to learn: each test question's share of own memories, and whether a version was kept."""
    seed, kind, pool, items = case
    found = dict[str, Row]()
    for learning in LEARNINGS:
        roles = SharingContext(answerer="rules", scorer="rules", grader="rules", learning=learning)
        beside = (ledger, roles, journal, asyncio.Semaphore(), print)
        one = PoolRun(seed, kind, "standard", pool, items, *beside, learning)
        await one.store([*items["archived"], *items["new"]])
        await one.train(100)
        kept = bool(await (await retrievers_of(one.memories)).serving())
        found[learning] = {"kept": kept, "own": await _own(one.memories, items["test"], trained=True)}
    found[UNTRAINED_COLUMN] = {"own": await _own(one.memories, items["test"], trained=False)}
    return {"pool": pool, "memories": await one.memories.count(), "found": found}


async def _own(pool: MemoryPool, items: Sequence[Item], *, trained: bool) -> list[float]:
    """Return for each question the share of the first memories found that are of its own agent."""
    found = [await nearest(pool, each.question, MAX_SHOTS, trained=trained) for each in items]
    return [own_share(own[:MAX_SHOTS], each.agent) for each, own in zip(items, found, strict=True)]


def report(rows: Sequence[Row], journal: Journal, embedder: str) -> Report:
    """Return a line for the splits of each pool, and one for all of them."""
    pools = {
        pool: [row for row in rows if row["pool"] == pool] for pool in dict.fromkeys(r["pool"] for r in rows)
    }
    summary = {pool: _summary(own) for pool, own in {**pools, "all splits": rows}.items()}
    columns = ["pool", "splits", "memories", "questions", UNTRAINED_COLUMN]
    for each in LEARNINGS:
        columns += [each, "splits above, below, kept"]
    cells = [
        [pool, *(f"{each:.3f}" if isinstance(each, float) else str(each) for each in line.values())]
        for pool, line in summary.items()
    ]
    made = table(f"Share of the first {MAX_SHOTS} memories that are of the asker's kind", columns, cells)
    notes = [" ".join((__doc__ or "").split("\n\n")[1].split())]
    return journal.report(embedder, summary, [made], notes, list(rows))


def _summary(rows: Sequence[Row]) -> Row:
    """Return the means of splits, and the effect of each way to learn, paired by question."""
    untrained = [row["found"][UNTRAINED_COLUMN]["own"] for row in rows]
    line: Row = {
        "splits": len(rows),
        "memories": round(fmean(row["memories"] for row in rows)),
        "questions": sum(map(len, untrained)),
        UNTRAINED_COLUMN: fmean(chain(*untrained)),
    }
    for each in LEARNINGS:
        own = [row["found"][each]["own"] for row in rows]
        gains = [fmean(new) - fmean(old) for new, old in zip(own, untrained, strict=True)]
        kept = sum(row["found"][each]["kept"] for row in rows)
        line[each] = f"{fmean(chain(*own)):.3f}: {gain([*chain(*own)], [*chain(*untrained)])}"
        line[f"{each}, splits"] = f"{sum(g > 0 for g in gains)}, {sum(g < 0 for g in gains)}, {kept}"
    return line
