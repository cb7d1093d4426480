"""The MCP server, by the SDK's own client: as a process, and under a real server with users and keys."""

import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import httpx2
import pytest
from mcp import Client, MCPError, StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

from mneme.integrations.offers import MCP_TOOLS
from mneme.models.embedding.embedders import open_embedder
from mneme.server.users import add_user
from mneme.stores.ledger.ledger import open_ledger
from mneme.stores.ledger.records import team_namespace
from tests.doubles.command_line import failed, run_mneme
from tests.doubles.langgraph_server import Guarded
from tests.doubles.own_server import own_server
from tests.doubles.quiet import quiet
from tests.mneme.routes import MCP

ROOT = Path(__file__).parents[2]
TOOLS = {
    "search_memories": (True, False),
    "recall": (True, False),
    "trace_record": (True, False),
    "remember": (False, False),
    "add_memory": (False, False),
    "update_memory": (False, False),
    "list_memories": (True, False),
    "memory_history": (True, False),
    "undo_memory_change": (False, False),
    "forget_memory": (False, True),
    "search_cards": (True, False),
    "show_card": (True, False),
    "propose_card": (False, False),
    "list_pools": (True, False),
    "search_pool": (True, False),
}
"""Every tool, whether it only reads, and whether what it does cannot be taken back."""
ALL = ("--tools", "all")
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}


async def called(client: Client, name: str, **arguments: Any) -> Any:
    """Return a tool's data, in which no field is empty."""
    result = await client.call_tool(name, arguments)
    assert not result.is_error, result.content
    assert result.structured_content is not None
    told = result.structured_content["result"]
    for each in told if isinstance(told, list) else [told] if told else []:
        assert all(value not in ("", None, [], {}) for value in each.values())
    return told


async def refused(client: Client, name: str, **arguments: Any) -> str:
    """Return what a tool says that cannot do what it was asked."""
    result = await client.call_tool(name, arguments)
    assert result.is_error and result.structured_content is None
    return str(result.content[0].text)  # type: ignore[union-attr]


@asynccontextmanager
async def process(home: Path, mode: str = "auto", more: Sequence[str] = ALL) -> AsyncIterator[Client]:
    environment = {**quiet(home), "PYTHONPATH": str(ROOT)}
    words = ["-m", "mneme", "mcp", "--user", "ann", "--team", "crew", *more]
    started = StdioServerParameters(command=sys.executable, args=words, env=environment)
    async with Client(stdio_client(started), mode=mode, read_timeout_seconds=100) as client:
        yield client


async def test_a_client_remembers_recalls_explains_undoes_and_forgets(tmp_path: Path) -> None:
    async with process(tmp_path) as client:
        listed = (await client.list_tools()).tools
        hints = {each.name: each.annotations for each in listed if each.annotations}
        assert {name: (each.read_only_hint, each.destructive_hint) for name, each in hints.items()} == TOOLS
        assert all(len(each.description or "") > 80 for each in listed)
        (told,) = await called(client, "remember", text="I live in Oslo.")
        assert told["status"] == "stored"
        (found,) = await called(client, "search_memories", query="Where does the user live?")
        assert found["memory"]["content"] == "I live in Oslo."
        assert found["key"] in [each["key"] for each in told["outcome"]["operations"]]
        beside = run_mneme(("memories", "list", "--user", "ann", "--json"), quiet(tmp_path))
        assert "Oslo" in beside.stdout  # an idle client lets other processes at the memories
        (version,) = await called(client, "memory_history", key=found["key"])
        assert version["event"] == "insert"
        recorded = datetime.now(UTC).isoformat()
        assert (await called(client, "undo_memory_change"))["live"] is False
        rent = await called(client, "add_memory", content="Ann's rent is 900 euros.", until="2026-12")
        again = await called(client, "add_memory", content="ann's rent is 900 euros")
        assert (rent["is_new"], again["is_new"]) == (True, False)
        later = await called(client, "add_memory", content="Ann's rent is 950 euros.", since="2026-12")
        assert [each["key"] for each in later["beside"]] == later["memory"]["may_contradict"]
        assert later["beside"][0]["key"] == rent["key"]
        rents = await called(client, "search_memories", query="Ann's rent")
        links = {each["key"]: each["memory"]["may_contradict"] for each in rents}
        pair = [rent["key"], later["key"]]
        assert (links[pair[0]], links[pair[1]]) == ([pair[1]], [pair[0]])
        for name, query in (
            ("search_memories", {"query": "Where does the user live?"}),
            ("list_memories", {}),
        ):
            then = await called(client, name, as_of=recorded, **query)
            assert [each["memory"]["content"] for each in then] == ["I live in Oslo."]
        (held,) = await called(client, "list_memories", at="2027-06-01")
        assert "950" in held["memory"]["content"] and held["memory"]["since"] == "2026-12"
        key = later["key"]
        changed = await called(client, "update_memory", key=key, content="Bea pays 950 euros in Porto.")
        assert changed["memory"]["content"] == "Bea pays 950 euros in Porto."
        for each in (rent, later):
            assert (await called(client, "forget_memory", key=each["key"]))["records"] == 1
        assert await called(client, "list_memories") == []
        assert (await called(client, "forget_memory", key=found["key"]))["records"] == 1
        assert "has no memory" in await refused(client, "memory_history", key=found["key"])
        assert "query" in await refused(client, "search_memories", query="")
        assert "text" in await refused(client, "remember", text="x" * 40_000)
        assert "nonsense" in await refused(client, "list_memories", nonsense=1)
        with pytest.raises(MCPError, match="no tool nothing"):
            await client.call_tool("nothing", {})


async def test_cards_and_pools_and_a_client_of_an_older_protocol(tmp_path: Path) -> None:
    async with process(tmp_path, "legacy") as client:
        made = await called(client, "propose_card", claim="Indexes speed up selective filters.")
        assert made["event"] == "created" and made["card"]["status"] == "provisional"
        (found,) = await called(client, "search_cards", query="a faster filter")
        shown = await called(client, "show_card", card_id=found["card"]["id"])
        assert (shown["evidence"]["success_count"], shown["claim"]) == (0, found["card"]["claim"])
        assert await called(client, "list_pools") == []
        assert "holds no pairs" in await refused(client, "search_pool", pool="x", query="y")


async def test_six_tools_are_offered_and_others_where_they_are_named(
    tmp_path: Path,
) -> None:
    async with process(tmp_path, more=()) as client:
        assert {each.name for each in (await client.list_tools()).tools} == {*MCP_TOOLS}
        with pytest.raises(MCPError, match="no tool list_pools"):
            await client.call_tool("list_pools", {})
    async with process(tmp_path, more=("--tools", "show_card, recall")) as client:
        assert [each.name for each in (await client.list_tools()).tools] == ["recall", "show_card"]
    failed(run_mneme(("mcp", "--tools", "sing"), quiet(tmp_path)), "no tool sing", "search_memories")


def test_nothing_but_the_protocol_is_on_standard_output(tmp_path: Path) -> None:
    lines = b'nonsense\n{"jsonrpc":"2.0","id":7,"method":"ping"}\n'
    done = subprocess.run(
        [sys.executable, "-m", "mneme", "mcp"],
        env={**quiet(tmp_path), "PYTHONPATH": str(ROOT)},
        input=lines,
        capture_output=True,
        check=False,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr
    assert all(each.startswith(b'{"jsonrpc":"2.0"') for each in done.stdout.splitlines())


@asynccontextmanager
async def keyed(
    guarded: Guarded, key: str, mode: str = "auto", asked: str = "?tools=all"
) -> AsyncIterator[Client]:
    async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {key}"}, timeout=100) as http:
        transport = streamable_http_client(f"{guarded.server.url}{MCP}{asked}", http_client=http)
        async with Client(transport, mode=mode) as client:
            yield client


@pytest.mark.xdist_group("server")
@pytest.mark.parametrize("mode", ["auto", pytest.param("legacy", marks=pytest.mark.long)])
async def test_under_the_server_each_key_has_its_user_s_memories(guarded: Guarded, mode: str) -> None:
    cas, dan = f"cas-{mode}", f"dan-{mode}"
    key_of_cas, key_of_dan = map(guarded.key, (cas, dan))
    async with keyed(guarded, key_of_cas, mode) as client:
        assert {each.name for each in (await client.list_tools()).tools} == {*TOOLS}
        (told,) = await called(client, "remember", text="I have a dog called Kestrel.")
        assert told["status"] in {"stored", "discarded"}  # the second client tells what is known
        found = await called(client, "search_memories", query="Kestrel")
        key = found[0]["key"]
        assert "dog called Kestrel" in found[0]["memory"]["content"]
        await called(client, "propose_card", claim="Kestrels hover before they dive.")
    async with keyed(guarded, key_of_dan, mode, f"?user={cas}&team={cas}&tools=all") as client:
        assert f"The key is {dan}'s" in await refused(client, "list_memories")
    async with keyed(guarded, key_of_dan, mode, "?tools=sing") as client:
        with pytest.raises(MCPError, match="no tool sing"):
            await client.list_tools()
    async with keyed(guarded, key_of_dan, mode) as client:
        for name, asked in (("search_memories", {"query": "Kestrel"}), ("list_memories", {})):
            assert await called(client, name, **asked) == []
        for name in ("memory_history", "forget_memory"):
            assert "has no memory" in await refused(client, name, key=key)
        assert await called(client, "undo_memory_change") is None
        assert await called(client, "search_cards", query="Kestrel") == []


async def test_who_may_only_read_a_team_reads_it_and_that_is_in_its_audit(tmp_path: Path) -> None:
    users, roles = tmp_path / "users.json", tmp_path / "roles.yaml"
    ann, bob = (add_user(users, name) for name in ("ann", "bob"))
    roles.write_text("teams: {birds: {ann: [read, write], bob: [read]}}")
    claim = "Kestrels hover before they dive."
    with own_server(tmp_path / "home", MNEME_AUTH=str(users), MNEME_ROLES=str(roles)) as server:

        async def calls(key: str, name: str, **arguments: str) -> str:
            asked = INITIALIZE | {"method": "tools/call", "params": {"name": name, "arguments": arguments}}
            headers = {"accept": "application/json, text/event-stream", "x-api-key": key}
            async with httpx.AsyncClient(headers=headers, timeout=60) as client:
                return (await client.post(f"{server.url}{MCP}?team=birds&tools=all", json=asked)).text

        assert claim in await calls(ann, "propose_card", claim=claim)
        assert claim in await calls(bob, "search_cards", query="How do kestrels hunt?")
        assert "bob may not write" in await calls(bob, "propose_card", claim="They sing.")
    ledger = await open_ledger(str(tmp_path / "home" / "ledger"), await open_embedder("bundled"))
    read = await ledger.records(team_namespace("birds", "audit"))
    noted = [(each.value["by"], each.value["what"]) for each in read]
    assert noted == [("ann", MCP), ("bob", "search_cards")], "who changes something sees it"
    await ledger.close()


@pytest.mark.xdist_group("server")
async def test_without_a_right_key_nothing_is_answered(guarded: Guarded) -> None:
    url, right = f"{guarded.server.url}{MCP}", {"x-api-key": guarded.key("eva")}
    headers = {"accept": "application/json, text/event-stream"}
    async with httpx.AsyncClient(headers=headers) as client:
        for more in ({}, {"x-api-key": "wrong"}, {"authorization": "Bearer wrong"}):
            answer = await client.post(url, json=INITIALIZE, headers=more)
            assert answer.status_code == 401 and "mneme" not in answer.text.lower()
        assert (await client.post(url, json=INITIALIZE, headers=right)).status_code == 200
        assert (await client.get(url, headers=right)).status_code == 405
        large = await client.post(url, content=b" " * 1_100_000, headers=right)
        assert large.status_code == 413


def test_without_the_package_the_extra_is_named() -> None:
    absent = "import sys; sys.modules['mcp_types'] = None; sys.argv = ['mneme', 'mcp']"
    code = f"{absent}; from mneme.cli.main import main; main()"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert "mcp_types, which is not installed" in done.stderr and "mneme-agents[mcp]" in done.stderr
