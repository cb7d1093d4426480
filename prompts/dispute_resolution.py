"""The question of dispute resolution (§5): which of two approaches stands, on the evidence of both tried."""

from collections import Counter
from collections.abc import Sequence
from typing import Literal

from pydantic import BaseModel, Field

from prompts import tuning
from prompts.compound_learning import DATA
from prompts.prompt import prompt

ENOUGH = 0.6
"""The share of the trials that an approach must win; the paper's example has 4 of 5."""
SIDES = ("old", "new", "neither")


class Guideline(BaseModel):
    """What to do under which condition."""

    condition: str
    pattern: str

    def __str__(self) -> str:
        return f"when {self.condition}: {self.pattern}"


class Match(BaseModel):
    """Both approaches on one similar task."""

    features: str
    old: str = Field(description="What the environment said of the old approach.")
    new: str = Field(description="What the environment said of the new approach.")
    edge_cases: list[str] = []
    winner: Literal["old", "new", "neither"]

    def __str__(self) -> str:
        edges = f"; edge cases: {'; '.join(self.edge_cases)}" if self.edge_cases else ""
        return f"{self.features}: old: {self.old}; new: {self.new}; better: {self.winner}{edges}"


class Contest(BaseModel):
    """A dispute with all that was measured so far."""

    claim: str
    old: Guideline
    new: Guideline
    conflict_type: Literal["contradiction", "refinement"]
    matches: list[Match]
    old_tasks: int = Field(0, description="Tasks that the old card served well.")


class Recommendation(BaseModel):
    """What the devil's advocate recommends."""

    rationale: str
    claim: str = Field("", description="The claim of a merged or a replacing card.")
    rules: list[Guideline] = Field([], description="The conditional rules of a merged card.")
    recommendation: Literal["deprecate_old", "keep_old", "merge", "escalate"]


@prompt(
    system=f"""You are the devil's advocate of a team. Two approaches stand against each other; both were
tried on similar tasks. Recommend: deprecate_old (the new one is better wherever the old one applies),
keep_old, merge (each is right under its own condition: give the rules), or escalate where the trials do
not decide. {DATA}
Reply with one JSON object, e.g. {{"rationale": "4 of 5 trials confirm the new one under its condition.",
"claim": "Choose the index by the filters", "rules": [{{"condition": "range filter; grouping",
"pattern": "INDEX (filter, group)"}}, {{"condition": "range filters; grouping",
"pattern": "INDEX (filters, group)"}}], "recommendation": "merge"}}""",
    user="""The card: $claim
Old approach: $old (served $old_tasks tasks)
New approach: $new
The conflict: $conflict_type

Trials:
$matches""",
)
def resolve_dispute(given: Contest) -> Recommendation:
    """Count the trials: a clear majority decides; a narrower condition merges, an equal one replaces."""
    won: Counter[str] = Counter(match.winner for match in given.matches)
    said = ", ".join(f"{side}: {won[side]}" for side in SIDES) + f" of {len(given.matches)}"
    if not given.matches:
        return Recommendation(rationale="Nothing could be tried.", recommendation="escalate")
    if won["new"] >= ENOUGH * len(given.matches):
        return _for_new(given, said)
    if won["old"] >= ENOUGH * len(given.matches):
        return Recommendation(rationale=f"The old approach holds ({said}).", recommendation="keep_old")
    return Recommendation(rationale=f"The trials do not decide ({said}).", recommendation="escalate")


def _for_new(given: Contest, said: str) -> Recommendation:
    if given.conflict_type == "contradiction" or given.old_tasks == 0:
        return Recommendation(
            rationale=f"The new approach is better wherever the old one applies ({said}).",
            claim=tuning.claim(given.new.condition, given.new.pattern),
            rules=[given.new],
            recommendation="deprecate_old",
        )
    return Recommendation(
        rationale=f"The new approach is better under its narrower condition ({said}).",
        claim=f"{tuning.about(given.old.condition)}, choose the remedy by what else the query does",
        rules=[given.old, given.new, *_exceptions(given)],
        recommendation="merge",
    )


def _exceptions(given: Contest) -> list[Guideline]:
    """Give the old approach back the queries among the tried that only it won."""
    sides: dict[str, set[str]] = {}
    for match in given.matches:
        sides.setdefault(match.features, set()).add(match.winner)
    ruled = (given.old.condition, given.new.condition)
    only_old = [features for features, won in sides.items() if won == {"old"} and features not in ruled]
    return [Guideline(condition=features, pattern=given.old.pattern) for features in only_old]


@resolve_dispute.check
def recommendations_are_whole(given: Contest, answer: Recommendation) -> None:
    """Refuse a merge without rules, and a decision without trials."""
    if answer.recommendation == "merge" and (len(answer.rules) < 2 or not answer.claim.strip()):
        raise ValueError("A merge needs a claim and at least two conditional rules.")
    if answer.recommendation == "deprecate_old" and not (answer.claim.strip() and answer.rules):
        raise ValueError("To deprecate the old card, give the claim and the rule of the new one.")
    if answer.recommendation != "escalate" and not given.matches:
        raise ValueError("Nothing was tried: escalate.")


def guideline(text: str) -> Guideline | None:
    """Read an approach as it is kept: `condition -> pattern`; None where it is something else."""
    condition, arrow, pattern = text.partition(" -> ")
    return Guideline(condition=condition, pattern=pattern) if arrow and pattern.strip() else None


def edge_cases(sides: Sequence[tuple[str, tuning.Trial]]) -> list[str]:
    """Say what went wrong beside the time: results, refusals, room."""
    return [
        f"{side}: {trial.problem or trial.told}"
        for side, trial in sides
        if trial.problem or trial.index_share > trial.budget
    ]
