"""Graphs for the command line: in this process, or on the server that has the ledger open.

Where a `langgraph dev` on this machine has the embedded ledger open, its graphs are used; otherwise
the ledger is opened here. Callers use both in the same way: as a `Session` of a user or a `TeamSession`.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Generic, TypeVar, cast

import httpx
from langchain_core.messages import BaseMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.utils.uuid import uuid7
from langgraph.pregel.protocol import PregelProtocol
from langgraph.pregel.remote import RemoteException, RemoteGraph
from langgraph.types import Durability, Interrupt, StateSnapshot, StreamMode
from langgraph_sdk import get_client
from langgraph_sdk.client import LangGraphClient
from langgraph_sdk.errors import APIError, RateLimitError
from langgraph_sdk.schema import ThreadState

from mneme.api.cards import Cards
from mneme.api.inbox import Messages
from mneme.api.memories import Memories
from mneme.api.operation import Kind
from mneme.api.pools import Pools
from mneme.api.threads import Threads
from mneme.client.home import Place, absent_teams, asked_server, opened_at, operations_at, warn
from mneme.client.remote import api_key, gone
from mneme.core import errors
from mneme.core.errors import BadInput, Conflict, Forbidden, MnemeError, ModelUnavailable, TooMany
from mneme.core.private import make_private_folder
from mneme.core.settings import settings
from mneme.graphs import load
from mneme.models.asking.lazily import import_lazily
from mneme.models.asking.responders import resolve
from mneme.nodes.background import MEMORY_THREAD, RECURSION_LIMIT, THREAD_NAME
from mneme.stores.access import known_id, thread_id
from mneme.stores.checkpoints.checkpointer import open_checkpointer
from mneme.stores.ledger.base_store import LedgerStore
from mneme.stores.ledger.ledger import Ledger
from mneme.stores.ledger.records import LOCAL
from mneme.stores.users.inbox import Inbox, Letter
from mneme.stores.users.memory import RULES

Graph = PregelProtocol[Any, Any, Any, Any]
Values = dict[str, Any]
REPLY: list[StreamMode] = ["messages", "custom"]
"""Stream modes of a graph that answers with a reply."""
LOG_HINT = "Read the server's log."
ERROR_HINTS: Mapping[type[MnemeError], str] = {
    BadInput: "Correct it, and run the command again.",
    Forbidden: "Who looks after the server gives rights, in its roles file (MNEME_ROLES), and keys. "
    "What it does for nobody, they run on its machine without keys, while it is stopped.",
    ModelUnavailable: "The server asks the model: start it there, or name another with --agents.",
}
"""Hints for errors of a workflow: a server sends only the error's class and message."""


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
        """Return the steps that a thread still has to run, and its values."""
        state = await self.graphs[graph].aget_state(config)
        # `state.next` omits tasks that had finished when their process was killed before the next
        # checkpoint, so it can be empty although the run is not at its end.
        return tuple(task.name for task in state.tasks), cast(Values, state.values)


@dataclass
class GraphRun:
    """A run of a graph on a thread: iterate over its stream.

    Then `values` are those of the thread, and `questions` the interrupts at which it waits for a person.
    With the durability `sync` a step is in the checkpoint before the next begins; else it can be streamed
    earlier.
    """

    flows: Workflows
    graph: str
    given: Any
    config: RunnableConfig
    context: Values
    mode: StreamMode | list[StreamMode] = "custom"
    durability: Durability = "async"
    values: Values = field(default_factory=dict)
    questions: list[Interrupt] = field(default_factory=list)

    async def __aiter__(self) -> AsyncIterator[Any]:
        """Yield the stream. Raises Conflict if a server stopped the run before its end."""
        graph, server, config = self.flows.graphs[self.graph], self.flows.server, self.config
        if server is None:  # subgraphs find the run's id in the config; a server gives its runs ids
            run_id = uuid7()
            known = {**config["configurable"], "run_id": str(run_id)}
            config = config | RunnableConfig(run_id=run_id, configurable=known)
        how: Values = {"stream_mode": self.mode, "durability": self.durability}
        async for each in graph.astream(self.given, config, context=self.context, **how):
            yield each
        state = await graph.aget_state(self.config)
        self.values = cast(Values, state.values)
        self.questions = [each for task in state.tasks for each in task.interrupts]
        # A run that was cancelled before it began left no checkpoint.
        is_at_rest = state.created_at is not None and all(task.interrupts for task in state.tasks)
        if server is not None and not is_at_rest:
            hint = "Something was forgotten, or it was cancelled: the same command goes on."
            raise Conflict("The run was stopped.", hint)

    async def end(self) -> Values:
        """Run to the end, or to the next question to a person, and return the values of the thread."""
        async for _ in self:
            pass
        return self.values

    async def pieces(
        self, show: Callable[[Sequence[str]], None] = lambda _: None
    ) -> AsyncIterator[tuple[str, bool]]:
        """Yield a `REPLY` in pieces, each with whether the previous attempt broke off before it.

        `show` receives the other workflows' memories that the agent is shown.
        """
        said = ""
        async for mode, told, *_ in self:  # a server adds an id
            if mode.startswith("custom"):
                if told.get("step") == "shared":
                    show(told["shown"])
                continue
            chunk, _ = told
            part = chunk.model_dump() if isinstance(chunk, BaseMessage) else chunk
            yield str(part["content"]), said not in {"", part["id"]}
            said = part["id"]


class ServerGraph(RemoteGraph):
    """A graph on a server, whose errors are raised as the same classes of errors here."""

    async def astream(self, *given: Any, **more: Any) -> AsyncIterator[Any]:
        """Yield the stream of a run."""
        with server_errors():
            async for each in super().astream(*given, **more):
                yield each

    async def aget_state(self, *given: Any, **more: Any) -> StateSnapshot:
        """Return the state of a thread."""
        with server_errors():
            return await super().aget_state(*given, **more)

    def _create_state_snapshot(self, state: ThreadState) -> StateSnapshot:
        """Return a state as LangGraph has it, also of a thread on which nothing has run yet."""
        if state["checkpoint"] is None:
            return StateSnapshot({}, (), RunnableConfig(), None, None, None, (), ())
        return super()._create_state_snapshot(state)


@contextmanager
def server_errors() -> Iterator[None]:
    """Raise a server's error as the same class of error here."""
    try:
        yield
    except RemoteException as error:
        body = error.args[0] if error.args and isinstance(error.args[0], dict) else {}
        kind = getattr(errors, str(body.get("error")), MnemeError)
        raise kind(str(body.get("message", error)), ERROR_HINTS.get(kind, LOG_HINT)) from error
    except RateLimitError as error:
        raise TooMany(str(error), "Wait, and see `mneme inbox list`.") from error
    except httpx.TransportError as error:
        raise gone(error) from error
    except APIError as error:
        raise MnemeError(f"The server gave an unexpected answer: {error}", LOG_HINT) from error


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
        remote: dict[str, Graph] = {name: ServerGraph(name, client=client) for name in names}
        yield Workflows(remote, place, client)


@asynccontextmanager
async def workflows_here(ledger: Ledger, *names: str) -> AsyncIterator[Workflows]:
    """Open graphs by name in this process, on a ledger that is open, with the checkpoints of the settings."""
    async with open_checkpointer() as checkpointer:
        made: Values = {"checkpointer": checkpointer, "store": LedgerStore(ledger)}
        here = {name: load(name).builder.compile(**made, name=name) for name in names}
        yield Workflows(here, ledger)


@dataclass(frozen=True)
class Session:
    """A user's session for a command that chats and remembers."""

    user: str
    memories: Memories
    inbox: Messages
    flows: Workflows
    is_served: bool
    """Whether the server runs the memory agent after each turn; otherwise the command runs it."""

    async def conversation(self, name: str) -> RunnableConfig:
        """Return the config of this user's conversation of that name."""
        return await self.flows.thread(f"chat/{self.user}/{name}", "chatbot", owner=self.user)

    async def background(self) -> RunnableConfig:
        """Return the config of the thread on which the user's messages are remembered."""
        # It is looked up each time: erasing something may have replaced the thread.
        thread = await self.flows.thread(MEMORY_THREAD.format(user=self.user), "remember", owner=self.user)
        return thread | {"recursion_limit": RECURSION_LIMIT}

    async def letter(self, message_id: str) -> Letter | None:
        """Return a message of the inbox, with its error; None once it is remembered or erased."""
        return next((each for each in await self.inbox.list() if each["message_id"] == message_id), None)

    async def status(self, config: RunnableConfig) -> str:
        """Return the server's status of a thread, such as `busy` or `error`; "" without a server."""
        if self.flows.server is None:
            return ""
        with server_errors():
            return (await self.flows.server.threads.get(config["configurable"]["thread_id"]))["status"]

    async def is_broken(self) -> bool:
        """Return whether the server's memory agent ended with an error, so that waiting is useless."""
        return await self.status(await self.background()) == "error"

    @asynccontextmanager
    async def turn(self, config: RunnableConfig) -> AsyncIterator[None]:
        """Take turns on a conversation with other processes of this home; a server has a queue for each."""
        if self.flows.server is not None:
            yield
            return
        # LangGraph lets two processes run on a thread at once; the checkpoints of one then hide the other's.
        file = settings().home / "chats" / f"{config['configurable']['thread_id']}.lock"
        await asyncio.to_thread(make_private_folder, file.parent)
        filelock = await import_lazily("filelock")  # its import asks for the current folder, which blocks
        lock = filelock.AsyncFileLock(file, mode=0o600)
        try:
            await lock.acquire(blocking=False)
        except filelock.Timeout:
            warn(["Another process replies in this conversation; this one waits for it."])
            await lock.acquire()
        try:
            yield
        finally:
            file.unlink(missing_ok=True)  # whoever has it open looks again, once it is released
            await lock.release()


@asynccontextmanager
async def open_session(user: str) -> AsyncIterator[Session]:
    """Open a session in this process, or on the server that has the ledger open."""
    async with open_workflows("chatbot", "remember") as flows:
        yield await session_of(flows, user)


async def session_of(flows: Workflows, user: str) -> Session:
    """Return a user's session on open workflows."""
    memories = flows.operations(Memories, user)
    inbox = flows.operations(Messages, user)
    return Session(await memories.whoami(), memories, inbox, flows, is_served=flows.server is not None)


async def remember_waiting(session: Session, context: Values) -> Values:
    """Run the memory agent until no message of a user waits, and return its report; continue a killed run."""
    flows, config = session.flows, await session.background()
    steps, values = await flows.left_at("remember", config)
    if "memory_agent" in steps and isinstance(flows.place, Ledger):  # another process may have that message
        steps = steps if await Inbox(flows.place).claim(session.user, values["message_id"]) else ()
    whose = context | {"user": session.user}
    return await GraphRun(flows, "remember", None if steps else {}, config, whose).end()


class MemoryAgent:
    """The memory agent of one user in this process.

    It remembers the waiting messages; then it reads again those that rules have read, until it is stopped.
    `run` remembers, or with True also reads again; the next run continues a stopped one.
    """

    def __init__(self, run: Callable[[bool], Coroutine[Any, Any, None]]) -> None:
        self._run = run
        self._remembering: asyncio.Future[tuple[BaseException | None]] | None = None
        self._rereading: asyncio.Task[None] | None = None
        self._is_wanted = self._is_over = False
        self.is_remembering = False
        """Whether messages are being remembered; `start` then lets it look for new ones once more."""

    def start(self) -> None:
        """Remember the messages that wait now, also if a run is in progress; do nothing after `stop`."""
        self._is_wanted = True  # also of a run in progress, which may have read the inbox before
        if not self.is_remembering and not self._is_over:
            self.is_remembering = True
            # Gathered, its failure is a result: asyncio logs that of a task which nobody waits for.
            self._remembering = asyncio.gather(self._remember(), return_exceptions=True)

    async def wait(self, seconds: float | None = None) -> BaseException | None:
        """Wait until no message waits, at most `seconds`; return the error that ended the run, if any."""
        if self._remembering is None:
            return None
        done, _ = await asyncio.wait({self._remembering}, timeout=seconds)
        return next((failure for each in done for failure in each.result()), None)

    async def stop_rereading(self) -> None:
        """Stop reading again, so that other processes or a new message get the memories."""
        await _ended(self._rereading)

    async def stop(self) -> None:
        """Stop all work permanently."""
        self._is_over = True
        await _ended(self._remembering)
        await _ended(self._rereading)

    async def _remember(self) -> None:
        try:
            await _ended(self._rereading)
            while self._is_wanted:
                self._is_wanted = False
                await self._run(False)
        finally:
            self.is_remembering = False  # at once: the future is done only after others have had their turn
        self._rereading = asyncio.create_task(self._run(True))


async def _ended(task: asyncio.Future[Any] | None) -> None:
    if task is not None:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)  # its own cancellation stops nobody else


class MemoryAgents:
    """The memory agents of this process, one for each user; `used` keeps the ledger or server open."""

    def __init__(self, used: Callable[[], AbstractAsyncContextManager[Place]]) -> None:
        self._used = used
        self._agents: dict[str, MemoryAgent] = {}

    async def remember(self, user: str, memory_agent: str, seconds: float) -> None:
        """Remember a user's waiting messages; after `seconds` it continues in the background."""
        if (earlier := self._agents.get(user)) is not None:
            await earlier.wait(seconds)
            if earlier.is_remembering:  # the time is up: it continues in the background
                return
            await earlier.stop_rereading()
        agent = self._agents.get(user)
        if agent is None or agent is earlier:  # else another call has begun, after it had waited as well
            agent = self._agents[user] = MemoryAgent(partial(self._run, user, memory_agent))
            agent.start()
        if failure := await agent.wait(seconds):
            raise failure

    async def stop(self) -> None:
        """Stop all agents; the next process continues."""
        await asyncio.gather(*(each.stop() for each in self._agents.values()))

    async def _run(self, user: str, memory_agent: str, reread: bool) -> None:
        if reread and await resolve(memory_agent) == RULES:  # rules would read the same again
            return
        async with self._used() as place:
            if isinstance(place, Ledger):  # a server has its own memory agent
                async with workflows_here(place, "remember") as flows:
                    context = {"memory_agent": memory_agent, "reread": reread}
                    await remember_waiting(await session_of(flows, user), context)


Owned = TypeVar("Owned", Cards, Pools)
THREAD_NAMES = {
    "compound_learning": "learn",
    "dispute_resolution": "dispute",
    "consolidation": "consolidate",
    "memory_sharing": "share",
    "interactive_learning": "grow",
    "rubric_design": "rubric",
}
"""Prefix of a graph's thread names; the team's name and others follow."""
GROWTH_STEPS = 10_000
"""Maximum steps of one run of `mneme share grow`."""


@dataclass(frozen=True)
class TeamSession(Generic[Owned]):
    """A team's session for a command: operations on the team's data, and runs of graphs."""

    team: str
    on: Owned
    flows: Workflows

    async def thread(self, graph: str, *names: str) -> RunnableConfig:
        """Return the config of the thread on which a graph runs; a killed run continues there."""
        name = "/".join(filter(None, [THREAD_NAMES[graph], self.team, *names]))
        config = await self.flows.thread(name, graph)
        return config | {"recursion_limit": GROWTH_STEPS} if graph == "interactive_learning" else config


@asynccontextmanager
async def open_team(kind: type[Owned], team: str, *graphs: str) -> AsyncIterator[TeamSession[Owned]]:
    """Open a session with these graphs in this process, or on the server that has the ledger open."""
    async with open_workflows(*graphs) as flows:
        warn(await absent_teams(flows.place, {"team": team}))
        name = await flows.operations(Cards, team).whose()
        yield TeamSession(name, flows.operations(kind, team), flows)
