"""Decisions on disputes, a person's and the devil's advocate's: how they are read, and what they come to."""

from typing import Literal

from pydantic import BaseModel, Field

from mneme.core.errors import BadInput
from mneme.nodes import answers
from mneme.nodes.answers import Listed
from mneme.prompts.learning.dispute_resolution import Guideline, guideline
from mneme.stores.cards.card import Card, Lesson, Rule, TaskOutcome
from mneme.stores.cards.disputes import DeprecateOld, Dispute, KeepOld, Merge, Resolution
from mneme.stores.cards.task_log import TaskRecord

Decision = Literal["deprecate_old", "keep_old", "merge"]
DECISIONS = 'Decide: deprecate_old, keep_old or merge, like {"decision": "keep_old"}.'


class Ruling(BaseModel):
    """A decision on a dispute, in words as long as a person chooses."""

    rationale: str
    claim: str = ""
    rules: list[Guideline] = []
    recommendation: Literal["deprecate_old", "keep_old", "merge", "escalate"]


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
    """Return both approaches as rules; the old one may be the card's own. None where one is no rule."""
    own = [Guideline(condition=rule.condition, pattern=rule.pattern) for rule in card.rules[:1]]
    old = guideline(dispute.old.solution) or next(iter(own), None)
    new = guideline(dispute.new.solution)
    return (old, new) if old and new else None


def old_evidence(card: Card) -> str:
    """Say what a disputed card rests on."""
    evidence = card.evidence
    counted = f"{evidence.success_count} of {evidence.count} tasks, confidence {card.confidence:.2f}"
    people = f"; {sum(each.good for each in card.ratings)} of {len(card.ratings)} people were served"
    fails = [f"fails when {each.condition}" for each in card.failure_modes]
    why = [card.rationale] if card.rationale else []
    return "; ".join([counted + (people if card.ratings else ""), *why, *fails])


def new_evidence(task: TaskRecord | None) -> str:
    """Say what the task showed that made the finding."""
    if task is None:
        return "no task of this team"
    solved = "solved" if task.solved else "not solved"
    gain = f", {task.speed_up:g} times as good" if task.speed_up else ""
    return f"{task.task or task.id}: {solved}{gain}, confidence {task.confidence:.2f}"


def proposed(dispute: Dispute, card: Card) -> Args:
    """Propose what a person would approve: to merge both approaches where both can be rules, else to keep."""
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
    """Read a person's answer. Raises BadInput for one that decides nothing.

    To reject what is proposed, with words or without, or to ignore it, is to keep the card as it is.
    """
    given = answers.decided(answer)
    if given is None:
        verdict = answers.validated(Verdict, answer, DECISIONS)
    else:
        verdict = _reviewed(given, proposed(dispute, card))
    return _with_rules(verdict, dispute, card) if verdict.decision == "merge" else verdict


def _reviewed(given: answers.Decided, offered: Args) -> Verdict:
    if given.kind == "edit":
        offered = answers.validated(Args, given.args, DECISIONS)
    elif given.kind != "accept":
        offered = Args(decision="keep_old", reason="rejected")
    return Verdict(**{**dict(offered), "reason": given.text or offered.reason})


def _with_rules(verdict: Verdict, dispute: Dispute, card: Card) -> Verdict:
    sides = sides_of(dispute, card)
    if verdict.rules:
        return verdict.model_copy(update={"claim": verdict.claim or dispute.old.claim})
    if sides is None:
        raise BadInput(
            f"{dispute.id} has no rules that could be merged.",
            'Give them, like --rule "CONDITION: WHAT TO DO", or decide keep_old or deprecate_old.',
        )
    return verdict.model_copy(update={"rules": list(sides), "claim": verdict.claim or dispute.old.claim})


def decided(verdict: Verdict, dispute: Dispute, card: Card) -> Resolution:
    """Say a person's decision as what the store carries out. Raises BadInput for one that cannot be."""
    whole = plainly(verdict, dispute, card)
    reason, claim = whole.reason or "decided by a person", whole.claim or dispute.new.claim
    made = Ruling(rationale=reason, claim=claim, rules=whole.rules, recommendation=whole.decision)
    return carried_out(made, whole.by, dispute, card)


def carried_out(made: Ruling, by: str, dispute: Dispute, card: Card) -> Resolution:
    """Say a decision as what the store carries out, with the trials that the winner won as evidence."""
    rules = [Rule(condition=each.condition, pattern=each.pattern) for each in made.rules if each.condition]
    if made.recommendation == "keep_old":
        return KeepOld(reason=made.rationale, by=by, outcomes=_outcomes(dispute, "old", card))
    outcomes = _outcomes(dispute, "new", card)
    if made.recommendation == "merge":
        conditions = {rule.condition for rule in rules}
        kept = [rule for rule in card.rules if rule.condition not in conditions]
        return Merge(reason=made.rationale, by=by, claim=made.claim, rules=[*kept, *rules], outcomes=outcomes)
    new = guideline(dispute.new.solution)
    if not rules and new:
        rules = [Rule(condition=new.condition, pattern=new.pattern)]
    lesson = Lesson(claim=made.claim, rationale=made.rationale, rules=rules, tags=card.tags, scope=card.scope)
    return DeprecateOld(reason=made.rationale, by=by, lesson=lesson, outcomes=outcomes)


def _outcomes(dispute: Dispute, side: str, card: Card) -> list[TaskOutcome]:
    """Count the trials that a side won as tasks that its approach served, as surely as the card was sure."""
    won = [trial.task for tested in dispute.rounds for trial in tested.trials if trial.winner == side]
    return [TaskOutcome(task=task, success=True, confidence=card.confidence) for task in won]
