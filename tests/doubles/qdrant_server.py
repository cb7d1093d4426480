"""Qdrant servers for tests: the double, the one at MNEME_TEST_QDRANT, our own of MNEME_TEST_QDRANT_BINARY."""

import json
import os
import signal
import socket
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from uuid import uuid4

import httpx
import pytest
from qdrant_client import AsyncQdrantClient, QdrantClient

from mneme.stores.ledger.addresses import address_of
from tests.doubles.qdrant_double import QdrantDouble
from tests.doubles.waiting import wait_until

URL = os.environ.get("MNEME_TEST_QDRANT", "")
BINARY = os.environ.get("MNEME_TEST_QDRANT_BINARY", "")
KEY = "right"
NO_SERVER = "MNEME_TEST_QDRANT names no Qdrant server"


@pytest.fixture
def double_location(tmp_path: Path) -> Iterator[str]:
    """Name a new ledger in a folder, with its index on the double."""
    with QdrantDouble() as double:
        yield f"{tmp_path / 'log'}|{double.url}"


@pytest.fixture
def team_location(request: pytest.FixtureRequest) -> Iterator[str]:
    """Name a new ledger in Postgres, with its index on a Qdrant server, else on the double."""
    log = request.getfixturevalue("postgres_url")
    if URL:
        index = new_location()
        yield f"{log}|{index}"
        drop(index)
        return
    with QdrantDouble() as double:
        yield f"{log}|{double.url}"


@asynccontextmanager
async def at(location: str) -> AsyncIterator[tuple[AsyncQdrantClient, str]]:
    """Give a client of the server that a ledger's index is on, and the index's name."""
    address = address_of(location.partition("|")[2])
    client = AsyncQdrantClient(url=address.urls[0], check_compatibility=False)
    yield client, f"{address.collection}-index"
    await client.close()


def new_location() -> str:
    """Name an index on the server at MNEME_TEST_QDRANT that nobody has."""
    return f"{URL}?collection=mneme-test-{uuid4().hex}"


def drop(location: str) -> None:
    """Delete what an index left on the server at MNEME_TEST_QDRANT."""
    name = address_of(location).collection
    client = QdrantClient(url=URL, timeout=60, check_compatibility=False)
    for collection in client.get_collections().collections:
        if collection.name.startswith(name):
            client.delete_collection(collection.name)
    client.close()


class QdrantServer:
    """A server whose key is KEY, with its files in `folder`; a test kills it and starts it again.

    In a cluster it is the first node, or joins the node at `first`.
    """

    def __init__(self, folder: Path, *, clustered: bool = False, first: str = "") -> None:
        with ExitStack() as free:
            ports = [free.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(3)]
            http, grpc, peers = (each.getsockname()[1] for each in ports)
        self.url, self.folder = f"http://127.0.0.1:{http}", folder
        self.uri = f"http://127.0.0.1:{peers}"
        self._more = ["--uri", self.uri, *(("--bootstrap", first) if first else ())] if clustered else []
        service = {"host": "127.0.0.1", "http_port": http, "grpc_port": grpc, "api_key": KEY}
        storage = {"storage_path": str(folder / "storage"), "snapshots_path": str(folder / "snapshots")}
        cluster = {"enabled": clustered, "p2p": {"port": peers}}
        folder.mkdir(parents=True)
        config = {"service": service, "storage": storage, "cluster": cluster}
        (folder / "config.yaml").write_text(json.dumps(config))

    def start(self) -> None:
        """Start it, and wait until it answers."""
        command = [BINARY, "--disable-telemetry", "--config-path", "config.yaml", *self._more]
        with (self.folder / "server.log").open("ab") as log:
            self._process = subprocess.Popen(command, cwd=self.folder, stdout=log, stderr=subprocess.STDOUT)
        wait_until(self._answers)

    def kill(self) -> None:
        """End it as `kill -9` does."""
        self._process.kill()
        self._process.wait()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Let it not run for a while."""
        self._process.send_signal(signal.SIGSTOP)
        yield
        self._process.send_signal(signal.SIGCONT)

    def _answers(self) -> bool:
        assert self._process.poll() is None, (self.folder / "server.log").read_text()
        try:
            return httpx.get(f"{self.url}/readyz").is_success
        except httpx.HTTPError:
            return False


@pytest.fixture
def own_qdrant(tmp_path: Path) -> Iterator[QdrantServer]:
    """Start a server of the test's own; skip, saying why, where there is no program."""
    if not BINARY:
        pytest.skip("MNEME_TEST_QDRANT_BINARY names no Qdrant server's program")
    server = QdrantServer(tmp_path / "qdrant")
    server.start()
    yield server
    server.kill()


@pytest.fixture
def own_cluster(tmp_path: Path) -> Iterator[list[QdrantServer]]:
    """Start three nodes of one cluster; skip, saying why, where there is no program."""
    if not BINARY:
        pytest.skip("MNEME_TEST_QDRANT_BINARY names no Qdrant server's program")
    nodes: list[QdrantServer] = []
    try:
        for number in range(3):
            first = nodes[0].uri if nodes else ""
            node = QdrantServer(tmp_path / f"qdrant{number}", clustered=True, first=first)
            node.start()
            nodes.append(node)
        yield nodes
    finally:
        for node in nodes:
            node.kill()
