"""What the case study's discussions show: figures, tests, tables and plots beside the paper's table 2."""

from collections.abc import Iterable, Sequence
from statistics import fmean
from typing import Any, Literal

import pandas as pd
from matplotlib.axes import Axes
from scipy.stats import ranksums

from mneme.cli.tables import Table
from mneme.evals.options import Identity
from mneme.evals.report import Row, table
from mneme.prompts.discussion.document import UNSAID

Arm = Literal["none", "intrinsic"]
METRICS = ("scalability", "reliability", "usability", "cost_effectiveness", "documentation")
"""Those of the paper (table 2); the other two are of the file that the task asks for."""
ARMS: tuple[Arm, ...] = ("none", "intrinsic")
NAMES = {"none": "baseline", "intrinsic": "intrinsic memory"}
PAPER: dict[str, tuple[float, float, float]] = {
    "tokens": (36077, 47830, 0.0195),
    "turns": (14.3, 16, 0.2632),
    "scalability": (5, 7, 0.0041),
    "reliability": (3.56, 4.89, 0.005),
    "usability": (3, 3.67, 0.0948),
    "cost_effectiveness": (3.22, 4.67, 0.004),
    "documentation": (2, 3.56, 0.0017),
}
"""Table 2: baseline, intrinsic memory, p."""
FIGURES = (*PAPER, "completeness", "consistency", "components", "parts of each", "agreed")
THOUSANDS = 10_000
"""From here on means are printed in thousands, so that table 2 fits a terminal of 80 columns."""


def summarise(rows: Sequence[Row], item_fields: Iterable[str]) -> Row:
    """Return each figure's values, mean, median and spread in both arms, and the rank-sum test's p.

    Scores are there only where somebody judged.
    """
    fields = list(item_fields)
    frame = pd.DataFrame([{"arm": row["arm"], **_figures(row, fields)} for row in rows])
    by_arm = frame.groupby("arm")
    return {name: _compared(by_arm[name]) for name in FIGURES if name in frame}


def _figures(row: Row, fields: Sequence[str]) -> dict[str, float]:
    components = [each for each in row["document"].values() if isinstance(each, dict)]
    said = [sum(each[name] != UNSAID for name in fields) for each in components]
    scores = {metric: float(each["score"]) for metric, each in row.get("judgement", {}).items()}
    return scores | {
        "tokens": float(row["tokens"]),
        "turns": float(row["turns"]),
        "components": float(len(components)),
        "parts of each": fmean(said) if said else 0.0,
        "agreed": float(row["ended"] == "consensus"),
    }


def _compared(values: Any) -> Row:
    baseline, intrinsic = (values.get_group(arm) for arm in ARMS)
    same = len({*baseline, *intrinsic}) == 1
    p = 1.0 if same else float(ranksums(intrinsic, baseline).pvalue)
    spreads = values.agg(["mean", "median", "std"]).fillna(0.0)
    return {
        arm: {
            "values": values.get_group(arm).tolist(),
            "mean": float(spreads.loc[arm, "mean"]),
            "median": float(spreads.loc[arm, "median"]),
            "sd": float(spreads.loc[arm, "std"]),
        }
        for arm in ARMS
    } | {"p": p}


def table_2(main: Row, title: str) -> Table:
    """Return table 2: means, each beside the paper's."""
    columns = ["", "baseline", "paper", "intrinsic", "paper", "p", "paper"]
    cells = [
        [
            name.replace("cost_effectiveness", "cost-effective"),
            _mean(figure["none"]),
            paper[0],
            _mean(figure["intrinsic"]),
            paper[1],
            f"{figure['p']:.2g}",
            paper[2],
        ]
        for name, figure in main.items()
        for paper in [PAPER.get(name, (None, None, None))]
    ]
    return table(title, columns, cells)


def _mean(spread: Row) -> str:
    if spread["mean"] >= THOUSANDS:
        return f"{spread['mean'] / 1000:.0f}k ± {spread['sd'] / 1000:.0f}k"
    return f"{spread['mean']:.3g} ± {round(spread['sd'], 2):.2g}"


def notes(main: Row, who: Identity, judge: Identity) -> list[str]:
    """Say how reliable the figures are, and which of the paper's claims they support."""
    more = main["tokens"]["intrinsic"]["mean"] / main["tokens"]["none"]["mean"] - 1
    scored = {name: main[name] for name in METRICS if name in main}
    won = [name for name, each in scored.items() if each["intrinsic"]["mean"] > each["none"]["mean"]]
    sure = [name for name in won if main[name]["p"] < 0.05]
    found = [f"Tokens with intrinsic memory: {100 * more:+.0f} % (paper: +32 %)."]
    if judge.is_model:
        higher = f"It scores higher in {len(won)} of 5 metrics, {len(sure)} of them with p < 0.05"
        found.append(f"{higher} (paper: 5, and 4).")
    else:
        found.append("Nobody judged: rules judge no design. Name a --judge.")
    by_rules = "Answered by rules: docs/measurements.md says what that cannot tell."
    return found if who.is_model else [*found, by_rules]


def plot_metrics(main: Row, axes: Axes) -> None:
    """Draw figure 3: median and standard deviation of each metric, beside the paper's means."""
    metrics = [name for name in METRICS if name in main]
    medians, spreads = (
        pd.DataFrame({NAMES[arm]: [main[name][arm][what] for name in metrics] for arm in ARMS}, metrics)
        for what in ("median", "sd")
    )
    if metrics:
        medians.plot.bar(ax=axes, yerr=spreads, capsize=3, ylabel="score, median and sd", ylim=(0, 10.5))
    for number, arm in enumerate(ARMS):
        paper = [PAPER[name][number] for name in metrics]
        axes.plot(paper, "_", color="black", label=f"paper, {NAMES[arm]} (mean)")
