"""Arms of Memory Sharing's experiment: backbones beside one another, agents of several on one pool, and the
authors' items with those told apart that occur in their pool and in their test.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from mneme.cli.tables import Table
from mneme.core.errors import BadInput
from mneme.evals.report import Row, table
from mneme.evals.sharing.authors import clean
from mneme.evals.sharing.data import Split
from mneme.evals.sharing.pool_runs import MOST_SHOTS, SHOTS, Pools
from mneme.evals.sharing.tables import (
    ALL,
    BACKBONES,
    NUMBERS,
    PAPER_1,
    PAPER_2,
    Measure,
    Results,
    cell,
    paper_cell,
    spread,
)
from mneme.library.agents.agent import AGENTS, load_agent

MIXED = "mixed"
AS_AUTHORS = {"threshold": 49, "stored": "prompt", "scoring": "printed", "candidates": 10, "labels": 6}
"""What their code does (GHupppp/InteractiveMemorySharingLLM): 50 points of 100 are enough, whole prompts are
kept, one number by the rubric; of 10 candidates 3 + 3 are labelled with a memory, 2 + 2 before."""


@dataclass(frozen=True)
class Arm:
    """Who answers for the agents: one model for all, or for each its own."""

    name: str = ""
    answerer: str = ""
    answerers: str = ""


def arms_of(models: Sequence[str], *, mixed: bool) -> list[Arm]:
    """Return an arm for each model, and one whose agents have them in turn. Raises BadInput."""
    names = [*dict.fromkeys(models)]
    arms = [Arm(each, each) for each in names] or [Arm()]
    if not mixed:
        return arms
    if len(names) < 2:
        raise BadInput("A mixed pool needs agents of different models.", "Give --models twice or more.")
    own = [f"{agent}={names[at % len(names)]}" for at, agent in enumerate(AGENTS)]
    return [*arms, Arm(MIXED, names[0], ", ".join(own))]


def tables_of_arms(arms: Mapping[str, Results]) -> list[Table]:
    """Return tables 1 and 2 with a column for each arm, beside the paper's three backbones."""
    return [_by_shots(arms), _by_pools(arms)]


def _by_shots(arms: Mapping[str, Results]) -> Table:
    columns = ["agent", *(f"{number}, {arm}" for number in NUMBERS for arm in [*arms, "paper"])]
    rows = [
        [
            agent,
            *(
                text
                for shots in SHOTS
                for text in [
                    *(_cell(found, agent, "domain", shots) for found in arms.values()),
                    paper_cell(PAPER_1[agent][shots]) if agent in PAPER_1 else "",
                ]
            ),
        ]
        for agent in _agents(arms)
    ]
    return table(f"Table 1: BERTScore by backbones and shots (paper: {BACKBONES})", columns, rows)


def _by_pools(arms: Mapping[str, Results]) -> Table:
    kinds: tuple[Pools, ...] = ("domain", "single")
    columns = ["agent", *(f"{pools}, {arm}" for pools in kinds for arm in [*arms, "paper"])]
    rows = [
        [
            agent,
            *(
                text
                for pools in kinds
                for text in [
                    *(_cell(found, agent, pools, MOST_SHOTS) for found in arms.values()),
                    paper_cell(_paper(agent, pools)) if agent in PAPER_2 else "",
                ]
            ),
        ]
        for agent in _agents(arms)
    ]
    return table(f"Table 2: BERTScore by backbones and pools, three shots ({BACKBONES})", columns, rows)


def _paper(agent: str, pools: Pools) -> Sequence[float]:
    return PAPER_1[agent][MOST_SHOTS] if pools == "domain" else PAPER_2[agent]


def _agents(arms: Mapping[str, Results]) -> list[str]:
    return [*next(iter(arms.values())).agents, ALL]


def _cell(results: Results, agent: str, pools: Pools, shots: int) -> str:
    return cell(results.spread(results.tests(pools, "own", 100, shots), agent, "bert_score"))


def flagged(made: Split) -> set[str]:
    """Return the test items of which a question or an answer is, nearly, in their domain's pool."""
    held = set[str]()
    for domain in dict.fromkeys(load_agent(item.agent).domain for item in made.test):
        tests, *known = (
            [item for item in part if load_agent(item.agent).domain == domain]
            for part in (made.test, made.archived, made.new)
        )
        fresh = {item.id for item in clean(tests, [*known[0], *known[1]])}
        held |= {item.id for item in tests} - fresh
    return held


def table_flagged(arms: Mapping[str, Results], held: set[str]) -> Table:
    """Compare all test items with those that no pool holds: three shots, domain pools."""
    columns = [
        "agent",
        "test items",
        "held",
        "F1, all",
        "F1, new",
        "precision, all",
        "precision, new",
    ]
    rows = [
        [f"{arm and f'{arm}: '}{agent}", *_flagged_of(found, agent, held)]
        for arm, found in arms.items()
        for agent in [*found.agents, ALL]
    ]
    return table("BERTScore's F1 and precision, on all test items and on those that are new", columns, rows)


def _flagged_of(results: Results, agent: str, held: set[str]) -> list[str]:
    rows = [row for row in results.tests("domain", "own", 100, MOST_SHOTS) if agent in (ALL, row["agent"])]
    fresh = [row for row in rows if row["item"] not in held]
    items = {row["item"] for row in rows}
    return [
        str(len(items)),
        str(len(items & held)),
        *(_mean(some, name) for name in MEASURED for some in (rows, fresh)),
    ]


MEASURED: tuple[Measure, ...] = ("bert_score", "bert_precision")


def _mean(rows: Sequence[Row], name: Measure) -> str:
    return f"{fmean(row[name] for row in rows):.3f}" if rows else "–"


def table_of_expansion(results: Results, sizes: Sequence[int]) -> Table:
    """Return what the pools of the agents' own answers hold at each size, and how answers are then."""
    rows = [[_said(size), *_at(results, size)] for size in (100, *sizes)]
    columns = ["pools that go on to", "memories", "stored", "not good enough", "BERTScore", "ROUGE-L"]
    return table("Domain pools that go on growing, three shots, all agents", columns, rows)


def _said(size: int) -> str:
    return "all new questions" if size == 100 else f"{size} each"


def _at(results: Results, size: int) -> list[str]:
    rows = results.tests("domain", "own", size, MOST_SHOTS)
    found = [row for row in results.expanded if row["percent"] == size]
    held = [
        float(sum(row["memories"] for row in found if row["seed"] == seed)) for seed in results.seeds if found
    ]
    counts = [sum(row.get(name, 0) for row in found) for name in ("stored", "rejected")]
    scores = [cell(results.spread(rows, ALL, measure)) for measure in ("bert_score", "rouge_l")]
    return [cell(spread(held), 0), *(str(n) if found else "" for n in counts), *scores]
