"""One team's shared memories and graphs for the command line, and the training that runs beside."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from langchain_core.runnables import RunnableConfig

from mneme.sharing_operations import SharingOperations
from mneme.workflows import Values, Workflows, open_workflows
from nodes.background import LONG
from nodes.memory_pools import PoolContext
from nodes.training_wake import TRAINING_THREAD

ROUNDS = 10_000
"""Steps that a growth may take."""


@dataclass(frozen=True)
class SharingSession:
    """What a command needs to ask agents, to let pools grow and to train their retrievers."""

    team: str
    shared: SharingOperations
    flows: Workflows

    async def conversation(self, name: str) -> RunnableConfig:
        """Return the config of a conversation with an agent; its earlier turns count as the question's."""
        return await self.flows.thread(f"share/{self.team}/{name}", "memory_sharing")

    async def growth(self, name: str) -> RunnableConfig:
        """Return the config of a growth; a killed one goes on there."""
        config = await self.flows.thread(f"grow/{self.team}/{name}", "interactive_learning")
        return config | {"recursion_limit": ROUNDS}

    async def design(self, domain: str) -> RunnableConfig:
        """Return the config of the thread on which a domain's rubric is drafted, or waits for its review."""
        return await self.flows.thread(f"rubric/{self.team}/{domain}", "rubric_design")

    async def train(self, pool: str, context: Values) -> Values:
        """Train a pool's retriever on what waits; go on where a killed training stopped."""
        name = TRAINING_THREAD.format(team=self.team, pool=pool)
        config = await self.flows.thread(name, "retriever_training")
        left, _ = await self.flows.left_at("retriever_training", config)
        given, bounded = None if left else {"pool": pool}, config | {"recursion_limit": LONG}
        return await self.flows.invoke("retriever_training", given, bounded, pool_part(context))


def pool_part(context: Values) -> Values:
    """Return what a training takes of a context."""
    return {name: value for name, value in context.items() if name in PoolContext.model_fields}


@asynccontextmanager
async def open_sharing(team: str, *graphs: str) -> AsyncIterator[SharingSession]:
    """Open a session with these graphs here, or on the server that owns the ledger."""
    async with open_workflows(*graphs) as flows, flows.operations(SharingOperations, team) as shared:
        yield SharingSession(await shared.whose(), shared, flows)


class Training:
    """The training of one pool's retriever beside whatever else goes on; one at a time.

    A server trains by itself; then there is nothing to do here.
    """

    def __init__(self, session: SharingSession, context: dict[str, Any]) -> None:
        self._session, self._context = session, context
        self._task: asyncio.Task[None] | None = None
        self._wanted: set[str] = set()
        self.told: list[str] = []

    def wake(self, pool: str) -> None:
        """Let what was stored be learned, now or when the training that runs has ended."""
        if self._session.flows.server is not None:
            return
        self._wanted.add(pool)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._train())

    async def _train(self) -> None:
        while self._wanted:
            pool = self._wanted.pop()
            ended = await self._session.train(pool, self._context)
            self.told.append(f"{pool}: {ended.get('why', '')}")

    async def finish(self) -> list[str]:
        """Wait until nothing is left to be learned; return what became of each training."""
        if self._task is not None:
            await self._task
        return self.told

    async def leave(self) -> None:
        """Stop at once; what was not learned waits for the next training."""
        if self._task is not None and not self._task.done():
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
