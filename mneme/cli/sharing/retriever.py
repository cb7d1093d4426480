"""`mneme share retriever …`: show, train and roll back a pool's retriever."""

import asyncio
from collections.abc import Callable, Sequence
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
from mneme.client.workflows import GraphRun, TeamSession, Values, open_team
from mneme.core.errors import BadInput, MnemeError
from mneme.library.agents.own import own_texts
from mneme.nodes.background import RECURSION_LIMIT
from mneme.nodes.sharing.context import PoolContext
from mneme.nodes.sharing.training_wake import TRAINING_THREAD

NOTE = "The pairs' vectors never change: a new version goes live with one write, without a new index."
GRADING_CONCURRENCY = 2
"""Number of memories whose candidates are graded concurrently: a kill loses their grades."""


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


async def train_retriever(
    session: TeamSession[Pools],
    pool: str,
    context: Values,
    told: Callable[[Values], None] = lambda _: None,
) -> Values:
    """Train a pool's retriever on new memories; continue a training that was killed.

    `told` is called with each memory that was graded, which can take a minute.
    """
    graph, flows = "retriever_training", session.flows
    config = await flows.thread(TRAINING_THREAD.format(team=session.team, pool=pool), graph)
    left, _ = await flows.left_at(graph, config)
    given = None if left else {"pool": pool}
    bounded = config | {"recursion_limit": RECURSION_LIMIT, "max_concurrency": GRADING_CONCURRENCY}
    part = {name: value for name, value in context.items() if name in PoolContext.model_fields}
    run = GraphRun(flows, graph, given, bounded, part)
    async for event in run:
        told(event)
    return run.values


class Training:
    """Train retrievers in the background, one at a time."""

    def __init__(self, session: TeamSession[Pools], context: Values) -> None:
        self._session, self._context = session, context
        self._task: asyncio.Task[None] | None = None
        self._wanted: set[str] = set()
        self._results: list[str] = []

    def wake(self, pool: str) -> None:
        """Train on the pool's new memories, now or after the current training."""
        if self._session.flows.server is not None:  # it trains by itself
            return
        self._wanted.add(pool)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._train())

    async def _train(self) -> None:
        while self._wanted:  # what is wanted meanwhile comes after: a set, so a pool waits once
            pool = self._wanted.pop()
            try:
                why = (await train_retriever(self._session, pool, self._context)).get("why", "")
            except MnemeError as error:  # the answer and the stored pair must not be lost with the training
                why = f"{error} {error.hint}"
            self._results.append(f"{pool}: {why}")

    async def finish(self) -> list[str]:
        """Wait until all training is done; return the result of each."""
        if self._task is not None:
            await self._task
        return self._results

    async def leave(self) -> None:
        """Stop at once; memories that were not learned are left for the next training."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
