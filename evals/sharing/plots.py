"""Figure 4 of the Memory Sharing paper, table 1 as curves, and the ways to choose examples as bars."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import get_args

import pandas as pd
from matplotlib.axes import Axes

from mneme.evals.report import draw
from mneme.evals.sharing.pool_runs import MOST_SHOTS, PARTS_OF_GROWTH, SHOTS, Growth
from mneme.evals.sharing.tables import Results, ways
from mneme.library.agents.agent import DOMAINS, load_agent

STYLES: dict[Growth, str] = {"own": "-", "standard": "--"}


def draw_all(results: Results, stem: Path, who: str) -> list[Path]:
    """Draw the three figures beside the journal; return their paths."""
    over = (
        f"mean over {len(results.seeds)} seeds; whole lines: pools of agents' own answers, dashed: standard"
    )
    growth = {(g, x): results.tests("domain", g, x, MOST_SHOTS) for g in STYLES for x in PARTS_OF_GROWTH}
    shots = {(g, x): results.tests("domain", g, 100, x) for g in STYLES for x in SHOTS}
    chosen = {
        f"{way}, {growth}": {name: found["mean"] for name, found in of.items() if "mean" in found}
        for growth in get_args(Growth)
        for way, of in ways(results, growth).items()
    }
    bars = [
        partial(_bars, pd.DataFrame(chosen).loc[[*names]])
        for names in (("recall@3", "recall@10"), ("bert_score", "rouge_l"))
    ]
    figures: list[tuple[str, str, Sequence[Callable[[Axes], None]]]] = [
        (
            "growth",
            f"Figure 4: domain pools, three shots; {over}",
            _curves(results, growth, "new questions, %"),
        ),
        ("shots", f"Table 1: domain pools at 100 %; {over}", _curves(results, shots, "examples")),
        ("retriever", "Ways to choose examples: three shots, domain pools at 100 %", bars),
    ]
    return [draw(stem.with_suffix(f".{name}.png"), title, who, *plots) for name, title, plots in figures]


def _curves(
    results: Results, answers: dict[tuple[Growth, int], pd.DataFrame], label: str
) -> list[Callable[[Axes], None]]:
    """Return what draws each domain: a line for each agent and growth."""
    by_domain = {
        domain: [agent for agent in results.agents if load_agent(agent).domain == domain]
        for domain in DOMAINS
    }
    return [
        partial(_domain, results, answers, agents, {"xlabel": label, "title": DOMAINS[domain]})
        for domain, agents in by_domain.items()
        if agents
    ]


def _domain(
    results: Results,
    answers: dict[tuple[Growth, int], pd.DataFrame],
    agents: Sequence[str],
    labels: dict[str, str],
    axes: Axes,
) -> None:
    for growth, style in STYLES.items():
        at = [x for kind, x in answers if kind == growth]
        means = {
            agent: [results.spread(answers[growth, x], agent, "bert_score")["mean"] for x in at]
            for agent in agents
        }
        axes.set_prop_cycle(None)  # each agent has its colour in both growths
        pd.DataFrame(means, at, dtype=float).plot(
            ax=axes,
            style=f"o{style}",
            **labels,
            ylabel="BERTScore, F1",
            legend=growth == "own",
        )


def _bars(figures: pd.DataFrame, axes: Axes) -> None:
    figures.plot.bar(ax=axes, rot=0)
