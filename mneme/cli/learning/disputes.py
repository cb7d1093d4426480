"""`mneme disputes …` and `mneme cards review`: what a person decides of disputes and cards."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Annotated, Any, get_args

import typer
from langchain_core.runnables import RunnableConfig
from langgraph.types import Command
from rich.markup import escape

from mneme.api.cards import Cards, ToReview, rule_of
from mneme.api.rendering import card_lines, dispute_row
from mneme.cli.chat.responders import Context, show_notice
from mneme.cli.derived import Fields
from mneme.cli.learning.cards import USER_ACTOR
from mneme.cli.options import Limit, Reason, Team
from mneme.cli.show import console, from_person, print_beside, print_result, prints_json
from mneme.client.home import open_operations
from mneme.client.workflows import GraphRun, TeamSession, open_team
from mneme.core.errors import BadInput, MnemeError
from mneme.environments.worlds import WORKSPACE, world_names
from mneme.nodes.learning.context import TeamContext
from mneme.nodes.learning.verdicts import Decision, Verdict, new_evidence, old_evidence, plainly
from mneme.stores.cards.disputes import Dispute

Session = TeamSession[Cards]
DISPUTE_GRAPH = "dispute_resolution"
LEARNING_GRAPHS = ("compound_learning", DISPUTE_GRAPH)
DisputeId = Annotated[str, typer.Argument(help="A dispute's id, or its first letters.")]
Deciding = Fields(TeamContext, {"environment": "--world"}, "schema_name database_seed successes_to_verify")


async def show(dispute: DisputeId, team: Team = "local") -> None:
    """Show a dispute: both approaches, the trials, the resolution."""
    async with open_operations(Cards, team, reading=True) as cards:
        found = await cards.evidence(dispute)
    assert found.dispute is not None
    print_result(found.dispute, partial(print_dispute, rests_on=found))


async def resolve(
    dispute: DisputeId,
    context: Annotated[Context, Deciding],
    decision: Annotated[str, "deprecate_old, keep_old or merge; without it, the dispute is tested."] = "",
    claim: Annotated[str, "For merge and deprecate_old: the new claim; else the finding's."] = "",
    rule: Annotated[
        list[str] | None, 'For merge and deprecate_old: "CONDITION: WHAT TO DO"; may be repeated.'
    ] = None,
    reason: Reason = "decided on the command line",
) -> int:
    """Test both approaches on similar tasks, or decide the dispute yourself."""
    if decision and decision not in get_args(Decision):
        raise BadInput(f"There is no decision {decision!r}.", f"There are: {', '.join(get_args(Decision))}.")
    rules = [rule_of(each).model_dump() for each in rule or ()]
    if not decision and (rules or claim):
        raise BadInput("A claim and rules are for a decision.", "Add --decision merge or deprecate_old.")
    if not decision:
        await show_notice(context["devils_advocate"])
    async with open_team(Cards, context["team"], *LEARNING_GRAPHS) as session:
        found = await session.on.get_dispute(dispute)
        if decision:
            given = {"decision": decision, "reason": reason, "claim": claim, "rules": rules, "by": USER_ACTOR}
            made = Verdict.model_validate(given)
            ended = await decide(session, found, made, context)
        else:
            ended = await run_dispute(session, found.id, context)
        rests_on = await session.on.evidence(ended.id)
    print_result(ended, partial(print_dispute, rests_on=rests_on))
    return int(ended.unresolved)


async def decide(session: Session, dispute: Dispute, verdict: Verdict, context: Context) -> Dispute:
    """Resume the run that waits for a person; without such a run, change the ledger. Raises BadInput."""
    if not dispute.unresolved:
        raise BadInput(
            f"{dispute.id} is resolved already: {dispute_row(dispute)['resolution']}",
            f"See `mneme disputes show {dispute.id}`.",
        )
    config = await session.thread(DISPUTE_GRAPH, dispute.id)
    left, _ = await session.flows.left_at(DISPUTE_GRAPH, config)
    if "ask_person" not in left:
        return await session.on.decide(dispute.id, verdict)
    card = await session.on.get(dispute.card_id)
    # checked here: of a decision that cannot be applied the run would only ask again
    answer: Any = Command(resume=plainly(verdict.model_dump(), dispute, card).model_dump())
    return await _run(session, dispute.id, answer, config, context)


async def run_dispute(session: Session, dispute_id: str, context: Context) -> Dispute:
    """Run the trials, or continue a killed run; a run that waits for a person keeps waiting."""
    config = await session.thread(DISPUTE_GRAPH, dispute_id)
    left, _ = await session.flows.left_at(DISPUTE_GRAPH, config)
    dispute = await session.on.get_dispute(dispute_id)  # a person may have decided it without the run
    if "ask_person" in left or not dispute.unresolved:
        return dispute
    if context.get("environment") in {"", WORKSPACE}:  # similar tasks are those of the card's own world
        scope = (await session.on.get(dispute.card_id)).scope
        context = context | {"environment": scope if scope in world_names() else ""}
    return await _run(session, dispute_id, None if left else {"dispute_id": dispute_id}, config, context)


async def _run(
    session: Session, dispute: str, given: Any, config: RunnableConfig, context: Context
) -> Dispute:
    # a learning task hands on its whole context, which has roles that no dispute has
    own = {name: value for name, value in context.items() if name in TeamContext.model_fields}
    await GraphRun(session.flows, DISPUTE_GRAPH, given, config, own).end()
    return await session.on.get_dispute(dispute)


def print_dispute(dispute: Dispute, rests_on: ToReview | None = None) -> None:
    """Print a dispute: both approaches, their evidence, the trials, and the outcome or open decision."""
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
                print_beside("      ", f"[dim]{escape(trial.task)}: {escape(edge)}[/]")
    if dispute.status == "resolved":
        print_beside("    ", escape(str(dispute_row(dispute)["resolution"])))
    elif dispute.status == "escalated":
        decisions = "|".join(get_args(Decision))
        console.print(f"    waits for a person: mneme disputes resolve {dispute.id} --decision {decisions}")


Act = Callable[[], Awaitable[object]]
LEAVING_KEYS = {"s": "skip", "q": "quit"}
ACT_NAMES = {
    "p": "promote",
    "g": "it served",
    "b": "it did not serve",
    "c": "clear the flag",
    "d": "deprecate",
    "k": "keep the old",
    "n": "the new replaces it",
    "m": "merge both",
}


async def review(team: Team = "local", limit: Limit = 100) -> None:
    """Go through the cards that are flagged, disputed or provisional, and decide on each."""
    async with open_operations(Cards, team, reading=prints_json()) as cards:  # a person's decisions write
        waiting = await cards.review(limit)
        if prints_json():
            print_result(waiting)
            return
        if not waiting:
            console.print("[dim]nothing waits for a review[/]")
        for number, each in enumerate(waiting, start=1):
            _show(each, number, len(waiting))
            if not await _decided(cards, each):
                return


def _show(item: ToReview, number: int, of: int) -> None:
    card = item.card
    console.print(f"\n[bold]{number} of {of}[/]: [yellow]{item.why}[/] {card.id}")
    print_beside("  ", escape(card.claim))
    for each in card_lines(card):
        name, _, text = each.partition(": ")
        print_beside(f"  [{'red' if name == 'Flag' else 'dim'}]{name}:[/] ", escape(text))
    if item.dispute:
        print_dispute(item.dispute, item)


async def _decided(cards: Cards, item: ToReview) -> bool:
    """Ask for actions until one settles or skips the item; return False at the end of the review."""
    acts = _acts(cards, item)
    offered = ", ".join(f"[{key}] {ACT_NAMES[key]}" for key in acts) + ", [s] skip, [q] quit"
    while True:
        try:
            asks = partial(typer.prompt, f"  {offered}", default="s", show_default=False)
            said = str(await from_person(asks)).strip().lower()[:1]
        except typer.Abort:  # the end of the input
            return False
        if said in LEAVING_KEYS:
            return said != "q"
        if said not in acts:
            continue
        try:
            await acts[said]()
        except MnemeError as refused:  # the same item is asked about again: another letter may do
            console.print(f"  [red]{escape(str(refused))}[/] {escape(refused.hint)}")
            continue
        console.print("  [green]done[/]")
        return True


def _acts(cards: Cards, item: ToReview) -> dict[str, Act]:
    """Return the possible actions on a card, by their letters."""
    card, reason = item.card.id, "reviewed by a person"
    if item.dispute:
        decisions: dict[str, Decision] = {"k": "keep_old", "n": "deprecate_old", "m": "merge"}
        return {letter: partial(_decide, cards, item.dispute.id, each) for letter, each in decisions.items()}
    given_up = {"d": partial(cards.deprecate, card, reason)}
    if item.why == "flagged":
        return {"c": partial(cards.clear_flag, card, reason), **given_up}
    return {
        "p": partial(cards.promote, card, None, reason),
        "g": partial(cards.rate, card, True),
        "b": partial(cards.rate, card, False),
        **given_up,
    }


async def _decide(cards: Cards, dispute: str, decision: Decision) -> object:
    reason = await from_person(partial(typer.prompt, "  why", default="reviewed by a person"))
    return await cards.decide(dispute, Verdict(decision=decision, reason=reason, by=USER_ACTOR))
