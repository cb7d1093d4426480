"""Eight programs on one home for a minute: nothing is lost or refused, and nobody waits for long."""

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager
from itertools import chain
from pathlib import Path
from statistics import median
from typing import Any

import pytest
from mcp import Client, StdioServerParameters, stdio_client

import mneme
from mneme.api.memories import Memories
from mneme.client.home import operations_at
from mneme.client.remote import client_of
from mneme.models.embedding.absent import BUNDLED
from mneme.stores.ledger.ledger import open_ledger
from mneme.stores.ledger.verifying import verify
from tests.doubles.embedding import WordEmbedder
from tests.doubles.ledger_files import ROOT
from tests.doubles.ollama import Model, OllamaDouble
from tests.doubles.own_server import own_server
from tests.doubles.quiet import quiet

SECONDS, MODEL_SECONDS = 60.0, 30.0
CLOSED_LOOP, PEOPLE = 0.0, 0.1
"""Seconds between an answer and the next call: of a loop, which fills every core; of agents and people."""
BUSY = 1.0
"""The load of each processor beforehand from which on no wait is asserted."""
Told = dict[str, Any]
Call = Callable[..., Awaitable[Any]]


async def use(name: str, until: float, pause: float, add: Call, search: Call, forget: Call) -> Told:
    """Write, search, and forget every eighth memory; return what is kept, what is not, and all waits."""
    told: Told = {"name": name, "kept": [], "forgotten": [], "waits": {"add": [], "search": [], "forget": []}}

    async def timed(what: str, work: Awaitable[Any]) -> Any:
        began = time.perf_counter()
        result = await work
        told["waits"][what].append(time.perf_counter() - began)
        await asyncio.sleep(pause)
        return result

    number = 0
    await search("anything")  # the first ones open the index, and load what forgetting needs
    await forget(await add("anything"))
    while time.time() < until:
        number += 1
        text = f"{name} has put {number * 7919} stones into box {number}."
        key = await timed("add", add(text))
        assert text in await timed("search", search(text)), "everybody finds what they wrote"
        told["kept"].append(text)
        if number % 8 == 0:
            await timed("forget", forget(key))
            told["forgotten"].append(told["kept"].pop())
    return told


async def by_operations(name: str, until: float, pause: float, memories: Memories) -> Told:
    async def add(text: str) -> str:
        return (await memories.add(text)).key

    async def search(text: str) -> list[str]:
        return [each.memory.content for each in await memories.recall(text)]

    return await use(name, until, pause, add, search, memories.forget)


async def by_library(name: str, until: float, pause: float) -> None:
    """Be a program that has the library open; print what it did."""
    async with mneme.open(name) as memory:
        print(json.dumps(await by_operations(name, until, pause, memory.memories)))


async def by_mcp(name: str, until: float, pause: float, client: Client) -> Told:
    async def call(tool: str, **given: str) -> Any:
        result = await client.call_tool(tool, given)
        assert not result.is_error and result.structured_content, result.content
        return result.structured_content["result"]

    async def add(content: str) -> Any:
        return (await call("add_memory", content=content))["key"]

    async def search(query: str) -> list[str]:
        return [each["memory"]["content"] for each in await call("search_memories", query=query)]

    return await use(name, until, pause, add, search, lambda key: call("forget_memory", key=key))


async def by_server(name: str, until: float, pause: float, url: str) -> Told:
    async with client_of(url) as client:
        return await by_operations(name, until, pause, operations_at(client, Memories, name))


def mcp_process(name: str, environment: dict[str, str]) -> Client:
    words = ["-m", "mneme", "mcp", "--user", name, "--tools", "all"]
    started = StdioServerParameters(command=sys.executable, args=words, env=environment)
    return Client(stdio_client(started), read_timeout_seconds=100)


@contextmanager
def chatting(user: str, environment: dict[str, str], *words: str) -> Iterator["subprocess.Popen[str]"]:
    """Run a chat of a user, who has said something."""
    command = [sys.executable, "-m", "mneme", "chat", "--user", user, *words]
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with subprocess.Popen(command, text=True, env=environment, **pipes) as chat:  # type: ignore[call-overload]
        try:
            chat.stdin.write("I live in Oslo.\n")
            chat.stdin.flush()
            yield chat
        finally:
            chat.kill()


async def say(chat: "subprocess.Popen[str]", until: float) -> tuple[int, str]:
    """Say something now and then until it is time to end the chat; return its status and complaints."""
    assert chat.stdin is not None
    number = 0
    while time.time() < until:
        number += 1
        chat.stdin.write(f"My sister number {number} lives in city {number * 31}.\n")
        chat.stdin.flush()
        await asyncio.sleep(5)
    _, complaints = await asyncio.to_thread(chat.communicate, "/quit\n")
    return chat.returncode, complaints


async def library_process(name: str, until: float, pause: float, environment: dict[str, str]) -> Told:
    script = f"import asyncio, {__name__} as t; asyncio.run(t.by_library({name!r}, {until}, {pause}))"
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", script, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    out, complaints = await process.communicate()
    assert process.returncode == 0, complaints.decode()
    told: Told = json.loads(out)
    return told


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("pause", [PEOPLE, CLOSED_LOOP])
async def test_eight_programs_for_a_minute_lose_and_refuse_nothing(tmp_path: Path, pause: float) -> None:
    """Three MCP servers, a server, two chats, one of which waits for its model, and two library programs."""
    home, load = tmp_path / "home", os.getloadavg()[0] / (os.cpu_count() or 1)
    async with AsyncExitStack() as stack:
        model = stack.enter_context(OllamaDouble(Model(), seconds=MODEL_SECONDS))
        environment = {**quiet(home, MNEME_OLLAMA_URL=model.url), "PYTHONPATH": str(ROOT)}
        chat = stack.enter_context(chatting("ann", environment, "--agents", "rules"))
        slow = stack.enter_context(chatting("bob", environment, "--agents", "ollama:llama3.1:8b"))
        clients = [await stack.enter_async_context(mcp_process(f"mcp{n}", environment)) for n in range(3)]
        server = await asyncio.to_thread(stack.enter_context, own_server(home))
        until = time.time() + SECONDS
        saying = asyncio.create_task(say(chat, until))
        told = await asyncio.gather(
            *(by_mcp(f"mcp{n}", until, pause, client) for n, client in enumerate(clients)),
            *(library_process(f"library{n}", until, pause, environment) for n in range(2)),
            by_server("served", until, pause, server.url),
        )
        assert await saying == (0, "")
        assert slow.poll() is None and model.requests, "it waits still"
    await _all_is_there(str(home / "ledger"), told)
    _check_waits(told, load, pause)


async def _all_is_there(location: str, told: Sequence[Told]) -> None:
    ledger = await open_ledger(location, WordEmbedder(BUNDLED.name, BUNDLED.dimension))
    exported = [json.loads(line) async for line in ledger.export()]
    await ledger.close()
    there = {each["value"].get("content") for each in exported}
    for each in told:
        assert each["kept"] and each["forgotten"]
        assert {*each["kept"]} <= there and not {*each["forgotten"]} & there, each["name"]
    assert (await verify(location)).problems == []


def _check_waits(told: Sequence[Told], load: float, pause: float) -> None:
    """Print how long was waited; assert it where neither the machine nor the programs had more to do."""
    for what in ("add", "search", "forget"):
        waits = sorted(wait for each in told for wait in each["waits"][what])
        print(
            f"{what}: {len(waits)}, median {median(waits):.2f} s, p99 {p99(waits):.2f}, most {waits[-1]:.2f}"
        )
    longest = {each["name"]: round(p99([*chain(*each["waits"].values())]), 2) for each in told}
    print(f"p99 by program, {pause} s between calls, load before {load:.1f} a processor: {longest}")
    if load < BUSY and pause == PEOPLE:
        assert max(longest.values()) < 1


def p99(waits: Sequence[float]) -> float:
    return sorted(waits)[int(len(waits) * 0.99)]
