"""Graphs for the command line: in this process, or on the server that owns the ledger.

Where a `langgraph dev` on this machine owns the embedded ledger, everything goes through it;
otherwise the ledger is opened here. Callers cannot tell the difference.
"""

from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any, cast

import httpx
from langchain_core.runnables import RunnableConfig
from langgraph.pregel.protocol import PregelProtocol
from langgraph.pregel.remote import RemoteException, RemoteGraph
from langgraph.types import Durability, StreamMode
from langgraph_sdk import get_client
from langgraph_sdk.client import LangGraphClient
from langgraph_sdk.errors import APIError

import mneme.errors
from mneme.errors import MnemeError
from mneme.home import open_or_find_server, operations_at
from mneme.operations import Kind
from mneme.remote import api_key
from mneme.settings import settings
from nodes.background import thread_id
from stores.base_store import LedgerStore
from stores.checkpoints import open_checkpointer
from stores.ledger import Ledger

Graph = PregelProtocol[Any, Any, Any, Any]
Values = dict[str, Any]


@dataclass(frozen=True)
class Workflows:
    """Some graphs with their checkpoints, and the ledger or the server behind them.

    `server` is the client of the server that runs the graphs; None where this process does.
    """

    graphs: dict[str, Graph]
    ledger: Ledger | str
    server: LangGraphClient | None

    def operations(self, kind: type[Kind], owner: str) -> AbstractAsyncContextManager[Kind]:
        """Open what may be done with an owner's stored things, in this process or by the server."""
        return operations_at(self.ledger, kind, owner)

    async def thread(self, name: str, graph: str, **metadata: str) -> RunnableConfig:
        """Return the config of a named thread; a server that was killed may not know the thread any more."""
        thread = thread_id(name)
        if self.server is not None:
            await self.server.threads.create(thread_id=thread, graph_id=graph, if_exists="do_nothing")
        return {"configurable": {"thread_id": thread}, "metadata": metadata}

    async def left_at(self, graph: str, config: RunnableConfig) -> tuple[tuple[str, ...], Values]:
        """Return the steps that a thread has still to do, and its values.

        Read from the tasks, since `next` leaves out those that had finished when their process was killed
        before the next checkpoint: where all had, it is empty, as at the end.
        """
        if self.server is not None:  # RemoteGraph cannot read a thread that has not run yet
            on_server = await self.server.threads.get_state(config["configurable"]["thread_id"])
            return tuple(task["name"] for task in on_server["tasks"]), cast(Values, on_server["values"] or {})
        state = await self.graphs[graph].aget_state(config)
        return tuple(task.name for task in state.tasks), state.values

    async def invoke(self, graph: str, given: Any, config: RunnableConfig, context: Values) -> Values:
        """Run a graph on a thread to its end, or to its next interrupt."""
        with server_errors():
            return cast(Values, await self.graphs[graph].ainvoke(given, config, context=context))

    async def stream(
        self,
        graph: str,
        given: Any,
        config: RunnableConfig,
        context: Values,
        stream_mode: StreamMode,
        durability: Durability = "async",
    ) -> AsyncIterator[Any]:
        """Run a graph on a thread and yield what it tells meanwhile.

        With `sync` a step is kept before the next begins; else quick steps are told long before they are.
        """
        how: Values = {"stream_mode": stream_mode, "durability": durability}
        with server_errors():
            async for each in self.graphs[graph].astream(given, config, context=context, **how):
                yield each


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
async def open_workflows(*names: str) -> AsyncIterator[Workflows]:
    """Open graphs by their names here, or on the server that owns the ledger."""
    found = await open_or_find_server()
    if isinstance(found, str):
        client = get_client(url=found, api_key=api_key())
        remote: dict[str, Graph] = {name: RemoteGraph(name, client=client) for name in names}
        yield Workflows(remote, found, client)
        return
    try:
        async with open_checkpointer(settings().checkpoints_location) as checkpointer:
            made: Values = {"checkpointer": checkpointer, "store": LedgerStore(found)}
            here = {name: _builder(name).compile(**made, name=name) for name in names}
            yield Workflows(here, found, None)
    finally:
        await found.close()


def _builder(name: str) -> Any:
    return import_module(f"graphs.{name}").builder
