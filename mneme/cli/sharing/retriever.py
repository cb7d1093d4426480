"""`mneme share retriever …`: show, train and roll back a pool's retriever."""

from collections.abc import Callable, Sequence
from itertools import count
from typing import Annotated, Any

from rich.markup import escape

from mneme.api.pools import Pools, RetrieverState
from mneme.cli.chat.talk import show_notice
from mneme.cli.derived import Fields
from mneme.cli.options import Team
from mneme.cli.sharing.pools import PoolName
from mneme.cli.show import console, emit, print_result, print_table
from mneme.client.home import open_operations
from mneme.client.team import open_team
from mneme.client.team import train as train_retriever
from mneme.core.errors import BadInput
from mneme.library.agents.own import own_texts
from mneme.nodes.sharing.context import PoolContext
from mneme.stores.pools.retrievers import Retriever

NOTE = "Only the query encoder is trained: a new version goes live with one write, without a new index."


async def status(pool: PoolName = "", team: Team = "local") -> None:
    """Show each version: its training data, loss and recall, and why it was accepted or not."""
    async with open_operations(Pools, team, reading=True) as shared:
        found = [await shared.retriever(pool)] if pool else await shared.list()
    if not found:
        console.print("[dim]no pool yet[/]")
        return
    print_result(found, _print_states)


def _print_states(states: Sequence[RetrieverState]) -> None:
    for each in states:
        _print_state(each)


def _print_state(state: RetrieverState) -> None:
    used = f"retriever {state.serving}" if state.serving else "the untrained embedder"
    console.print(
        f"[bold]{state.pool}[/]: {state.memories} pairs, {state.waiting} not learned yet; {used} is in use. "
        f"[dim]{NOTE}[/]",
        soft_wrap=True,
    )
    if state.versions:
        _print_versions(state.versions)


def _print_versions(versions: Sequence[Retriever]) -> None:
    columns = ("v", "trained from", "trained", "+/-", "loss", "own kind", "seconds", "device")
    rows = (
        [
            str(each.number),
            str(each.parent),
            each.learning,
            f"{each.positives}/{each.negatives}",
            f"{each.losses[0]:.3f} → {each.losses[-1]:.3f}" if each.losses else "",
            _change(each.before.kind, each.after.kind),
            f"{each.seconds:.2f}",
            each.device,
        ]
        for each in versions
    )
    print_table("", columns, rows)
    for each in versions:
        console.print(f"{each.number}: {escape(each.reason)}", soft_wrap=True)


def _change(before: float | None, after: float | None) -> str:
    """Return a figure before and after; versions of before had none."""
    return "" if before is None or after is None else f"{before:.3f} → {after:.3f}"


async def train(
    pool: PoolName,
    context: Annotated[dict[str, Any], Fields(PoolContext, without="pools agent")],
) -> None:
    """Train on the pairs that are new since the last training."""
    if not pool.strip():
        raise BadInput("The pool is missing.", "Give --pool NAME; see `mneme share pool list`.")
    await show_notice(context["grader"])
    async with open_team(Pools, context["team"], "retriever_training") as session:
        before = await session.on.retriever(pool)
        known = {each.number for each in before.versions}
        ended = await train_retriever(
            session, pool, context | {"agent": own_texts()}, _progress(before.waiting)
        )
        made = [each for each in (await session.on.retriever(pool)).versions if each.number not in known]
    for each in made:
        _print_training(each, each.reason)
    if not made:
        _print_training(None, ended.get("why", ""))


def _progress(waiting: int) -> Callable[[dict[str, Any]], None]:
    """Return what prints each memory that was graded: a small model takes a minute for one."""
    numbers = count(1)

    def told(event: dict[str, Any]) -> None:
        graded = f"graded {next(numbers)} of {waiting} pairs by {event['by']}"
        console.print(f"[dim]{escape(graded)} (candidates: {event['candidates']})[/]", soft_wrap=True)

    return told


def _print_training(made: Retriever | None, why: str) -> None:
    emit({"retriever": made and made.model_dump(), "why": why})
    number = f"retriever {made.number}: " if made else ""
    console.print(f"{number}{escape(why)}")


def rolled_back(now: int, given: dict[str, Any]) -> dict[str, Any]:
    """Return the pool and the version that it uses now."""
    return {"pool": given["pool"], "serving": now}


def print_rolled_back(told: dict[str, Any]) -> None:
    """Print which version a pool uses now."""
    used = f"retriever {told['serving']}" if told["serving"] else "the untrained embedder"
    console.print(f"The pool {told['pool']} now uses {used}.")
