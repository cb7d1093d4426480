"""Arms of Memory Sharing's experiment: backbones beside one another, agents of several on one pool, and the
authors' items with those told apart that occur in their pool and in their test.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import NamedTuple, get_args

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
from mneme.library.agents.agent import AGENTS
from mneme.nodes.sharing.context import SharingContext

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
    by_shots = {number: Column("domain", shots) for number, shots in zip(NUMBERS, SHOTS, strict=True)}
    by_pools: dict[str, Column] = {pools: Column(pools, MOST_SHOTS) for pools in POOLS}
    title = f"Table 1: BERTScore by backbones and shots (paper: {BACKBONES})"
    other = f"Table 2: BERTScore by backbones and pools, three shots ({BACKBONES})"
    return [_beside_paper(title, arms, by_shots), _beside_paper(other, arms, by_pools)]


class Column(NamedTuple):
    """What of the results a column is about, for each arm and for the paper."""

    pools: Pools
    shots: int

    def of(self, results: Results, agent: str) -> str:
        tests = results.tests(self.pools, "own", 100, self.shots)
        return cell(results.spread(tests, agent, "bert_score"))

    def of_paper(self, agent: str) -> str:
        if agent not in PAPER_1:
            return ""
        return paper_cell(PAPER_1[agent][self.shots] if self.pools == "domain" else PAPER_2[agent])


POOLS: tuple[Pools, ...] = get_args(Pools)


def _beside_paper(title: str, arms: Mapping[str, Results], asked: Mapping[str, Column]) -> Table:
    columns = ["agent", *(f"{name}, {arm}" for name in asked for arm in [*arms, "paper"])]
    rows = [[agent, *_cells(arms, agent, asked.values())] for agent in _agents(arms)]
    return table(title, columns, rows)


def _cells(arms: Mapping[str, Results], agent: str, asked: Iterable[Column]) -> Iterator[str]:
    for each in asked:
        yield from (each.of(found, agent) for found in arms.values())
        yield each.of_paper(agent)


def _agents(arms: Mapping[str, Results]) -> list[str]:
    return [*next(iter(arms.values())).agents, ALL]


def flagged(made: Split) -> set[str]:
    """Return the test items of which a question or an answer is, nearly, in their domain's pool."""
    held = set[str]()
    for domain in dict.fromkeys(item.domain for item in made.test):
        own = made.within(domain)
        fresh = {item.id for item in clean(own.test, [*own.archived, *own.new])}
        held |= {item.id for item in own.test} - fresh
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
    rows = [
        [said, *_at(results, size)] for said, size in (*BEFORE.items(), *((f"{n} each", n) for n in sizes))
    ]
    return table("Domain pools that go on growing, three shots, all agents", COLUMNS, rows)


BEFORE = {"archived by hand": 0, "all new questions": 100}
"""Stages before a pool goes on by itself: what they are called, per cent of the new questions."""
COLUMNS = (
    "pools that go on to", "memories", "stored", "not good enough", "of the asker's kind", "score",
    "BERTScore", "ROUGE-L",
)  # fmt: skip


def _at(results: Results, size: int) -> list[str]:
    rows = results.tests("domain", "own", size, MOST_SHOTS)
    found = [row for row in results.expanded if row["percent"] == size]
    counts = [sum(row.get(name, 0) for row in found) for name in ("stored", "rejected")]
    figures = [
        cell(results.spread(rows, ALL, name)) for name in ("own_kind", "score", "bert_score", "rouge_l")
    ]
    held = _held(results, found or [row for row in results.states if row["percent"] == size])
    return [held, *(str(n) if found else "" for n in counts), *figures]


def _held(results: Results, rows: Sequence[Row]) -> str:
    """Return how many memories a seed's domain pools hold together."""
    own = [row for row in rows if (row["pools"], row["growth"]) == ("domain", "own")]
    sums = [float(sum(row["memories"] for row in own if row["seed"] == seed)) for seed in results.seeds]
    return cell(spread(sums if own else []), 0)


def notes_on_expansion(results: Results, threshold: int) -> list[str]:
    """Say of each pool why it stopped growing, and how many questions and answers nobody could use."""
    usual = SharingContext.model_fields["threshold"].default
    lowered = f"Pairs were kept above {threshold} of 100, where the default keeps those above {usual}: "
    lowered += "the growth shows what larger pools do, not what good answers do."
    return [lowered] * (threshold < usual) + [
        f"{row['pool']}, seed {row['seed']}, to {row['percent']}: {row['memories']} memories, "
        f"{row.get('calls', 0)} calls, {row.get('failed', 0)} questions or answers of no use. {row['why']}"
        for row in results.expanded
    ]
