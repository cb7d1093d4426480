"""A person's decision on a dispute (§5): the proposal, the reading of an answer, and the resulting change."""

from typing import Any, Literal

from pydantic import BaseModel, Field

from mneme.core.errors import BadInput
from mneme.nodes import answers
from mneme.nodes.answers import Listed
from mneme.prompts.learning.dispute_resolution import Guideline, guideline
from mneme.stores.cards.card import Card, Lesson, Rule, TaskOutcome, normalised
from mneme.stores.cards.disputes import Dispute, Resolution
from mneme.stores.cards.metrics import TaskRecord

Decision = Literal["deprecate_old", "keep_old", "merge"]
VERDICT_HINT = 'Decide: deprecate_old, keep_old or merge, like {"decision": "keep_old"}.'


class Args(BaseModel):
    """The arguments of the one action that a person reviews."""

    decision: Decision = Field(description="deprecate_old, keep_old or merge.")
    reason: str = Field("", description="Why; kept in the history.")
    claim: str = Field("", description="For merge: the claim of the merged card; empty: the proposed one.")
    rules: Listed[Guideline] = Field([], description="For merge: its conditional rules; empty: the proposed.")


class Verdict(Args):
    """A person's decision on a dispute; `nodes/answers.py` has the forms in which clients send it."""

    by: str = Field("a person", description="Who decides.")


def sides_of(dispute: Dispute, card: Card) -> tuple[Guideline, Guideline] | None:
    """Return both approaches as rules; the old one may be the card's own. None if one is not a rule."""
    own = (Guideline(condition=rule.condition, pattern=rule.pattern) for rule in card.rules)
    old = guideline(dispute.old.solution) or next(own, None)
    new = guideline(dispute.new.solution)
    return (old, new) if old and new else None


def old_evidence(card: Card) -> str:
    """Describe the evidence for a disputed card."""
    evidence = card.evidence
    counted = f"{evidence.success_count} of {evidence.count} tasks, confidence {card.confidence:.2f}"
    people = f"; {sum(each.good for each in card.ratings)} of {len(card.ratings)} people were served"
    fails = [f"fails when {each.condition}" for each in card.failure_modes]
    why = [card.rationale] if card.rationale else []
    return "; ".join([counted + (people if card.ratings else ""), *why, *fails])


def new_evidence(task: TaskRecord | None) -> str:
    """Describe the evidence of the task that made the finding."""
    if task is None:
        return "no task of this team"
    solved = "solved" if task.solved else "not solved"
    gain = f", {task.speed_up:g} times as good" if task.speed_up else ""
    return f"{task.task or task.id}: {solved}{gain}, confidence {task.confidence:.2f}"


def proposed(dispute: Dispute, card: Card) -> Args:
    """Return the decision offered for approval: merge both approaches if both are rules, else keep."""
    sides = sides_of(dispute, card)
    if sides is None or sides[0].condition == sides[1].condition:
        return Args(decision="keep_old", reason="The trials do not speak against it.")
    return Args(
        decision="merge",
        reason="The trials do not decide: each under its own condition.",
        claim=dispute.old.claim,
        rules=list(sides),
    )


def plainly(answer: object, dispute: Dispute, card: Card) -> Verdict:
    """Read a person's answer. Raises BadInput for one that decides nothing."""
    offered = proposed(dispute, card)

    def fields_of(given: answers.PersonAnswer) -> dict[str, Any]:
        # To reject the proposal, with words or without, or to ignore it, keeps the card as it is.
        rejected = {"decision": "keep_old", "reason": "rejected"}
        fields = {"edit": given.args, "accept": dict(offered)}.get(given.kind, rejected)
        return {**fields, "reason": given.text or fields.get("reason", "")}

    verdict = answers.read_answer(Verdict, answer, VERDICT_HINT, fields_of)
    if verdict.decision != "merge":
        return verdict
    rules = verdict.rules or list(sides_of(dispute, card) or ())
    if not rules:
        raise BadInput(
            f"{dispute.id} has no rules that could be merged.",
            'Give them, like --rule "CONDITION: WHAT TO DO", or decide keep_old or deprecate_old.',
        )
    if len({normalised(each.condition) for each in rules}) < len(rules):
        raise BadInput(
            f"{dispute.id}: a merge would say two things for one condition: {'; '.join(map(str, rules))}.",
            'Give each its own, like --rule "CONDITION: WHAT TO DO", or decide keep_old or deprecate_old.',
        )
    return verdict.model_copy(update={"rules": rules, "claim": verdict.claim or dispute.old.claim})


def decision_of(verdict: Verdict, dispute: Dispute, card: Card) -> Resolution:
    """Return a decision as a resolution for the store. Raises BadInput for one that cannot be carried out."""
    made = plainly(verdict, dispute, card)  # also of a verdict that came from the API or a recommendation
    reason, claim = made.reason or "decided by a person", made.claim or dispute.new.claim
    new, merges = guideline(dispute.new.solution), made.decision == "merge"
    given = [each for each in made.rules if each.condition] or ([new] if new and not merges else [])
    rules = [Rule(condition=each.condition, pattern=each.pattern) for each in given]
    conditions = {normalised(rule.condition) for rule in rules}
    # A merged rule replaces the card's own rule for the same condition; its other rules are not in dispute.
    others = [rule for rule in card.rules if normalised(rule.condition) not in conditions]
    lesson = Lesson(claim=claim, rationale=reason, rules=rules, tags=card.tags, scope=card.scope)
    # A trial that the winner won counts as a task served, with the confidence of the card.
    winner = "old" if made.decision == "keep_old" else "new"
    won = [trial.task for trial in dispute.trials if trial.winner == winner]
    return Resolution(
        decision=made.decision,
        reason=reason,
        by=made.by,
        claim=claim if merges else "",
        rules=[*others, *rules] if merges else [],
        lesson=lesson if made.decision == "deprecate_old" else None,
        outcomes=[TaskOutcome(task=task, success=True, confidence=card.confidence) for task in won],
    )
