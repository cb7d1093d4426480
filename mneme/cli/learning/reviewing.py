"""`mneme cards review`: what a person should look at, card by card."""

from collections.abc import Awaitable, Callable
from functools import partial

import typer
from rich.markup import escape

from mneme.api.card_reviews import ToReview
from mneme.api.cards import Cards
from mneme.cli.learning.cards import ACTOR
from mneme.cli.learning.disputes import print_dispute
from mneme.cli.options import Limit, Team
from mneme.cli.show import console, print_beside, print_result, prints_json
from mneme.client.home import open_operations
from mneme.core.errors import MnemeError
from mneme.nodes.learning.dispute_resolution import Decision, Verdict

Act = Callable[[], Awaitable[object]]
FURTHER = {"s": "skip", "q": "quit"}
WORDS = {
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
    """Walk through the cards that are flagged, disputed or provisional, and decide on each."""
    async with open_operations(Cards, team, reading=True) as cards:
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
    card, evidence = item.card, item.card.evidence
    console.print(f"\n[bold]{number} of {of}[/]: [yellow]{item.why}[/] {card.id}")
    print_beside("  ", escape(card.claim))
    for rule in card.rules:
        print_beside("  when ", escape(f"{rule.condition}: {rule.pattern}"))
    if card.rationale:
        print_beside("  [dim]why:[/] ", escape(card.rationale))
    for flag in card.flags:
        print_beside("  [red]flag:[/] ", escape(flag))
    rated = f", {sum(each.good for each in card.ratings)} of {len(card.ratings)} people served"
    counted = f"  {evidence.success_count} successes, {evidence.failure_count} failures"
    console.print(f"{counted}, confidence {card.confidence:.2f}{rated if card.ratings else ''}")
    if item.dispute:
        print_dispute(item.dispute, item)


async def _decided(cards: Cards, item: ToReview) -> bool:
    """Ask what to do until it is done or passed over; return False where the review ends."""
    acts = _acts(cards, item)
    offered = ", ".join(f"[{key}] {WORDS[key]}" for key in acts) + ", [s] skip, [q] quit"
    while True:
        try:
            said = str(typer.prompt(f"  {offered}", default="s", show_default=False)).strip().lower()[:1]
        except typer.Abort:
            return False
        if said in FURTHER:
            return said != "q"
        if said not in acts:
            continue
        try:
            await acts[said]()
        except MnemeError as refused:
            console.print(f"  [red]{escape(str(refused))}[/] {escape(refused.hint)}")
            continue
        console.print("  [green]done[/]")
        return True


def _acts(cards: Cards, item: ToReview) -> dict[str, Act]:
    """Return what can be done with a card, by the letter that asks for it."""
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
    reason = typer.prompt("  why", default="reviewed by a person")
    return await cards.decide(dispute, Verdict(decision=decision, reason=reason, by=ACTOR))
