"""One user's chatbot and memory, one team's graphs, and what goes on in the background."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar

from langchain_core.runnables import RunnableConfig

from mneme.api.cards import Cards
from mneme.api.inbox import Messages
from mneme.api.memories import Memories
from mneme.api.pools import Pools
from mneme.client.home import Place
from mneme.client.workflows import Values, Workflows, open_workflows, server_errors, workflows_here
from mneme.core.errors import MnemeError
from mneme.models.asking.responders import resolve
from mneme.nodes.background import MEMORY_THREAD, RECURSION_LIMIT
from mneme.nodes.sharing.context import PoolContext
from mneme.nodes.sharing.training_wake import TRAINING_THREAD
from mneme.stores.ledger.ledger import Ledger
from mneme.stores.users.inbox import Inbox
from mneme.stores.users.memory import RULES


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
    return await flows.thread(name, "remember", owner=user) | {"recursion_limit": RECURSION_LIMIT}


async def remember_waiting(flows: Workflows, user: str, context: Values) -> Values:
    """Run the memory agent until no message of a user waits, and return its report; continue a killed run."""
    config = await background_of(flows, user)
    steps, values = await flows.left_at("remember", config)
    if "memory_agent" in steps and isinstance(flows.place, Ledger):
        steps = steps if await Inbox(flows.place).claim(user, values["message_id"]) else ()
    return await flows.invoke("remember", None if steps else {}, config, context | {"user": user})


class MemoryAgent:
    """The memory agent of one user in this process.

    It remembers what waits; then it reads again what rules have read, until it is stopped. `run` remembers,
    or with True also reads again; a run that is stopped goes on with the next one.
    """

    def __init__(self, run: Callable[[bool], Coroutine[Any, Any, None]]) -> None:
        self._run = run
        self._remembering: asyncio.Future[tuple[BaseException | None]] | None = None
        self._rereading: asyncio.Task[None] | None = None
        self._is_wanted = self._is_over = False

    @property
    def is_remembering(self) -> bool:
        """Whether it remembers messages now."""
        return self._remembering is not None and not self._remembering.done()

    def start(self) -> None:
        """Remember what waits now, also where it is at work already; once it was stopped, nothing."""
        self._is_wanted = True
        if not self.is_remembering and not self._is_over:
            self._remembering = asyncio.gather(self._remember(), return_exceptions=True)

    async def wait(self, seconds: float | None = None) -> None:
        """Wait until nothing waits, for so many seconds at most."""
        if self._remembering is not None:
            await asyncio.wait({self._remembering}, timeout=seconds)

    def check(self) -> None:
        """Raise what ended it, if something did."""
        if self._remembering is not None and self._remembering.done():
            (failure,) = self._remembering.result()
            if failure is not None:
                raise failure

    async def stop_rereading(self) -> None:
        """Let others have the memories, or a message that just came."""
        await _ended(self._rereading)

    async def stop(self) -> None:
        """End whatever it does, for good."""
        self._is_over = True
        await _ended(self._remembering)
        await _ended(self._rereading)

    async def _remember(self) -> None:
        await self.stop_rereading()
        while self._is_wanted:
            self._is_wanted = False
            await self._run(False)
        self._rereading = asyncio.create_task(self._run(True))


async def _ended(task: asyncio.Future[Any] | None) -> None:
    if task is not None:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


class MemoryAgents:
    """The memory agents of this process, one for each user, at the place that `used` keeps open meanwhile."""

    def __init__(self, used: Callable[[], AbstractAsyncContextManager[Place]]) -> None:
        self._used = used
        self._agents: dict[str, MemoryAgent] = {}

    async def remember(self, user: str, memory_agent: str, seconds: float) -> None:
        """Remember what waits of a user; it goes on in the background after these seconds."""
        if (agent := self._agents.get(user)) is not None:
            await agent.wait(seconds)
            await agent.stop_rereading()
        if agent is None or not agent.is_remembering:
            agent = self._agents[user] = MemoryAgent(partial(self._run, user, memory_agent))
            agent.start()
        await agent.wait(seconds)
        agent.check()

    async def stop(self) -> None:
        """End what they do; it goes on with the next process."""
        await asyncio.gather(*(each.stop() for each in self._agents.values()))

    async def _run(self, user: str, memory_agent: str, reread: bool) -> None:
        if reread and await resolve(memory_agent) == RULES:
            return
        async with self._used() as place:
            if isinstance(place, Ledger):
                async with workflows_here(place, "remember") as flows:
                    context = {"memory_agent": memory_agent, "reread": reread}
                    await remember_waiting(flows, user, context)


@asynccontextmanager
async def open_session(user: str) -> AsyncIterator[Session]:
    """Open a session in this process, or on the server that has the ledger open."""
    async with open_workflows("chatbot", "remember") as flows:
        memories = flows.operations(Memories, user)
        yield Session(await memories.whoami(), memories, flows.operations(Messages, user), flows)


class LastingSession(AbstractAsyncContextManager["LastingSession"]):
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

    async def __aexit__(self, *_: object) -> None:
        await self.close()


Kind = TypeVar("Kind", Cards, Pools)
THREADS = {
    "compound_learning": "learn",
    "dispute_resolution": "dispute",
    "consolidation": "consolidate",
    "memory_sharing": "share",
    "interactive_learning": "grow",
    "rubric_design": "rubric",
}
"""How the names of threads begin on which a graph runs; the team's name and others follow."""
GROWTH_STEPS = 10_000
"""The most steps of one run of `mneme share grow`."""
GRADED_AT_ONCE = 2
"""Memories whose candidates are graded at the same time: the grades of so many are lost with a kill."""


@dataclass(frozen=True)
class TeamSession(Generic[Kind]):
    """What a command needs to run graphs for a team: operations on its data, and the graphs."""

    team: str
    on: Kind
    flows: Workflows

    async def thread(self, graph: str, *names: str) -> RunnableConfig:
        """Return the config of the thread on which a graph runs; a killed run continues there."""
        name = "/".join(filter(None, [THREADS[graph], self.team, *names]))
        config = await self.flows.thread(name, graph)
        return config | {"recursion_limit": GROWTH_STEPS} if graph == "interactive_learning" else config


@asynccontextmanager
async def open_team(kind: type[Kind], team: str, *graphs: str) -> AsyncIterator[TeamSession[Kind]]:
    """Open a session with these graphs in this process, or on the server that has the ledger open."""
    async with open_workflows(*graphs) as flows:
        name = await flows.operations(Cards, team).whose()
        yield TeamSession(name, flows.operations(kind, team), flows)


async def train(
    session: TeamSession[Pools],
    pool: str,
    context: Values,
    told: Callable[[Values], None] = lambda _: None,
) -> Values:
    """Train a pool's retriever on new memories; continue a training that was killed.

    `told` is called with each memory that was graded, which can take a minute.
    """
    graph, flows = "retriever_training", session.flows
    config = await flows.thread(TRAINING_THREAD.format(team=session.team, pool=pool), graph)
    left, _ = await flows.left_at(graph, config)
    given = None if left else {"pool": pool}
    bounded = config | {"recursion_limit": RECURSION_LIMIT, "max_concurrency": GRADED_AT_ONCE}
    part = {name: value for name, value in context.items() if name in PoolContext.model_fields}
    async for event in flows.stream(graph, given, bounded, part, "custom"):
        told(event)
    return (await flows.left_at(graph, config))[1]


class Training:
    """Train retrievers in the background, one at a time.

    A server trains by itself, so with a server this class does nothing.
    """

    def __init__(self, session: TeamSession[Pools], context: Values) -> None:
        self._session, self._context = session, context
        self._task: asyncio.Task[None] | None = None
        self._wanted: set[str] = set()
        self._results: list[str] = []

    def wake(self, pool: str) -> None:
        """Train on the pool's new memories, now or after the current training."""
        if self._session.flows.server is not None:
            return
        self._wanted.add(pool)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._train())

    async def _train(self) -> None:
        while self._wanted:
            pool = self._wanted.pop()
            try:
                why = (await train(self._session, pool, self._context)).get("why", "")
            except MnemeError as error:  # the answer and the stored pair must not be lost with the training
                why = f"{error} {error.hint}"
            self._results.append(f"{pool}: {why}")

    async def finish(self) -> list[str]:
        """Wait until all training is done; return the result of each."""
        if self._task is not None:
            await self._task
        return self._results

    async def leave(self) -> None:
        """Stop at once; memories that were not learned are used by the next training."""
        await _ended(self._task)
