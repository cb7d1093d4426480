"""When who is remembered: the agenda of the server, and the memory agents of a process."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from types import SimpleNamespace
from typing import Any

import pytest

from mneme.client.workflows import MemoryAgent, MemoryAgents
from mneme.nodes.chat import waking
from mneme.nodes.chat.waking import Agenda
from mneme.server import rows
from mneme.stores.ledger.ledger import Ledger
from mneme.stores.users.inbox import Inbox
from tests.doubles.waiting import until


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Stand in for the server, on which nothing runs: the users whose runs were started."""
    users = list[str]()

    async def nothing(**_: Any) -> list[Any]:
        return []

    def client(**_: Any) -> Any:
        return SimpleNamespace(threads=SimpleNamespace(search=nothing))

    async def name(_: Ledger, thread: str, __: str) -> str:
        return thread

    async def start(_: Ledger, context: dict[str, Any]) -> None:
        await asyncio.sleep(waking.START_POLL)
        users.append(context["user"])

    monkeypatch.setattr(waking, "TICK", 0.01)
    monkeypatch.setenv("N_JOBS_PER_WORKER", "8")
    monkeypatch.setattr(waking, "get_client", client)
    monkeypatch.setattr(rows, "get_client", client)
    monkeypatch.setattr(waking, "named_thread", name)
    monkeypatch.setattr(waking, "start_remembering", start)
    return users


@asynccontextmanager
async def served(ledger: Ledger) -> AsyncIterator[Agenda]:
    agenda = Agenda()
    serving = asyncio.create_task(agenda.serve(ledger))
    await until(lambda: agenda.is_served)
    yield agenda
    serving.cancel()
    with suppress(asyncio.CancelledError):
        await serving


async def test_no_run_begins_on_a_thread_that_is_being_erased(
    edge_ledger: Ledger, started: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would go with the thread, and its message would wait for ever; others are remembered meanwhile."""
    async with served(edge_ledger) as agenda:
        monkeypatch.setattr(rows, "agenda", agenda)
        state = rows.ServerRows()
        async with state.quiet([], ["memory/ann"]), state.quiet([], ["memory/ann"]):
            agenda.note({"user": "ann"})
            agenda.note({"user": "bob"})
            await until(lambda: started == ["bob"])
            agenda.note({"user": "cara"})
            await until(lambda: started == ["bob", "cara"])
        await until(lambda: started == ["bob", "cara", "ann"])


async def test_who_erases_waits_for_a_run_that_is_being_started(
    edge_ledger: Ledger, started: list[str]
) -> None:
    """Only then it can be seen and stopped."""
    async with served(edge_ledger) as agenda:
        agenda.note({"user": "ann"})
        await until(lambda: agenda._starting)
        async with agenda.held(["memory/ann"]):
            assert started == ["ann"]


async def test_what_the_last_server_left_is_remembered(edge_ledger: Ledger, started: list[str]) -> None:
    await Inbox(edge_ledger).add("ann", {"message": "I live in Austin."})
    async with served(edge_ledger):
        await until(lambda: started == ["ann"])


async def test_a_user_has_one_memory_agent_at_a_time(edge_ledger: Ledger) -> None:
    """Also where several calls have waited for the one before it."""
    at_work, most = 0, 0

    @asynccontextmanager
    async def used() -> AsyncIterator[Ledger]:
        nonlocal at_work, most
        at_work += 1
        most = max(most, at_work)
        yield edge_ledger
        at_work -= 1

    agents, said = MemoryAgents(used), ["I live in Austin.", "I have a cat.", "I play the piano."]
    for message in said:
        await Inbox(edge_ledger).add("ann", {"message": message})
    await asyncio.gather(*(agents.remember("ann", "rules", 60) for _ in said))
    assert most == 1
    assert await Inbox(edge_ledger).pending("ann") == []


async def test_what_is_said_as_a_memory_agent_comes_to_its_end_is_remembered() -> None:
    """It is at its end before those who wait for it are told."""
    remembered = list[bool]()

    async def remember(reread: bool) -> None:
        remembered.append(reread)
        if remembered == [False]:
            asyncio.get_running_loop().call_soon(agent.start)

    agent = MemoryAgent(remember)
    agent.start()
    await until(lambda: remembered.count(False) == 2)
    await agent.stop()
