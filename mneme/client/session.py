"""One user's chatbot and memory for the command line."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from langchain_core.runnables import RunnableConfig

from mneme.api.memories import MemoryOperations
from mneme.client.workflows import Workflows, open_workflows
from mneme.nodes.background import LONG
from mneme.nodes.chat.waking import MEMORY_THREAD


@dataclass(frozen=True)
class Session:
    """What a command needs to chat and to remember for one user."""

    user: str
    memories: MemoryOperations
    flows: Workflows

    @property
    def is_served(self) -> bool:
        """Whether the server runs the memory agent after each turn; otherwise the command runs it."""
        return self.flows.server is not None

    async def conversation(self, name: str) -> RunnableConfig:
        """Return the config of this user's conversation of that name."""
        return await self.flows.thread(f"chat/{self.user}/{name}", "chatbot", owner=self.user)

    async def background(self) -> RunnableConfig:
        """Return the config of the thread on which this user's messages are remembered."""
        name = MEMORY_THREAD.format(user=self.user)
        return await self.flows.thread(name, "remember", owner=self.user) | {"recursion_limit": LONG}

    async def is_broken(self) -> bool:
        """Return whether the server's memory agent ended with an error, so that waiting for it is useless."""
        if self.flows.server is None:
            return False
        background = await self.background()
        thread = await self.flows.server.threads.get(background["configurable"]["thread_id"])
        return thread["status"] == "error"


@asynccontextmanager
async def open_session(user: str) -> AsyncIterator[Session]:
    """Open a session in this process, or on the server that has the ledger open."""
    async with (
        open_workflows("chatbot", "remember") as flows,
        flows.operations(MemoryOperations, user) as memories,
    ):
        yield Session(await memories.whoami(), memories, flows)
