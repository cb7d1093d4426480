"""Table 1 of the paper (§3.2) with today's agents and models, and the contradiction set.

The six tests run over two sessions through the real chatbot and memory agent, on a fresh ledger, with
each version of the memory agent (§3.1). The paper argues (§2.4) that classification metrics miss what
updates do to stored content; so the contradiction set scores the resulting memories, not only the choice
of operation.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any, Literal

from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import StateGraph
from langgraph.graph.state import CompiledStateGraph
from pydantic import BaseModel, Field

from evals import baselines, contradictions, table_1
from evals.answering import Identity, identify
from evals.contradictions import Case, as_row, score, summarise
from evals.report import Journal, Progress, Report, Row, draw, file_digest, open_journal
from evals.scoring import Done
from graphs import chatbot, memory_agent, memory_agent_v1, memory_agent_v2
from mneme.errors import BadAnswer, PromptTooLong
from mneme.settings import settings
from models.asking import SEED
from models.embedders import open_embedder
from nodes.context import ChatContext, MemoryContext
from nodes.memory_agent import Message
from stores.base_store import LedgerStore
from stores.inbox import Inbox
from stores.ledger import Ledger, open_ledger
from stores.records import Change
from stores.user_memory import Memory, UserMemories

Agent = CompiledStateGraph[Any, Any, Any, Any]
VERSIONS: dict[int, StateGraph[Any, Any, Any, Any]] = {
    1: memory_agent_v1.builder,
    2: memory_agent_v2.builder,
    3: memory_agent.builder,
}
NOON = "2026-03-02T12:00:00+00:00"
"""The time of every message, so that a run can be repeated."""
LIMIT = 1000
"""More memories than any case leads to."""


class Options(BaseModel):
    """What to run, who answers, and where results go."""

    data: Path = Field(contradictions.DEFAULT, description="The contradiction set, as JSON Lines.")
    out: Path = Field(Path("runs"), description="Folder of raw results and plots.")
    chatbot: str = Field("auto", description="Who replies.")
    memory_agent: str = Field("auto", description="Who decides what is remembered.")
    versions: list[Literal[1, 2, 3]] = Field([3, 2, 1], description="Versions of the memory agent.")
    embedder: str = Field("", description="Embedder of the ledger; default: the settings'.")
    fresh: bool = Field(False, description="Start anew instead of resuming.")


@dataclass
class Bench:
    """What every message is put to."""

    ledger: Ledger
    chatbot: Identity
    memory_agent: Identity

    @property
    def store(self) -> LedgerStore:
        return LedgerStore(self.ledger)

    def context(self, user: str) -> ChatContext:
        return ChatContext(
            user=user, chatbot=self.chatbot.responder, memory_agent=self.memory_agent.responder
        )


async def run(options: Options, progress: Progress = lambda done, of, what: None) -> Report:
    """Run table 1 and the contradiction set with each version of the memory agent, and the baselines."""
    cases = contradictions.load(options.data)
    embedder = await open_embedder(options.embedder or settings().embedder)
    chatbot, agent = await identify(options.chatbot), await identify(options.memory_agent)
    configuration = {
        "data": file_digest(options.data),
        "chatbot": chatbot.model_dump(),
        "memory_agent": agent.model_dump(),
        "embedder": embedder.name,
        "seed": SEED,
    }
    journal = open_journal(options.out, "msc", configuration, fresh=options.fresh)
    with TemporaryDirectory(prefix="mneme-msc-") as folder:
        ledger = await open_ledger(folder, embedder)
        try:
            await _run(options.versions, cases, Bench(ledger, chatbot, agent), journal, progress)
        finally:
            await ledger.close()
    played = await baselines.play(cases, embedder)
    return _report(options.versions, cases, journal, played, agent)


async def _run(
    versions: Sequence[int], cases: Sequence[Case], bench: Bench, journal: Journal, progress: Progress
) -> None:
    total, done = len(versions) * (len(cases) + 1), 0
    for version in versions:
        name = f"version {version}"
        if f"table 1/{name}" not in journal:
            journal.add(f"table 1/{name}", {"tests": await _table_1(version, bench)})
        for case in cases:
            if f"{name}/{case.id}" not in journal:
                journal.add(f"{name}/{case.id}", await _contradict(version, case, bench))
            done += 1
            progress(done, total, f"{name}: {case.id}")


async def _table_1(version: int, bench: Bench) -> list[Row]:
    """Chat through the paper's two sessions; after each reply the memory agent takes what waits."""
    store, context = bench.store, bench.context(f"table-1-version-{version}")
    chat = chatbot.builder.compile(checkpointer=InMemorySaver(), store=store)
    agent = VERSIONS[version].compile(store=store)
    rows = []
    for test in table_1.TESTS:
        thread = f"{context.user}-session-{test.session}"
        said = await chat.ainvoke(
            {"messages": [HumanMessage(test.message)]},
            {"configurable": {"thread_id": thread}},
            context=context,
        )
        row = await _remember(agent, await _waiting(bench, context.user), context, bench)
        rows.append(row | {"test": test.name, "message": test.message, "reply": said["messages"][-1].text})
    return rows


async def _waiting(bench: Bench, user: str) -> Message:
    """Return the message that the chatbot handed over last; those that failed before wait with it."""
    *_, waiting = await Inbox(bench.ledger).pending(user)
    return Message(
        message=waiting.message,
        message_id=waiting.message_id,
        preceding=waiting.preceding,
        time=waiting.time,
        thread=waiting.thread,
    )


async def _contradict(version: int, case: Case, bench: Bench) -> Row:
    """Put the case's memories into a namespace of its own, and its message to the memory agent."""
    context = bench.context(f"version-{version}-{case.id}")
    memories = UserMemories(bench.ledger, context.user)
    change = Change(reason="known before the message", actor="msc")
    for number, content in enumerate(case.memories):
        await memories.insert(Memory(content=content), change=change, idempotency_key=str(number))
    message = Message(message=case.message, message_id=case.id, preceding=case.preceding, time=NOON)
    return await _remember(VERSIONS[version].compile(store=bench.store), message, context, bench)


async def _remember(agent: Agent, message: Message, context: ChatContext, bench: Bench) -> Row:
    """Run the memory agent on a message, and read from the ledger what it did."""
    given = MemoryContext(user=context.user, memory_agent=context.memory_agent)
    before = await _memories(bench, context.user)
    outcome: dict[str, Any] = {}
    failed, started = "", perf_counter()
    try:
        outcome = await agent.ainvoke(message, context=given)
    except (BadAnswer, PromptTooLong) as error:
        failed = str(error)
    seconds = perf_counter() - started
    after = await _memories(bench, context.user)
    return as_row(
        _changes(before, after),
        before=list(before.values()),
        after=list(after.values()),
        failed=failed,
        seconds=seconds,
        route=outcome.get("route", ""),
        rationale=outcome.get("rationale", ""),
        operations=outcome.get("operations", []),
        responder=outcome.get("model", ""),
    )


async def _memories(bench: Bench, user: str) -> dict[str, str]:
    """Return the user's memories by key, oldest first."""
    listed = await UserMemories(bench.ledger, user).list(limit=LIMIT)
    return {remembered.key: remembered.memory.content for remembered in listed}


def _changes(before: dict[str, str], after: dict[str, str]) -> list[Done]:
    numbers = {key: number for number, key in enumerate(before)}
    inserted = [Done(operation="insert", content=text) for key, text in after.items() if key not in before]
    return inserted + [
        Done(operation="update", target=numbers[key], before=before[key], content=text)
        for key, text in after.items()
        if before.get(key, text) != text
    ]


def _report(
    versions: Sequence[int],
    cases: Sequence[Case],
    journal: Journal,
    played: dict[str, dict[str, Row]],
    agent: Identity,
) -> Report:
    names = [f"version {version}" for version in versions]
    tests = {name: journal[f"table 1/{name}"]["tests"] for name in names}
    rows = {name: {case.id: journal[f"{name}/{case.id}"] for case in cases} for name in names}
    summaries = {
        name: summarise([score(case, of[case.id]) for case in cases]) for name, of in (rows | played).items()
    }
    plot = draw(
        journal.path.with_suffix(".png"),
        f"Contradiction set: {len(cases)} labelled messages",
        str(agent),
        partial(contradictions.plot_whole, summaries),
        partial(contradictions.plot_categories, summaries),
    )
    return Report(
        name="msc",
        answered_by=str(agent),
        raw=journal.path,
        rows=journal.rows,
        summary={"table_1": _tests_right(tests), "contradictions": summaries},
        tables=[
            *(table_1.show(f"Table 1 with {name}, {agent}", of) for name, of in tests.items()),
            *contradictions.tables(summaries),
        ],
        plots=[plot],
        notes=_notes(summaries, agent),
    )


def _tests_right(tests: dict[str, list[Row]]) -> dict[str, list[bool]]:
    return {
        name: [table_1.is_right(test, row) for test, row in zip(table_1.TESTS, rows, strict=True)]
        for name, rows in tests.items()
    }


def _notes(summaries: dict[str, Any], agent: Identity) -> list[str]:
    failed = {name: summary["failed"] for name, summary in summaries.items() if summary["failed"]}
    notes = [
        "The baselines see the set first: their similarity threshold is the best one for this very set.",
        *(f"{name}: {count} messages failed for want of a usable answer." for name, count in failed.items()),
    ]
    if not agent.is_model:
        notes.append("Answered by rules: no language model took part, and these figures stand for none.")
        notes.append("The versions share their rules, so how they differ here says little about models.")
    return notes
