"""`mneme disputes …`: list and show disputes, test them, and decide them."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, get_args

from langgraph.types import Command
from rich.markup import escape

from mneme.api.card_reviews import ToReview
from mneme.api.cards import Cards
from mneme.cli.chat.talk import show_notice
from mneme.cli.learning.cards import rule_of
from mneme.cli.show import console, print_beside, print_result, print_table
from mneme.client.home import open_operations
from mneme.client.team import TeamSession, open_team_session
from mneme.core.errors import BadInput
from mneme.environments.worlds import world_names
from mneme.environments.worlds.registry import WORKSPACE
from mneme.nodes.learning.dispute_decisions import Decision, Verdict, new_evidence, old_evidence, plainly
from mneme.stores.cards.disputes import Approach, Dispute

Context = dict[str, Any]


def print_disputes(found: Sequence[Dispute]) -> None:
    """Print disputes as a table."""
    rows = ([each.id, each.status, each.card_id, each.new.claim, _ended(each)] for each in found)
    print_table("", ("id", "status", "card", "finding", "resolution"), rows)


def _ended(dispute: Dispute) -> str:
    return f"{dispute.resolution.decision}: {dispute.resolution.reason}" if dispute.resolution else ""


async def show(team: str, dispute: str, as_json: bool) -> None:
    """Print one dispute with its trials."""
    async with open_operations(Cards, team, reading=True) as cards:
        found = await cards.evidence(dispute)
    assert found.dispute is not None
    print_result(found.dispute, as_json, partial(print_dispute, rests_on=found))


async def open_(
    card: str, finding: Mapping[str, str], rule: str, reason: str, team: str, as_json: bool
) -> None:
    """Open a dispute of a finding against a card, and print it."""
    read = [rule_of(rule)] if rule else []
    solution = "".join(f"{each.condition} -> {each.pattern}" for each in read)
    async with open_operations(Cards, team) as cards:
        found = await cards.get(card)
        new = Approach(**finding, solution=solution)
        opened = await cards.open_dispute(found.id, Approach(claim=found.claim), new, reason)
    print_result(opened, as_json, print_dispute)


async def resolve(dispute: str, verdict: Mapping[str, Any], context: Context, as_json: bool) -> int:
    """Test a dispute, or resolve it as a person decided; return 1 if it then waits for a person."""
    decision = verdict["decision"]
    if decision and decision not in get_args(Decision):
        raise BadInput(f"There is no decision {decision!r}.", f"There are: {', '.join(get_args(Decision))}.")
    rules = [rule_of(each).model_dump() for each in verdict["rules"]]
    if not decision and (rules or verdict["claim"]):
        raise BadInput("A claim and rules are for a decision.", "Add --decision merge or deprecate_old.")
    if not decision:
        await show_notice(context["devils_advocate"])
    async with open_team_session(context["team"]) as session:
        found = await session.cards.get_dispute(dispute)
        if decision:
            made = Verdict.model_validate({**verdict, "rules": rules, "by": "user"})
            ended = await decide(session, found, made, context)
        else:
            ended = await run_dispute(session, found.id, context)
        rests_on = await session.cards.evidence(ended.id)
    print_result(ended, as_json, partial(print_dispute, rests_on=rests_on))
    return int(ended.unresolved)


async def decide(session: TeamSession, dispute: Dispute, verdict: Verdict, context: Context) -> Dispute:
    """Resume the run that waits for a person; without such a run, change the ledger.

    Raises BadInput for a decision that cannot be applied: the run would only ask again.
    """
    if not dispute.unresolved:
        raise BadInput(
            f"{dispute.id} is resolved already: {_ended(dispute)}", f"See `mneme disputes show {dispute.id}`."
        )
    config = await session.dispute(dispute.id)
    left, _ = await session.flows.left_at("dispute_resolution", config)
    if "ask_person" not in left:
        return await session.cards.decide(dispute.id, verdict)
    card = await session.cards.get(dispute.card_id)
    answer: Any = Command(resume=plainly(verdict.model_dump(), dispute, card).model_dump())
    await session.flows.invoke("dispute_resolution", answer, config, _team_part(context))
    return await session.cards.get_dispute(dispute.id)


async def run_dispute(session: TeamSession, dispute_id: str, context: Context) -> Dispute:
    """Run the trials, or continue a killed run; a run that waits for a person keeps waiting."""
    config = await session.dispute(dispute_id)
    left, _ = await session.flows.left_at("dispute_resolution", config)
    dispute = await session.cards.get_dispute(dispute_id)
    if context.get("environment") in {"", WORKSPACE}:  # similar tasks are those of the card's own world
        scope = (await session.cards.get(dispute.card_id)).scope
        context = context | {"environment": scope if scope in world_names() else ""}
    if "ask_person" not in left and dispute.unresolved:
        given: Any = None if left else {"dispute_id": dispute_id}
        await session.flows.invoke("dispute_resolution", given, config, _team_part(context))
    return await session.cards.get_dispute(dispute_id)


def _team_part(context: Context) -> Context:
    """Return the part of the learning graph's context that the dispute graph has too."""
    return {name: value for name, value in context.items() if name not in OTHERS}


OTHERS = ("researcher", "leader", "monitor", "recall")


def print_dispute(dispute: Dispute, rests_on: ToReview | None = None) -> None:
    """Print a dispute: both approaches, what they rest on, the trials, and how it ended or what it awaits."""
    console.print(
        f"  [yellow]dispute[/] {dispute.id} ({dispute.status}, {dispute.conflict_type}) on {dispute.card_id}"
    )
    evidence = [old_evidence(rests_on.card), new_evidence(rests_on.task)] if rests_on else ["", ""]
    for side, approach, basis in zip(("old", "new"), (dispute.old, dispute.new), evidence, strict=True):
        print_beside(f"    {side}: ", escape(approach.solution or approach.claim))
        if basis:
            print_beside("      ", f"[dim]rests on {escape(basis)}[/]")
    for number, tested in enumerate(dispute.rounds, start=1):
        won = [trial.winner for trial in tested.trials]
        told = f"{', '.join(won)} -> {tested.recommendation}: {escape(tested.rationale)}"
        print_beside(f"    round {number}: ", told)
        for trial in tested.trials:
            for edge in trial.edge_cases:
                print_beside("      ", f"[dim]{trial.task}: {escape(edge)}[/]")
    if dispute.status == "resolved":
        print_beside("    ", escape(_ended(dispute)))
    elif dispute.status == "escalated":
        decisions = "|".join(get_args(Decision))
        console.print(f"    waits for a person: mneme disputes resolve {dispute.id} --decision {decisions}")
