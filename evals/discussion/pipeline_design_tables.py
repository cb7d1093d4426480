"""What the case study's discussions show: figures, tests, tables and plots beside the paper's table 2."""

from collections.abc import Callable, Iterable, Sequence
from statistics import fmean, median, stdev
from typing import Literal

import numpy as np
from matplotlib.axes import Axes
from scipy.stats import ranksums

from mneme.cli.tables import Table
from mneme.evals.answering import Identity
from mneme.evals.discussion.judges import SCORES
from mneme.evals.report import Row, table
from mneme.prompts.discussion.document import UNSAID

Arm = Literal["none", "intrinsic"]
METRICS = ("scalability", "reliability", "usability", "cost_effectiveness", "documentation")
"""Those of the paper (table 2); the other two are of the file that the task asks for."""
ARMS: tuple[Arm, ...] = ("none", "intrinsic")
NAMES = {"none": "baseline", "intrinsic": "intrinsic memory"}
SHORT = {"none": "none", "intrinsic": "intrinsic"}
COLOURS = {"none": "tab:orange", "intrinsic": "tab:blue"}
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
COUNTED = ("completeness", "consistency", "components", "parts of each", "agreed")
FIGURES = (*PAPER, *COUNTED)


def summarise(rows: Sequence[Row], item_fields: Iterable[str]) -> Row:
    """Return each figure's values, mean, median and spread in both arms, and the rank-sum test's p."""
    fields = list(item_fields)
    values = {arm: [_figures(row, fields) for row in rows if row["arm"] == arm] for arm in ARMS}
    return {name: _compared([[run[name] for run in values[arm]] for arm in ARMS]) for name in FIGURES}


def _figures(row: Row, fields: Sequence[str]) -> dict[str, float]:
    components = [each for each in row["document"].values() if isinstance(each, dict)]
    said = [sum(each[name] != UNSAID for name in fields) for each in components]
    scores = {metric: float(row["judgement"][metric]["score"]) for metric in SCORES}
    return scores | {
        "tokens": float(row["tokens"]),
        "turns": float(row["turns"]),
        "components": float(len(components)),
        "parts of each": fmean(said) if said else 0.0,
        "agreed": float(row["ended"] == "consensus"),
    }


def _compared(arms: Sequence[Sequence[float]]) -> Row:
    baseline, intrinsic = arms
    same = len({*baseline, *intrinsic}) == 1
    p = 1.0 if same else float(ranksums(intrinsic, baseline).pvalue)
    return {**dict(zip(ARMS, map(_spread, arms), strict=True)), "p": p}


def _spread(values: Sequence[float]) -> Row:
    return {
        "values": list(values),
        "mean": fmean(values),
        "median": median(values),
        "sd": stdev(values) if len(values) > 1 else 0.0,
    }


def table_2(main: Row, runs: int, size: int, said: str = "") -> Table:
    """Return table 2: means after n runs, each beside the paper's; `said` ends its title."""
    columns = ["", "baseline", "paper", "intrinsic", "paper", "p", "paper"]
    cells = [
        [LABELS.get(name, name), _mean(main[name]["none"]), *_beside(name, main[name])] for name in FIGURES
    ]
    return table(
        f"Table 2: mean ± sd of {runs} discussions each, {size} tokens of context{said}", columns, cells
    )


def _beside(name: str, figure: Row) -> list[object]:
    paper = PAPER.get(name, (None, None, None))
    return [paper[0], _mean(figure["intrinsic"]), paper[1], f"{figure['p']:.2g}", paper[2]]


def _mean(spread: Row) -> str:
    if spread["mean"] >= THOUSANDS:
        return f"{spread['mean'] / 1000:.0f}k ± {spread['sd'] / 1000:.0f}k"
    return f"{spread['mean']:.3g} ± {round(spread['sd'], 2):.2g}"


LABELS = {"cost_effectiveness": "cost-effective"}
THOUSANDS = 10_000
"""From here on means are printed in thousands, so that table 2 fits a terminal of 80 columns."""


def size_table(summary: Row) -> Table:
    """Return how the two compare at other sizes of the context."""
    names = ("agreed", "turns", "components", "usability", "documentation")
    columns = ["tokens", "memory", *names]
    cells = [
        [size, SHORT[arm], *(f"{figures[name][arm]['mean']:.4g}" for name in names)]
        for size, figures in summary.items()
        for arm in ARMS
    ]
    return table("Means at other sizes of the context, in tokens", columns, cells)


def worse(summary: Row) -> list[str]:
    """Say at which sizes of the context intrinsic memory scores lower than the baseline, and in what."""
    return [
        f"At {size} tokens intrinsic memory scores lower in {', '.join(lower).replace('_', '-')}."
        for size, figures in summary.items()
        if (lower := [name for name in SCORES if _gain(figures[name]) < 0])
    ]


def _gain(figure: Row) -> float:
    return float(figure["intrinsic"]["mean"] - figure["none"]["mean"])


def breaks_down(summary: Row) -> list[str]:
    """Say from which size downwards the baseline no longer agrees in every discussion."""
    failing = [int(size) for size, figures in summary.items() if figures["agreed"]["none"]["mean"] < 1]
    if not failing:
        return []
    share = summary[str(max(failing))]["agreed"]["none"]["mean"]
    return [
        f"Largest size where the baseline fails to agree: {max(failing)} tokens; "
        f"{100 * share:.0f} % of its runs do."
    ]


def notes(main: Row, summary: Row, who: Identity, judge: Identity) -> list[str]:
    """Say how reliable the figures are, and which of the paper's claims they support."""
    more = main["tokens"]["intrinsic"]["mean"] / main["tokens"]["none"]["mean"] - 1
    won = [name for name in METRICS if main[name]["intrinsic"]["mean"] > main[name]["none"]["mean"]]
    sure = [name for name in won if main[name]["p"] < 0.05]
    found = [
        f"Tokens with intrinsic memory: {100 * more:+.0f} % (paper: +32 %).",
        f"It scores higher in {len(won)} of 5 metrics, {len(sure)} of them with p < 0.05 (paper: 5, and 4).",
        "p: Wilcoxon rank-sum test, two-sided; runs differ in the seed of every reply, drawn at "
        "--temperature, and in the order in which the workers speak; by rules in that order alone.",
    ]
    found += [*breaks_down(summary), *worse(summary)]
    if not who.is_model:
        found.append(
            "Agents by rules say again what the task or their duties name: this shows the course of a "
            "discussion, not how good a design is. Runs hardly differ, so that p says little. Tokens are "
            "estimated from the words that a model would have read."
        )
    if not judge.is_model:
        found.append("The judge by rules only counts; it judges nothing.")
    return found


def plots(main: Row, summary: Row) -> list[Callable[[Axes], None]]:
    """Return figure 3 (median and standard deviation of each metric), and components by size of context."""
    return [lambda axes: _metrics(axes, main), lambda axes: _sizes(axes, summary)]


def _metrics(axes: Axes, main: Row) -> None:
    at = np.arange(len(METRICS))
    for number, arm in enumerate(ARMS):
        medians = [main[metric][arm]["median"] for metric in METRICS]
        spreads = [main[metric][arm]["sd"] for metric in METRICS]
        axes.bar(
            at + 0.4 * number - 0.2,
            medians,
            0.38,
            yerr=spreads,
            capsize=3,
            color=COLOURS[arm],
            label=NAMES[arm],
        )
        paper = [PAPER[metric][number] for metric in METRICS]
        axes.scatter(at + 0.4 * number - 0.2, paper, marker="_", color="black", zorder=3)
    axes.scatter([], [], marker="_", color="black", label="paper (mean)")
    axes.set_xticks(at, [metric.replace("_", "-\n") for metric in METRICS], fontsize="small")
    axes.set_ylabel("score, median and sd")
    axes.set_ylim(0, 10.5)
    axes.legend(fontsize="small")


def _sizes(axes: Axes, summary: Row) -> None:
    sizes = sorted(int(size) for size in summary)
    for arm in ARMS:
        means = [summary[str(size)]["components"][arm]["mean"] for size in sizes]
        spreads = [summary[str(size)]["components"][arm]["sd"] for size in sizes]
        axes.errorbar(sizes, means, yerr=spreads, capsize=3, marker="o", color=COLOURS[arm], label=NAMES[arm])
    axes.set_xlabel("tokens of context")
    axes.set_ylabel("components in the document")
    axes.set_ylim(bottom=0)
    axes.legend(fontsize="small")
