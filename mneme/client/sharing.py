"""One team's shared memories and graphs for the command line, and the training in the background."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from langchain_core.runnables import RunnableConfig

from mneme.api.pools import Pools
from mneme.client.workflows import Values, Workflows, open_workflows
from mneme.core.errors import MnemeError
from mneme.nodes.background import LONG
from mneme.nodes.sharing.context import PoolContext
from mneme.nodes.sharing.training_wake import TRAINING_THREAD

ROUNDS = 10_000
"""The most steps of one `grow` run."""
GRADED_AT_ONCE = 2
"""Memories whose candidates are graded at the same time: the grades of so many are lost with a kill."""


@dataclass(frozen=True)
class SharingSession:
    """What a command needs to ask agents, to grow pools and to train retrievers."""

    team: str
    shared: Pools
    flows: Workflows

    async def conversation(self, name: str) -> RunnableConfig:
        """Return the config of a conversation with an agent; earlier turns are part of the question."""
        return await self.flows.thread(f"share/{self.team}/{name}", "memory_sharing")

    async def growth(self, name: str) -> RunnableConfig:
        """Return the config of a `grow` run; a killed run continues there."""
        config = await self.flows.thread(f"grow/{self.team}/{name}", "interactive_learning")
        return config | {"recursion_limit": ROUNDS}

    async def design(self, domain: str) -> RunnableConfig:
        """Return the config of the thread on which a domain's rubric is drafted and reviewed."""
        return await self.flows.thread(f"rubric/{self.team}/{domain}", "rubric_design")

    async def train(
        self, pool: str, context: Values, told: Callable[[Values], None] = lambda _: None
    ) -> Values:
        """Train a pool's retriever on new memories; continue a training that was killed.

        `told` is called with each memory that was graded, which can take a minute.
        """
        name = TRAINING_THREAD.format(team=self.team, pool=pool)
        config = await self.flows.thread(name, "retriever_training")
        left, _ = await self.flows.left_at("retriever_training", config)
        given = None if left else {"pool": pool}
        bounded = config | {"recursion_limit": LONG, "max_concurrency": GRADED_AT_ONCE}
        part = pool_part(context)
        async for event in self.flows.stream("retriever_training", given, bounded, part, "custom"):
            told(event)
        return (await self.flows.left_at("retriever_training", config))[1]


def pool_part(context: Values) -> Values:
    """Return the part of a context that the training uses."""
    return {name: value for name, value in context.items() if name in PoolContext.model_fields}


@asynccontextmanager
async def open_sharing(team: str, *graphs: str) -> AsyncIterator[SharingSession]:
    """Open a session with these graphs in this process, or on the server that has the ledger open."""
    async with open_workflows(*graphs) as flows, flows.operations(Pools, team) as shared:
        yield SharingSession(await shared.whose(), shared, flows)


class Training:
    """Train retrievers in the background, one at a time.

    A server trains by itself, so with a server this class does nothing.
    """

    def __init__(self, session: SharingSession, context: dict[str, Any]) -> None:
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
                why = (await self._session.train(pool, self._context)).get("why", "")
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
