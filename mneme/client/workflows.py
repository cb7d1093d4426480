"""Graphs for the command line: in this process, or on the server that has the ledger open.

Where a `langgraph dev` on this machine has the embedded ledger open, its graphs are used; otherwise
the ledger is opened here. Callers use both in the same way.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any, cast

import httpx
from langchain_core.messages import BaseMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.utils.uuid import uuid7
from langgraph.pregel.protocol import PregelProtocol
from langgraph.pregel.remote import RemoteException, RemoteGraph
from langgraph.types import Durability, StreamMode
from langgraph_sdk import get_client
from langgraph_sdk.client import LangGraphClient
from langgraph_sdk.errors import APIError, RateLimitError

from mneme.api.operation import Kind
from mneme.api.threads import Threads
from mneme.client.home import Place, asked_server, opened_at, operations_at
from mneme.client.remote import api_key, gone
from mneme.core import errors
from mneme.core.errors import BadInput, Conflict, Forbidden, MnemeError, ModelUnavailable, TooMany
from mneme.graphs import load
from mneme.nodes.background import THREAD_NAME
from mneme.stores.access import known_id, thread_id
from mneme.stores.checkpoints.checkpointer import open_checkpointer
from mneme.stores.ledger.base_store import LedgerStore
from mneme.stores.ledger.ledger import Ledger
from mneme.stores.ledger.records import LOCAL

Graph = PregelProtocol[Any, Any, Any, Any]
Values = dict[str, Any]
LOG = "Read the server's log."
HINTS: Mapping[type[MnemeError], str] = {
    BadInput: "Correct it, and run the command again.",
    Forbidden: "Who looks after the server gives rights, in its roles file (MNEME_ROLES), and keys. "
    "What it does for nobody, they run on its machine without keys, while it is stopped.",
    ModelUnavailable: "The server asks the model: start it there, or name another with --agents.",
}
"""What to do about an error of a workflow: a server tells its class and its words alone."""


@dataclass(frozen=True)
class Workflows:
    """Graphs with their checkpoints, and the ledger or the server that they run on.

    `server` is the client of the server that runs the graphs; None where this process runs them.
    """

    graphs: dict[str, Graph]
    place: Place
    server: LangGraphClient | None = None

    def operations(self, kind: type[Kind], owner: str) -> Kind:
        """Return operations on an owner's data, in this process or on the server."""
        return operations_at(self.place, kind, owner)

    async def thread(self, name: str, graph: str, owner: str = "") -> RunnableConfig:
        """Return the config of an owner's named thread, which is created on a server that does not know it.

        Name and owner are noted in the checkpoints; without an owner the thread is this machine's or the
        key's user's.
        """
        if self.server is not None:
            thread = await self.operations(Threads, owner or LOCAL).named(name)
            with server_errors():
                await self.server.threads.create(thread_id=thread, graph_id=graph, if_exists="do_nothing")
        else:
            thread = known_id(name)
            state = await self.graphs[graph].aget_state({"configurable": {"thread_id": thread}})
            if state.created_at is None and isinstance(self.place, Ledger):  # no earlier version kept it
                thread = await thread_id(self.place, owner or LOCAL, name)
        metadata = {THREAD_NAME: name} | ({"owner": owner} if owner else {})
        return {"configurable": {"thread_id": thread}, "metadata": metadata}

    async def left_at(self, graph: str, config: RunnableConfig) -> tuple[tuple[str, ...], Values]:
        """Return the steps that a thread still has to run, and its values.

        The steps are read from the tasks. `next` omits tasks that had finished when their process was
        killed before the next checkpoint, so it can be empty although the run is not at its end.
        """
        if self.server is not None:  # RemoteGraph cannot read a thread that has not run yet
            with server_errors():
                on_server = await self.server.threads.get_state(config["configurable"]["thread_id"])
            return tuple(task["name"] for task in on_server["tasks"]), cast(Values, on_server["values"] or {})
        state = await self.graphs[graph].aget_state(config)
        return tuple(task.name for task in state.tasks), state.values

    async def invoke(self, graph: str, given: Any, config: RunnableConfig, context: Values) -> Values:
        """Run a graph on a thread to its end, or to its next interrupt."""
        if self.server is None:  # subgraphs find the run's id in the config; a server gives its runs ids
            run_id = uuid7()
            known = {**config["configurable"], "run_id": str(run_id)}
            config = config | RunnableConfig(run_id=run_id, configurable=known)
        with server_errors():
            return cast(Values, await self.graphs[graph].ainvoke(given, config, context=context))

    async def stream(
        self,
        graph: str,
        given: Any,
        config: RunnableConfig,
        context: Values,
        stream_mode: StreamMode | list[StreamMode],
        durability: Durability = "async",
    ) -> AsyncIterator[Any]:
        """Run a graph on a thread and yield its stream.

        With `sync` a step is in the checkpoint before the next begins; otherwise it can be streamed earlier.
        Raises Conflict where a server stopped the run before its end.
        """
        how: Values = {"stream_mode": stream_mode, "durability": durability}
        with server_errors():
            async for each in self.graphs[graph].astream(given, config, context=context, **how):
                yield each
            if self.server is not None:
                left = (await self.server.threads.get_state(config["configurable"]["thread_id"]))["tasks"]
                if any(not task["interrupts"] for task in left):
                    hint = "Something was forgotten, or it was cancelled: the same command goes on."
                    raise Conflict("The run was stopped.", hint)

    async def pieces(
        self,
        graph: str,
        given: Any,
        config: RunnableConfig,
        context: Values,
        show: Callable[[Sequence[str]], None] = lambda _: None,
    ) -> AsyncIterator[tuple[str, bool]]:
        """Yield a graph's reply piece by piece, with whether the attempt before this piece broke off.

        `show` is told what the agent is shown of what other workflows remember.
        """
        said = ""
        both: list[StreamMode] = ["messages", "custom"]
        async for mode, told, *_ in self.stream(graph, given, config, context, both):  # a server adds an id
            if mode.startswith("custom"):
                if told.get("step") == "shared":
                    show(told["shown"])
                continue
            chunk, _ = told
            part = chunk.model_dump() if isinstance(chunk, BaseMessage) else chunk
            yield str(part["content"]), said not in {"", part["id"]}
            said = part["id"]


@contextmanager
def server_errors() -> Iterator[None]:
    """Raise a server's error as the same class of error here."""
    try:
        yield
    except RemoteException as error:
        body = error.args[0] if error.args and isinstance(error.args[0], dict) else {}
        kind = getattr(errors, str(body.get("error")), MnemeError)
        raise kind(str(body.get("message", error)), HINTS.get(kind, LOG)) from error
    except RateLimitError as error:
        raise TooMany(str(error), "Wait, and see `mneme inbox list`.") from error
    except httpx.TransportError as error:
        raise gone(error) from error
    except APIError as error:
        raise MnemeError(f"The server gave an unexpected answer: {error}", LOG) from error


@asynccontextmanager
async def open_workflows(*names: str) -> AsyncIterator[Workflows]:
    """Open graphs by name in this process, or on the server that has the ledger open."""
    server = await asyncio.to_thread(asked_server, for_workflows=True)
    for name in names if server is None else ():  # imported before the ledger is open: others would wait
        load(name)
    async with opened_at(server) as place:
        if isinstance(place, Ledger):
            async with workflows_here(place, *names) as flows:
                yield flows
            return
        client = get_client(url=str(place.base_url), api_key=api_key())
        remote: dict[str, Graph] = {name: RemoteGraph(name, client=client) for name in names}
        yield Workflows(remote, place, client)


@asynccontextmanager
async def workflows_here(ledger: Ledger, *names: str) -> AsyncIterator[Workflows]:
    """Open graphs by name in this process, on a ledger that is open, with the checkpoints of the settings."""
    async with open_checkpointer() as checkpointer:
        made: Values = {"checkpointer": checkpointer, "store": LedgerStore(ledger)}
        here = {name: load(name).builder.compile(**made, name=name) for name in names}
        yield Workflows(here, ledger)
