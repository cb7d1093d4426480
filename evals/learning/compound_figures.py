"""From the rows of solved tasks to figures: summaries of an arm, and paired differences between two."""

from collections.abc import Callable, Mapping, Sequence
from statistics import fmean, median, stdev
from typing import Any

import numpy as np
from scipy.stats import bootstrap

from mneme.evals.learning.arms import OURS, RIVALS
from mneme.evals.measuring import wilcoxon_p
from mneme.evals.report import Row
from mneme.stores.cards.metrics import duplicate_mistakes

Orders = Sequence[Sequence[Row]]
"""The rows of one arm, order by order, in each as the tasks came."""


def saved(row: Row) -> float:
    """Return the share of the query's time that the solution saves; nothing where it solves nothing."""
    if not row["solved"] or not row["baseline_seconds"]:
        return 0.0
    return 1.0 - float(row["solution_seconds"]) / float(row["baseline_seconds"])


def _share(part: float, whole: float) -> float:
    return part / whole if whole else 0.0


def _mean_of(name: str) -> Callable[[Sequence[Row]], float]:
    return lambda rows: fmean(row[name] for row in rows)


FIGURES: dict[str, Callable[[Sequence[Row]], float]] = {
    "iterations per task": _mean_of("iterations"),
    "first-attempt success": _mean_of("first_attempt"),
    "solved": _mean_of("solved"),
    "seconds to solution": _mean_of("seconds"),
    "model calls to solution": _mean_of("calls"),
    "speed-up (median)": lambda rows: median(row["speed_up"] or 0.0 for row in rows),
    "time saved by the solution": lambda rows: fmean(saved(row) for row in rows),
    "cards retrieved": lambda rows: fmean(len(row["retrieved"]) for row in rows),
    "cards used": lambda rows: fmean(len(row["used"]) for row in rows),
    "tokens of what is retrieved": _mean_of("shown_tokens"),
    "retrieval precision": lambda rows: _share(
        sum(len(row["used"]) for row in rows), sum(len(row["retrieved"]) for row in rows)
    ),
    "duplicate mistakes": lambda rows: duplicate_mistakes(row["mistakes"] for row in rows) or 0.0,
}
"""What is computed of an arm's tasks; a mistake counts as a duplicate within the tasks that are looked at."""
COMPARED: Mapping[str, tuple[Callable[[Row], float], bool]] = {
    "iterations": (lambda row: float(row["iterations"]), False),
    "first-attempt success": (lambda row: float(row["first_attempt"]), True),
    "solved": (lambda row: float(row["solved"]), True),
    "time saved by the solution": (saved, True),
    "model calls": (lambda row: float(row["calls"]), False),
    "seconds": (lambda row: float(row["seconds"]), False),
    "tokens of what is retrieved": (lambda row: float(row["shown_tokens"]), False),
}
"""What two arms are compared by, task by task, and whether more of it is better."""


def summarised(orders: Orders) -> Row:
    """Return each figure over the whole orders, their beginnings and their ends, with the spread."""
    third = max(1, len(orders[0]) // 3)
    parts = {"all": slice(None), "first third": slice(third), "last third": slice(-third, None)}
    return {
        name: {part: _spread([figure(order[cut]) for order in orders]) for part, cut in parts.items()}
        for name, figure in FIGURES.items()
    } | {
        "slope of iterations per 10 tasks": _spread([_slope(order) for order in orders]),
        "cards at the end": _spread([float(order[-1]["cards"]) for order in orders]),
        "verified at the end": _spread([float(order[-1]["verified"]) for order in orders]),
        "mistakes": _spread([float(sum(len(row["mistakes"]) for row in order)) for order in orders]),
    }


def _spread(values: Sequence[float]) -> Row:
    return {"mean": fmean(values), "sd": stdev(values) if len(values) > 1 else 0.0}


def _slope(order: Sequence[Row]) -> float:
    if len(order) < 2:
        return 0.0
    return 10 * float(np.polyfit(range(len(order)), [row["iterations"] for row in order], 1)[0])


def significance(by_arm: Mapping[str, Orders]) -> dict[str, float | None]:
    """Return Wilcoxon's p for the same tasks with and without memory."""
    return {name: _wilcoxon(by_arm, name) for name in ("iterations", "seconds", "calls")}


def _wilcoxon(by_arm: Mapping[str, Orders], name: str) -> float | None:
    with_, without = (
        [row[name] for order in by_arm[arm] for row in order] for arm in (OURS, "without memory")
    )
    return wilcoxon_p(np.subtract(with_, without))


def reductions(by_arm: Mapping[str, Orders]) -> dict[str, float]:
    """Return by which share memory lowers what a task of the last third costs."""
    third = max(1, len(by_arm[OURS][0]) // 3)
    ends = {arm: [row for order in by_arm[arm] for row in order[-third:]] for arm in (OURS, "without memory")}
    return {
        name: 1.0
        - fmean(row[name] for row in ends[OURS]) / fmean(row[name] for row in ends["without memory"])
        for name in ("iterations", "seconds", "calls")
    }


def disputes(rows: Sequence[Row]) -> dict[str, int]:
    """Count how disputes were decided."""
    counted: dict[str, int] = {}
    for row in rows:
        for each in row["disputes"]:
            counted[each["recommendation"]] = counted.get(each["recommendation"], 0) + 1
    return counted


def compared(by_arm: Mapping[str, Orders]) -> Row:
    """Return for each rival and figure its mean and how it differs from ours, task by task.

    The interval of 95 % is a bootstrap over the tasks of all orders; `orders` are the orders' own means.
    """
    return {
        arm: {
            name: _difference(by_arm[arm], by_arm[OURS], of, more_is_better)
            for name, (of, more_is_better) in COMPARED.items()
        }
        for arm in RIVALS
        if by_arm.get(arm) and by_arm[arm][0]
    }


def _difference(theirs: Orders, ours: Orders, of: Callable[[Row], float], more_is_better: bool) -> Row:
    pairs = [[of(a) - of(b) for a, b in zip(*both, strict=True)] for both in zip(theirs, ours, strict=True)]
    differences = [each for order in pairs for each in order]
    low, high = _interval(differences)
    return {
        "theirs": fmean(of(row) for order in theirs for row in order),
        "ours": fmean(of(row) for order in ours for row in order),
        "difference": fmean(differences),
        "low": low,
        "high": high,
        "orders": [fmean(order) for order in pairs],
        "verdict": _verdict(low, high, more_is_better),
    }


def _verdict(low: float, high: float, more_is_better: bool) -> str:
    """Say what an interval of differences means for the rival; nothing where it has 0 in it."""
    if low <= 0 <= high:
        return ""
    return "better" if (low > 0) == more_is_better else "worse"


def _interval(values: Sequence[float]) -> tuple[float, float]:
    if len(set(values)) < 2:
        return values[0], values[0]
    data: Any = (np.array(values),)
    found = bootstrap(data, np.mean, rng=np.random.default_rng(1), method="percentile", n_resamples=2000)
    return float(found.confidence_interval.low), float(found.confidence_interval.high)
