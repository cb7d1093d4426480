"""How long a person waits, and how long remembering takes, with a stand-in for Ollama of fixed time a call.

Real: the graphs, the ledger, the embedder, the gate, langchain-ollama's client, HTTP on loopback. Not
real: the model, which takes the same time for every call whatever its length. So the figures show what
the architecture adds to a model's time, not how fast any model is.

- Time to the first token of a chatbot's reply while memory agents work on 0, 10 and 100 messages of
  other users, beside one bare call through langchain-ollama (to reach: within 1.2 times of it), and
  beside the same without a gate, when the server's queue alone decides which call is next.
- Wall time of one remembered message with ten similar memories: our memory agent, and the paper's
  versions 3 (its checks at once, and in sequence as in the paper), 2 and 1.
- The same chat in the hot-path way (`hot_path.py`), with the fewest calls that it can do with.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import asdict, dataclass
from math import ceil
from time import monotonic
from typing import Any
from uuid import uuid4

from langchain_core.messages import AIMessageChunk, HumanMessage
from langchain_core.runnables import RunnableConfig
from langchain_ollama import ChatOllama
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph.state import CompiledStateGraph
from pydantic import BaseModel, Field

from mneme.core.settings import settings
from mneme.evals.chat import latency_server, scripted_answers
from mneme.evals.chat.hot_path import hot_path_chat
from mneme.evals.chat.latency_tables import report
from mneme.evals.chat.sequential_checks import sequential_memory_agent
from mneme.evals.measuring import in_environment, temporary_ledger
from mneme.evals.options import RUNS, EmbedderName, Fresh, NotNegative, Out, Positive
from mneme.evals.report import Progress, Report, Row, open_journal
from mneme.evals.stand_in import StandIn
from mneme.graphs import chatbot, memory_agent
from mneme.graphs.baselines import memory_agent_v1, memory_agent_v2, memory_agent_v3
from mneme.models.asking.gate import gate
from mneme.models.embedding.embedders import open_embedder
from mneme.nodes.chat.context import ChatContext, MemoryContext
from mneme.prompts.chat.chatbot import reply
from mneme.stores.ledger.base_store import LedgerStore
from mneme.stores.ledger.ledger import Ledger
from mneme.stores.ledger.records import Change, Write
from mneme.stores.users.inbox import Message
from mneme.stores.users.memories import Memory, UserMemories

Agent = CompiledStateGraph[Any, Any, Any, Any]

MODEL = "llama3.1:8b"
WHO = f"ollama:{MODEL}"
LONGEST_WAIT = 60
WIDE_OPEN = 1000
"""A width at which the gate lets every call pass at once."""
AGENTS: dict[str, Callable[[LedgerStore], Agent]] = {
    "ours": lambda store: memory_agent.builder.compile(store=store),
    "version 3": lambda store: memory_agent_v3.builder.compile(store=store),
    "version 3 in sequence": sequential_memory_agent,
    "version 2": lambda store: memory_agent_v2.builder.compile(store=store),
    "version 1": lambda store: memory_agent_v1.builder.compile(store=store),
}


class Options(BaseModel):
    """How long a call takes, at which loads and parallelism, how often, and where results go."""

    seconds: float = Field(0.2, gt=0, description="Time of every model call.")
    pending: list[NotNegative] = Field(
        [0, 10, 100], min_length=1, description="Messages that memory agents work on meanwhile."
    )
    parallel: list[Positive] = Field(
        [1, 4], min_length=1, description="Calls that the server answers at once, while chatting."
    )
    parallel_remembering: list[Positive] = Field(
        [4, 16], min_length=1, description="The same, while one message is remembered."
    )
    trials: int = Field(10, ge=1, description="Chats at each load.")
    out: Out = RUNS
    embedder: EmbedderName = ""
    fresh: Fresh = False
    server: bool = Field(
        False, description="Measure replies of `langgraph dev` instead, at the highest number pending."
    )
    quick: bool = Field(
        False, description="A short run: 0 and 10 messages pending, 3 chats; with a server, one case."
    )

    @property
    def sized(self) -> "Options":
        """Return the options with the sizes of a short run, where one is asked for."""
        shorter = {"trials": 3} if self.server else {"trials": 3, "pending": [0, 10]}
        return self.model_copy(update=shorter) if self.quick else self


@dataclass
class Setup:
    """What every measurement uses."""

    ledger: Ledger
    double: StandIn
    options: Options

    @property
    def store(self) -> LedgerStore:
        return LedgerStore(self.ledger)


async def run(options: Options, progress: Progress = lambda done, of, what: None) -> Report:
    """Measure replies under load, remembering, and the hot path; report them together."""
    options = options.sized
    embedder = await open_embedder(options.embedder or settings().embedder)
    configuration = {
        "seconds": options.seconds,
        "trials": options.trials,
        "embedder": embedder.name,
        "model": f"double of {WHO}",
    }
    journal = open_journal(options.out, "latency", configuration, fresh=options.fresh)
    if options.server:
        return await latency_server.measure(
            journal, options.seconds, max(options.pending), options.trials, progress, quick=options.quick
        )
    cases = [case for case in _cases(options) if case.name not in journal]
    async with temporary_ledger(embedder) as ledger:
        await _seed(ledger, [f"pending-{number}" for number in range(max(options.pending))])
        for number, case in enumerate(cases):
            journal.add(case.name, await _measure(case, ledger, options))
            progress(number + 1, len(cases), case.name)
    return report([journal[case.name] for case in _cases(options)], journal, options.seconds)


@dataclass(frozen=True)
class Case:
    """One measurement: of what, at which parallelism of the server, under which load."""

    what: str
    parallel: int
    pending: int = 0
    gated: bool = True

    @property
    def name(self) -> str:
        gate = "" if self.gated else "/without gate"
        return f"{self.what}/parallel {self.parallel}/pending {self.pending}{gate}"


def _cases(options: Options) -> list[Case]:
    chats = [Case("chat", parallel, load) for parallel in options.parallel for load in options.pending]
    loads = [load for load in options.pending if load]
    open_ = [Case("chat", parallel, load, gated=False) for parallel in options.parallel for load in loads]
    hot = [Case("hot path", parallel) for parallel in options.parallel]
    remembering = [Case(name, parallel) for parallel in options.parallel_remembering for name in AGENTS]
    return chats + open_ + hot + remembering


async def _measure(case: Case, ledger: Ledger, options: Options) -> Row:
    width = case.parallel if case.gated else WIDE_OPEN
    with _serving(case.parallel, width, options.seconds) as double:
        setup = Setup(ledger, double, options)
        if case.what == "chat":
            measured = await _chat(case, setup)
        elif case.what == "hot path":
            measured = await _hot_path(setup)
        else:
            measured = await _remember(AGENTS[case.what](setup.store), setup)
    return {**asdict(case), **measured}


@contextmanager
def _serving(parallel: int, width: int, seconds: float) -> Iterator[StandIn]:
    """Run a double, and make it the Ollama of this process's settings, with a gate `width` wide."""
    with (
        StandIn(parallel=parallel, seconds=seconds, brain=scripted_answers.answer) as double,
        in_environment({"MNEME_OLLAMA_URL": double.url, "MNEME_PARALLEL": str(width)}),
    ):
        yield double


async def _chat(case: Case, setup: Setup) -> Row:
    """Time bare calls, then chats while memory agents work; the first of each only warms up."""
    trials = setup.options.trials if case.gated else 1
    single = [await _single(setup) for _ in range(trials + 1)][1:]
    user = f"chatting-{uuid4().hex}"
    await _seed(setup.ledger, [user])
    chat = chatbot.builder.compile(checkpointer=InMemorySaver(), store=setup.store)
    context = ChatContext(user=user, chatbot=WHO, memory_agent=WHO)
    await _reply(chat, context, setup)
    async with _load(case.pending, setup) as left:
        replies = [await _reply(chat, context, setup) for _ in range(trials)]
        pending_after = left()
    return {"single": single, "replies": replies, "pending_after": pending_after}


async def _single(setup: Setup) -> float:
    """Return the time to the first token of one call that nothing of ours takes part in."""
    model = ChatOllama(model=MODEL, base_url=setup.double.url)
    started = monotonic()
    async for chunk in model.astream([("system", reply.system), ("human", scripted_answers.MESSAGE)]):
        if chunk.text:
            return monotonic() - started
    raise RuntimeError("the double said nothing")


async def _reply(chat: Agent, context: Any, setup: Setup) -> Row:
    """Chat once on a thread of its own, and take the time apart where the server saw the request."""
    seen = len(setup.double.chats)
    config: RunnableConfig = {"configurable": {"thread_id": uuid4().hex}}
    given = {"messages": [HumanMessage(scripted_answers.MESSAGE)]}
    started, first = monotonic(), 0.0
    async for message, _ in chat.astream(given, config, context=context, stream_mode="messages"):
        if isinstance(message, AIMessageChunk) and message.text and not first:
            first = monotonic()
    ended = monotonic()
    requests = [request for request in setup.double.chats[seen:] if scripted_answers.is_chat(request.body)]
    last = requests[-1]
    return {
        "first_token": first - started,
        "whole": ended - started,
        "before_model": last.arrived - started,
        "model": (last.first_token or first) - last.arrived,
        "after_model": first - (last.first_token or first),
        "calls": len(requests),
        "prompt_tokens": sum(scripted_answers.prompt_tokens(request.body) for request in requests),
    }


@asynccontextmanager
async def _load(count: int, setup: Setup) -> AsyncIterator[Callable[[], int]]:
    """Keep memory agents at work on the messages of `count` users; yield how many are not done yet.

    It begins when every message has a call in the server or at the gate, and ends when the server has
    noticed that its clients are gone.
    """
    agent = memory_agent.builder.compile(store=setup.store)
    entrance = gate(setup.double.url)
    tasks = [asyncio.create_task(_work(agent, f"pending-{number}")) for number in range(count)]
    try:
        await _until(lambda: entrance.waiting("background") + _in_server(setup.double) >= count)
        yield lambda: sum(not task.done() for task in tasks)
    finally:
        for task in tasks:
            task.cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        await _until(lambda: _in_server(setup.double) == 0)
    for result in results:
        if isinstance(result, Exception):
            raise result


async def _work(agent: Agent, user: str) -> None:
    message = Message(message=scripted_answers.MESSAGE, message_id=uuid4().hex)
    await agent.ainvoke(message, context=MemoryContext(user=user, memory_agent=WHO))


async def _until(reached: Callable[[], bool]) -> None:
    """Wait for a state of the server or the gate."""
    for _ in range(LONGEST_WAIT * 100):
        if reached():
            return
        await asyncio.sleep(0.01)
    raise TimeoutError(f"the double's load was not as wanted after {LONGEST_WAIT} seconds")


def _in_server(double: StandIn) -> int:
    return sum(request.ended is None for request in double.chats)


async def _hot_path(setup: Setup) -> Row:
    """Chat with an agent that remembers before it replies."""
    user = f"hot-{uuid4().hex}"
    await _seed(setup.ledger, [user])
    model = ChatOllama(model=MODEL, base_url=setup.double.url)
    chat = hot_path_chat(UserMemories(setup.ledger, user), model)
    replies = [await _reply(chat, None, setup) for _ in range(setup.options.trials + 1)][1:]
    return {"replies": replies}


async def _remember(agent: Agent, setup: Setup) -> Row:
    """Time one message upon ten similar memories, each time those of a new user."""
    trials = [await _remember_once(agent, setup) for _ in range(1 + ceil(setup.options.trials / 4))]
    return {"trials": trials[1:]}


async def _remember_once(agent: Agent, setup: Setup) -> Row:
    user, seen = f"remembering-{uuid4().hex}", len(setup.double.chats)
    await _seed(setup.ledger, [user])
    context = MemoryContext(user=user, memory_agent=WHO)
    message = Message(message=scripted_answers.MESSAGE, message_id=uuid4().hex)
    started = monotonic()
    outcome = await agent.ainvoke(message, context=context)
    seconds = monotonic() - started
    requests = setup.double.chats[seen:]
    return {
        "seconds": seconds,
        "calls": len(requests),
        "prompt_tokens": sum(scripted_answers.prompt_tokens(request.body) for request in requests),
        "operations": [operation["event"] for operation in outcome["operations"]],
    }


async def _seed(ledger: Ledger, users: Sequence[str]) -> None:
    """Give each user the ten memories."""
    change = Change(reason="known before the measurement", actor="latency")
    writes = [
        Write(
            event="insert",
            namespace=UserMemories(ledger, user).namespace,
            key=f"memory-{number}",
            value=Memory(content=content).model_dump(),
            text=content,
            change=change,
        )
        for user in users
        for number, content in enumerate(scripted_answers.MEMORIES)
    ]
    if writes:
        await ledger.write(writes)
