"""Figure 4 of the Memory Sharing paper, table 1 as curves, and the ways to choose examples as bars."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes

from mneme.evals.report import Row, draw
from mneme.evals.sharing.pool_runs import MOST_SHOTS, PARTS_OF_GROWTH, SHOTS, Growth
from mneme.evals.sharing.retrievers import WAYS
from mneme.evals.sharing.tables import ALL, NAMES, NUMBERS, Measure, Results, ways
from mneme.library.agents.agent import DOMAINS, load_agent

COLOURS = ("tab:blue", "tab:orange", "tab:green")
OF_WAYS = ("tab:blue", "tab:cyan", "tab:olive", "tab:gray")
STYLES: dict[Growth, str] = {"own": "-", "standard": "--"}
Plot = Callable[[Axes], None]
Point = Callable[[Growth, int], list[Row]]
"""What was answered in a growth at a place on the horizontal axis."""


def draw_all(results: Results, stem: Path, who: str) -> list[Path]:
    """Draw the three figures beside the journal; return their paths."""
    over = f"mean over {len(results.seeds)} seeds, bands: lowest and highest"
    kinds = "whole line: pools grow by agents' own answers, dashed: by standard answers"
    present = {load_agent(agent).domain for agent in results.agents}
    domains = [domain for domain in DOMAINS if domain in present]
    growth = [
        _curves(results, each, _by_percent(results), PARTS_OF_GROWTH, _label_growth) for each in domains
    ]
    shots = [_curves(results, each, _by_shots(results), SHOTS, _label_shots) for each in domains]
    return [
        draw(
            stem.with_suffix(".growth.png"),
            f"Figure 4: domain pools, three shots; {over}\n{kinds}",
            who,
            *growth,
        ),
        draw(stem.with_suffix(".shots.png"), f"Table 1: domain pools at 100 %; {over}\n{kinds}", who, *shots),
        draw(
            stem.with_suffix(".retriever.png"),
            f"Ways to choose examples: three shots, domain pools at 100 %; mean over {len(results.seeds)} "
            "seeds, lowest and highest\nfull bars: pools of agents' own answers, hatched: of standard ones",
            who,
            _bars(results, ("recall@3", "recall@10"), "recall of useful memories"),
            _bars(results, ("bert_score", "rouge_l"), "likeness to the standard answer"),
        ),
    ]


def _by_percent(results: Results) -> Point:
    return lambda growth, percent: results.tests("domain", growth, percent, MOST_SHOTS)


def _by_shots(results: Results) -> Point:
    return lambda growth, shots: results.tests("domain", growth, 100, shots)


def _label_growth(axes: Axes) -> None:
    axes.set_xlabel("new questions asked, %")
    axes.set_xticks(PARTS_OF_GROWTH)


def _label_shots(axes: Axes) -> None:
    axes.set_xlabel("examples")
    axes.set_xticks(SHOTS, NUMBERS)


def _curves(results: Results, domain: str, point: Point, at: Sequence[int], label: Plot) -> Plot:
    """Return what draws one domain: a line for each agent and growth, with a band over the seeds."""
    agents = [agent for agent in results.agents if load_agent(agent).domain == domain]

    def plot(axes: Axes) -> None:
        for agent, colour in zip(agents, COLOURS, strict=False):
            for growth, style in STYLES.items():
                values = np.array([_seeds(results, point(growth, x), agent, "bert_score") for x in at])
                named = agent if growth == "own" else None  # titles need fonts for Chinese
                axes.plot(at, values.mean(axis=1), style, color=colour, label=named, marker="o", markersize=3)
                axes.fill_between(at, values.min(axis=1), values.max(axis=1), color=colour, alpha=0.1, lw=0)
        label(axes)
        axes.set_title(DOMAINS[domain], fontsize="medium")
        axes.set_ylabel("BERTScore, F1")
        axes.grid(alpha=0.3)
        axes.legend(fontsize="small")

    return plot


def _seeds(results: Results, rows: Sequence[Row], agent: str, measure: Measure) -> list[float]:
    """Return the mean over the test items, one number a seed."""
    return [
        float(np.mean([r[measure] for r in rows if r["seed"] == seed and agent in (ALL, r["agent"])]))
        for seed in results.seeds
    ]


def _bars(results: Results, names: Sequence[str], label: str) -> Plot:
    """Return what draws a group of bars for each figure: a bar for each way, for each growth."""

    def plot(axes: Axes) -> None:
        width = 0.8 / (2 * len(WAYS))
        for kind, growth in enumerate(STYLES):
            figures = ways(results, growth)
            for number, (way, colour) in enumerate(zip(WAYS, OF_WAYS, strict=True)):
                found = [figures[way][name] for name in names]
                means = [each["mean"] for each in found]
                places = np.arange(len(names)) - 0.4 + width * (2 * number + kind + 0.5)
                errors = [
                    [each["mean"] - each["lowest"] for each in found],
                    [each["highest"] - each["mean"] for each in found],
                ]
                axes.bar(
                    places,
                    means,
                    width * 0.94,
                    yerr=errors,
                    color=colour,
                    alpha=0.55 if kind else 1,
                    hatch="///" if kind else None,
                    edgecolor="white",
                    error_kw={"lw": 1, "ecolor": "0.25"},
                    label=None if kind else way,
                )
        axes.set_xticks(range(len(names)), [NAMES.get(name, name) for name in names])  # type: ignore[call-overload]
        axes.set_ylabel(label)
        axes.grid(axis="y", alpha=0.3)
        axes.set_axisbelow(True)
        axes.legend(fontsize="small", title="examples by", title_fontsize="small")

    return plot
