"""One user's chatbot and memory for the command line: in this process, or through a running server.

Where a `langgraph dev` on this machine owns the embedded ledger, everything goes through it;
otherwise the ledger is opened here. Callers cannot tell the difference.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.pregel.protocol import PregelProtocol
from langgraph.pregel.remote import RemoteGraph
from langgraph_sdk import get_client
from stores.base_store import LedgerStore

from graphs.chatbot import builder as chatbot
from graphs.remember import builder as remember
from mneme.home import open_or_find_server
from mneme.operations import Operations
from mneme.remote import api_key, open_remote
from mneme.settings import settings
from nodes.background import memory_thread, thread_id
from stores.checkpoints import open_checkpointer
from stores.ledger import Ledger

Graph = PregelProtocol[Any, Any, Any, Any]

LONG = 10_000
"""Steps that a run over many messages may take."""


@dataclass(frozen=True)
class Session:
    """What a command needs to talk and to remember on behalf of one user.

    `served` says whether a server runs the memory agent after each turn; else the command does.
    """

    memories: Operations
    chatbot: Graph
    remember: Graph
    served: bool

    def conversation(self, name: str) -> RunnableConfig:
        """Return the config of this user's conversation of that name."""
        return {"configurable": {"thread_id": thread_id(f"chat/{self.memories.user}/{name}")}}

    def background(self) -> RunnableConfig:
        """Return the config of the thread on which this user's messages are remembered."""
        return {"configurable": {"thread_id": memory_thread(self.memories.user)}, "recursion_limit": LONG}


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
                served=False,
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
            served=True,
        )
