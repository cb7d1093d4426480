"""Dispute resolution (§5): try both approaches on similar tasks, recommend, and ask a person at the end.

The similar tasks are drawn by the environment's own generator: those to which both conditions apply.
Where nothing can be tried, or two rounds do not decide, the dispute is escalated: it waits in the ledger
and in the checkpoint, however long, for a person's decision.
"""

import asyncio
from collections.abc import Sequence
from typing import Annotated, Any, Literal
from zlib import crc32

from typing_extensions import TypedDict

from mneme.environments.fields import described
from mneme.environments.trial import Trial
from mneme.environments.worlds import Task, World, find_world
from mneme.models.asking.asking import ask
from mneme.nodes import answers
from mneme.nodes.learning.context import TeamContext, TeamRuntime, cards_of, who_answers
from mneme.nodes.learning.verdicts import (
    Verdict,
    decision_of,
    new_evidence,
    old_evidence,
    plainly,
    proposed,
    sides_of,
)
from mneme.nodes.learning.worlds import advice_of, attempt, opened, refuse_outside, told_of
from mneme.nodes.workflow import Plain, Typed, Update, read_input
from mneme.prompts.learning.dispute_resolution import (
    CarriedApproach,
    Contest,
    Guideline,
    Match,
    carry_out,
    resolve_dispute,
)
from mneme.stores.cards.card import Card
from mneme.stores.cards.disputes import Dispute, PairedTrial, Resolution, Round
from mneme.stores.cards.knowledge_cards import KnowledgeCards
from mneme.stores.ledger.records import Change

MAX_ROUNDS = 2
MAX_SIMILAR_TASKS = 5
AS_FAST = 1.1
"""Speed-up from which an approach counts as faster than the other."""


class Case(TypedDict):
    """The dispute to resolve."""

    dispute_id: Annotated[
        str, described("The dispute; `mneme disputes list` shows them.", "dispute_0f3a9c5b7d1e2f46", ...)
    ]


class Ended(TypedDict, total=False):
    """The end of a dispute, and its evidence."""

    dispute: Annotated[dict[str, Any], Plain]
    recommendation: Annotated[dict[str, Any], Plain]
    rounds: int


class State(Case, Ended, total=False):
    """The dispute, the similar tasks of this round, and its trials."""

    similar: Annotated[list[Task], Typed]
    trials: Annotated[list[PairedTrial], Typed]
    responder: str
    verdict: Annotated[Verdict | None, Typed]


async def _disputed(state: State, runtime: TeamRuntime) -> tuple[KnowledgeCards, Dispute, Card]:
    """Return the team's cards, the dispute, and its card."""
    cards = cards_of(runtime)
    dispute = await cards.disputes.get(read_input(Case, state)["dispute_id"])
    return cards, dispute, await cards.records.get(dispute.card_id)


async def choose(state: State, runtime: TeamRuntime) -> Update:
    """Draw 3 to 5 similar tasks that no earlier round tried."""
    _, dispute, card = await _disputed(state, runtime)
    rounds = len(dispute.rounds)
    found: Sequence[Task] = []
    if rounds < MAX_ROUNDS:  # a dispute that was escalated before has had its rounds
        found = await asyncio.to_thread(_similar, dispute, card, rounds, runtime.context)
    runtime.stream_writer({"step": "choose", "round": rounds + 1, "tasks": [each.id for each in found]})
    return {"dispute": dispute, "similar": found, "trials": [], "rounds": rounds}


def _similar(dispute: Dispute, card: Card, rounds: int, context: TeamContext) -> list[Task]:
    """Return the tasks of this round; none if there is no world or an approach cannot be run."""
    sides = sides_of(dispute, card)
    if not context.environment or sides is None:
        return []
    refuse_outside(context.environment, {})
    kind = find_world(context.environment)
    seed = crc32(f"{dispute.id} {rounds}".encode())  # unlike `hash`, the same after a restart
    own = Task(id=dispute.new.task or dispute.id, given=context.drawn)
    tried = {trial.task for trial in dispute.trials}  # a world may have only a few tasks, and draw them again
    drawn = [task for task in kind.similar(own, seed) if task.id not in tried]
    worlds = ((task, kind.open(task)) for task in drawn)
    fitting = [task for task, world in worlds if all(is_about(side, world) for side in sides)]
    # Reversed, since the last value of a key stays: so each group has its first task.
    first_of_group = {task.group: task for task in reversed(fitting)}.values()
    others = [task for task in fitting if task not in first_of_group]
    return [*first_of_group, *others][:MAX_SIMILAR_TASKS]


def is_about(side: Guideline, world: World) -> bool:
    """Return whether an approach applies to this task; one in words does unless its condition is false."""
    applies = world.applies(side.condition)
    return applies is True or (applies is None and advice_of(world, "", side.pattern).is_text)


def can_test(state: State) -> Literal["test", "recommend"]:
    """Return `test` if there are similar tasks to test on, else `recommend`."""
    return "test" if state["similar"] else "recommend"


async def test(state: State, runtime: TeamRuntime) -> Update:
    """Run both approaches on each similar task, and compare accuracy, latency and edge cases."""
    _, dispute, card = await _disputed(state, runtime)
    sides = sides_of(dispute, card)
    assert sides is not None  # without both sides no similar tasks are drawn
    trials = []
    for task in state["similar"]:
        world = await asyncio.to_thread(opened, runtime.context.environment, task)
        old, new = [await tried(world, task, side, runtime.context.devils_advocate) for side in sides]
        if old is None or new is None:
            continue  # words that could not be carried out at all prove nothing about the approach
        trials.append(paired(world, task, old, new))
        runtime.stream_writer({"step": "test", "task": task.text, "match": str(match_of(trials[-1]))})
    return {"trials": trials}


async def recommend(state: State, runtime: TeamRuntime) -> Update:
    """Let the devil's advocate recommend a resolution, and store the round with its trials."""
    cards, dispute, card = await _disputed(state, runtime)
    claims = dispute.old.claim, dispute.new.claim
    old, new = sides_of(dispute, card) or (Guideline(condition="", pattern=claim) for claim in claims)
    # Up to the count at `choose`: a replayed step finds its own round in the ledger already.
    earlier = [trial for tested in dispute.rounds[: state["rounds"]] for trial in tested.trials]
    given = Contest(
        claim=card.claim,
        old=old,
        new=new,
        conflict_type=dispute.conflict_type,
        matches=[match_of(each) for each in (*earlier, *state["trials"])],
        old_tasks=card.evidence.success_count,
        old_evidence=old_evidence(card),
        new_evidence=new_evidence(await cards.task_behind(dispute)),
    )
    who = await who_answers("devils_advocate", runtime)
    answered = await ask(resolve_dispute, given, who, lane="background")
    runtime.stream_writer({"step": "recommend", **answered.value.model_dump()})
    if state["trials"]:
        tested = Round(
            trials=state["trials"],
            recommendation=answered.value.recommendation,
            rationale=answered.value.rationale,
            by=answered.responder,
        )
        change = Change(reason=answered.value.rationale, actor="devils_advocate", model=answered.responder)
        once = f"round {state['rounds'] + 1}"
        dispute = await cards.disputes.add_round(dispute.id, tested, change=change, idempotency_key=once)
    return {
        "dispute": dispute,
        "recommendation": answered.value,
        "rounds": len(dispute.rounds),
        "responder": answered.responder,
    }


def is_decided(state: State) -> Literal["settle", "choose", "escalate"]:
    """Settle a decided dispute; else try another round if one is left; else escalate to a person."""
    if state["recommendation"]["recommendation"] != "escalate":
        return "settle"
    return "choose" if state["trials"] and state["rounds"] < MAX_ROUNDS else "escalate"


async def escalate(state: State, runtime: TeamRuntime) -> Update:
    """Note in the ledger that a person must decide."""
    reason = state["recommendation"]["rationale"]
    waits = Resolution(decision="escalate", reason=reason, by="devils_advocate")
    return {"dispute": await cards_of(runtime).resolve(state["dispute_id"], waits)}


async def ask_person(state: State, runtime: TeamRuntime) -> Update:
    """Wait for a person's decision; meanwhile the dispute is safe in the ledger and the checkpoint."""
    cards, dispute, card = await _disputed(state, runtime)
    if not dispute.unresolved:  # decided elsewhere while this run waited
        return {"dispute": dispute, "verdict": None}
    sides = f"{dispute.old.claim}\n(rests on {old_evidence(card)})\nagainst\n{dispute.new.claim}"
    newer = new_evidence(await cards.task_behind(dispute))
    about = f"{sides}\n(rests on {newer})\n\n{state['recommendation']['rationale']}"
    question = {
        "dispute": state["dispute"],
        "matches": [dict(match_of(each)) for each in dispute.trials],
        **answers.action("resolve_dispute", about, proposed(dispute, card), ("approve", "edit", "reject")),
    }
    return {"verdict": answers.ask_person(question, Verdict, lambda said: plainly(said, dispute, card))}


async def settle(state: State, runtime: TeamRuntime) -> Update:
    """Settle a dispute of two claims on one card: change the card as decided, once in all replays."""
    cards, dispute, card = await _disputed(state, runtime)
    if dispute.unresolved:
        made = state["recommendation"]
        recommended = {
            "decision": made["recommendation"],
            "reason": made["rationale"],
            "by": "devils_advocate",
        }
        # A person's verdict goes before the recommendation, which was to escalate.
        verdict = state.get("verdict") or Verdict(**recommended, claim=made["claim"], rules=made["rules"])
        dispute = await cards.resolve(dispute.id, decision_of(verdict, dispute, card))
    runtime.stream_writer({"step": "settle", "dispute": dispute.id, "status": dispute.status})
    return {"dispute": dispute}


async def tried(world: World, task: Task, side: Guideline, who: str) -> Trial | None:
    """Try an approach on a task; None if `who` could not carry out its words at all."""
    advice = advice_of(world, side.condition, side.pattern)
    if advice.is_text:
        given = CarriedApproach(**told_of(world, task.text), condition=side.condition, pattern=side.pattern)
        answered = await ask(carry_out, given, who, lane="background")
        return await attempt(world, answered.value.solution) if answered.value.solution.text else None
    if not advice.feasible:
        return Trial(summary=advice.why_not, problem=advice.why_not)
    return await attempt(world, advice)


def match_of(trial: PairedTrial) -> Match:
    """Return a trial in the form that agents and people are shown."""
    return Match.model_validate(trial, from_attributes=True)


def _winner(old: Trial, new: Trial) -> Literal["old", "new", "neither"]:
    """Return the only approach that solves the task, or the clearly faster one; correctness precedes time."""
    if old.solved != new.solved:
        return "old" if old.solved else "new"
    if not old.solved:
        return "neither"
    if new.gain > AS_FAST * old.gain:
        return "new"
    return "old" if old.gain > AS_FAST * new.gain else "neither"


def paired(world: World, task: Task, old: Trial, new: Trial) -> PairedTrial:
    """Return the world's results of both trials, the winner, and failures other than time."""
    failed = [
        (name, trial) for name, trial in (("old", old), ("new", new)) if trial.problem or trial.over_limit
    ]
    return PairedTrial(
        task=task.id,
        features="; ".join(world.features),
        old=old.summary,
        new=new.summary,
        old_correct=old.correct,
        new_correct=new.correct,
        old_seconds=old.seconds,
        new_seconds=new.seconds,
        edge_cases=[f"{name}: {trial.problem or trial.summary}" for name, trial in failed],
        winner=_winner(old, new),
    )
