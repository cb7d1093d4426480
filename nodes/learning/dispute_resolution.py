"""Dispute resolution (§5): try both approaches on similar tasks, recommend, and ask a person at the end.

The similar tasks are drawn by the environment's own generator: those to which both conditions apply.
Where nothing can be tried, or two rounds do not decide, the dispute is escalated: it waits in the ledger
and in the checkpoint, however long, for a person's decision.
"""

import asyncio
from collections.abc import Sequence
from typing import Annotated, Any, Literal
from zlib import crc32

from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from mneme.core.errors import BadInput
from mneme.environments.worlds import Solution, Task, World, WorldKind, find_world
from mneme.models.asking.asking import ask
from mneme.nodes import answers
from mneme.nodes.answers import Listed
from mneme.nodes.learning.context import TeamContext, TeamRuntime, cards_of, who_answers
from mneme.nodes.learning.worlds import SET, advice_of, attempt, refuse_outside
from mneme.prompts.learning.dispute_resolution import (
    Contest,
    Guideline,
    Match,
    edge_cases,
    guideline,
    resolve_dispute,
)
from mneme.prompts.learning.trials import Measurement
from mneme.stores.cards import disputes
from mneme.stores.cards.card import Card, Lesson, Rule, TaskOutcome
from mneme.stores.cards.disputes import DeprecateOld, Dispute, Escalate, KeepOld, Merge, Resolution, Round
from mneme.stores.ledger.records import Change

ROUNDS = 2
SIMILAR = 5
AS_FAST = 1.1
"""An approach is better where it is at least a tenth faster; a closer race is nobody's."""
Decision = Literal["deprecate_old", "keep_old", "merge"]
DECISIONS = 'Decide: deprecate_old, keep_old or merge, like {"decision": "keep_old"}.'


class Case(TypedDict):
    """Which dispute to resolve."""

    dispute_id: Annotated[
        str,
        Field(
            description="The dispute; `mneme disputes list` shows them.",
            examples=["dispute_0f3a9c5b7d1e2f46"],
        ),
    ]


class Ended(TypedDict, total=False):
    """How a dispute ended, and on what evidence."""

    dispute: dict[str, Any]
    recommendation: dict[str, Any]
    rounds: int


class Ruling(BaseModel):
    """A decision on a dispute, in words as long as a person chooses."""

    rationale: str
    claim: str = ""
    rules: list[Guideline] = []
    recommendation: Literal["deprecate_old", "keep_old", "merge", "escalate"]


class State(Case, Ended, total=False):
    """The dispute, the similar tasks of this round, and every match so far."""

    similar: list[dict[str, Any]]
    matches: list[dict[str, Any]]
    trials: list[dict[str, Any]]
    responder: str
    verdict: dict[str, Any]


class Args(BaseModel):
    """The arguments of the one action that a person reviews."""

    decision: Decision
    reason: str = ""
    claim: str = ""
    rules: Listed[Guideline] = []


class Verdict(BaseModel):
    """A person's decision on a dispute; `nodes/answers.py` has the forms in which clients send it."""

    decision: Decision = Field(description="deprecate_old, keep_old or merge.")
    reason: str = Field("", description="Why; kept in the history.")
    by: str = Field("a person", description="Who decides.")
    claim: str = Field("", description="For merge: the claim of the merged card; empty: the proposed one.")
    rules: Listed[Guideline] = Field([], description="For merge: its conditional rules; empty: the proposed.")


Update = dict[str, Any]


async def choose(state: State, runtime: TeamRuntime) -> Update:
    """Draw 3 to 5 similar tasks that no earlier round tried."""
    dispute = await cards_of(runtime).disputes.get(state["dispute_id"])
    rounds = len(dispute.rounds)
    found: Sequence[Task] = []
    if rounds < ROUNDS:
        found = await asyncio.to_thread(_similar, dispute, rounds, runtime.context)
    runtime.stream_writer({"step": "choose", "round": rounds + 1, "tasks": [each.id for each in found]})
    return {
        "dispute": _plain(dispute),
        "similar": [each.model_dump(mode="json") for each in found],
        "matches": state.get("matches") or [],
        "rounds": rounds,
    }


def _plain(dispute: Dispute) -> dict[str, Any]:
    return dispute.model_dump(mode="json")


def _similar(dispute: Dispute, rounds: int, context: TeamContext) -> list[Task]:
    """Return the tasks of this round; none where there is no world or an approach cannot be run.

    Two rounds of a world that has a few tasks alone try different ones of them.
    """
    sides = _sides(dispute)
    if not context.environment or sides is None:
        return []
    kind = _kind(context)
    seed = crc32(f"{dispute.id} {rounds}".encode())
    own = Task(id=dispute.new.task or dispute.id, given={each: getattr(context, each) for each in SET})
    tried = {trial.task for tested in dispute.rounds for trial in tested.trials}
    drawn = [task for task in kind.similar(own, seed) if task.id not in tried]
    fitting = [task for task in drawn if _fits(sides, kind.open(task))]
    first_of_group = {task.group: task for task in reversed(fitting)}.values()
    others = [task for task in fitting if task not in first_of_group]
    return [*first_of_group, *others][:SIMILAR]


def _kind(context: TeamContext) -> WorldKind:
    refuse_outside(context.environment, {})
    return find_world(context.environment)


def _fits(sides: Sequence[Guideline], world: World) -> bool:
    return world.language is not None and all(world.applies(side.condition) is True for side in sides)


def _sides(dispute: Dispute) -> tuple[Guideline, Guideline] | None:
    old, new = guideline(dispute.old.solution), guideline(dispute.new.solution)
    return (old, new) if old and new else None


def can_test(state: State) -> Literal["test", "recommend"]:
    """Test where there is something to test on."""
    return "test" if state["similar"] else "recommend"


async def test(state: State, runtime: TeamRuntime) -> Update:
    """Run both approaches on each similar task, and compare accuracy, latency and edge cases."""
    sides = _sides(await cards_of(runtime).disputes.get(state["dispute_id"]))
    assert sides is not None
    matches, trials = list(state["matches"]), []
    for given in state["similar"]:
        task = Task.model_validate(given)
        world = await asyncio.to_thread(_kind(runtime.context).open, task)
        old, new = [await _attempt(world, side) for side in sides]
        match = _match(world, old, new)
        runtime.stream_writer({"step": "test", "task": task.text, "match": str(match)})
        matches.append(match.model_dump())
        trials.append(_trial(task, old, new, match).model_dump(mode="json"))
    return {"matches": matches, "trials": trials}


async def _attempt(world: World, side: Guideline) -> Measurement:
    advice = advice_of(world, side.condition, side.pattern)
    if advice.feasible:
        made = Solution(statements=advice.statements, query=advice.query, files=advice.files)
        return await attempt(world, made)
    return Measurement(correct=False, gain=0.0, wanted=0.0, summary=advice.why_not, problem=advice.why_not)


def _match(world: World, old: Measurement, new: Measurement) -> Match:
    return Match(
        features="; ".join(world.features),
        old=old.summary,
        new=new.summary,
        edge_cases=edge_cases([("old", old), ("new", new)]),
        winner=_winner(old, new),
    )


def _winner(old: Measurement, new: Measurement) -> Literal["old", "new", "neither"]:
    """Name the one that solves the task alone, or clearly faster; accuracy and room go before time."""
    if old.solved != new.solved:
        return "old" if old.solved else "new"
    if not old.solved:
        return "neither"
    if new.gain > AS_FAST * old.gain:
        return "new"
    return "old" if old.gain > AS_FAST * new.gain else "neither"


def _trial(task: Task, old: Measurement, new: Measurement, match: Match) -> disputes.PairedTrial:
    return disputes.PairedTrial(
        task=task.id,
        old_correct=old.correct,
        new_correct=new.correct,
        old_seconds=_seconds(old),
        new_seconds=_seconds(new),
        edge_cases=match.edge_cases,
        winner=match.winner,
    )


def _seconds(trial: Measurement) -> float | None:
    found = [each.value for each in trial.metrics if each.name.endswith("seconds")]
    return found[0] if found and trial.correct else None


async def recommend(state: State, runtime: TeamRuntime) -> Update:
    """Let the devil's advocate recommend, and keep the round with its trials."""
    cards = cards_of(runtime)
    dispute = await cards.disputes.get(state["dispute_id"])
    given = await _contest(dispute, state, runtime)
    who = await who_answers("devils_advocate", runtime)
    answered = await ask(resolve_dispute, given, who, lane="background")
    runtime.stream_writer({"step": "recommend", **answered.value.model_dump()})
    if state["similar"]:
        tested = Round(
            trials=[disputes.PairedTrial.model_validate(each) for each in state["trials"]],
            recommendation=answered.value.recommendation,
            rationale=answered.value.rationale,
            by=answered.responder,
        )
        change = Change(reason=answered.value.rationale, actor="devils_advocate", model=answered.responder)
        once = f"round {state['rounds'] + 1}"
        dispute = await cards.disputes.add_round(dispute.id, tested, change=change, idempotency_key=once)
    return {
        "dispute": _plain(dispute),
        "recommendation": answered.value.model_dump(),
        "rounds": len(dispute.rounds),
        "responder": answered.responder,
    }


async def _contest(dispute: Dispute, state: State, runtime: TeamRuntime) -> Contest:
    card = await cards_of(runtime).records.get(dispute.card_id)
    old, new = _sides(dispute) or (_words(dispute.old.claim), _words(dispute.new.claim))
    return Contest(
        claim=card.claim,
        old=old,
        new=new,
        conflict_type=dispute.conflict_type,
        matches=[Match.model_validate(each) for each in state["matches"]],
        old_tasks=card.evidence.success_count,
    )


def _words(claim: str) -> Guideline:
    return Guideline(condition="", pattern=claim)


def is_decided(state: State) -> Literal["settle", "choose", "escalate"]:
    """Settle what is decided; try another round while one is left; then it is a person's."""
    if state["recommendation"]["recommendation"] != "escalate":
        return "settle"
    return "choose" if state["similar"] and state["rounds"] < ROUNDS else "escalate"


async def escalate(state: State, runtime: TeamRuntime) -> Update:
    """Note in the ledger that a person is to decide."""
    reason = state["recommendation"]["rationale"]
    dispute = await cards_of(runtime).resolve(
        state["dispute_id"], Escalate(reason=reason, by="devils_advocate")
    )
    return {"dispute": _plain(dispute)}


async def ask_person(state: State, runtime: TeamRuntime) -> Update:
    """Wait for a person's decision; the dispute is safe in ledger and checkpoint meanwhile."""
    dispute = await cards_of(runtime).disputes.get(state["dispute_id"])
    if not dispute.unresolved:  # decided elsewhere while this run waited
        return {"dispute": _plain(dispute), "verdict": {}}
    verdict = answers.ask_person(_question(dispute, state), Verdict, lambda said: plainly(said, dispute))
    return {"verdict": verdict.model_dump()}


def _question(dispute: Dispute, state: State) -> dict[str, Any]:
    """Ask so that Studio, the command line, agent-inbox and agent-chat-ui can each show it."""
    proposed = _proposed(dispute)
    about = f"{dispute.old.claim}\nagainst\n{dispute.new.claim}\n\n{state['recommendation']['rationale']}"
    allowed = ("approve", "edit", "reject")
    shown = answers.action("resolve_dispute", about, proposed.model_dump(), allowed, Args.model_json_schema())
    return {"dispute": state["dispute"], "matches": state["matches"], **shown}


def _proposed(dispute: Dispute) -> Args:
    """Propose what a person would approve: to merge both approaches where both can be rules, else to keep."""
    sides = _sides(dispute)
    if sides is None or sides[0].condition == sides[1].condition:
        return Args(decision="keep_old", reason="The trials do not speak against it.")
    return Args(
        decision="merge",
        reason="The trials do not decide: each under its own condition.",
        claim=dispute.old.claim,
        rules=list(sides),
    )


def plainly(answer: object, dispute: Dispute) -> Verdict:
    """Read a person's answer. Raises BadInput for one that decides nothing.

    To reject what is proposed, with words or without, or to ignore it, is to keep the card as it is.
    """
    given = answers.decided(answer)
    if given is None:
        verdict = answers.validated(Verdict, answer, DECISIONS)
    else:
        verdict = _reviewed(given, _proposed(dispute))
    return _with_rules(verdict, dispute) if verdict.decision == "merge" else verdict


def _reviewed(given: answers.Decided, proposed: Args) -> Verdict:
    if given.kind == "edit":
        proposed = answers.validated(Args, given.args, DECISIONS)
    elif given.kind != "accept":
        proposed = Args(decision="keep_old", reason="rejected")
    return Verdict(**{**dict(proposed), "reason": given.text or proposed.reason})


def _with_rules(verdict: Verdict, dispute: Dispute) -> Verdict:
    sides = _sides(dispute)
    if verdict.rules:
        return verdict.model_copy(update={"claim": verdict.claim or dispute.old.claim})
    if sides is None:
        raise BadInput(
            f"{dispute.id} has no rules that could be merged.",
            "Decide keep_old or deprecate_old, or give the rules in Studio.",
        )
    return verdict.model_copy(update={"rules": list(sides), "claim": verdict.claim or dispute.old.claim})


async def settle(state: State, runtime: TeamRuntime) -> Update:
    """Change the card as recommended or decided; asked again, nothing happens twice."""
    cards = cards_of(runtime)
    dispute = await cards.disputes.get(state["dispute_id"])
    if dispute.unresolved:
        dispute = await cards.resolve(dispute.id, await _resolution(state, dispute, runtime))
    runtime.stream_writer({"step": "settle", "dispute": dispute.id, "status": dispute.status})
    return {"dispute": _plain(dispute)}


async def _resolution(state: State, dispute: Dispute, runtime: TeamRuntime) -> Resolution:
    card = await cards_of(runtime).records.get(dispute.card_id)
    if state.get("verdict"):
        return decided(Verdict.model_validate(state["verdict"]), dispute, card)
    made = Ruling.model_validate(state["recommendation"])
    return carried_out(made, "devils_advocate", dispute, card)


def decided(verdict: Verdict, dispute: Dispute, card: Card) -> Resolution:
    """Say a person's decision as what the store carries out. Raises BadInput for one that cannot be."""
    whole = plainly(verdict, dispute)
    made = Ruling(
        rationale=whole.reason or "decided by a person",
        claim=whole.claim or dispute.new.claim,
        rules=whole.rules,
        recommendation=whole.decision,
    )
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
