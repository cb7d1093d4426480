"""One user's chatbot and memory for the command line: in this process, or through a running server.

Where a `langgraph dev` on this machine owns the embedded ledger, everything goes through it;
otherwise the ledger is opened here. Callers cannot tell the difference.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, cast

from langchain_core.runnables import RunnableConfig
from langgraph.pregel.protocol import PregelProtocol
from langgraph.pregel.remote import RemoteGraph
from langgraph_sdk import get_client
from langgraph_sdk.client import LangGraphClient

from graphs.chatbot import builder as chatbot
from graphs.remember import builder as remember
from mneme.home import open_or_find_server
from mneme.operations import Operations
from mneme.remote import api_key, open_remote
from mneme.settings import settings
from nodes.background import memory_thread, thread_id
from stores.base_store import LedgerStore
from stores.checkpoints import open_checkpointer
from stores.ledger import Ledger

Graph = PregelProtocol[Any, Any, Any, Any]

LONG = 10_000
"""Steps that a run over many messages may take."""


@dataclass(frozen=True)
class Session:
    """What a command needs to talk and to remember on behalf of one user.

    `server` is the client of the server that runs the graphs; None where this process does.
    """

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
        return await self._on_thread(thread_id(f"chat/{self.memories.user}/{name}"), "chatbot")

    async def background(self) -> RunnableConfig:
        """Return the config of the thread on which this user's messages are remembered."""
        return await self._on_thread(memory_thread(self.memories.user), "remember") | {
            "recursion_limit": LONG
        }

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
        return {"configurable": {"thread_id": thread}, "metadata": {"owner": self.memories.user}}


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
            memories=memories,
            chatbot=RemoteGraph("chatbot", client=client),
            remember=RemoteGraph("remember", client=client),
            server=client,
        )
