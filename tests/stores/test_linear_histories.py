"""Clients and servers that are killed and paused: some order explains what each client was answered."""

import asyncio
import json
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mneme.stores.ledger.ledger import open_ledger
from mneme.stores.ledger.verifying import verify
from tests.doubles.embedding import WordEmbedder
from tests.doubles.ledger_client import KEYS, SHARED, answer_of
from tests.doubles.ledger_files import ROOT
from tests.doubles.linear import NEVER, Call, calls_of, unexplained
from tests.doubles.postgres import PostgresServer
from tests.doubles.qdrant_server import KEY, QdrantServer

CALLS = 10_000
Trouble = Callable[[random.Random], None]


class Clients:
    """Processes that call at once; one that is killed is followed by another."""

    def __init__(self, location: str, folder: Path, count: int = 6) -> None:
        self._location, self._file = location, folder / "calls.jsonl"
        self._warnings = (folder / "warnings").open("ab")
        self._started = 0
        self._running = [self._start() for _ in range(count)]

    def _start(self) -> subprocess.Popen[bytes]:
        self._started += 1
        client = [sys.executable, "-m", "tests.doubles.ledger_client"]
        given = [self._location, str(self._started), str(self._file)]
        return subprocess.Popen([*client, *given], cwd=ROOT, stderr=self._warnings)

    def kill(self, chance: random.Random) -> None:
        one = chance.randrange(len(self._running))
        self._running[one].kill()
        self._running[one].wait()
        self._running[one] = self._start()

    def pause(self, chance: random.Random) -> None:
        """Stop some of them in the middle of whatever they do, while the others go on."""
        stopped = chance.sample(self._running, chance.randint(1, len(self._running) - 1))
        for client in stopped:
            client.send_signal(signal.SIGSTOP)
        time.sleep(chance.uniform(0.2, 2))
        for client in stopped:
            client.send_signal(signal.SIGCONT)

    def lines(self) -> list[str]:
        return self._file.read_text().splitlines() if self._file.exists() else []

    def end(self) -> list[Call]:
        """Kill all, and return what they called and were answered."""
        for client in self._running:
            client.kill()
            client.wait()
        self._warnings.close()
        return calls_of(map(json.loads, self.lines()))


async def holds(clients: Clients, location: str, troubles: list[Trouble], seed: int) -> list[Call]:
    """Make trouble until so many calls are answered; then look for orders that explain all of them."""
    chance = random.Random(seed)
    try:
        while len(clients.lines()) < 2 * CALLS:
            await asyncio.sleep(chance.uniform(0.2, 1))
            await asyncio.to_thread(chance.choice(troubles), chance)
    finally:
        called = clients.end()
    assert unexplained(called + await at_the_end(location)) == []
    return called


async def at_the_end(location: str) -> list[Call]:
    """Read every record once more, and find each live one."""
    ledger = await open_ledger(location, WordEmbedder(dimension=8), api_key=KEY if "|" in location else "")
    begun = time.monotonic_ns()
    heads = [await ledger.get(SHARED, key) for key in KEYS]
    for head in heads:
        if head is not None and head.live:
            for mode in ("dense", "bm25", "hybrid"):
                hits = await ledger.search(SHARED, head.text, mode=mode, limit=1)
                assert [hit.version for hit in hits] == [head]
    await ledger.close()
    return [
        Call(f"end/{key}", "get", key, "", 0, begun, time.monotonic_ns(), head and answer_of(head))
        for key, head in zip(KEYS, heads, strict=True)
    ]


def told(called: list[Call]) -> str:
    unknown = sum(call.ended == NEVER for call in called)
    return f"{len(called)} calls, {unknown} of them with no answer"


def call(kind: str, answer: Any, begun: int, ended: int, text: str = "", expected: int = 0) -> Call:
    return Call(f"{begun}", kind, "k", text, expected, begun, ended, answer)


def version(number: int, text: str) -> dict[str, Any]:
    return {"key": "k", "version": number, "text": text, "live": True}


INSERTED = call("insert", version(1, "a"), 0, 1, "a")
UPDATED = call("update", version(2, "b"), 2, 5, "b", 1)
UNKNOWN = call("update", "unknown", 2, NEVER, "b", 1)
FORGOTTEN = call("forget", "forgotten", 6, 9)


@pytest.mark.parametrize(
    ("is_explained", "calls"),
    [
        (True, [INSERTED, UPDATED, call("get", version(1, "a"), 3, 4), call("get", version(2, "b"), 6, 7)]),
        (True, [INSERTED, UNKNOWN, call("get", version(1, "a"), 6, 7), call("get", version(2, "b"), 8, 9)]),
        (True, [INSERTED, UPDATED, FORGOTTEN, call("insert", version(3, "c"), 7, 8, "c")]),
        (False, [INSERTED, UPDATED, call("get", version(1, "a"), 6, 7)]),
        (False, [INSERTED, UPDATED, call("get", version(2, "b"), 2, 3), call("get", version(1, "a"), 4, 5)]),
        (False, [INSERTED, UNKNOWN, call("get", version(2, "b"), 6, 7), call("get", version(1, "a"), 8, 9)]),
        (False, [INSERTED, UPDATED, call("update", version(2, "c"), 2, 5, "c", 1)]),
        (False, [INSERTED, UPDATED, FORGOTTEN, call("get", version(2, "b"), 10, 11)]),
        (False, [INSERTED, FORGOTTEN, call("insert", version(1, "c"), 10, 11, "c")]),
        (False, [INSERTED, call("update", "refused", 2, 5, "b", 1)]),
        (False, [INSERTED, call("get", None, 2, 3)]),
    ],
)
def test_what_no_order_explains_is_found(is_explained: bool, calls: list[Call]) -> None:
    calls = [replace(each, n=str(number)) for number, each in enumerate(calls)]
    assert (unexplained(calls) == []) is is_explained


@pytest.mark.long
@pytest.mark.timeout(3600)
async def test_processes_on_a_home_that_are_killed_and_paused(tmp_path: Path) -> None:
    location = str(tmp_path / "ledger")
    clients = Clients(location, tmp_path)
    print(told(await holds(clients, location, [clients.kill, clients.pause], seed=1)))
    assert (await verify(location)).problems == []


@pytest.mark.long
@pytest.mark.timeout(7200)
async def test_servers_that_are_killed_and_paused(
    tmp_path: Path, own_postgres: PostgresServer, own_cluster: list[QdrantServer]
) -> None:
    nodes = ",".join(node.url for node in own_cluster)
    location = f"{own_postgres.url}|{nodes}?shards=3&replicas=3"
    clients = Clients(location, tmp_path)

    def kill_postgres(chance: random.Random) -> None:
        own_postgres.kill()
        time.sleep(chance.uniform(0, 1))
        own_postgres.start()

    def pause_postgres(chance: random.Random) -> None:
        with own_postgres.paused():
            time.sleep(chance.uniform(0.2, 2))

    def kill_a_node(chance: random.Random) -> None:
        node = chance.choice(own_cluster)
        node.kill()
        time.sleep(chance.uniform(0, 1))
        node.start()

    def pause_a_node(chance: random.Random) -> None:
        with chance.choice(own_cluster).paused():
            time.sleep(chance.uniform(0.2, 2))

    servers = [kill_postgres, pause_postgres, kill_a_node, pause_a_node]
    print(told(await holds(clients, location, [clients.kill, clients.pause, *servers], seed=2)))
    assert (await verify(location, api_key=KEY)).problems == []
