"""Arms of Memory Sharing's experiment: backbones beside one another, agents of several on one pool, and the
authors' items with those told apart that occur in their pool and in their test.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isnan

from mneme.cli.tables import Table
from mneme.core.errors import BadInput
from mneme.evals.report import table
from mneme.evals.sharing.authors import clean
from mneme.evals.sharing.data import Split
from mneme.evals.sharing.pool_runs import MAX_SHOTS
from mneme.evals.sharing.tables import ALL, Results
from mneme.library.agents.agent import AGENTS

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
    rows = []
    for arm, found in arms.items():
        answers = found.tests("domain", "own", 100, MAX_SHOTS)
        for agent in [*found.agents, ALL]:
            own = answers if agent == ALL else answers[answers["agent"] == agent]
            fresh = own[~own["item"].isin(held)]
            items = set(own["item"])
            means = [each[name].mean() for name in ("bert_score", "bert_precision") for each in (own, fresh)]
            cells = [None if isnan(mean) else f"{mean:.3f}" for mean in means]
            rows.append([f"{arm and f'{arm}: '}{agent}", len(items), len(items & held), *cells])
    columns = ["agent", "test items", "held", "F1, all", "F1, new", "precision, all", "precision, new"]
    return table("BERTScore's F1 and precision, on all test items and on those that are new", columns, rows)
