"""Tables 1 and 2 of the Memory Sharing paper, figure 4 as a table, and a comparison of retrievers."""

from collections.abc import Callable, Iterable, Sequence
from statistics import fmean, stdev
from typing import Any, Literal, get_args

import numpy as np
from scipy.stats import false_discovery_control

from mneme.cli.tables import Table
from mneme.evals.measuring import p_cell, wilcoxon_p
from mneme.evals.report import Row, table
from mneme.evals.sharing.pool_runs import MOST_SHOTS, PARTS_OF_GROWTH, SHOTS, Growth, Pools
from mneme.evals.sharing.retrievers import WAYS, Way
from mneme.library.agents.agent import AGENTS

Measure = Literal["bert_score", "bert_precision", "rouge_l"]
NAMES: dict[Measure, str] = {
    "bert_score": "BERTScore",
    "bert_precision": "BERTScore's precision",
    "rouge_l": "ROUGE-L",
}
MEASURES: tuple[Measure, ...] = get_args(Measure)
NUMBERS = ("zero", "one", "two", "three")
BACKBONES = "gpt-3.5-turbo / gpt-4o / open-mistral-7b"
Stage = tuple[Pools, Growth, int, int]
"""Pools, growth, per cent of the new questions, shots."""
Three = tuple[float, float, float]
PAPER_1: dict[str, tuple[Three, Three, Three, Three]] = {
    "limerick": ((0.50, 0.50, 0.49), (0.69, 0.56, 0.54), (0.76, 0.56, 0.88), (0.87, 0.59, 0.93)),
    "wuyanlvshi": ((0.66, 0.73, 0.56), (0.72, 0.75, 0.59), (0.71, 0.75, 0.61), (0.72, 0.76, 0.66)),
    "sonnet": ((0.48, 0.55, 0.50), (0.53, 0.55, 0.52), (0.53, 0.54, 0.53), (0.53, 0.54, 0.53)),
    "puzzle": ((0.53, 0.51, 0.49), (0.51, 0.53, 0.48), (0.56, 0.52, 0.48), (0.60, 0.52, 0.50)),
    "pun": ((0.61, 0.47, 0.37), (0.64, 0.57, 0.35), (0.67, 0.64, 0.36), (0.70, 0.67, 0.39)),
    "riddle": ((0.86, 0.40, 0.36), (0.64, 0.42, 0.36), (0.70, 0.48, 0.35), (0.88, 0.52, 0.37)),
    "fitness": ((0.46, 0.42, 0.47), (0.61, 0.57, 0.48), (0.64, 0.52, 0.50), (0.65, 0.52, 0.54)),
    "study": ((0.44, 0.41, 0.45), (0.65, 0.56, 0.46), (0.60, 0.53, 0.44), (0.63, 0.51, 0.46)),
    "travel": ((0.45, 0.41, 0.44), (0.55, 0.54, 0.48), (0.71, 0.53, 0.50), (0.71, 0.53, 0.53)),
}
"""Table 1 of the paper: agent -> shots -> backbones, with a pool for each domain."""
PAPER_2: dict[str, Three] = {
    "limerick": (0.60, 0.54, 0.64),
    "wuyanlvshi": (0.68, 0.76, 0.63),
    "sonnet": (0.49, 0.54, 0.52),
    "puzzle": (0.54, 0.50, 0.48),
    "pun": (0.70, 0.61, 0.38),
    "riddle": (0.80, 0.51, 0.35),
    "fitness": (0.62, 0.52, 0.54),
    "study": (0.63, 0.56, 0.49),
    "travel": (0.58, 0.52, 0.50),
}
"""Table 2's lower half: one pool for all, three shots; the upper half is table 1's last column."""
ALL = "all agents"


class Results:
    """The answers of a run with their scores, by seed and by agent."""

    def __init__(self, rows: Iterable[Row], seeds: Sequence[int], arm: str = "") -> None:
        chosen = [row for row in rows if row.get("seed") in seeds and row.get("arm", "") == arm]
        self.seeds = list(seeds)
        self._tests: dict[Stage, list[Row]] = {_stage(row): [] for row in chosen if row["kind"] == "test"}
        for row in chosen:
            if row["kind"] == "test":
                self._tests[_stage(row)].append(row)
        self.judged = [row for row in chosen if row["kind"] == "judge"]
        self.grown = [row for row in chosen if row["kind"] == "grow"]
        self.expanded = [row for row in chosen if row["kind"] == "expand"]
        self.states = [row for row in chosen if row["kind"] in ("retrievers", "end")]
        present = {row["agent"] for rows in self._tests.values() for row in rows}
        self.agents = [agent for agent in AGENTS if agent in present]

    def tests(self, pools: Pools, growth: Growth, percent: int, shots: int) -> list[Row]:
        """Return the answers at a stage; without examples, and before growth, both growths are the same."""
        same = growth if shots and percent else "own"
        return self._tests.get((pools, same, percent, shots), [])

    def stages(self) -> list[Stage]:
        """Return at which pools, growths, per cents and shots test questions were asked."""
        return list(self._tests)

    def spread(self, rows: Sequence[Row], agent: str, measure: str) -> Row:
        """Return mean and standard deviation over the seeds of the mean over an agent's test items.

        Items without a value are left out: nobody could score them, or no example was shown.
        """
        chosen = [row for row in rows if agent in (ALL, row["agent"]) and row[measure] is not None]
        by_seed = ([row[measure] for row in chosen if row["seed"] == seed] for seed in self.seeds)
        return spread([fmean(found) for found in by_seed if found])


def _stage(row: Row) -> Stage:
    return row["pools"], row["growth"], row["percent"], row["shots"]


def spread(values: Sequence[float]) -> Row:
    """Return mean, standard deviation, lowest and highest; one value has no deviation."""
    if not values:
        return {"mean": None, "sd": None, "lowest": None, "highest": None}
    sd = stdev(values) if len(values) > 1 else None
    return {"mean": fmean(values), "sd": sd, "lowest": min(values), "highest": max(values)}


def compared(rows: Sequence[Row], others: Sequence[Row], measure: str) -> tuple[float, float]:
    """Return the mean difference and Wilcoxon's p, paired by item; an item of several seeds counts once."""
    ours, theirs = _by_item(rows, measure), _by_item(others, measure)
    differences = np.array([ours[item] - theirs[item] for item in ours if item in theirs])
    if not differences.size:
        return 0.0, 1.0
    p = wilcoxon_p(differences)
    return float(differences.mean()), 1.0 if p is None else p


def _by_item(rows: Sequence[Row], measure: str) -> dict[str, float]:
    found: dict[str, list[float]] = {}
    for row in rows:
        found.setdefault(row["item"], []).append(row[measure])
    return {item: fmean(values) for item, values in found.items()}


def cell(value: Row, places: int = 3) -> str:
    """Return a mean with its deviation over the seeds; – where there is none."""
    if value["mean"] is None:
        return "–"
    deviation = "–" if value["sd"] is None else f"{value['sd']:.{places}f}"
    return f"{value['mean']:.{places}f} ±{deviation}"


def paper_cell(values: Sequence[float]) -> str:
    return " ".join(f"{value:.2f}".lstrip("0") for value in values)


def table_1(results: Results) -> Table:
    """Return table 1: shots by agents, a pool for each domain, beside the paper's three models."""
    columns = ["agent", *(name for number in NUMBERS for name in (number, "paper"))]
    rows = [[agent, *_shots_of(results, agent)] for agent in [*results.agents, ALL]]
    title = f"Table 1: BERTScore by shots, a pool for each domain (paper: {BACKBONES})"
    return table(title, columns, rows)


def _shots_of(results: Results, agent: str) -> list[str]:
    cells = list[str]()
    for shots in SHOTS:
        found = results.spread(results.tests("domain", "own", 100, shots), agent, "bert_score")
        paper = PAPER_1.get(agent) or _mean_of_paper([PAPER_1[each] for each in results.agents])
        cells += [cell(found), paper_cell(paper[shots])]
    return cells


def _mean_of_paper(rows: Sequence[Any]) -> list[list[float]]:
    means: list[list[float]] = np.array(rows).mean(axis=0).tolist()
    return means


def table_1_otherwise(results: Results) -> Table:
    """Return table 1 by ROUGE-L, and both measures where the pool grew by standard answers."""
    kinds: list[tuple[str, Growth, Measure, tuple[int, ...]]] = [
        ("", "own", "rouge_l", SHOTS),
        ("standard, ", "standard", "bert_score", SHOTS[1:]),
        ("standard, ", "standard", "rouge_l", SHOTS[1:]),
    ]
    columns = [f"{said}{NAMES[of]}: {NUMBERS[shots]}" for said, _, of, all_ in kinds for shots in all_]
    rows = [
        [
            agent,
            *(
                cell(results.spread(results.tests("domain", growth, 100, shots), agent, of))
                for _, growth, of, all_ in kinds
                for shots in all_
            ),
        ]
        for agent in [*results.agents, ALL]
    ]
    return table(
        "Table 1 by ROUGE-L; and with pools that grew by the questions' standard answers",
        ["agent", *columns],
        rows,
    )


def table_2(results: Results) -> Table:
    """Return table 2: a pool for each domain beside one for all, three shots."""
    columns = ["agent", "domain", "paper", "single", "paper", "ROUGE-L domain", "single"]
    columns += ["standard, domain", "single"]
    rows = [[agent, *_pools_of(results, agent)] for agent in [*results.agents, ALL]]
    return table(
        f"Table 2: BERTScore with three shots, domain pool and single pool ({BACKBONES})", columns, rows
    )


def _pools_of(results: Results, agent: str) -> list[str]:
    def of(pools: Pools, growth: Growth, measure: Measure) -> str:
        return cell(results.spread(results.tests(pools, growth, 100, MOST_SHOTS), agent, measure))

    single = PAPER_2.get(agent) or np.mean([PAPER_2[each] for each in results.agents], axis=0).tolist()
    domain = (PAPER_1.get(agent) or _mean_of_paper([PAPER_1[each] for each in results.agents]))[MOST_SHOTS]
    return [
        of("domain", "own", "bert_score"),
        paper_cell(domain),
        of("single", "own", "bert_score"),
        paper_cell(single),
        *(of(pools, "own", "rouge_l") for pools in ("domain", "single")),
        *(of(pools, "standard", "bert_score") for pools in ("domain", "single")),
    ]


def table_of_growth(results: Results) -> Table:
    """Return figure 4 over all agents: per cent of the new questions, memories, scores."""
    kinds: list[tuple[str, Growth]] = [("own answers", "own"), ("standard answers", "standard")]
    columns = [f"{name}: {what}" for name, _ in kinds for what in ("memories", "BERTScore", "ROUGE-L")]
    rows = [
        [f"{percent} %", *(text for _, growth in kinds for text in _growth_of(results, growth, percent))]
        for percent in PARTS_OF_GROWTH
    ]
    title = "Figure 4: domain pools as they grow, three shots, all agents (the paper gives no numbers)"
    return table(title, ["new questions", *columns], rows)


def _growth_of(results: Results, growth: Growth, percent: int) -> list[str]:
    rows = results.tests("domain", growth, percent, MOST_SHOTS)
    held = memories(results, growth, percent)
    scores = [cell(results.spread(rows, ALL, measure)) for measure in ("bert_score", "rouge_l")]
    return [cell(held, 0), *scores]


def memories(results: Results, growth: Growth, percent: int) -> Row:
    """Return how many memories the domain pools hold together at a stage, over the seeds."""
    found = [
        row
        for row in results.states
        if row["kind"] == "retrievers" and (row["pools"], row["growth"]) == ("domain", growth)
    ]
    return spread(
        [
            float(sum(row["memories"] for row in found if (row["seed"], row["percent"]) == (seed, percent)))
            for seed in results.seeds
        ]
    )


def table_of_ways(results: Results) -> Table:
    """Compare the ways to choose examples, with the significance of each difference."""
    columns = ["examples by", "recall@3", "recall@10", "contradiction", "of the same agent"]
    columns += ["BERTScore", "p", "ROUGE-L", "p"]
    rows = [row for growth in ("own", "standard") for row in _ways_of(results, growth)]
    title = "Ways to choose examples: three shots, domain pools at 100 % (p: against trained)"
    return table(title, columns, rows)


def _ways_of(results: Results, growth: Growth) -> list[list[str]]:
    figures = ways(results, growth)
    return [
        [
            f"{way}, {growth} answers",
            *(cell(figures[way][name]) for name in ("recall@3", "recall@10", "contradiction", "own agent")),
            cell(figures[way]["bert_score"]),
            p_cell(figures[way]["p"].get("bert_score")),
            cell(figures[way]["rouge_l"]),
            p_cell(figures[way]["p"].get("rouge_l")),
        ]
        for way in WAYS
    ]


def ways(results: Results, growth: Growth) -> dict[Way, Row]:
    """Return each way's figures over the seeds, and p against trained after Benjamini and Hochberg."""
    rows = {way: _rows_of(results, growth, way) for way in WAYS}
    figures: dict[Way, Row] = {
        way: {
            name: spread(
                [fmean(row[name] for row in rows[way] if row["seed"] == seed) for seed in results.seeds]
            )
            for name in COMPARED
        }
        | {"p": {}, "better by": {}}
        for way in WAYS
    }
    for name in COMPARED:
        found = [compared(rows["trained"], rows[way], name) for way in WAYS[1:]]
        corrected = false_discovery_control([p for _, p in found])
        for way, (difference, _), p in zip(WAYS[1:], found, corrected, strict=True):
            figures[way]["p"][name], figures[way]["better by"][name] = float(p), difference
    return figures


COMPARED = ("recall@3", "recall@10", "contradiction", "own agent", "bert_score", "rouge_l")


def _rows_of(results: Results, growth: Growth, way: Way) -> list[Row]:
    return [
        {"seed": row["seed"], "item": row["item"], **row["ways"][way]}
        for row in results.judged
        if row["growth"] == growth
    ]


def table_of_pools(results: Results) -> Table:
    """Count the new questions that were asked, and the answers that were stored."""
    columns = ["agent", "asked", "stored", "rubric's score", "faults of form"]
    rows = [[agent, *_kept_of([r for r in results.grown if r["agent"] == agent])] for agent in results.agents]
    return table("What the agents wrote to new questions, domain and single pools together", columns, rows)


def _kept_of(rows: Sequence[Row]) -> list[str]:
    scored = [row["score"] for row in rows if row["score"] is not None]
    return [
        str(len(rows)),
        str(sum(bool(row["stored"]) for row in rows)),
        f"{fmean(scored):.0f}" if scored else "–",
        f"{fmean(len(row['faults']) for row in rows):.1f}" if rows else "–",
    ]


def trainings(results: Results) -> Row:
    """Return how the trainings went: versions kept and refused, their time, recall before and after."""
    versions = [each for row in results.states if row["kind"] == "end" for each in row["versions"]]
    mean: Callable[[list[float]], float | None] = lambda values: fmean(values) if values else None  # noqa: E731
    return {
        "versions": len(versions),
        "kept": sum(each["kept"] for each in versions),
        "seconds": mean([each["seconds"] for each in versions]),
        "recall before": mean([each["before"]["recall"] for each in versions if each["kept"]]),
        "recall after": mean([each["after"]["recall"] for each in versions if each["kept"]]),
        "device": sorted({each["device"] for each in versions}),
    }
