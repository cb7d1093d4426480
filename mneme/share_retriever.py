"""`mneme share retriever …`: what a pool's retriever has learned, and which version serves."""

from collections.abc import Sequence
from typing import Any

from rich.markup import escape

from mneme.errors import BadInput
from mneme.home import open_operations
from mneme.sharing import open_sharing
from mneme.sharing_operations import RetrieverState, SharingOperations
from mneme.show import console, print_json, print_table
from mneme.talk import show_notice
from stores.retrievers import Retriever

SWITCH = "Memories' vectors never change: a version serves from one write on, and nothing is indexed anew."


async def status(team: str, pool: str, as_json: bool) -> None:
    """Print every version of a pool's retriever with what it was trained on and why it was kept or not."""
    async with open_operations(SharingOperations, team) as shared:
        found = [await shared.retriever(pool)] if pool else await shared.pools()
    for each in found:
        _print_state(each, as_json)
    if not found and not as_json:
        console.print("[dim]no pool yet[/]")


def _print_state(state: RetrieverState, as_json: bool) -> None:
    if as_json:
        print_json(state)
        return
    served = f"retriever {state.serving}" if state.serving else "the embedder as it came"
    console.print(
        f"[bold]{state.pool}[/]: {state.memories} memories, {state.waiting} to learn from; {served} serves. "
        f"[dim]{SWITCH}[/]",
        soft_wrap=True,
    )
    if state.versions:
        _print_versions(state.versions)


def _print_versions(versions: Sequence[Retriever]) -> None:
    columns = ("v", "of", "learned by", "+/-", "loss", "recall", "seconds", "device")
    rows = (
        [
            str(each.number),
            str(each.parent),
            each.learning,
            f"{each.positives}/{each.negatives}",
            f"{each.losses[0]:.3f} → {each.losses[-1]:.3f}" if each.losses else "",
            f"{each.before.recall:.3f} → {each.after.recall:.3f}",
            f"{each.seconds:.2f}",
            each.device,
        ]
        for each in versions
    )
    print_table("", columns, rows)
    for each in versions:
        console.print(f"{each.number}: {escape(each.reason)}", soft_wrap=True)


async def train(pool: str, context: dict[str, Any], as_json: bool) -> None:
    """Train a pool's retriever on all that waits to be learned."""
    if not pool.strip():
        raise BadInput("Which pool?", "Give --pool; see `mneme share pool list`.")
    await show_notice(context["grader"])
    async with open_sharing(context["team"], "retriever_training") as session:
        known = {each.number for each in (await session.shared.retriever(pool)).versions}
        ended = await session.train(pool, context)
        made = [each for each in (await session.shared.retriever(pool)).versions if each.number not in known]
    for each in made:
        _print_training(each, each.reason, as_json)
    if not made:
        _print_training(None, ended.get("why", ""), as_json)


def _print_training(made: Retriever | None, why: str, as_json: bool) -> None:
    if as_json:
        print_json({"retriever": made and made.model_dump(), "why": why})
        return
    number = f"retriever {made.number}: " if made else ""
    console.print(f"{number}{escape(why)}")


async def rollback(team: str, pool: str, to: int | None, reason: str, as_json: bool) -> None:
    """Let an earlier version serve again."""
    async with open_operations(SharingOperations, team) as shared:
        now = await shared.roll_back(pool, to, reason)
    if as_json:
        print_json({"pool": pool, "serving": now})
        return
    served = f"Retriever {now}" if now else "The embedder as it came"
    console.print(f"{served} serves the pool {pool}.")
