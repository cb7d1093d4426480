"""Compare the ledger with other vector stores: writing, searching, recall, memory, reopening.

Each engine at each size runs in a process of its own. The embedding is not part of any time. Latencies
are of single queries, one after another; a slow engine is asked fewer of them, which the table says.
"""

import asyncio
import time
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from pydantic import BaseModel, Field

from mneme.cli.tables import Table
from mneme.core.processes import pool
from mneme.core.settings import settings
from mneme.evals.engine import corpus as engine_corpus
from mneme.evals.engine.corpus import NEIGHBOUR, OWN, QUERIES, REAL, Corpus
from mneme.evals.engine.engines import ENGINES, Engine, EngineName, OurLedger
from mneme.evals.measuring import latency, seconds_of
from mneme.evals.options import RUNS, EmbedderName, Fresh, Out, Positive
from mneme.evals.report import Journal, Progress, Report, Row, open_journal, table
from mneme.models.embedding.embedders import open_embedder

LIMIT = 10
LONGEST = 20.0
"""Seconds that one engine may spend on one kind of query."""
HNSW_UP_TO = 20_000
TARGETS = {20_000: 5.0, 100_000: 10.0}
"""Milliseconds at the 95th percentile that a user's search in the ledger may take, by records."""


class Options(BaseModel):
    """What to measure, and where results go."""

    sizes: list[Positive] = Field([1_000, 20_000, 100_000], min_length=1, description="Number of records.")
    engines: list[EngineName] = Field(list(ENGINES), min_length=1, description="Engine to measure.")
    embedder: EmbedderName = ""
    out: Out = RUNS
    fresh: Fresh = False


async def run(options: Options, progress: Progress = lambda done, of, what: None) -> Report:
    """Measure every engine at every size, and report them together."""
    embedder = await open_embedder(options.embedder or settings().embedder)
    configuration: Row = {"embedder": embedder.name, "queries": QUERIES, "limit": LIMIT}
    journal = open_journal(options.out, "engine", configuration, fresh=options.fresh)
    cases = [
        (engine, size) for size in options.sizes for engine in options.engines if _is_measured(engine, size)
    ]
    waiting = [case for case in cases if _name(*case) not in journal]
    for number, (engine, size) in enumerate(waiting):
        corpus = await engine_corpus.make(size, embedder, options.out)
        journal.add(_name(engine, size), await asyncio.to_thread(_alone, engine, corpus))
        progress(number + 1, len(waiting), _name(engine, size))
    rows = [journal[_name(*case)] for case in cases]
    return report(rows, journal, embedder.name)


def _is_measured(engine: EngineName, size: int) -> bool:
    return engine != "Qdrant Edge, HNSW" or size <= HNSW_UP_TO


def _name(engine: EngineName, size: int) -> str:
    return f"{engine} at {size}"


def _alone(engine: EngineName, corpus: Path) -> Row:
    """Measure in a fresh process, so that the memory is this engine's only."""
    with pool(1) as alone:
        return alone.submit(measure, engine, corpus).result()


def measure(engine: EngineName, corpus: Path) -> Row:
    """Measure one engine with one corpus, in this process."""
    return asyncio.run(measure_async(engine, corpus))


async def measure_async(engine: EngineName, corpus: Path) -> Row:
    """Measure one engine with one corpus, in a folder of its own that is removed again."""
    with TemporaryDirectory(prefix="mneme-engine-") as folder:
        return await _measure(engine, engine_corpus.load(corpus), Path(folder) / "store")


async def _measure(name: EngineName, corpus: Corpus, folder: Path) -> Row:
    engine = ENGINES[name](corpus, folder)
    before = _resident()
    await engine.open()
    insert = await seconds_of(engine.insert())
    row: Row = {"engine": name, "records": len(corpus.texts), "insert_s": insert}
    row |= await _searched(engine, corpus, own=True)
    row |= await _searched(engine, corpus, own=False)
    row |= {"memory_mb": (_resident() - before) / 2**20}
    if isinstance(engine, OurLedger):
        row |= await _neighbour(engine, corpus)
    if engine.persistent:
        row |= await _reopened(engine, corpus, folder)
    await engine.close()
    return row


async def _searched(engine: Engine, corpus: Corpus, *, own: bool) -> Row:
    """Ask each query once, for `LONGEST` seconds at most; compare with the exact answer."""
    kind, truth = ("own" if own else "all"), corpus.truth(LIMIT, own=own)
    took, recalls = [], []
    began = time.perf_counter()
    for query in _asked(began):
        user = corpus.askers[query] if own else None
        start = time.perf_counter()
        found = await engine.search(query, user, LIMIT)
        took.append(time.perf_counter() - start)
        recalls.append(len(truth[query].intersection(found)) / len(truth[query]))
    recall = float(np.mean(recalls)) if engine.by_cosine else None  # the truth is by cosine
    return latency(kind, took) | {f"{kind}_recall": recall, f"{kind}_n": len(took)}


async def _neighbour(engine: Engine, corpus: Corpus) -> Row:
    """Search the records of the user who has the same number of them at every size."""
    assert corpus.users.count(NEIGHBOUR) == min(OWN, len(corpus.users))
    took = []
    for query in _asked(time.perf_counter()):
        start = time.perf_counter()
        await engine.search(query, NEIGHBOUR, LIMIT)
        took.append(time.perf_counter() - start)
    return latency("neighbour", took)


async def _reopened(engine: Engine, corpus: Corpus, folder: Path) -> Row:
    """Close, open again, and answer a first query."""
    await engine.close()
    disk = _on_disk(folder)

    async def open_and_ask() -> None:
        await engine.open()
        await engine.search(0, corpus.askers[0], LIMIT)

    return {"disk_mb": disk / 2**20, "reopen_s": await seconds_of(open_and_ask())}


def _on_disk(folder: Path) -> int:
    return sum(path.stat().st_blocks * 512 for path in folder.rglob("*") if path.is_file())


def _asked(began: float) -> Iterable[int]:
    for query in range(QUERIES):
        if time.perf_counter() - began > LONGEST:
            return
        yield query


def _resident() -> int:
    """Return the bytes of memory that this process holds now (Linux)."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


PARTS = (
    (
        f"a user's own top {LIMIT}",
        {"p50 ms": "own_p50_ms", "p95 ms": "own_p95_ms", "recall": "own_recall", "asked": "own_n"},
    ),
    (
        f"the top {LIMIT} of all",
        {"p50 ms": "all_p50_ms", "p95 ms": "all_p95_ms", "recall": "all_recall", "asked": "all_n"},
    ),
    (
        "keeping them",
        {"insert s": "insert_s", "memory MB": "memory_mb", "disk MB": "disk_mb", "reopen s": "reopen_s"},
    ),
)


def _table(rows: list[Row], size: int, what: str, columns: dict[str, str]) -> Table:
    return table(
        f"{size} records of {engine_corpus.USERS} users: {what}",
        ["engine", *columns],
        [
            [row["engine"], *(row.get(field) for field in columns.values())]
            for row in rows
            if row["records"] == size
        ],
    )


def report(rows: list[Row], journal: Journal, embedder: str) -> Report:
    """Report what was measured, size by size, and whether it reaches the targets."""
    sizes = sorted({row["records"] for row in rows})
    tables = [_table(rows, size, *part) for size in sizes for part in PARTS]
    notes = [
        f"Vectors of {embedder}; beyond {REAL} records they are those of the first {REAL}, moved a little.",
        "“Qdrant Edge, same content” keeps vectors, BM25 and provenance as the ledger does, without history.",
        "The ledger compares exactly within a namespace; it builds no HNSW graph.",
    ]
    targets = against_targets(rows)
    tables.append(table("Targets", ["target", "measured", "reached"], targets, figures=False))
    summary = {
        "rows": rows,
        "targets": [dict(zip(("target", "measured", "reached"), t, strict=True)) for t in targets],
    }
    return Report("engine", "no model", journal.path, rows, summary, tables, [], notes)


def against_targets(rows: list[Row]) -> list[tuple[str, str, str]]:
    """Compare the ledger with its targets; what was not measured is left out."""
    at = {(row["engine"], row["records"]): row for row in rows}
    verdicts = []
    for size in sorted({row["records"] for row in rows}):
        ours, raw = at.get(("ledger", size)), at.get(("Qdrant Edge", size))
        same = at.get(("Qdrant Edge, same content", size))
        if ours and size in TARGETS:
            verdicts.append(_verdict(f"own p95 at {size} under (ms)", ours["own_p95_ms"], TARGETS[size]))
            verdicts.append(_verdict(f"missed of recall at {size} under", 1 - ours["own_recall"], 0.02))
        if ours and raw and size in TARGETS:
            ratio = ours["own_p95_ms"] / raw["own_p95_ms"]
            verdicts.append(_verdict(f"own p95 at {size} against raw Edge under (×)", ratio, 4.0))
        if ours and same and size in TARGETS:
            ratio = ours["insert_s"] / same["insert_s"]
            verdicts.append(
                _verdict(f"writing {size} against the same without history under (×)", ratio, 2.0)
            )
        if ours and raw and size in TARGETS:
            ratio = ours["insert_s"] / raw["insert_s"]
            what = f"writing {size} against a bare vector, user and text (×)"
            verdicts.append((what, f"{ratio:.3g}", "for information"))
    return [*verdicts, *_growth([row for row in rows if row["engine"] == "ledger"])]


def _growth(ours: list[Row]) -> list[tuple[str, str, str]]:
    """Compare the user with a constant number of records among few and among many others."""
    if len(ours) < 2:
        return []
    few, many = (pick(ours, key=lambda row: int(row["records"])) for pick in (min, max))
    ratio = many["neighbour_p50_ms"] / few["neighbour_p50_ms"]
    what = f"{OWN} own records among {many['records']} against among {few['records']} under (×)"
    return [_verdict(what, ratio, 1.5)]


def _verdict(what: str, measured: float, bound: float) -> tuple[str, str, str]:
    return f"{what} {bound:g}", f"{measured:.3g}", "yes" if measured < bound else "no"
