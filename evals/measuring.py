"""What several evaluations measure with: a ledger for one run, times, and significance."""

import time
from collections.abc import AsyncIterator, Awaitable, Sequence
from contextlib import asynccontextmanager
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray
from scipy.stats import wilcoxon

from mneme.evals.report import Row
from mneme.models.embedding.embedders import Embedder
from mneme.stores.ledger.ledger import Ledger, open_ledger


@asynccontextmanager
async def temporary_ledger(embedder: Embedder) -> AsyncIterator[Ledger]:
    """Open a ledger in a folder of its own, which is removed again."""
    with TemporaryDirectory(prefix="mneme-eval-") as folder:
        ledger = await open_ledger(folder, embedder)
        try:
            yield ledger
        finally:
            await ledger.close()


async def seconds_of(work: Awaitable[object]) -> float:
    """Return how long something takes."""
    started = time.perf_counter()
    await work
    return time.perf_counter() - started


def latency(what: str, seconds: Sequence[float]) -> Row:
    """Return the median and the 95th percentile in milliseconds, as `<what>_p50_ms` and `<what>_p95_ms`."""
    return {f"{what}_p{percent}_ms": float(np.percentile(seconds, percent)) * 1000 for percent in (50, 95)}


def wilcoxon_p(differences: Sequence[float] | NDArray[np.float64]) -> float | None:
    """Return p of Wilcoxon's signed-rank test, two-sided; None where nothing differs."""
    return float(wilcoxon(differences).pvalue) if np.any(differences) else None


def p_cell(p: float | None) -> str:
    """Write a p as a table shows it."""
    return "–" if p is None else f"{p:.1g}"
