"""From the rows of played episodes to figures: means, intervals, improvement, paired differences."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np
from scipy import stats

from mneme.evals.household.arms import Arm
from mneme.evals.household.paper import CATEGORIES
from mneme.evals.measuring import wilcoxon_p
from mneme.evals.report import Row

AVERAGE = "Average"
COLUMNS = (*CATEGORIES, AVERAGE)
CLEAR = 0.05
GENERATED = "generated"
"""The source of episodes that are made from a seed."""


@dataclass(frozen=True)
class Mean:
    """A mean over episodes and its 95 % confidence interval (Student's t), of n episodes."""

    value: float
    half: float
    n: int

    def __str__(self) -> str:
        return format(self, ".1f")

    def __format__(self, spec: str) -> str:
        """Write the value as asked, and behind it half the interval; a single value has none."""
        value = format(self.value, spec or ".1f")
        return f"{value} ±{format(self.half, (spec or '.1f').lstrip('+'))}" if self.n > 1 else value

    @property
    def is_clear(self) -> bool:
        """Say whether the interval leaves 0 out; a single value has none."""
        return self.n > 1 and abs(self.value) > self.half


def mean_of(values: Sequence[float]) -> Mean:
    """Return the mean and its interval; a single value has none."""
    if len(values) < 2:
        return Mean(fmean(values), 0.0, len(values))
    spread = float(stats.sem(values))
    half = float(stats.t.ppf(0.975, len(values) - 1)) * spread
    return Mean(fmean(values), half, len(values))


@dataclass(frozen=True)
class Difference:
    """MiTa's steps less a rival's over the same episodes; below 0 MiTa is ahead."""

    mean: Mean
    ahead: int
    level: int
    behind: int
    p: float | None
    """Wilcoxon's signed-rank test, two-sided; none where nothing differs."""

    @property
    def is_clear(self) -> bool:
        """Say whether the interval leaves 0 out, or the paired test agrees with the mean below `CLEAR`."""
        agrees = (self.ahead - self.behind) * self.mean.value < 0
        return self.mean.is_clear or (self.p is not None and self.p < CLEAR and agrees)


def name_of(results: "Results") -> str:
    """Return where the episodes come from, and how many there are."""
    sources = sorted({row.get("source", GENERATED) for row in results.rows})
    return f"{', '.join(sources)} episodes (n = {len({row['episode'] for row in results.rows})})"


def averaged(rows: Sequence[Row]) -> list[Row]:
    """Make one row of an arm's repeats of an episode, with the mean of each figure."""
    alike: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        alike.setdefault((row["arm"], row["episode"]), []).append(row)
    return [_mean(each) if len(each) > 1 else each[0] for each in alike.values()]


def _mean(rows: Sequence[Row]) -> Row:
    figures = [name for name, value in rows[0].items() if isinstance(value, (int, float))]
    return rows[0] | {name: fmean(row[name] for row in rows) for name in figures}


class Results:
    """The rows of finished episodes, by arm and category."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self.rows = rows = averaged(rows)
        self._cells: dict[tuple[str, str], list[Row]] = {}
        for row in rows:
            for category in (row["category"], AVERAGE):
                self._cells.setdefault((row["arm"], category), []).append(row)

    def cell(self, arm: Arm, category: str = AVERAGE) -> list[Row]:
        """Return an arm's episodes of a category; of all of them for the average."""
        return self._cells.get((arm.key, category), [])

    def steps(self, arm: Arm, category: str = AVERAGE) -> Mean | None:
        """Return L, the average steps; an episode not finished counts with its limit."""
        rows = self.cell(arm, category)
        return mean_of([row["steps"] for row in rows]) if rows else None

    def bound(self, arm: Arm, category: str = AVERAGE) -> float | None:
        """Return the oracle's average bound over an arm's episodes."""
        rows = self.cell(arm, category)
        return fmean(row["bound"] for row in rows) if rows else None

    def over_bound(self, arm: Arm, category: str = AVERAGE) -> Mean | None:
        """Return how many times its bound an episode takes, on average."""
        rows = self.cell(arm, category)
        return mean_of([row["steps"] / row["bound"] for row in rows]) if rows else None

    def improvement(self, arm: Arm, base: Arm, category: str = AVERAGE) -> float | None:
        """Return the efficiency improvement ΔM / M0, M0 being the greater of the two (§4.1)."""
        mine, theirs = self.steps(arm, category), self.steps(base, category)
        if mine is None or theirs is None:
            return None
        return (theirs.value - mine.value) / max(theirs.value, mine.value)

    def count(self, arm: Arm, name: str) -> float:
        """Return the mean of a count over an arm's episodes."""
        return fmean(row.get(name, 0) for row in self.cell(arm))

    def named(self, arm: Arm, name: str) -> str:
        """Return an arm's name for a table; where its manager gave no usable allocation, with how often."""
        lost = sum(row.get("unallocated", 0) for row in self.cell(arm))
        return f"{name}\n{lost} rounds without allocation" if lost else name

    def difference(self, arm: Arm, rival: Arm, category: str = AVERAGE) -> Difference | None:
        """Compare two arms over the episodes that both have played."""
        theirs = {row["episode"]: row["steps"] for row in self.cell(rival, category)}
        pairs = [
            (row["steps"], theirs[row["episode"]])
            for row in self.cell(arm, category)
            if row["episode"] in theirs
        ]
        if not pairs:
            return None
        gaps = np.array([mine - other for mine, other in pairs], dtype=float)
        counts = (int((gaps < 0).sum()), int((gaps == 0).sum()), int((gaps > 0).sum()))
        return Difference(mean_of(gaps.tolist()), *counts, wilcoxon_p(gaps))
