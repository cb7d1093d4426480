"""Dispute resolution (§5): try both approaches on similar tasks, recommend, and ask a person at the end.

The similar tasks are drawn by the environment's own generator: those to which both conditions apply.
Where nothing can be tried, or two rounds do not decide, the dispute is escalated: it waits in the ledger
and in the checkpoint, however long, for a person's decision.
"""

import asyncio
from collections.abc import Sequence
from typing import Annotated, Any, Literal
from zlib import crc32

from pydantic import Field
from typing_extensions import TypedDict

from mneme.environments.worlds import Task, World, WorldKind, find_world
from mneme.models.asking.asking import ask
from mneme.nodes import answers
from mneme.nodes.channels import Plain, Typed
from mneme.nodes.learning.context import TeamContext, TeamRuntime, cards_of, who_answers
from mneme.nodes.learning.dispute_decisions import (
    Ruling,
    Verdict,
    carried_out,
    decided,
    new_evidence,
    old_evidence,
    plainly,
    proposed,
    sides_of,
)
from mneme.nodes.learning.dispute_trials import match_of, paired, tried
from mneme.nodes.learning.worlds import advice_of, refuse_outside
from mneme.prompts.learning.dispute_resolution import (
    Contest,
    Guideline,
    Match,
    resolve_dispute,
)
from mneme.stores.cards.card import Card
from mneme.stores.cards.disputes import Dispute, Escalate, PairedTrial, Resolution, Round
from mneme.stores.cards.task_log import TaskRecord
from mneme.stores.ledger.records import Change

ROUNDS = 2
SIMILAR = 5


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

    dispute: Annotated[dict[str, Any], Plain]
    recommendation: Annotated[dict[str, Any], Plain]
    rounds: int


class State(Case, Ended, total=False):
    """The dispute, the similar tasks of this round, and every match so far."""

    similar: Annotated[list[Task], Typed]
    matches: Annotated[list[Match], Typed]
    trials: Annotated[list[PairedTrial], Typed]
    responder: str
    verdict: Annotated[Verdict | None, Typed]


Update = dict[str, Any]


async def choose(state: State, runtime: TeamRuntime) -> Update:
    """Draw 3 to 5 similar tasks that no earlier round tried."""
    dispute = await cards_of(runtime).disputes.get(state["dispute_id"])
    card = await cards_of(runtime).records.get(dispute.card_id)
    rounds = len(dispute.rounds)
    found: Sequence[Task] = []
    if rounds < ROUNDS:
        found = await asyncio.to_thread(_similar, dispute, card, rounds, runtime.context)
    runtime.stream_writer({"step": "choose", "round": rounds + 1, "tasks": [each.id for each in found]})
    return {
        "dispute": dispute,
        "similar": found,
        "matches": state.get("matches") or [],
        "trials": [],
        "rounds": rounds,
    }


def _similar(dispute: Dispute, card: Card, rounds: int, context: TeamContext) -> list[Task]:
    """Return the tasks of this round; none where there is no world or an approach cannot be run.

    Two rounds of a world that has a few tasks alone try different ones of them.
    """
    sides = sides_of(dispute, card)
    if not context.environment or sides is None:
        return []
    kind = _kind(context)
    seed = crc32(f"{dispute.id} {rounds}".encode())
    own = Task(id=dispute.new.task or dispute.id, given=context.drawn)
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
    """Say whether both approaches are about this task; of words, it is enough that nothing says otherwise."""
    return all(_is_about(side, world) for side in sides)


def _is_about(side: Guideline, world: World) -> bool:
    applies = world.applies(side.condition)
    return applies is True or (applies is None and advice_of(world, "", side.pattern).is_text)


def can_test(state: State) -> Literal["test", "recommend"]:
    """Test where there is something to test on."""
    return "test" if state["similar"] else "recommend"


async def test(state: State, runtime: TeamRuntime) -> Update:
    """Run both approaches on each similar task, and compare accuracy, latency and edge cases.

    A task on which an approach in words could not be carried out at all tells nothing, and is left out.
    """
    sides = await _both(state, runtime)
    assert sides is not None
    matches, trials = list(state["matches"]), []
    for task in state["similar"]:
        world = await asyncio.to_thread(_kind(runtime.context).open, task)
        old, new = [await tried(world, task, side, runtime) for side in sides]
        if old is None or new is None:
            continue
        match = match_of(world, old, new)
        runtime.stream_writer({"step": "test", "task": task.text, "match": str(match)})
        matches.append(match)
        trials.append(paired(task, old, new, match))
    return {"matches": matches, "trials": trials}


async def _both(state: State, runtime: TeamRuntime) -> tuple[Guideline, Guideline] | None:
    dispute = await cards_of(runtime).disputes.get(state["dispute_id"])
    return sides_of(dispute, await cards_of(runtime).records.get(dispute.card_id))


async def recommend(state: State, runtime: TeamRuntime) -> Update:
    """Let the devil's advocate recommend, and keep the round with its trials."""
    cards = cards_of(runtime)
    dispute = await cards.disputes.get(state["dispute_id"])
    given = await _contest(dispute, state, runtime)
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


async def _contest(dispute: Dispute, state: State, runtime: TeamRuntime) -> Contest:
    cards = cards_of(runtime)
    card = await cards.records.get(dispute.card_id)
    old, new = sides_of(dispute, card) or (_words(dispute.old.claim), _words(dispute.new.claim))
    task = await cards.tasks.get(dispute.new.task) if dispute.new.task else None
    return Contest(
        claim=card.claim,
        old=old,
        new=new,
        conflict_type=dispute.conflict_type,
        matches=state["matches"],
        old_tasks=card.evidence.success_count,
        old_evidence=old_evidence(card),
        new_evidence=new_evidence(task),
    )


def _words(claim: str) -> Guideline:
    return Guideline(condition="", pattern=claim)


def is_decided(state: State) -> Literal["settle", "choose", "escalate"]:
    """Settle what is decided; try another round while one is left; then it is a person's."""
    if state["recommendation"]["recommendation"] != "escalate":
        return "settle"
    return "choose" if state["trials"] and state["rounds"] < ROUNDS else "escalate"


async def escalate(state: State, runtime: TeamRuntime) -> Update:
    """Note in the ledger that a person is to decide."""
    reason = state["recommendation"]["rationale"]
    dispute = await cards_of(runtime).resolve(
        state["dispute_id"], Escalate(reason=reason, by="devils_advocate")
    )
    return {"dispute": dispute}


async def ask_person(state: State, runtime: TeamRuntime) -> Update:
    """Wait for a person's decision; the dispute is safe in ledger and checkpoint meanwhile."""
    dispute = await cards_of(runtime).disputes.get(state["dispute_id"])
    if not dispute.unresolved:  # decided elsewhere while this run waited
        return {"dispute": dispute, "verdict": None}
    cards = cards_of(runtime)
    card = await cards.records.get(dispute.card_id)
    task = await cards.tasks.get(dispute.new.task) if dispute.new.task else None
    question = _question(dispute, state, card, task)
    verdict = answers.ask_person(question, Verdict, lambda said: plainly(said, dispute, card))
    return {"verdict": verdict}


def _question(dispute: Dispute, state: State, card: Card, task: TaskRecord | None) -> dict[str, Any]:
    """Ask so that Studio, the command line, agent-inbox and agent-chat-ui can each show it."""
    offered = proposed(dispute, card)
    sides = f"{dispute.old.claim}\n(rests on {old_evidence(card)})\nagainst\n{dispute.new.claim}"
    about = f"{sides}\n(rests on {new_evidence(task)})\n\n{state['recommendation']['rationale']}"
    allowed = ("approve", "edit", "reject")
    shown = answers.action("resolve_dispute", about, offered, allowed)
    return {"dispute": state["dispute"], "matches": [each.model_dump() for each in state["matches"]], **shown}


async def settle(state: State, runtime: TeamRuntime) -> Update:
    """Settle the dispute: change the card as decided. Asked again, nothing happens twice."""
    cards = cards_of(runtime)
    dispute = await cards.disputes.get(state["dispute_id"])
    if dispute.unresolved:
        dispute = await cards.resolve(dispute.id, await _resolution(state, dispute, runtime))
    runtime.stream_writer({"step": "settle", "dispute": dispute.id, "status": dispute.status})
    return {"dispute": dispute}


async def _resolution(state: State, dispute: Dispute, runtime: TeamRuntime) -> Resolution:
    card = await cards_of(runtime).records.get(dispute.card_id)
    if verdict := state.get("verdict"):
        return decided(verdict, dispute, card)
    made = Ruling.model_validate(state["recommendation"])
    return carried_out(made, "devils_advocate", dispute, card)
