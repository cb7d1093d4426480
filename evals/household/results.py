"""From the rows of played episodes to figures: means, intervals, improvement, paired differences."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import stats

from mneme.evals.household.arms import CATEGORIES, Arm
from mneme.evals.measuring import wilcoxon_p
from mneme.evals.report import Row

AVERAGE = "Average"
COLUMNS = (*CATEGORIES, AVERAGE)
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


def mean_of(values: Sequence[float]) -> Mean:
    """Return the mean and its interval; a single value has none."""
    n = len(values)
    half = float(stats.t.ppf(0.975, n - 1) * stats.sem(values)) if n > 1 else 0.0
    return Mean(float(np.mean(values)), half, n)


@dataclass(frozen=True)
class Difference:
    """An arm's steps less a rival's over the same episodes; below 0 the arm is ahead."""

    mean: Mean
    ahead: int
    level: int
    behind: int
    p: float | None
    """Wilcoxon's signed-rank test, two-sided; none where nothing differs."""


class Results:
    """Finished episodes by arm, one row for each."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self.frame = pd.DataFrame(rows)

    @property
    def name(self) -> str:
        """Return where the episodes come from, and how many there are."""
        sources = sorted(set(self.frame.get("source", [GENERATED])))
        return f"{', '.join(sources)} episodes (n = {self.frame['episode'].nunique()})"

    def cell(self, arm: Arm, category: str = AVERAGE) -> pd.DataFrame:
        """Return an arm's episodes of a category; of all of them for the average."""
        own = self.frame[self.frame["arm"] == arm.key].set_index("episode")
        return own if category == AVERAGE else own[own["category"] == category]

    def steps(self, arm: Arm, category: str = AVERAGE) -> Mean | None:
        """Return L, the average steps; an episode not finished counts with its limit."""
        steps = self.cell(arm, category)["steps"]
        return mean_of(steps) if len(steps) else None

    def bound(self, arm: Arm, category: str = AVERAGE) -> float | None:
        """Return the oracle's average bound over an arm's episodes."""
        bounds = self.cell(arm, category)["bound"]
        return float(bounds.mean()) if len(bounds) else None

    def over_bound(self, arm: Arm, category: str = AVERAGE) -> Mean | None:
        """Return how many times its bound an episode takes, on average."""
        rows = self.cell(arm, category)
        return mean_of(rows["steps"] / rows["bound"]) if len(rows) else None

    def improvement(self, arm: Arm, base: Arm, category: str = AVERAGE) -> float | None:
        """Return the efficiency improvement ΔM / M0, M0 being the greater of the two (§4.1)."""
        mine, theirs = self.steps(arm, category), self.steps(base, category)
        if mine is None or theirs is None:
            return None
        return (theirs.value - mine.value) / max(theirs.value, mine.value)

    def counts(self, arm: Arm, names: Sequence[str]) -> dict[str, float]:
        """Return the means of counts over an arm's episodes."""
        means: dict[str, float] = self.cell(arm).reindex(columns=[*names]).fillna(0).mean().to_dict()
        return means

    def difference(self, arm: Arm, rival: Arm, category: str = AVERAGE) -> Difference | None:
        """Compare two arms over the episodes that both have played."""
        gaps = (self.cell(arm, category)["steps"] - self.cell(rival, category)["steps"]).dropna()
        if not len(gaps):
            return None
        counts = (int((gaps < 0).sum()), int((gaps == 0).sum()), int((gaps > 0).sum()))
        return Difference(mean_of(gaps), *counts, wilcoxon_p(gaps))
