"""One team's data and graphs for the command line, and the training of retrievers in the background."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Generic, TypeVar

from langchain_core.runnables import RunnableConfig

from mneme.api.cards import Cards
from mneme.api.pools import Pools
from mneme.client.workflows import Values, Workflows, open_workflows
from mneme.core.errors import MnemeError
from mneme.nodes.background import RECURSION_LIMIT
from mneme.nodes.sharing.context import PoolContext
from mneme.nodes.sharing.training_wake import TRAINING_THREAD

Kind = TypeVar("Kind", Cards, Pools)
THREADS = {
    "compound_learning": "learn",
    "dispute_resolution": "dispute",
    "consolidation": "consolidate",
    "memory_sharing": "share",
    "interactive_learning": "grow",
    "rubric_design": "rubric",
}
"""How the names of threads begin on which a graph runs; the team's name and others follow."""
GROWTH_STEPS = 10_000
"""The most steps of one run of `mneme share grow`."""
GRADED_AT_ONCE = 2
"""Memories whose candidates are graded at the same time: the grades of so many are lost with a kill."""


@dataclass(frozen=True)
class TeamSession(Generic[Kind]):
    """What a command needs to run graphs for a team: operations on its data, and the graphs."""

    team: str
    on: Kind
    flows: Workflows

    async def thread(self, graph: str, *names: str) -> RunnableConfig:
        """Return the config of the thread on which a graph runs; a killed run continues there."""
        name = "/".join(filter(None, [THREADS[graph], self.team, *names]))
        config = await self.flows.thread(name, graph)
        return config | {"recursion_limit": GROWTH_STEPS} if graph == "interactive_learning" else config


@asynccontextmanager
async def open_team(kind: type[Kind], team: str, *graphs: str) -> AsyncIterator[TeamSession[Kind]]:
    """Open a session with these graphs in this process, or on the server that has the ledger open."""
    async with open_workflows(*graphs) as flows:
        on = flows.operations(kind, team)
        yield TeamSession(await on.whose(), on, flows)


async def train(
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
    bounded = config | {"recursion_limit": RECURSION_LIMIT, "max_concurrency": GRADED_AT_ONCE}
    part = {name: value for name, value in context.items() if name in PoolContext.model_fields}
    async for event in flows.stream(graph, given, bounded, part, "custom"):
        told(event)
    return (await flows.left_at(graph, config))[1]


class Training:
    """Train retrievers in the background, one at a time.

    A server trains by itself, so with a server this class does nothing.
    """

    def __init__(self, session: TeamSession[Pools], context: Values) -> None:
        self._session, self._context = session, context
        self._task: asyncio.Task[None] | None = None
        self._wanted: set[str] = set()
        self._results: list[str] = []

    def wake(self, pool: str) -> None:
        """Train on the pool's new memories, now or after the current training."""
        if self._session.flows.server is not None:
            return
        self._wanted.add(pool)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._train())

    async def _train(self) -> None:
        while self._wanted:
            pool = self._wanted.pop()
            try:
                why = (await train(self._session, pool, self._context)).get("why", "")
            except MnemeError as error:  # the answer and the stored pair must not be lost with the training
                why = f"{error} {error.hint}"
            self._results.append(f"{pool}: {why}")

    async def finish(self) -> list[str]:
        """Wait until all training is done; return the result of each."""
        if self._task is not None:
            await self._task
        return self._results

    async def leave(self) -> None:
        """Stop at once; memories that were not learned are used by the next training."""
        if self._task is not None and not self._task.done():
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
