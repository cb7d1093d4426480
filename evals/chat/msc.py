"""Table 1 of the paper (§3.2) with today's agents and models, and the contradiction set.

The six tests run over two sessions through the real chatbot and memory agent, on a fresh ledger, with
each version of the memory agent (§3.1). The paper argues (§2.4) that classification metrics miss what
updates do to stored content; so the contradiction set scores the resulting memories, not only the choice
of operation. What is right in table 1 follows the paper where it succeeded, and its own §4.2 where it did
not: test 4's "his sister" is the user's, and test 6 appends the age instead of replacing the memory. Test 5
is right where nothing is stored and the reply in session 2 says what was stored in session 1.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any, Literal

import pandas as pd
import yaml
from langchain_core.messages import HumanMessage
from langchain_core.utils.uuid import uuid7
from langgraph.checkpoint.memory import InMemorySaver
from pydantic import BaseModel, Field, TypeAdapter

from mneme.api.tables import Table
from mneme.core.errors import BadAnswer, PromptTooLong
from mneme.evals.chat import contradictions
from mneme.evals.chat.contradictions import Case, Done, Expectation, as_row, pair, score, summarise
from mneme.evals.measuring import temporary_ledger
from mneme.evals.options import Agents, Identity, Positive, Role, RunOptions, identify
from mneme.evals.report import Journal, Progress, Report, Row, file_digest, framed
from mneme.graphs import chatbot, memory_agent
from mneme.graphs.baselines import memory_agent_v1, memory_agent_v2, memory_agent_v3
from mneme.models.asking.asking import SEED
from mneme.models.asking.counting import NOTHING
from mneme.nodes.chat.context import ChatContext, MemoryContext
from mneme.nodes.workflow import Workflow
from mneme.stores.ledger.base_store import LedgerStore
from mneme.stores.ledger.ledger import Ledger
from mneme.stores.ledger.records import Change
from mneme.stores.users.inbox import Inbox, Message
from mneme.stores.users.memories import UserMemories
from mneme.stores.users.memory import Memory


class Test(BaseModel):
    """One row of the paper's table: the messages, the paper's result, the right result.

    `recalls` are words that the reply must have.
    """

    name: str
    session: int
    message: str
    paper: str
    database: str
    expect: list[Expectation]
    recalls: list[str] = []


TABLE_FILE = Path(__file__).parent / "data" / "table_1.yaml"
TESTS = TypeAdapter(list[Test]).validate_python(yaml.safe_load(TABLE_FILE.read_text(encoding="utf-8")))


def is_right(test: Test, row: Row) -> bool:
    """Return whether a test had the right result: operation, target, words, and recall."""
    done = [Done.model_validate(op) for op in row["done"]]
    stored = not row["failed"] and all(pairing.right for pairing in pair(test.expect, done))
    return stored and all(word.casefold() in row["reply"].casefold() for word in test.recalls)


def show(title: str, rows: Sequence[Row]) -> Table:
    """Show the results of each test beside those that the paper reports."""
    shown = pd.DataFrame(_line(test, row) for test, row in zip(TESTS, rows, strict=True))
    return framed(title, shown, figures=False, lines=True)


def _line(test: Test, row: Row) -> dict[str, str]:
    why = " ".join(dict.fromkeys(op["reason"] for op in row["operations"])) or str(row["rationale"])
    return {
        "test": f"{test.name} (session {test.session})",
        "message": test.message,
        "paper": test.paper,
        "paper's database": test.database or "–",
        "today": " + ".join(op["operation"].title() for op in row["done"]) or "Discard",
        "why": row["failed"] or why,
        "before": _listed(row["before"]),
        "after": _listed(row["after"]),
        "reply": row["reply"] if test.recalls else "–",
        "right": "yes" if is_right(test, row) else "no",
    }


def _listed(memories: Sequence[str]) -> str:
    return "\n".join(f"- {memory}" for memory in memories) or "(empty)"


Name = Literal["ours", "v3", "v2", "v1"]
VERSIONS: dict[Name, Workflow] = {
    "ours": memory_agent.builder,
    "v3": memory_agent_v3.builder,
    "v2": memory_agent_v2.builder,
    "v1": memory_agent_v1.builder,
}
"""The memory agents that are compared: ours, and the paper's versions."""
NOON = "2026-03-02T12:00:00+00:00"
"""The time of every message, so that a run can be repeated."""
LIMIT = 1000
"""Limit of listed memories; no case leads to as many."""


class Options(RunOptions):
    """Tests to run, responders, and the folder of the results."""

    data: Path | None = Field(None, description="Labelled messages, as JSON Lines; default: the shipped.")
    agents: Agents = "auto"
    chatbot: Role = ""
    memory_agent: Role = ""
    arms: list[Name] = Field([*VERSIONS], min_length=1, description="A memory agent: ours, or the paper's.")
    skip_table_1: bool = Field(False, description="Leave out the paper's table 1.")
    jobs: Positive = Field(1, description="Labelled messages that are worked on at once.")


@dataclass
class Setup:
    """Shared resources of all messages."""

    ledger: Ledger
    chatbot: Identity
    memory_agent: Identity

    @property
    def store(self) -> LedgerStore:
        return LedgerStore(self.ledger)


async def run(options: Options, progress: Progress = lambda done, of, what: None) -> Report:
    """Run table 1 and the contradiction set with each memory agent."""
    data = options.data or contradictions.LABELLED_FILE
    cases = contradictions.load(data)
    embedder = await options.opened_embedder()
    chatbot = await identify(options.chatbot or options.agents)
    agent = await identify(options.memory_agent or options.agents)
    configuration = {
        "data": file_digest(data),
        "chatbot": chatbot.model_dump(),
        "memory_agent": agent.model_dump(),
        "embedder": embedder.name,
        "seed": SEED,
    }
    journal = options.journal("msc", configuration)
    async with temporary_ledger(embedder) as ledger:
        setup = Setup(ledger, chatbot, agent)
        for name in options.arms:
            if not options.skip_table_1 and f"table 1/{name}" not in journal:
                journal.add(f"table 1/{name}", {"tests": await _table_1(name, setup)})
            messages = {f"{name}/{case.id}": case for case in cases}
            remember = partial(_contradict, name=name, setup=setup)
            await journal.play(messages, remember, progress, concurrency=options.jobs)
    return _report(options, cases, journal, agent)


async def _table_1(name: Name, setup: Setup) -> list[Row]:
    """Chat through the paper's two sessions; after each reply the memory agent takes what waits."""
    store, roles = setup.store, {"memory_agent": setup.memory_agent.responder}
    context = ChatContext(user=f"table-1-{name}", chatbot=setup.chatbot.responder, **roles)
    chat = chatbot.builder.compile(checkpointer=InMemorySaver(), store=store)
    rows = []
    for test in TESTS:
        thread = f"{context.user}-session-{test.session}"
        said = await chat.ainvoke(
            {"messages": [HumanMessage(test.message)]},
            {"configurable": {"thread_id": thread}},
            context=context,
        )
        *_, waiting = await Inbox(setup.ledger).pending(context.user)  # those that failed before wait with it
        row = await _remember(name, waiting, context.user, setup)
        rows.append(row | {"test": test.name, "message": test.message, "reply": said["messages"][-1].text})
    return rows


async def _contradict(case: Case, *, name: Name, setup: Setup) -> Row:
    """Put the case's memories into their own namespace, and send its message to the memory agent."""
    user = f"{name}-{case.id}"
    memories = UserMemories(setup.ledger, user)
    change = Change(reason="known before the message", actor="msc")
    for number, content in enumerate(case.memories):
        await memories.insert(Memory(content=content), change=change, idempotency_key=str(number))
    message = Message(message=case.message, message_id=case.id, preceding=case.preceding, time=NOON)
    return await _remember(name, message, user, setup)


async def _remember(name: Name, message: Message, user: str, setup: Setup) -> Row:
    """Run a memory agent on a message, and read from the ledger what it did."""
    context = MemoryContext(user=user, memory_agent=setup.memory_agent.responder)
    before = await _memories(setup, user)  # the ledger is compared, not the agent's own report
    outcome: dict[str, Any] = {}
    failed, run_id, started = "", uuid7(), perf_counter()
    try:
        agent = VERSIONS[name].compile(store=setup.store)
        outcome = await agent.ainvoke(message, {"run_id": run_id}, context=context)
    # A fault of the model is a result; any other fault stops the run.
    except (BadAnswer, PromptTooLong) as error:
        failed = str(error)
    seconds = perf_counter() - started
    after = await _memories(setup, user)
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
        asked=outcome.get("asked", NOTHING),
        run_id=str(run_id),
        trace=outcome.get("trace", ""),
    )


async def _memories(setup: Setup, user: str) -> dict[str, str]:
    """Return the user's memories by key, oldest first."""
    listed = await UserMemories(setup.ledger, user).all(limit=LIMIT)
    return {remembered.key: remembered.memory.content for remembered in listed}


def _changes(before: dict[str, str], after: dict[str, str]) -> list[Done]:
    numbers = {key: number for number, key in enumerate(before)}  # oldest first, as the case numbers them
    retired = [
        Done(operation="retire", target=numbers[key], before=text, content="")
        for key, text in before.items()
        if key not in after
    ]
    inserted = [Done(operation="insert", content=text) for key, text in after.items() if key not in before]
    return [*retired, *inserted] + [
        Done(operation="update", target=numbers[key], before=before[key], content=text)
        for key, text in after.items()
        if before.get(key, text) != text
    ]


def _report(options: Options, cases: Sequence[Case], journal: Journal, agent: Identity) -> Report:
    names = options.arms
    tests: dict[str, list[Row]] = {
        name: journal[f"table 1/{name}"]["tests"] for name in names if not options.skip_table_1
    }
    rows: dict[str, dict[str, Row]] = {
        name: {case.id: journal[f"{name}/{case.id}"] for case in cases} for name in names
    }
    summaries = {name: summarise([score(case, of[case.id]) for case in cases]) for name, of in rows.items()}
    right = {
        name: [is_right(test, row) for test, row in zip(TESTS, of, strict=True)] for name, of in tests.items()
    }
    asked = pd.DataFrame(
        {"system": name, "seconds": row["seconds"], **row["asked"]}
        for name, of in rows.items()
        for row in of.values()
    )
    costs = asked.groupby("system", sort=False)[
        ["questions", "prompt_tokens", "reply_tokens", "seconds"]
    ].mean()
    return journal.report(
        agent,
        {"table_1": right, "contradictions": summaries},
        [
            *(show(f"Table 1 with {name}, {agent}", of) for name, of in tests.items()),
            *contradictions.tables(summaries),
            framed("What one message costs (mean)", costs),
        ],
        [
            f"{name}: {of['failed']} messages failed for want of a usable answer."
            for name, of in summaries.items()
            if of["failed"]
        ],
    )
