"""`mneme share retriever …`: show, train and roll back a pool's retriever."""

from collections.abc import Sequence
from itertools import count
from typing import Annotated, Any

from rich.markup import escape

from mneme.api.pools import Pools, RetrieverState
from mneme.cli.chat.responders import show_notice
from mneme.cli.derived import Fields
from mneme.cli.options import Team
from mneme.cli.sharing.pools import PoolName
from mneme.cli.show import console, emit, print_result, print_rows, say
from mneme.client.home import open_operations
from mneme.client.session import open_team
from mneme.client.session import train as train_retriever
from mneme.core.errors import BadInput
from mneme.library.agents.own import own_texts
from mneme.nodes.sharing.context import PoolContext

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
            print_rows(state.versions)
        for each in state.versions:
            say(f"{each.number}: {escape(each.reason)}")


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
