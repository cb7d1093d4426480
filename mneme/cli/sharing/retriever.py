"""`mneme share retriever …`: show, train and roll back a pool's retriever."""

from collections.abc import Sequence
from itertools import count
from typing import Annotated, Any

from rich.markup import escape

from mneme.api.pools import Pools, RetrieverState
from mneme.cli.chat.talk import show_notice
from mneme.cli.derived import Fields
from mneme.cli.options import Team
from mneme.cli.sharing.pools import PoolName
from mneme.cli.show import console, emit, print_result, print_table, say
from mneme.client.home import open_operations
from mneme.client.session import open_team
from mneme.client.session import train as train_retriever
from mneme.core.errors import BadInput
from mneme.library.agents.own import own_texts
from mneme.nodes.sharing.context import PoolContext
from mneme.stores.pools.retrievers import Retriever

NOTE = "The pairs' vectors never change: a new version goes live with one write, without a new index."


async def status(pool: PoolName = "", team: Team = "local") -> None:
    """Show each version: its training data, loss and recall, and why it was accepted or not."""
    async with open_operations(Pools, team, reading=True) as shared:
        found = [await shared.retriever(pool)] if pool else await shared.list()
    if not found:
        console.print("[dim]no pool yet[/]")
        return
    print_result(found, _print_states)


def _print_states(states: Sequence[RetrieverState]) -> None:
    for state in states:
        used = f"retriever {state.serving}" if state.serving else "the untrained embedder"
        say(
            f"[bold]{state.pool}[/]: {state.memories} pairs, {state.waiting} not learned yet; "
            f"{used} is in use. [dim]{NOTE}[/]"
        )
        if state.versions:
            print_table("", COLUMNS, map(_row, state.versions))
        for each in state.versions:
            say(f"{each.number}: {escape(each.reason)}")


COLUMNS = ("v", "trained from", "trained", "+/-", "loss", "own kind", "seconds", "device")


def _row(of: Retriever) -> list[object]:
    """Return a version as a row; versions of before have no figure of their own kind."""
    before, after = of.before.kind, of.after.kind
    return [
        *(of.number, of.parent, of.learning, f"{of.positives}/{of.negatives}"),
        f"{of.losses[0]:.3f} → {of.losses[-1]:.3f}" if of.losses else "",
        "" if before is None or after is None else f"{before:.3f} → {after:.3f}",
        *(f"{of.seconds:.2f}", of.device),
    ]


async def train(
    pool: PoolName,
    context: Annotated[dict[str, Any], Fields(PoolContext, without="pools agent")],
) -> None:
    """Train on the pairs that are new since the last training."""
    if not pool.strip():
        raise BadInput("The pool is missing.", "Give --pool NAME; see `mneme share pool list`.")
    await show_notice(context["grader"])
    numbers = count(1)
    async with open_team(Pools, context["team"], "retriever_training") as session:
        before = await session.on.retriever(pool)

        def told(event: dict[str, Any]) -> None:  # a small model takes a minute to grade one
            graded = f"graded {next(numbers)} of {before.waiting} pairs by {event['by']}"
            say(f"[dim]{escape(graded)} (candidates: {event['candidates']})[/]")

        ended = await train_retriever(session, pool, context | {"agent": own_texts()}, told)
        known = {each.number for each in before.versions}
        made = [each for each in (await session.on.retriever(pool)).versions if each.number not in known]
    for each in made:
        emit({"retriever": each.model_dump(), "why": each.reason})
        console.print(f"retriever {each.number}: {escape(each.reason)}")
    if not made:
        emit({"retriever": None, "why": ended.get("why", "")})
        console.print(escape(ended.get("why", "")))


def rolled_back(now: int, given: dict[str, Any]) -> dict[str, Any]:
    """Return the pool and the version that it uses now."""
    return {"pool": given["pool"], "serving": now}


def print_rolled_back(told: dict[str, Any]) -> None:
    """Print which version a pool uses now."""
    used = f"retriever {told['serving']}" if told["serving"] else "the untrained embedder"
    console.print(f"The pool {told['pool']} now uses {used}.")
