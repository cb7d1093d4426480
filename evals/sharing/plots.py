"""Figure 4 of the Memory Sharing paper, table 1 as curves, and the ways to choose examples as bars."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import get_args

import pandas as pd
from matplotlib.axes import Axes

from mneme.evals.report import draw
from mneme.evals.sharing.pool_runs import MAX_SHOTS, PARTS_OF_GROWTH, SHOTS, Growth
from mneme.evals.sharing.tables import Results, ways
from mneme.library.agents.agent import DOMAINS, load_agent

STYLES: dict[Growth, str] = {"own": "-", "standard": "--"}


def draw_all(results: Results, stem: Path, who: str) -> list[Path]:
    """Draw the three figures beside the journal; return their paths."""
    over = f"mean over {len(results.seeds)} seeds; whole lines: own answers, dashed: standard answers"
    growth = _by_agent(results, "new questions, %", [(x, MAX_SHOTS) for x in PARTS_OF_GROWTH], 0)
    shots = _by_agent(results, "examples", [(100, x) for x in SHOTS], 1)
    chosen = pd.DataFrame(
        {
            f"{way}, {growth}": {name: found["mean"] for name, found in of.items() if "mean" in found}
            for growth in get_args(Growth)
            for way, of in ways(results, growth).items()
        }
    )
    bars: list[Callable[[Axes], None]] = [
        partial(_bars, chosen.loc[[*names]])
        for names in (("recall@3", "recall@10"), ("bert_score", "rouge_l"))
    ]
    figures: dict[str, tuple[str, list[Callable[[Axes], None]]]] = {
        "growth": (f"Figure 4: domain pools, three shots; {over}", growth),
        "shots": (f"Table 1: domain pools at 100 %; {over}", shots),
        "retriever": ("Ways to choose examples: three shots, domain pools at 100 %", bars),
    }
    return [
        draw(stem.with_suffix(f".{name}.png"), title, who, *plots) for name, (title, plots) in figures.items()
    ]


def _by_agent(
    results: Results, label: str, stages: list[tuple[int, int]], at: int
) -> list[Callable[[Axes], None]]:
    """Return what draws each domain: a line for each agent and growth, over one number of the stages."""

    def mean(growth: Growth, agent: str, percent: int, shots: int) -> float | None:
        answers = results.tests("domain", growth, percent, shots)
        found: float | None = results.spread(answers, agent, "bert_score")["mean"]
        return found

    means = {
        growth: pd.DataFrame(
            {agent: [mean(growth, agent, *stage) for stage in stages] for agent in results.agents},
            [stage[at] for stage in stages],
            dtype=float,
        )
        for growth in STYLES
    }
    domains = dict.fromkeys(load_agent(agent).domain for agent in results.agents)
    return [partial(_domain, means, domain, label) for domain in DOMAINS if domain in domains]


def _domain(means: dict[Growth, pd.DataFrame], domain: str, label: str, axes: Axes) -> None:
    for growth, style in STYLES.items():
        own = [agent for agent in means[growth] if load_agent(str(agent)).domain == domain]
        axes.set_prop_cycle(None)  # each agent has its colour in both growths
        means[growth][own].plot(ax=axes, style=f"o{style}", xlabel=label, legend=growth == "own")
    axes.set(title=DOMAINS[domain], ylabel="BERTScore, F1")


def _bars(figures: pd.DataFrame, axes: Axes) -> None:
    figures.plot.bar(ax=axes, rot=0)
