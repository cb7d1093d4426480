"""One user's chatbot and memory for the command line."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from langchain_core.runnables import RunnableConfig

from mneme.api.inbox import Messages
from mneme.api.memories import Memories
from mneme.client.workflows import Values, Workflows, open_workflows, server_errors
from mneme.nodes.background import LONG
from mneme.nodes.chat.waking import MEMORY_THREAD


@dataclass(frozen=True)
class Session:
    """What a command needs to chat and to remember for one user."""

    user: str
    memories: Memories
    inbox: Messages
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
        return await background_of(self.flows, self.user)

    async def is_broken(self) -> bool:
        """Return whether the server's memory agent ended with an error, so that waiting for it is useless."""
        if self.flows.server is None:
            return False
        background = await self.background()
        with server_errors():
            thread = await self.flows.server.threads.get(background["configurable"]["thread_id"])
        return thread["status"] == "error"


async def background_of(flows: Workflows, user: str) -> RunnableConfig:
    """Return the config of the thread on which a user's messages are remembered."""
    name = MEMORY_THREAD.format(user=user)
    return await flows.thread(name, "remember", owner=user) | {"recursion_limit": LONG}


async def remember_waiting(flows: Workflows, user: str, context: Values) -> Values:
    """Run the memory agent until no message of a user waits, and return its report; continue a killed run."""
    config = await background_of(flows, user)
    steps, _ = await flows.left_at("remember", config)
    return await flows.invoke("remember", None if steps else {}, config, context | {"user": user})


@asynccontextmanager
async def open_session(user: str) -> AsyncIterator[Session]:
    """Open a session in this process, or on the server that has the ledger open."""
    async with (
        open_workflows("chatbot", "remember") as flows,
        flows.operations(Memories, user) as memories,
        flows.operations(Messages, user) as inbox,
    ):
        yield Session(await memories.whoami(), memories, inbox, flows)


class LastingSession:
    """A session for as long as a person sits there, which is opened anew where its server has gone."""

    def __init__(self, user: str) -> None:
        self._user = user
        self._opened = AsyncExitStack()
        self._session: Session | None = None

    async def open(self) -> Session:
        """Return the session, opened anew after it was closed."""
        if self._session is None:
            self._session = await self._opened.enter_async_context(open_session(self._user))
        return self._session

    async def close(self) -> None:
        """Close the session, if it is open."""
        self._session = None
        await self._opened.aclose()
