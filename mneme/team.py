"""One team's cards, disputes and graphs for the command line: in this process, or through a server."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, cast

from langchain_core.runnables import RunnableConfig
from langgraph.pregel.protocol import PregelProtocol
from langgraph.pregel.remote import RemoteGraph
from langgraph_sdk import get_client
from langgraph_sdk.client import LangGraphClient

from graphs.compound_learning import builder as compound_learning
from graphs.dispute_resolution import builder as dispute_resolution
from mneme.home import open_or_find_server
from mneme.remote import api_key, open_remote_team
from mneme.settings import settings
from mneme.team_operations import TeamOperations
from nodes.background import thread_id
from stores.base_store import LedgerStore
from stores.checkpoints import open_checkpointer
from stores.ledger import Ledger

Graph = PregelProtocol[Any, Any, Any, Any]


@asynccontextmanager
async def open_team(team: str) -> AsyncIterator[TeamOperations]:
    """Open a team's cards: here, or through the server that owns the ledger."""
    found = await open_or_find_server()
    if isinstance(found, str):
        async with open_remote_team(found, team) as operations:
            yield operations
        return
    try:
        yield TeamOperations(found, team)
    finally:
        await found.close()


@dataclass(frozen=True)
class TeamSession:
    """What a command needs to solve tasks and to resolve disputes for one team."""

    team: str
    cards: TeamOperations
    learn: Graph
    resolve: Graph
    server: LangGraphClient | None

    async def task(self, task_id: str) -> RunnableConfig:
        """Return the config of the thread on which a task is solved; a killed run goes on there."""
        return await self._on_thread(f"learn/{self.team}/{task_id}", "compound_learning")

    async def dispute(self, dispute_id: str) -> RunnableConfig:
        """Return the config of the thread on which a dispute is resolved, or waits for a person."""
        return await self._on_thread(f"dispute/{self.team}/{dispute_id}", "dispute_resolution")

    async def values(self, graph: Graph, config: RunnableConfig) -> dict[str, Any]:
        """Return what a thread's last run left."""
        if self.server is not None:
            on_server = await self.server.threads.get_state(config["configurable"]["thread_id"])
            return cast(dict[str, Any], on_server["values"])
        return (await graph.aget_state(config)).values

    async def left_at(self, graph: Graph, config: RunnableConfig) -> tuple[str, ...]:
        """Return the steps that a thread has still to do."""
        if self.server is not None:
            on_server = await self.server.threads.get_state(config["configurable"]["thread_id"])
            return tuple(on_server["next"])
        return (await graph.aget_state(config)).next

    async def _on_thread(self, name: str, graph: str) -> RunnableConfig:
        thread = thread_id(name)
        if self.server is not None:
            await self.server.threads.create(thread_id=thread, graph_id=graph, if_exists="do_nothing")
        return {"configurable": {"thread_id": thread}}


@asynccontextmanager
async def open_team_session(team: str) -> AsyncIterator[TeamSession]:
    """Open a session here, or on the server that owns the ledger."""
    found = await open_or_find_server()
    opened = _on_server(found, team) if isinstance(found, str) else _here(found, team)
    async with opened as session:
        yield session


@asynccontextmanager
async def _here(ledger: Ledger, team: str) -> AsyncIterator[TeamSession]:
    try:
        async with open_checkpointer(settings().checkpoints_location) as checkpointer:
            made: dict[str, Any] = {"checkpointer": checkpointer, "store": LedgerStore(ledger)}
            yield TeamSession(
                team=team,
                cards=TeamOperations(ledger, team),
                learn=cast(Graph, compound_learning.compile(**made, name="compound_learning")),
                resolve=cast(Graph, dispute_resolution.compile(**made, name="dispute_resolution")),
                server=None,
            )
    finally:
        await ledger.close()


@asynccontextmanager
async def _on_server(url: str, team: str) -> AsyncIterator[TeamSession]:
    client = get_client(url=url, api_key=api_key())
    async with open_remote_team(url, team) as cards:
        yield TeamSession(
            team=await cards.whose(),
            cards=cards,
            learn=RemoteGraph("compound_learning", client=client),
            resolve=RemoteGraph("dispute_resolution", client=client),
            server=client,
        )
