"""How long a person waits for a reply of `langgraph dev` while others' messages wait to be remembered.

Real: the server as `make dev` starts it, its queue, HTTP, the graphs, the ledger, the embedder, the gate. Not
real: the model, a double that takes the same time for every call. One user's model never answers; a hundred
other users have said something each, all of which waits for the memory agent. Then one more user chats, and
the time to the first token is compared with one bare call. As the measure of before, the server that runs one
thing at a time, as `langgraph dev` does unless it is told otherwise.
"""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import monotonic
from typing import Any, NamedTuple
from uuid import uuid4

from langchain_ollama import ChatOllama
from langgraph_sdk import get_client
from langgraph_sdk.client import LangGraphClient

from mneme.api.inbox import Messages
from mneme.client.remote import open_remote
from mneme.core.errors import MnemeError
from mneme.evals.chat import scripted_answers
from mneme.evals.commands import quiet
from mneme.evals.langgraph_server import langgraph_dev
from mneme.evals.report import Journal, Progress, Report, Row, table
from mneme.evals.stand_in import Answer, Json, Reply, StandIn
from mneme.prompts.chat.chatbot import reply

MODEL = "llama3.1:8b"
WHO = f"ollama:{MODEL}"
STALLED = "My model never answers."
STALLED_USER = "stalled"
TARGET = 1.2
STALLED_MESSAGES = 10
CHATS = {"graph_id": "chatbot"}
GIVE_UP = 60.0
"""Seconds after which a first token is no longer waited for."""


class Case(NamedTuple):
    """Runs that the server serves at once, calls that the model's server does, and messages that wait."""

    workers: int
    parallel: int
    pending: int

    @property
    def name(self) -> str:
        return f"server/{self.workers} workers/parallel {self.parallel}/pending {self.pending}"


def cases(pending: int) -> list[Case]:
    """Return the server of before; today's with nothing to do, and at two widths of the model's server."""
    return [Case(1, 4, pending), Case(8, 4, 0), Case(8, 4, pending), Case(8, 1, pending)]


async def measure(  # noqa: PLR0913 (one name for each thing that is varied)
    journal: Journal, seconds: float, pending: int, trials: int, progress: Progress, *, quick: bool = False
) -> Report:
    """Measure every case that is not in the journal, and report all; a `quick` run has one, the third."""
    wanted = cases(pending)[2:3] if quick else cases(pending)
    for number, case in enumerate(wanted):
        if case.name not in journal:
            journal.add(case.name, await _case(case, seconds, trials))
        progress(number + 1, len(wanted), case.name)
    return report([journal[case.name] for case in wanted], journal, seconds)


async def _case(case: Case, seconds: float, trials: int) -> Row:
    with (
        TemporaryDirectory(prefix="mneme-latency-") as folder,
        StandIn(parallel=case.parallel, seconds=seconds, brain=_answer) as double,
    ):
        home = Path(folder)
        environment = quiet(home, MNEME_OLLAMA_URL=double.url, MNEME_PARALLEL=str(case.parallel))
        single = [await _single(double) for _ in range(2)][1]
        with langgraph_dev(home, environment, str(case.workers)) as server:
            async with get_client(url=server.url) as client:
                await _fill(client, case)
                count = trials + 1 if case.workers > 1 else 1  # the first only warms up
                replies = [await _first_token(client, double) for _ in range(count)][-trials:]
                waiting = await _waiting(server.url, case.pending)
    return {**case._asdict(), "single": single, "replies": replies, "waiting": waiting}


def _answer(body: Json) -> Answer:
    """Answer what the scripted conversations ask, and never what the one user asks."""
    is_stalled = any(STALLED in str(message["content"]) for message in body["messages"])
    return Reply(seconds=3600) if is_stalled else scripted_answers.answer(body)


async def _single(double: StandIn) -> float:
    """Return the time to the first token of one call that nothing of ours takes part in."""
    model, started = ChatOllama(model=MODEL, base_url=double.url), monotonic()
    async for chunk in model.astream([("system", reply.system), ("human", scripted_answers.MESSAGE)]):
        if chunk.text:
            return monotonic() - started
    raise MnemeError("The double said nothing.")


async def _fill(client: LangGraphClient, case: Case) -> None:
    """Let everybody say something; the memory agent is slow, and one user's model never answers.

    The stalled user says more, while nothing of it can be remembered, and at last waits for a reply, which
    takes a place of the model's server for good; where it has one place only, nobody could be served then.
    """
    if not case.pending:
        return
    for number in range(STALLED_MESSAGES):
        await _say(client, STALLED_USER, f"{STALLED} {number}")
    for number in range(case.pending):
        await _say(client, f"pending-{number}", scripted_answers.MESSAGE)
    await _until_replied(client)
    if case.parallel > 1:
        await _say(client, STALLED_USER, STALLED, chatbot=WHO)


async def _say(client: LangGraphClient, user: str, text: str, chatbot: str = "rules") -> None:
    thread = (await client.threads.create(graph_id="chatbot"))["thread_id"]
    context = {"user": user, "chatbot": chatbot, "memory_agent": WHO}
    await client.runs.create(thread, "chatbot", input=_said(text), context=context)


async def _until_replied(client: LangGraphClient) -> None:
    """Wait until no reply is missing."""
    async with asyncio.timeout(GIVE_UP):
        while await client.threads.search(metadata=CHATS, status="busy", limit=1):  # noqa: ASYNC110
            await asyncio.sleep(0.2)


async def _first_token(client: LangGraphClient, double: StandIn) -> Row:
    """Say something on a new thread; time the first token and the call's arrival at the model."""
    thread = (await client.threads.create(graph_id="chatbot"))["thread_id"]
    context = {"user": "chatting", "chatbot": WHO, "memory_agent": WHO}
    first, before, started = None, len(double.chats), monotonic()
    with suppress(TimeoutError):
        async with asyncio.timeout(GIVE_UP):
            said = _said(scripted_answers.MESSAGE)
            async for part in client.runs.stream(
                thread, "chatbot", input=said, context=context, stream_mode="messages-tuple"
            ):
                if first is None and part.event == "messages" and part.data[0]["content"]:
                    first = monotonic() - started
    asked = [each.arrived for each in double.chats[before:] if scripted_answers.is_chat(each.body)]
    return {"first": first, "before_model": asked[-1] - started if asked else None}


def _said(text: str) -> Any:
    return {"messages": [{"role": "user", "content": text, "id": uuid4().hex}]}


async def _waiting(url: str, pending: int) -> int:
    """Return how many of the messages are still to be remembered."""
    count = 0
    for number in range(pending):
        async with open_remote(url, Messages, f"pending-{number}") as messages:
            count += await messages.waiting()
    return count


COLUMNS = {
    "workers / parallel / pending": "case",
    "one call, s": "single",
    "first token, s": "first_token",
    "ratio": "ratio",
    "slowest, s": "slowest",
    f"≤ {TARGET}": "reached",
    "before the model, s": "before_model",
    "still waiting": "waiting",
}


def report(rows: Sequence[Row], journal: Journal, seconds: float) -> Report:
    """Compare the first tokens with one call."""
    measured = [_measured(row) for row in rows]
    cells = [[_cell(each[name]) for name in COLUMNS.values()] for each in measured]
    title = "Time to the first token through the server, while one user's model never answers (median)"
    notes = [
        f"With 1 worker: `langgraph dev` without its option. > is given up after {GIVE_UP:.0f} s.",
        "With 0 pending: the server alone; nothing waits, and nobody's model is stalled.",
    ]
    return Report(
        "latency",
        f"a double of Ollama at {seconds:g} s a call (no model took part)",
        journal.path,
        list(rows),
        {"server": measured},
        [table(title, [*COLUMNS], cells)],
        notes=notes,
    )


def _measured(row: Row) -> dict[str, Any]:
    """Return the times of a case; None for those of which nothing came before it was given up."""
    replies = row["replies"]
    all_came = all(each["first"] is not None for each in replies)
    first = median(each["first"] for each in replies) if all_came else None
    return {
        "case": f"{row['workers']} / {row['parallel']} / {row['pending']}",
        "single": row["single"],
        "first_token": first,
        "ratio": first and first / row["single"],
        "slowest": max(each["first"] for each in replies) if all_came else None,
        "reached": first is not None and first <= TARGET * row["single"],
        "before_model": median(each["before_model"] for each in replies) if all_came else None,
        "waiting": row["waiting"],
    }


def _cell(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.2f}"
    return ">" if value is None else str(value)
