"""Shared measurements of evaluations: ledgers, settings for one run, times, and significance."""

import asyncio
import os
import shutil
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from multiprocessing import get_context, parent_process
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from typing import Any

import numpy as np
import pandas as pd
from langgraph.store.memory import InMemoryStore
from numpy.typing import NDArray
from scipy.stats import binomtest, bootstrap, wilcoxon

from mneme.core.settings import settings
from mneme.evals.report import C, Journal, Row
from mneme.models.asking.asking import clear_endpoints
from mneme.models.embedding.embedders import Embedder
from mneme.stores.ledger.ledger import Ledger, open_ledger


@asynccontextmanager
async def temporary_ledger(embedder: Embedder) -> AsyncIterator[Ledger]:
    """Open a ledger in a folder of its own, which is removed again."""
    with TemporaryDirectory(prefix="mneme-eval-") as folder:
        async with ledger_at(Path(folder), embedder) as ledger:
            yield ledger


@asynccontextmanager
async def ledger_at(location: Path | str, embedder: Embedder) -> AsyncIterator[Ledger]:
    """Open the ledger in a folder or on a server, and close it again."""
    ledger = await open_ledger(str(location), embedder)
    try:
        yield ledger
    finally:
        await ledger.close()  # its threads would outlive the folder


def bytes_on_disk(folder: Path) -> int:
    """Return the disk usage of a folder in bytes, without databases' write-ahead logs.

    Sparse files use less than their length, and short ones less than a disk block.
    """
    # A write-ahead log's size depends on when the last checkpoint was, not on what is stored.
    stats = [path.stat() for path in folder.rglob("*") if path.is_file() and not path.name.endswith("-wal")]
    # `st_blocks` counts 512 bytes, whatever the file system's block.
    return sum(min(512 * each.st_blocks, each.st_size) for each in stats)


def searched_store(embedder: Embedder) -> InMemoryStore:
    """Return LangGraph's store in memory, searched with an embedder of ours."""

    async def embed(texts: Sequence[str]) -> list[list[float]]:
        return [[*map(float, each)] for each in await embedder.embed_documents(list(texts))]

    return InMemoryStore(index={"dims": embedder.dimension, "embed": embed})


def home_beside(journal: Journal) -> Path:
    """Return the folder of a run's state for continuing; emptied if no case is finished."""
    home = journal.path.with_suffix("")
    if not journal.rows:
        shutil.rmtree(home, ignore_errors=True)  # what a run left that finished no case
    return home


@contextmanager
def in_environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Set variables as this process's settings, and clear the caches about models, before and afterwards."""
    before = {name: os.environ[name] for name in variables if name in os.environ}
    os.environ.update(variables)
    settings.cache_clear()
    clear_endpoints()
    try:
        yield
    finally:
        for name in variables:
            del os.environ[name]
        os.environ.update(before)
        settings.cache_clear()
        clear_endpoints()


@contextmanager
def processes(
    count: int, one: Callable[[C], Coroutine[Any, Any, Row]]
) -> Iterator[Callable[[C], Awaitable[Row]]]:
    """Yield an executor of cases: in that many processes, or in this one if one is enough.

    They share nothing with this process and end with it, however it ends; the standard library's wait forever
    if this process is killed. Waiting cases are dropped when the run is interrupted.
    """
    if count == 1:
        yield one
        return
    # Spawned: a fork would copy locks that threads of the models hold.
    opened = ProcessPoolExecutor(count, mp_context=get_context("spawn"), initializer=_end_with_parent)
    try:
        yield lambda case: asyncio.get_running_loop().run_in_executor(opened, _in_process, one, case)
    finally:
        # A finished pool waits for nothing; after Ctrl-C its cases would take minutes.
        opened.shutdown(wait=False, cancel_futures=True)


def _in_process(one: Callable[[C], Coroutine[Any, Any, Row]], case: C) -> Row:
    return asyncio.run(one(case))


def _end_with_parent() -> None:
    def wait() -> None:
        if parent := parent_process():
            parent.join()
            os._exit(1)  # without clean-up: threads of the models never end by themselves

    Thread(target=wait, daemon=True).start()


async def seconds_of(work: Awaitable[object]) -> float:
    """Return the duration in seconds."""
    started = time.perf_counter()
    await work
    return time.perf_counter() - started


def line(
    part: str, size: int, values: Sequence[float], unit: str, beside: tuple[str, Sequence[float]] = ("", ())
) -> Row:
    """Return a part's median and 95th percentile, and how many times the median of what is `beside` it is."""
    (name, others), median = beside, float(np.median(values))
    theirs = float(np.median(others)) if len(others) else None
    p95 = float(np.percentile(values, 95)) if len(values) > 1 else None
    found: Row = {"part": part, "size": size, "median": median, "p95": p95, "unit": unit, "beside": name}
    return found | {"its median": theirs, "ratio": median / theirs if theirs else None}


def wilcoxon_p(differences: Sequence[float] | NDArray[np.float64]) -> float | None:
    """Return p of Wilcoxon's signed-rank test, two-sided; None if nothing differs."""
    return float(wilcoxon(differences).pvalue) if np.any(differences) else None


def holm(p: Mapping[str, float | None]) -> dict[str, float]:
    """Correct p values for their number (Holm, 1979); missing ones are left out."""
    found = pd.Series(p, dtype=float).dropna().sort_values()
    corrected: dict[str, float] = (found * [*range(len(found), 0, -1)]).clip(upper=1).cummax().to_dict()
    return corrected


def interval_of_mean(values: Sequence[float] | NDArray[np.float64]) -> tuple[float, float]:
    """Return the 95 % bootstrap interval of a mean; a point if all values are equal."""
    data: Any = (np.asarray(values, dtype=float),)  # `bootstrap` takes a sequence of samples
    if np.ptp(data[0]) == 0:  # `bootstrap` refuses a single value
        return float(data[0][0]), float(data[0][0])
    found = bootstrap(data, np.mean, rng=np.random.default_rng(1), method="percentile", n_resamples=2000)
    return float(found.confidence_interval.low), float(found.confidence_interval.high)


def p_cell(p: float | None) -> str:
    """Format a p for a table."""
    return "–" if p is None else f"{p:.1g}"


def ratio(part: float, whole: float) -> float | None:
    """Return a share; None if there was nothing to count."""
    return part / whole if whole else None


def percent(value: float | None) -> str:
    """Format a share for a table."""
    return "–" if value is None else f"{100 * value:.0f} %"


def interval(of: dict[str, Any]) -> str:
    """Format a share's interval for a table."""
    return "–" if of["low"] is None else f"{100 * of['low']:.0f}–{100 * of['high']:.0f} %"


def share(right: int, count: int) -> dict[str, Any]:
    """Return a share of cases with its 95 % Wilson interval."""
    # Wilson's interval stays within 0 to 1 and has a width at 0 and n right, unlike the normal one.
    interval = binomtest(right, count).proportion_ci(0.95, method="wilson") if count else None
    return {
        "right": right,
        "cases": count,
        "share": ratio(right, count),
        "low": interval and float(interval.low),
        "high": interval and float(interval.high),
    }
