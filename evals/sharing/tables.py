"""Tables 1 and 2 and figure 4 of the Memory Sharing paper, and a comparison of retrievers."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Literal, get_args

import numpy as np
import pandas as pd
import yaml
from matplotlib.axes import Axes
from scipy.stats import false_discovery_control

from mneme.api.tables import Table
from mneme.evals.measuring import p_cell, wilcoxon_p
from mneme.evals.report import Row, table
from mneme.evals.sharing.pool_runs import MAX_SHOTS, PARTS_OF_GROWTH, SHOTS, Growth, Pools
from mneme.evals.sharing.retrievers import WAYS, Way
from mneme.library.agents.agent import AGENTS, DOMAINS, load_agent

Measure = Literal["bert_score", "bert_precision", "rouge_l"]
SCORE_MEASURES: tuple[Measure, ...] = get_args(Measure)
SHOT_NAMES = ("zero", "one", "two", "three")
BACKBONES = "gpt-3.5-turbo / gpt-4o / open-mistral-7b"
Three = tuple[float, float, float]
_PRINTED = yaml.safe_load(Path(__file__).with_name("paper.yaml").read_text(encoding="utf-8"))
PAPER_1: dict[str, list[Three]] = {
    agent: [tuple(each) for each in by_shots] for agent, by_shots in _PRINTED["table_1"].items()
}
"""Table 1 of the paper: agent -> shots -> backbones, with a pool for each domain."""
PAPER_2: dict[str, Three] = {agent: tuple(each) for agent, each in _PRINTED["table_2"].items()}
"""Table 2's lower half: one pool for all, three shots; the upper half is table 1's last column."""
ALL_AGENTS = "all agents"
STAGE = ["pools", "growth", "percent", "shots"]
COMPARED = ("recall@3", "recall@10", "contradiction", "own agent", "bert_score", "rouge_l")


class Results:
    """The answers of a run with their scores, by seed and by agent."""

    def __init__(self, rows: Iterable[Row], seeds: Sequence[int], arm: str = "") -> None:
        chosen = [row for row in rows if row.get("seed") in seeds and row.get("arm", "") == arm]
        kinds = {kind: [row for row in chosen if row["kind"] == kind] for kind in ROW_KINDS}
        self.seeds = list(seeds)
        self.answers, self.states, self.judged = (pd.DataFrame(kinds[kind]) for kind in ROW_KINDS)
        present = set(self.answers["agent"])
        self.agents = [agent for agent in AGENTS if agent in present]

    def tests(self, pools: Pools, growth: Growth, percent: int, shots: int) -> pd.DataFrame:
        """Return the answers at a stage; without examples, and before growth, both growths are the same."""
        stage = [pools, growth if shots and percent else "own", percent, shots]
        return self.answers[(self.answers[STAGE] == stage).all(axis=1)]

    def spread(self, answers: pd.DataFrame, agent: str, measure: str) -> Row:
        """Return mean and standard deviation over the seeds of the mean over an agent's test items.

        Items without a value are left out: nobody could score them, or no example was shown.
        """
        chosen = answers if agent == ALL_AGENTS else answers[answers["agent"] == agent]
        return spread(chosen.dropna(subset=[measure]).groupby("seed")[measure].mean())


ROW_KINDS = ("test", "retrievers", "judge")


def spread(values: Iterable[float]) -> Row:
    """Return mean, standard deviation, lowest and highest; one value has no deviation."""
    found = pd.Series([*values], dtype=float).agg(["mean", "std", "min", "max"])
    names = ("mean", "sd", "lowest", "highest")
    return {name: None if np.isnan(each) else float(each) for name, each in zip(names, found, strict=True)}


def compared(answers: pd.DataFrame, others: pd.DataFrame, measure: str) -> tuple[float, float]:
    """Return the mean difference and Wilcoxon's p, paired by item; an item of several seeds counts once."""
    ours, theirs = (each.groupby("item")[measure].mean() for each in (answers, others))
    differences = (ours - theirs).dropna()
    p = wilcoxon_p(differences)
    return float(differences.mean()) if len(differences) else 0.0, 1.0 if p is None else p


def cell(value: Row, places: int = 3) -> str:
    """Return a mean with its deviation over the seeds; `–` if there is none."""
    if value["mean"] is None:
        return "–"
    deviation = "–" if value["sd"] is None else f"{value['sd']:.{places}f}"
    return f"{value['mean']:.{places}f} ±{deviation}"


def figures(results: Results, pools: Pools, shots: int, measure: Measure = "bert_score") -> list[str]:
    """Return a column of figures at full growth: of each agent, and of all agents."""
    answers = results.tests(pools, "own", 100, shots)
    return [cell(results.spread(answers, agent, measure)) for agent in [*results.agents, ALL_AGENTS]]


def printed(results: Results, pools: Pools, shots: int) -> list[str]:
    """Return what the paper prints in such a column."""
    rows = [PAPER_1[agent][shots] if pools == "domain" else PAPER_2[agent] for agent in results.agents]
    return [" ".join(f"{value:.2f}".lstrip("0") for value in row) for row in [*rows, np.mean(rows, axis=0)]]


def by_agent(title: str, results: Results, columns: Sequence[tuple[str, list[str]]]) -> Table:
    """Return a table of columns by agent, each with its head."""
    rows = [*zip([*results.agents, ALL_AGENTS], *(cells for _, cells in columns), strict=True)]
    return table(title, ["agent", *(head for head, _ in columns)], rows)


def tables_of_arms(arms: Mapping[str, Results]) -> list[Table]:
    """Return tables 1 and 2 with a column for each arm, beside the paper's three backbones."""
    first = next(iter(arms.values()))

    def columns(name: str, pools: Pools, shots: int) -> list[tuple[str, list[str]]]:
        ours = [(f"{name}, {arm}" if arm else name, figures(of, pools, shots)) for arm, of in arms.items()]
        return [*ours, ("paper" if "" in arms else f"{name}, paper", printed(first, pools, shots))]

    by_shots = [each for n in SHOTS for each in columns(SHOT_NAMES[n], "domain", n)]
    by_pools = [each for pools in get_args(Pools) for each in columns(pools, pools, MAX_SHOTS)]
    one = f"Table 1: BERTScore by shots, a pool for each domain (paper: {BACKBONES})"
    two = f"Table 2: BERTScore, three shots, domain pool and single pool ({BACKBONES})"
    return [by_agent(one, first, by_shots), by_agent(two, first, by_pools)]


def tables_of(results: Results) -> list[Table]:
    """Return ROUGE-L by shots, figure 4, the ways to choose examples, and what growth and pools change."""
    rouge = [(f"ROUGE-L: {SHOT_NAMES[n]}", figures(results, "domain", n, "rouge_l")) for n in SHOTS]
    return [
        by_agent("Table 1 by ROUGE-L", results, rouge),
        table_of_growth(results),
        _table_of_ways(results),
        _table_of_gains(results),
    ]


def table_of_growth(results: Results) -> Table:
    """Return figure 4 over all agents: memories and scores of domain pools."""
    figures = {"own": ("own_kind", "score", "bert_score", "rouge_l"), "standard": ("bert_score", "rouge_l")}
    columns = [f"{growth}: {name}" for growth, names in figures.items() for name in ("memories", *names)]
    rows = []
    for percent in PARTS_OF_GROWTH:
        cells = [f"{percent} %"]
        for growth, names in figures.items():
            answers = results.tests("domain", growth, percent, MAX_SHOTS)  # type: ignore[arg-type]
            cells.append(cell(memories(results, growth, percent), 0))
            cells += [cell(results.spread(answers, ALL_AGENTS, name)) for name in names]
        rows.append(cells)
    title = "Figure 4: domain pools as they grow by own and by standard answers, three shots, all agents"
    return table(title, ["new questions", *columns], rows)


def memories(results: Results, growth: str, percent: int) -> Row:
    """Return how many memories the domain pools hold together at a stage, over the seeds."""
    states = results.states
    if not len(states):
        return spread([])
    held = states[(states[["pools", "growth", "percent"]] == ["domain", growth, percent]).all(axis=1)]
    return spread(held.groupby("seed")["memories"].sum())


def _table_of_ways(results: Results) -> Table:
    """Compare the ways to choose examples, with the significance of each difference."""
    rows = []
    for growth in get_args(Growth):
        for way, of in ways(results, growth).items():
            cells = [each for name in COMPARED for each in (cell(of[name]), p_cell(of["p"].get(name)))]
            rows.append([f"{way}, {growth} answers", *cells])
    columns = ["examples by", *(head for name in COMPARED for head in (name, "p"))]
    title = "Ways to choose examples: three shots, domain pools at 100 % (p: against trained)"
    return table(title, columns, rows)


def ways(results: Results, growth: str) -> dict[Way, Row]:
    """Return each way's figures over the seeds, and p against trained after Benjamini and Hochberg."""
    of_growth = results.judged[results.judged["growth"] == growth]
    found = {way: of_growth[of_growth["way"] == way] for way in WAYS}
    means = {way: each.groupby("seed")[[*COMPARED]].mean() for way, each in found.items()}
    figures: dict[Way, Row] = {
        way: {name: spread(each[name]) for name in COMPARED} | {"p": {}, "better by": {}}
        for way, each in means.items()
    }
    for name in COMPARED:
        tested = [compared(found["trained"], found[way], name) for way in WAYS[1:]]
        corrected = false_discovery_control([p for _, p in tested])
        for way, (difference, _), p in zip(WAYS[1:], tested, corrected, strict=True):
            figures[way]["p"][name], figures[way]["better by"][name] = float(p), difference
    return figures


def _table_of_gains(results: Results) -> Table:
    """Show the effects of examples, growth and pools by domain, paired by item."""
    rows = []
    for growth in get_args(Growth):
        whole = results.tests("domain", growth, 100, MAX_SHOTS)
        others = {
            "three examples, not none": results.tests("domain", growth, 100, 0),
            "all new questions asked, not none": results.tests("domain", growth, 0, MAX_SHOTS),
            "domain pools, not a single one": results.tests("single", growth, 100, MAX_SHOTS),
        }
        for name, other in others.items():
            found = [compared(whole, other, measure) for measure in SCORE_MEASURES]
            cells = [text for difference, p in found for text in (f"{difference:+.3f}", p_cell(p))]
            rows.append([f"{name}, {growth} answers", *cells])
    columns = ["", *(head for measure in SCORE_MEASURES for head in (measure, "p"))]
    return table("Differences at three shots, domain pools at 100 %, paired by item", columns, rows)


def plots(results: Results) -> list[Callable[[Axes], None]]:
    """Return what draws figure 4: a plot for each domain, standard answers dashed."""
    domains = dict.fromkeys(load_agent(agent).domain for agent in results.agents)
    return [partial(_plot, results, domain) for domain in DOMAINS if domain in domains]


def _plot(results: Results, domain: str, axes: Axes) -> None:
    own = [agent for agent in results.agents if load_agent(agent).domain == domain]
    for growth, line in zip(get_args(Growth), ("-", "--"), strict=True):
        stages = [results.tests("domain", growth, percent, MAX_SHOTS) for percent in PARTS_OF_GROWTH]
        means = {
            agent: [results.spread(each, agent, "bert_score")["mean"] for each in stages] for agent in own
        }
        axes.set_prop_cycle(None)  # each agent has its colour in both growths
        pd.DataFrame(means, [*PARTS_OF_GROWTH], dtype=float).plot(
            ax=axes, style=f"o{line}", xlabel="new questions, %", legend=growth == "own"
        )
    axes.set(title=DOMAINS[domain], ylabel="BERTScore, F1")
