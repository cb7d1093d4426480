"""The household evaluation's tables, plots and figures: means, intervals, improvement, paired differences."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from scipy import stats

from mneme.api.tables import Table
from mneme.evals.household.arms import CATEGORIES, COUNTERS, TABLE_1, Arm, Plan
from mneme.evals.measuring import p_cell, wilcoxon_p
from mneme.evals.report import Journal, Report, Row, draw, table

AVERAGE = "Average"
COLUMNS = (*CATEGORIES, AVERAGE)
GENERATED = "generated"
"""Name of the source of episodes that are generated from a seed."""


@dataclass(frozen=True)
class Mean:
    """A mean over episodes and its 95 % confidence interval (Student's t), of n episodes."""

    value: float
    half: float
    n: int

    def __str__(self) -> str:
        return format(self, ".1f")

    def __format__(self, spec: str) -> str:
        """Format the value, followed by half the interval if there is one."""
        value = format(self.value, spec or ".1f")
        return f"{value} ±{format(self.half, (spec or '.1f').lstrip('+'))}" if self.n > 1 else value


def mean_of(values: Sequence[float]) -> Mean:
    """Return the mean and its interval; the interval of a single value is 0."""
    n = len(values)
    half = float(stats.t.ppf(0.975, n - 1) * stats.sem(values)) if n > 1 else 0.0
    return Mean(float(np.mean(values)), half, n)


@dataclass(frozen=True)
class Difference:
    """An arm's steps less a rival's over the same episodes; below 0 the arm is ahead."""

    mean: Mean
    ahead: int
    behind: int
    p: float | None
    """p of Wilcoxon's signed-rank test, two-sided; None if nothing differs."""


class Results:
    """Finished episodes by arm, one row for each."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self.frame = pd.DataFrame(rows)

    @property
    def name(self) -> str:
        """Return the source of the episodes, and their number."""
        sources = sorted(set(self.frame.get("source", [GENERATED])))
        return f"{', '.join(sources)} episodes (n = {self.frame['episode'].nunique()})"

    def cell(self, arm: Arm, category: str = AVERAGE) -> pd.DataFrame:
        """Return an arm's episodes of a category; all episodes for the average."""
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
        """Return the mean ratio of an episode's steps to its bound."""
        rows = self.cell(arm, category)
        return mean_of(rows["steps"] / rows["bound"]) if len(rows) else None

    def improvement(self, arm: Arm, base: Arm, category: str = AVERAGE) -> float | None:
        """Return the efficiency improvement ΔM / M0, M0 being the greater of the two (§4.1)."""
        mine, theirs = self.steps(arm, category), self.steps(base, category)
        if mine is None or theirs is None:
            return None
        # By the greater of both, which the paper calls stable: between -1 and 1, whichever is better.
        return (theirs.value - mine.value) / max(theirs.value, mine.value)

    def counts(self, arm: Arm, names: Sequence[str]) -> dict[str, float]:
        """Return the means of counts over an arm's episodes."""
        means: dict[str, float] = self.cell(arm).reindex(columns=[*names]).fillna(0).mean().to_dict()
        return means

    def difference(self, arm: Arm, rival: Arm, category: str = AVERAGE) -> Difference | None:
        """Compare two arms over the episodes that both have played."""
        # pandas aligns by episode; one played by only one arm gives nan.
        gaps = (self.cell(arm, category)["steps"] - self.cell(rival, category)["steps"]).dropna()
        if not len(gaps):
            return None
        return Difference(mean_of(gaps), int((gaps < 0).sum()), int((gaps > 0).sum()), wilcoxon_p(gaps))


MEANS = (
    *("success", "return", "conflicts", "lost_steps", "forestalled", "redundant", "messages", "unallocated"),
    *("calls", "prompt_tokens", "reply_tokens", "repaired", "fallbacks", "seconds"),
)
"""Measurements of an episode, and its costs."""


def report(rows: list[Row], plans: Sequence[Plan], journal: Journal, answered_by: str) -> Report:
    """Return the report of a finished run; each setting has its own plan, and each source its tables."""
    sources = sorted({row.get("source", GENERATED) for row in rows}, key=lambda each: each != GENERATED)
    by_source = [Results([row for row in rows if row.get("source", GENERATED) == each]) for each in sources]
    summaries = [
        _summary(by_source[0], plan) | {r.name: _summary(r, plan) for r in by_source[1:]} for plan in plans
    ]
    placed = [place for row in rows for place in row["placed"]]
    seeded = len(placed) - placed.count("recorded")
    printed = [
        [f"{n} {name}", *map(str, (*steps, average))] for (name, n), (steps, average) in TABLE_1.items()
    ]
    note = f"{seeded} of {len(placed)} starts are not recorded and placed by a seeded rule."
    made = journal.report(
        answered_by,
        summaries[0] | {plan.setting: each for plan, each in zip(plans[1:], summaries[1:], strict=True)},
        [
            *(each for plan in plans for found in by_source for each in _tables(found, plan)),
            table("The paper's table 1: GPT-4o on C-WAH in VirtualHome (Unity)", ["", *COLUMNS], printed),
        ],
        [note] if seeded < len(placed) else [],
        rows,
    )
    made.plots += [_plot(by_source[0], plan, journal.path, answered_by) for plan in plans]
    return made


def _tables(results: Results, plan: Plan) -> list[Table]:
    """Return the tables of each source of episodes."""
    where = results.name + (", visual observation" if plan.setting == "visual" else "")
    made = [_table_1(results, plan, where)]
    if plan.pairs:
        made.append(_pairs(results, plan, where))
    if rows := [_less(results, *each) for each in plan.compared if results.steps(each[1])]:
        columns = ["", "steps", "more", "p", "ahead / behind", "more, paper"]
        made.append(table(f"Table 2 and figure 3, {where}: what is taken away or made weaker", columns, rows))
    return [*made, _means(results, plan, where)]


def _table_1(results: Results, plan: Plan, where: str) -> Table:
    rows: list[list[object]] = [
        [f"{arm.agents} {arm.name}", *(_cell(results, arm, plan.base, c) for c in COLUMNS)]
        for arm in plan.main
    ]
    rows += [
        [f"{agents} bound", *(results.bound(arm, column) for column in COLUMNS)]
        for agents, arm in {arm.agents: arm for arm in plan.arms}.items()
    ]
    title = f"Table 1, {where}: average steps L, 95 % interval, improvement EI on MHP alone"
    return table(title, ["", *COLUMNS], rows)


def _cell(results: Results, arm: Arm, base: Arm | None, column: str) -> str | None:
    steps = results.steps(arm, column)
    gain = None if base is None or arm == base else results.improvement(arm, base, column)
    return None if steps is None else str(steps) if gain is None else f"{steps}\n{gain:+.0%}"


def _pairs(results: Results, plan: Plan, where: str) -> Table:
    rows = [
        [
            f"{one.agents} {one.name} - {rival.name}",
            *(_gap(results.difference(one, rival, c)) for c in COLUMNS),
        ]
        for one, rival in plan.pairs
    ]
    title = f"{where}: MiTa's steps less a rival's, same episodes: below 0: ahead (* p < 0.05)"
    return table(title, ["", *COLUMNS], rows)


def _gap(gap: Difference | None) -> str | None:
    return f"{gap.mean:+.1f}{'*' * (gap.p is not None and gap.p < 0.05)}" if gap else None


def _less(results: Results, label: str, arm: Arm, whole: Arm | None, paper: float | None) -> list[object]:
    """Compare an arm with the same one that nothing is taken from."""
    gap = results.difference(arm, whole) if whole else None
    found = [_gap(gap), p_cell(gap.p), f"{gap.ahead} / {gap.behind}"] if gap else [None] * 3
    return [label, results.steps(arm), *found, paper]


def _means(results: Results, plan: Plan, where: str) -> Table:
    rows = [
        [arm.key, over.value, *results.counts(arm, MEANS).values()]
        for arm in plan.every
        if (over := results.over_bound(arm))
    ]
    columns = ["", "× bound", *(name.replace("_", " ") for name in MEANS)]
    return table(f"{where}: what happens in an episode and what it costs, on average", columns, rows)


def _summary(results: Results, plan: Plan) -> dict[str, Any]:
    arms = {arm.key: _figures(results, arm, plan.base) for arm in plan.every if results.steps(arm)}
    pairs = {
        f"{one.agents} agents, MiTa - {rival.name}": {
            "mean": gap.mean.value,
            "half": gap.mean.half,
            "p": gap.p,
        }
        for one, rival in plan.pairs
        if (gap := results.difference(one, rival))
    }
    return {"arms": arms, "pairs": pairs}


def _figures(results: Results, arm: Arm, base: Arm | None) -> dict[str, Any]:
    over = results.over_bound(arm)
    cells = {
        column: {
            "steps": steps.value,
            "half": steps.half,
            "episodes": steps.n,
            "improvement": results.improvement(arm, base, column) if base else None,
            "bound": results.bound(arm, column),
        }
        for column in COLUMNS
        if (steps := results.steps(arm, column)) is not None
    }
    return {"cells": cells, "over_bound": over and over.value, **results.counts(arm, ("success", *COUNTERS))}


def _plot(results: Results, plan: Plan, raw: Path, answered_by: str) -> Path:
    """Draw average steps by team, and beside them those of table 2 and figure 3."""
    stem = raw.stem if plan.setting == "symbolic" else f"{raw.stem}-{plan.setting}"
    drawn = {"all episodes": {f"{arm.agents} {arm.name}": arm for arm in plan.arms}}
    if plan.weaker:
        drawn["table 2 and figure 3"] = {label: arm for label, arm, _, _ in plan.compared}
    bars = [partial(_bars, results, arms, title) for title, arms in drawn.items()]
    title = f"Average steps to success, 95 % intervals ({results.name})"
    return draw(raw.with_name(f"{stem}.png"), title, answered_by, *bars)


def _bars(results: Results, arms: dict[str, Arm], title: str, axes: Axes) -> None:
    found = {name: steps for name, arm in arms.items() if (steps := results.steps(arm))}
    steps = pd.Series({name: each.value for name, each in found.items()})
    halves = [each.half for each in found.values()]
    steps.plot.barh(ax=axes, xerr=halves, title=title, xlabel="average steps L")
