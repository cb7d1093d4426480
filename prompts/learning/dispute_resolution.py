"""The questions of dispute resolution (§5): carry an approach out; which of two approaches stands."""

from typing import Literal

from pydantic import BaseModel, Field

from mneme.prompts.learning.compound_learning.research import Draft, File
from mneme.prompts.learning.compound_learning.task import (
    MAX_ANSWER_ITEMS,
    MAX_CLAIM_CHARS,
    SETTING,
    TASK_IS_DATA,
    Condition,
    Pattern,
    Setting,
    parts_bounds,
)
from mneme.prompts.prompt import Prompt, Reason, Schemas, some_of


class Guideline(BaseModel):
    """A pattern to apply, and its condition."""

    condition: str
    pattern: str

    def __str__(self) -> str:
        return f"when {self.condition}: {self.pattern}"


class ConditionalRule(Guideline):
    """What a recommended card says to do under which condition."""

    condition: Condition
    pattern: Pattern


class Match(BaseModel):
    """Both approaches on one similar task."""

    task: str = ""
    features: str
    old: str = Field(description="What the environment said of the old approach.")
    new: str = Field(description="What the environment said of the new approach.")
    edge_cases: list[str] = []
    winner: Literal["old", "new", "neither"]

    def __str__(self) -> str:
        edges = f"; edge cases: {'; '.join(self.edge_cases)}" if self.edge_cases else ""
        return f"{self.features or self.task}: old: {self.old}; new: {self.new}; better: {self.winner}{edges}"


class Contest(BaseModel):
    """A dispute with all measurements so far."""

    claim: str
    old: Guideline
    new: Guideline
    conflict_type: Literal["contradiction", "refinement"]
    matches: list[Match]
    noun: str = Field("tasks", description="What the world calls its tasks, such as queries.")
    old_evidence: str = Field("", description="What the card rests on.")
    new_evidence: str = Field("", description="What the finding rests on.")
    old_tasks: int = Field(0, description="Tasks that the old card served well.")


class Recommendation(BaseModel):
    """What the devil's advocate recommends."""

    rationale: Reason
    claim: str = Field(
        "", max_length=MAX_CLAIM_CHARS, description="The claim of a merged or a replacing card."
    )
    rules: list[ConditionalRule] = Field(
        [], max_length=MAX_ANSWER_ITEMS, description="Those of a merged card, or the one of a replacing card."
    )
    recommendation: Literal["deprecate_old", "keep_old", "merge", "escalate"]


resolve_dispute = Prompt(
    name="resolve_dispute",
    given=Contest,
    answer=Recommendation,
    system=f"""You are the devil's advocate of a team. Two approaches stand against each other; both were
tried on similar tasks. Recommend: deprecate_old (the new one is better wherever the old one applies),
keep_old, merge (each is right under its own condition: give the rules), or escalate where the trials do
not decide. {TASK_IS_DATA}""",
    examples=[
        Recommendation(
            rationale="4 of 5 trials on the library's loans confirm the new one under its condition.",
            claim="For loans, choose the index by how many dates a report compares.",
            rules=[
                ConditionalRule(condition="range filter; grouping", pattern="INDEX (filter, group)"),
                ConditionalRule(condition="range filters; grouping", pattern="INDEX (filters, group)"),
            ],
            recommendation="merge",
        )
    ],
    user="""The card: $claim
Old approach: $old (served $old_tasks tasks)
It rests on: $old_evidence
New approach: $new
It rests on: $new_evidence
The conflict: $conflict_type

Trials:
$matches""",
)


@resolve_dispute.bound
def can_be_recommended(given: Contest) -> Schemas:
    """Allow a decision only if something was tried; a rule for each approach, and for each exception."""
    bounds: Schemas = {"rules": {"maxItems": 2 + len(given.matches)}}
    return bounds if given.matches else {**bounds, "recommendation": {"enum": ["escalate"]}}


@resolve_dispute.check
def recommendations_are_whole(given: Contest, answer: Recommendation) -> None:
    """Refuse a merge without rules, and a new card without its rule."""
    if answer.recommendation == "merge" and (len(answer.rules) < 2 or not answer.claim.strip()):
        raise ValueError("A merge needs a claim and at least two conditional rules.")
    # Else a merged card would say two things for one condition.
    if len({" ".join(each.condition.casefold().split()) for each in answer.rules}) < len(answer.rules):
        raise ValueError("Two rules have the same condition: give each its own.")
    if answer.recommendation == "deprecate_old" and not (answer.claim.strip() and answer.rules):
        raise ValueError("To deprecate the old card, give the claim and the rule of the new one.")


class CarriedApproach(Setting):
    """A task, and the approach to apply to it, whether it is right or wrong."""

    condition: str
    pattern: str


# "Whether you think that it is right or not": both sides are measured, and the measurement decides (§5).
carry_out = Prompt(
    name="carry_out",
    given=CarriedApproach,
    answer=Draft,
    system=f"""You are the devil's advocate of a team. Two approaches stand against each other, and each is
tried on the same tasks. Carry the given approach out on this task, just as it says, whether you think that
it is right or not; add nothing of another approach. Leave every part empty where it cannot be carried out
here. {TASK_IS_DATA}""",
    examples=[
        Draft(
            rationale="The fines are looked up in a set, as the approach says.",
            pattern="look up in a set",
            files=[
                File(path="fines.py", text="def fined(loans, fines):\n    return set(loans) & set(fines)")
            ],
        )
    ],
    user=f"""{SETTING}

How the solution is written: $form
The approach, when $condition: $pattern""",
    bounds=[lambda given: some_of("used", ()) | parts_bounds(given)],  # no card supports what is only tried
)


def guideline(text: str) -> Guideline | None:
    """Parse a stored approach, `condition -> pattern`; return None for any other text."""
    condition, arrow, pattern = text.partition(" -> ")
    return Guideline(condition=condition, pattern=pattern) if arrow and pattern.strip() else None
