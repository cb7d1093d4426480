"""Time to the first token of a reply while memory agents work.

- A reply while memory agents work on 0, 10 and 100 messages of other users, beside one bare call of the same
  model.
- The same chat in the hot-path way (§2.1), which remembers before it replies.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Any
from uuid import uuid4

import pandas as pd
import yaml
from langchain_core.callbacks import AsyncCallbackHandler
from langchain_core.messages import AIMessageChunk, HumanMessage, SystemMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import tool
from langchain_ollama import ChatOllama
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from matplotlib.axes import Axes
from pydantic import Field

from mneme.core.errors import BadInput
from mneme.core.settings import settings
from mneme.evals.measuring import temporary_ledger
from mneme.evals.options import Agents, NotNegative, RunOptions, identify
from mneme.evals.report import Progress, Report, Row, framed
from mneme.graphs import chatbot, memory_agent
from mneme.models.asking.asking import ask
from mneme.models.asking.gate import gate
from mneme.models.ollama import catalogue
from mneme.models.ollama.chat import context_of
from mneme.nodes.chat.context import ChatContext, MemoryContext
from mneme.prompts.chat.chatbot import Turn, reply
from mneme.stores.ledger.base_store import LedgerStore
from mneme.stores.ledger.ledger import Ledger
from mneme.stores.ledger.records import Change
from mneme.stores.users.inbox import Message
from mneme.stores.users.memories import UserMemories
from mneme.stores.users.memory import Memory

Agent = CompiledStateGraph[Any, Any, Any, Any]

TARGET = 1.2
"""Maximum time to the first token, in multiples of a single call's."""
SETTLING = 60
"""Seconds within which the calls of the load must have begun."""
CHAT, HOT_PATH = "chat", "hot path"
_TEXTS = yaml.safe_load((Path(__file__).parent / "data" / "latency.yaml").read_text(encoding="utf-8"))
SYSTEM, MESSAGE, MEMORIES = (_TEXTS[name] for name in ("system", "message", "memories"))
RETRIEVED = 10


class Options(RunOptions):
    """Model, loads, repetitions, and the folder of the results."""

    agents: Agents = "auto"
    pending: list[NotNegative] = Field(
        [0, 10, 100], min_length=1, description="Messages that memory agents work on meanwhile."
    )
    trials: int = Field(10, ge=1, description="Chats at each load.")
    quick: bool = Field(False, description="A short run: 0 and 10 messages pending, 3 chats.")


async def run(options: Options, progress: Progress = lambda done, of, what: None) -> Report:
    """Measure replies under load, and the hot path; report them together."""
    if options.quick:
        options = options.model_copy(update={"trials": 3, "pending": [0, 10]})
    who, parallel = await identify(options.agents), settings().parallel
    if not who.responder.startswith("ollama:"):  # only Ollama's gate counts who waits
        raise BadInput(f"{who} has no queue to wait in.", "Name a model of Ollama: --agents ollama:MODEL.")
    embedder = await options.opened_embedder()
    configuration = {
        "agents": who.model_dump(),
        "trials": options.trials,
        "embedder": embedder.name,
        "parallel": parallel,
    }
    journal = options.journal("latency", configuration)
    cases = {f"{CHAT}/pending {load}": (CHAT, load) for load in options.pending} | {HOT_PATH: (HOT_PATH, 0)}
    async with temporary_ledger(embedder) as ledger:
        await _seed(ledger, [f"pending-{number}" for number in range(max(options.pending))])

        async def measure(case: tuple[str, int]) -> Row:
            measured = _chat if case[0] == CHAT else _hot_path
            return await measured(case[1], ledger, who.responder, options.trials)

        rows = await journal.play(cases, measure, progress)
    trials = pd.DataFrame([{**row, **trial} for row in rows for trial in row["trials"]])
    chats = trials.groupby(["what", "pending"], sort=False).median(numeric_only=True).reset_index()
    single = float(chats["single"].iloc[0])  # the hot path has no bare calls of its own
    chats = chats.fillna({"single": single}).assign(ratio=lambda of: of["seconds"] / of["single"])
    missed = chats[(chats["what"] == CHAT) & (chats["ratio"] > TARGET)]["pending"].tolist()
    return journal.report(
        who,
        {"chat": chats.to_dict("records")},
        [framed("Seconds to the first token of a reply, and × one bare call (median)", chats)],
        [
            f"{parallel} calls at once (MNEME_PARALLEL; as many as the server answers).",
            f"Target, first token within {TARGET} of a single call at every load: "
            + (f"missed with {', '.join(map(str, missed))} pending." if missed else "reached."),
            "left: background messages that were still being worked on after the last chat.",
        ],
        rows,
    ).with_plots("Time to the first token", partial(_plot_chats, chats, single))


class _Calls(AsyncCallbackHandler):
    """Record the time of the first token, and count all calls."""

    def __init__(self) -> None:
        self._started = monotonic()
        self.seconds, self.calls = 0.0, 0

    async def on_llm_new_token(self, token: object, **kwargs: Any) -> None:
        if token and not self.seconds:
            self.seconds = monotonic() - self._started

    async def on_llm_end(self, response: object, **kwargs: Any) -> None:
        self.calls += 1


async def _chat(pending: int, ledger: Ledger, who: str, trials: int) -> Row:
    """Time bare calls, then chats while memory agents work; the first of each only warms up."""
    single = [await _single(who) for _ in range(trials + 1)][1:]  # the first loads the model
    user = f"chatting-{uuid4().hex}"
    await _seed(ledger, [user])
    chat = chatbot.builder.compile(checkpointer=InMemorySaver(), store=LedgerStore(ledger))
    context = ChatContext(user=user, chatbot=who, memory_agent=who)
    await _reply(chat, context)
    async with _load(pending, ledger, who) as tasks:
        replies = [await _reply(chat, context) for _ in range(trials)]
        left = sum(not task.done() for task in tasks)  # 0 means that the load had ended before the chats did
    timed = [row | {"single": one} for row, one in zip(replies, single, strict=True)]
    return {"what": CHAT, "pending": pending, "left": left, "trials": timed}


async def _single(who: str) -> float:
    """Return the time to the first token of one call that no graph takes part in."""
    made = _Calls()
    await ask(reply, Turn(message=MESSAGE), who, config=RunnableConfig(callbacks=[made]))
    return made.seconds


async def _reply(chat: Agent, context: Any) -> Row:
    """Chat once on a thread of its own."""
    made, started, first = _Calls(), monotonic(), 0.0
    config: RunnableConfig = {"configurable": {"thread_id": uuid4().hex}, "callbacks": [made]}
    given = {"messages": [HumanMessage(MESSAGE)]}
    async for message, _ in chat.astream(given, config, context=context, stream_mode="messages"):
        if isinstance(message, AIMessageChunk) and message.text and not first:
            first = monotonic() - started
    return {"seconds": first, "whole": monotonic() - started, "calls": made.calls}


@asynccontextmanager
async def _load(pending: int, ledger: Ledger, who: str) -> AsyncIterator[Sequence["asyncio.Task[Any]"]]:
    """Keep memory agents busy with messages of other users; at the start each message has a call."""
    agent = memory_agent.builder.compile(store=LedgerStore(ledger))
    entrance = gate(settings().ollama_url)

    async def work(user: str) -> Any:
        message = Message(message=MESSAGE, message_id=uuid4().hex)
        return await agent.ainvoke(message, context=MemoryContext(user=user, memory_agent=who))

    def begun() -> int:
        """Count the tasks that have a call at the gate or behind it, and those that are done."""
        # A task between two calls is in neither: so the load may look smaller.
        calls = entrance.waiting("background") + entrance.running("background")
        return calls + sum(task.done() for task in tasks)

    tasks = [asyncio.create_task(work(f"pending-{n}")) for n in range(pending)]
    try:
        async with asyncio.timeout(SETTLING):
            # The gate has no event for "somebody waits"; a poll of 10 ms is nothing beside a call of seconds.
            while begun() < pending:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        yield tasks
    finally:
        for task in tasks:
            task.cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
    for result in results:
        if isinstance(result, Exception):
            raise result


async def _hot_path(pending: int, ledger: Ledger, who: str, trials: int) -> Row:
    """Time chats with an agent that remembers before it replies, each with a new user; the first warms up."""
    model, url = who.removeprefix("ollama:"), settings().ollama_url
    answering = ChatOllama(model=model, base_url=url, num_ctx=context_of(await catalogue.facts(url, model)))
    timed = list[Row]()
    for _ in range(trials + 1):
        user = f"hot-{uuid4().hex}"
        await _seed(ledger, [user])
        timed.append(await _reply(hot_path_chat(UserMemories(ledger, user), answering), None))
    return {"what": HOT_PATH, "pending": pending, "trials": timed[1:]}


def hot_path_chat(memories: UserMemories, model: ChatOllama) -> CompiledStateGraph[Any, Any, Any, Any]:
    """Build the chat in the hot-path way (§2.1, LangGraph's ReAct memory agent) for one user's memories.

    One agent talks and remembers: it always retrieves the ten most similar memories, may call
    `upsert_memory`, and replies only after the tool has answered.
    """

    @tool
    async def upsert_memory(content: str, context: str, memory_id: str) -> str:
        """Insert a memory, or update the one of that id; `context` says when it was mentioned."""
        change = Change(reason=context, actor="hot_path")
        if not memory_id:
            return f"Stored memory {(await memories.insert(Memory(content=content), change=change)).key}"
        known = await memories.get(memory_id)
        memory = known.memory.model_copy(update={"content": content})
        await memories.update(memory_id, memory, change=change, expected_version=known.version)
        return f"Stored memory {memory_id}"

    agent = model.bind_tools([upsert_memory])

    async def call_model(state: MessagesState) -> dict[str, Any]:
        query = "\n".join(message.text for message in state["messages"][-3:])
        found = await memories.similar(query, k=RETRIEVED)
        recalled = "\n".join(f"[{each.key}]: {each.memory.content}" for each in found)
        return {"messages": [await agent.ainvoke([SystemMessage(SYSTEM + recalled), *state["messages"]])]}

    builder = StateGraph(MessagesState)
    builder.add_node(call_model)
    builder.add_node("tools", ToolNode([upsert_memory]))
    builder.add_edge(START, "call_model")
    builder.add_conditional_edges("call_model", tools_condition)
    builder.add_edge("tools", "call_model")
    return builder.compile(name="hot_path_chat")


async def _seed(ledger: Ledger, users: Sequence[str]) -> None:
    """Give each user the ten memories."""
    change = Change(reason="known before the measurement", actor="latency")
    for user in users:
        memories = UserMemories(ledger, user)
        for number, content in enumerate(MEMORIES):
            await memories.insert(Memory(content=content), change=change, idempotency_key=str(number))


def _plot_chats(chats: pd.DataFrame, single: float, axes: Axes) -> None:
    table = chats.pivot_table(index="pending", columns="what", values="seconds")
    table.plot(ax=axes, style="o-", xlabel="background messages pending", ylabel="seconds to the first token")
    axes.axhline(single, color="black", linestyle="--")
    axes.axhline(TARGET * single, color="gray", linestyle=":")
