"""What a person waits for, and what remembering costs, against an Ollama double at a fixed time a call.

Real: the graphs, the ledger, the embedder, the gate, langchain-ollama's client, HTTP on loopback. Not
real: the model, which takes the same time for every call whatever its length. So the figures show what
the architecture adds to a model's time, not how fast any model is.

- Time to the first token of a chatbot's reply while memory agents work on 0, 10 and 100 messages of
  other users, beside one bare call through langchain-ollama (to reach: within 1.2 times of it), and
  beside the same with the gate wide open, when the server's queue alone decides who is next.
- Wall time of one remembered message with ten similar memories: version 3 as it is, in the sequence of
  the paper, versions 2 and 1.
- The same chat in the hot-path way (`evals.hot_path`), with the fewest calls that it can do with.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import asdict, dataclass
from math import ceil
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import Any
from uuid import uuid4

from langchain_core.messages import AIMessageChunk, HumanMessage
from langchain_core.runnables import RunnableConfig
from langchain_ollama import ChatOllama
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph.state import CompiledStateGraph
from pydantic import BaseModel, Field

from evals import stand_in
from evals.hot_path import hot_path_chat
from evals.in_sequence import sequential_memory_agent
from evals.latency_tables import report
from evals.ollama_double import OllamaDouble
from evals.report import Progress, Report, Row, open_journal
from graphs import chatbot, memory_agent, memory_agent_v1, memory_agent_v2
from mneme.settings import settings
from models.asking import forget
from models.embedders import open_embedder
from models.gate import gate
from nodes.context import ChatContext, MemoryContext
from nodes.memory_agent import Message
from prompts.chatbot import reply
from stores.base_store import LedgerStore
from stores.ledger import Ledger, open_ledger
from stores.records import Change, Write
from stores.user_memory import Memory, UserMemories

Agent = CompiledStateGraph[Any, Any, Any, Any]

MODEL = "llama3.1:8b"
WHO = f"ollama:{MODEL}"
LONGEST_WAIT = 60
WIDE_OPEN = 1000
"""A gate that holds nobody back."""
AGENTS: dict[str, Callable[[LedgerStore], Agent]] = {
    "version 3": lambda store: memory_agent.builder.compile(store=store),
    "version 3 in sequence": sequential_memory_agent,
    "version 2": lambda store: memory_agent_v2.builder.compile(store=store),
    "version 1": lambda store: memory_agent_v1.builder.compile(store=store),
}


class Options(BaseModel):
    """How long a call takes, at which loads and parallelism, how often, and where results go."""

    seconds: float = Field(0.2, gt=0, description="Time of every model call.")
    pending: list[int] = Field([0, 10, 100], description="Messages that memory agents work on meanwhile.")
    parallel: list[int] = Field([1, 4], description="Calls the server serves at once, while chatting.")
    parallel_remembering: list[int] = Field([4, 16], description="The same, while one message is remembered.")
    trials: int = Field(10, ge=1, description="Chats at each load.")
    out: Path = Field(Path("runs"), description="Folder of raw results and plots.")
    embedder: str = Field("", description="Embedder of the ledger; default: the settings'.")
    fresh: bool = Field(False, description="Start anew instead of resuming.")

    @classmethod
    def quick(cls, **more: Any) -> "Options":
        """Return options for a short run that shows the same with less certainty."""
        return cls(pending=[0, 10], trials=3, **more)


@dataclass
class Bench:
    """What every measurement uses."""

    ledger: Ledger
    double: OllamaDouble
    options: Options

    @property
    def store(self) -> LedgerStore:
        return LedgerStore(self.ledger)


async def run(options: Options, progress: Progress = lambda done, of, what: None) -> Report:
    """Measure replies under load, remembering, and the hot path; report them together."""
    embedder = await open_embedder(options.embedder or settings().embedder)
    configuration = {
        "seconds": options.seconds,
        "trials": options.trials,
        "embedder": embedder.name,
        "model": f"double of {WHO}",
    }
    journal = open_journal(options.out, "latency", configuration, fresh=options.fresh)
    cases = [case for case in _cases(options) if case.name not in journal]
    with TemporaryDirectory(prefix="mneme-latency-") as folder:
        ledger = await open_ledger(folder, embedder)
        try:
            await _seed(ledger, [f"pending-{number}" for number in range(max(options.pending))])
            for number, case in enumerate(cases):
                journal.add(case.name, await _measure(case, ledger, options))
                progress(number + 1, len(cases), case.name)
        finally:
            await ledger.close()
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
        bench = Bench(ledger, double, options)
        if case.what == "chat":
            measured = await _chat(case, bench)
        elif case.what == "hot path":
            measured = await _hot_path(bench)
        else:
            measured = await _remember(AGENTS[case.what](bench.store), bench)
    return {**asdict(case), **measured}


@contextmanager
def _serving(parallel: int, width: int, seconds: float) -> Iterator[OllamaDouble]:
    """Run a double, and have this process believe that it is the Ollama of its settings, `width` wide."""
    with OllamaDouble(parallel=parallel, seconds=seconds, brain=stand_in.answer) as double:
        given = {"MNEME_OLLAMA_URL": double.url, "MNEME_PARALLEL": str(width)}
        before = {name: os.environ.get(name) for name in given}
        _set(given)
        try:
            yield double
        finally:
            _set(before)


def _set(environment: Mapping[str, str | None]) -> None:
    for name, value in environment.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
    settings.cache_clear()
    forget()


async def _chat(case: Case, bench: Bench) -> Row:
    """Time bare calls, then chats while memory agents work; the first of each only warms up."""
    trials = bench.options.trials if case.gated else 1
    single = [await _single(bench) for _ in range(trials + 1)][1:]
    user = f"chatting-{uuid4().hex}"
    await _seed(bench.ledger, [user])
    chat = chatbot.builder.compile(checkpointer=InMemorySaver(), store=bench.store)
    context = ChatContext(user=user, chatbot=WHO, memory_agent=WHO)
    await _reply(chat, context, bench)
    async with _load(case.pending, bench) as left:
        replies = [await _reply(chat, context, bench) for _ in range(trials)]
        pending_after = left()
    return {"single": single, "replies": replies, "pending_after": pending_after}


async def _single(bench: Bench) -> float:
    """Return the time to the first token of one call that nothing of ours takes part in."""
    model = ChatOllama(model=MODEL, base_url=bench.double.url)
    started = monotonic()
    async for chunk in model.astream([("system", reply.system), ("human", stand_in.MESSAGE)]):
        if chunk.text:
            return monotonic() - started
    raise RuntimeError("the double said nothing")


async def _reply(chat: Agent, context: Any, bench: Bench) -> Row:
    """Chat once on a thread of its own, and take the time apart where the server saw the request."""
    seen = len(bench.double.chats)
    config: RunnableConfig = {"configurable": {"thread_id": uuid4().hex}}
    given = {"messages": [HumanMessage(stand_in.MESSAGE)]}
    started, first = monotonic(), 0.0
    async for message, _ in chat.astream(given, config, context=context, stream_mode="messages"):
        if isinstance(message, AIMessageChunk) and message.text and not first:
            first = monotonic()
    ended = monotonic()
    requests = [request for request in bench.double.chats[seen:] if stand_in.is_chat(request.body)]
    last = requests[-1]
    return {
        "first_token": first - started,
        "whole": ended - started,
        "before_model": last.arrived - started,
        "model": (last.first_token or first) - last.arrived,
        "after_model": first - (last.first_token or first),
        "calls": len(requests),
        "prompt_tokens": sum(stand_in.prompt_tokens(request.body) for request in requests),
    }


@asynccontextmanager
async def _load(count: int, bench: Bench) -> AsyncIterator[Callable[[], int]]:
    """Keep memory agents at work on the messages of `count` users; yield how many are not done yet.

    It begins when every message has a call in the server or at the gate, and ends when the server has
    noticed that its clients are gone.
    """
    agent = memory_agent.builder.compile(store=bench.store)
    entrance = gate(bench.double.url)
    tasks = [asyncio.create_task(_work(agent, f"pending-{number}")) for number in range(count)]
    try:
        await _until(lambda: entrance.waiting("background") + _in_server(bench.double) >= count)
        yield lambda: sum(not task.done() for task in tasks)
    finally:
        for task in tasks:
            task.cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        await _until(lambda: _in_server(bench.double) == 0)
    for result in results:
        if isinstance(result, Exception):
            raise result


async def _work(agent: Agent, user: str) -> None:
    message = Message(message=stand_in.MESSAGE, message_id=uuid4().hex)
    await agent.ainvoke(message, context=MemoryContext(user=user, memory_agent=WHO))


async def _until(reached: Callable[[], bool]) -> None:
    """Wait for a state of the server or the gate."""
    for _ in range(LONGEST_WAIT * 100):
        if reached():
            return
        await asyncio.sleep(0.01)
    raise TimeoutError(f"the double's load was not as wanted after {LONGEST_WAIT} seconds")


def _in_server(double: OllamaDouble) -> int:
    return sum(request.ended is None for request in double.chats)


async def _hot_path(bench: Bench) -> Row:
    """Chat with an agent that remembers before it replies."""
    user = f"hot-{uuid4().hex}"
    await _seed(bench.ledger, [user])
    model = ChatOllama(model=MODEL, base_url=bench.double.url)
    chat = hot_path_chat(UserMemories(bench.ledger, user), model)
    replies = [await _reply(chat, None, bench) for _ in range(bench.options.trials + 1)][1:]
    return {"replies": replies}


async def _remember(agent: Agent, bench: Bench) -> Row:
    """Time one message upon ten similar memories, each time those of a new user."""
    trials = [await _remember_once(agent, bench) for _ in range(1 + ceil(bench.options.trials / 4))]
    return {"trials": trials[1:]}


async def _remember_once(agent: Agent, bench: Bench) -> Row:
    user, seen = f"remembering-{uuid4().hex}", len(bench.double.chats)
    await _seed(bench.ledger, [user])
    context = MemoryContext(user=user, memory_agent=WHO)
    message = Message(message=stand_in.MESSAGE, message_id=uuid4().hex)
    started = monotonic()
    outcome = await agent.ainvoke(message, context=context)
    seconds = monotonic() - started
    requests = bench.double.chats[seen:]
    return {
        "seconds": seconds,
        "calls": len(requests),
        "prompt_tokens": sum(stand_in.prompt_tokens(request.body) for request in requests),
        "operations": [operation["operation"] for operation in outcome["operations"]],
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
        for number, content in enumerate(stand_in.MEMORIES)
    ]
    if writes:
        await ledger.write(writes)
