"""One user's chatbot and memory for the command line: in this process, or through a running server.

Where a `langgraph dev` on this machine owns the embedded ledger, everything goes through it;
otherwise the ledger is opened here. Callers cannot tell the difference.
"""

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any, cast

import httpx
from langchain_core.runnables import RunnableConfig
from langgraph.pregel.protocol import PregelProtocol
from langgraph.pregel.remote import RemoteException, RemoteGraph
from langgraph_sdk import get_client
from langgraph_sdk.client import LangGraphClient
from langgraph_sdk.errors import APIError

import mneme.errors
from graphs.chatbot import builder as chatbot
from graphs.remember import builder as remember
from mneme.errors import MnemeError
from mneme.home import open_or_find_server
from mneme.operations import Operations
from mneme.remote import api_key, open_remote
from mneme.settings import settings
from nodes.background import LONG, memory_thread, thread_id
from stores.base_store import LedgerStore
from stores.checkpoints import open_checkpointer
from stores.ledger import Ledger

Graph = PregelProtocol[Any, Any, Any, Any]


@dataclass(frozen=True)
class Session:
    """What a command needs to talk and to remember on behalf of one user.

    `server` is the client of the server that runs the graphs; None where this process does.
    """

    user: str
    memories: Operations
    chatbot: Graph
    remember: Graph
    server: LangGraphClient | None

    @property
    def is_served(self) -> bool:
        """Whether the server runs the memory agent after each turn; else the command must."""
        return self.server is not None

    async def conversation(self, name: str) -> RunnableConfig:
        """Return the config of this user's conversation of that name."""
        return await self._on_thread(thread_id(f"chat/{self.user}/{name}"), "chatbot")

    async def background(self) -> RunnableConfig:
        """Return the config of the thread on which this user's messages are remembered."""
        return await self._on_thread(memory_thread(self.user), "remember") | {"recursion_limit": LONG}

    async def is_broken(self) -> bool:
        """Say whether the server's memory agent ended in an error, so that waiting for it is in vain."""
        if self.server is None:
            return False
        thread = await self.server.threads.get(memory_thread(self.user))
        return thread["status"] == "error"

    async def left_at(self, graph: Graph, config: RunnableConfig) -> tuple[Sequence[str], dict[str, Any]]:
        """Return the steps that a thread has still to do, and its values."""
        if self.server is not None:  # RemoteGraph cannot read a thread that has not run yet
            on_server = await self.server.threads.get_state(config["configurable"]["thread_id"])
            return on_server["next"], cast(dict[str, Any], on_server["values"] or {})
        state = await graph.aget_state(config)
        return state.next, state.values

    async def _on_thread(self, thread: str, graph: str) -> RunnableConfig:
        """Return a thread's config; a server that was killed may not know the thread any more."""
        if self.server is not None:
            await self.server.threads.create(thread_id=thread, graph_id=graph, if_exists="do_nothing")
        return {"configurable": {"thread_id": thread}, "metadata": {"owner": self.user}}


@contextmanager
def server_errors() -> Iterator[None]:
    """Raise what a server tells as the error that it is here."""
    try:
        yield
    except RemoteException as error:
        told = error.args[0] if error.args and isinstance(error.args[0], dict) else {}
        kind = getattr(mneme.errors, str(told.get("error")), MnemeError)
        raise kind(str(told.get("message", error)), "The server's log says more.") from error
    except (APIError, httpx.TransportError) as error:
        raise MnemeError(f"The server does not answer as it should: {error}", "See its log.") from error


@asynccontextmanager
async def open_session(user: str) -> AsyncIterator[Session]:
    """Open a session here, or on the server that owns the ledger."""
    found = await open_or_find_server()
    opened = _on_server(found, user) if isinstance(found, str) else _here(found, user)
    async with opened as session:
        yield session


@asynccontextmanager
async def _here(ledger: Ledger, user: str) -> AsyncIterator[Session]:
    try:
        async with open_checkpointer(settings().checkpoints_location) as checkpointer:
            store = LedgerStore(ledger)
            yield Session(
                user=user,
                memories=Operations(ledger, user),
                chatbot=chatbot.compile(checkpointer=checkpointer, store=store, name="chatbot"),
                remember=remember.compile(checkpointer=checkpointer, store=store, name="remember"),
                server=None,
            )
    finally:
        await ledger.close()


@asynccontextmanager
async def _on_server(url: str, user: str) -> AsyncIterator[Session]:
    client = get_client(url=url, api_key=api_key())
    async with open_remote(url, user) as memories:
        yield Session(
            user=await memories.whoami(),
            memories=memories,
            chatbot=RemoteGraph("chatbot", client=client),
            remember=RemoteGraph("remember", client=client),
            server=client,
        )
