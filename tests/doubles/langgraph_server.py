"""A real `langgraph dev`, run as a user does."""

import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
from langgraph_sdk import get_client
from langgraph_sdk.client import LangGraphClient

from mneme.api.operation import API_PATH, Kind
from mneme.client.home import operations_at
from mneme.client.remote import client_of
from mneme.core.errors import MnemeError
from mneme.server.users import add_user
from tests.doubles.command_line import Done, run_mneme
from tests.doubles.quiet import quiet

ROOT = Path(__file__).parents[2]


@dataclass
class Server:
    """A running server: where it is, with which environment, and what a test does beside it."""

    url: str
    environment: dict[str, str]
    process: "subprocess.Popen[bytes]"
    log: Path

    def kill(self) -> None:
        """End the server at once, as a power cut would."""
        self.process.kill()
        self.process.wait()

    def client(self, key: str | None = None) -> LangGraphClient:
        """Return a client that the test closes: `async with server.client() as client`."""
        return get_client(url=self.url, api_key=key)

    @asynccontextmanager
    async def operations(self, kind: type[Kind], owner: str) -> AsyncIterator[Kind]:
        """Open operations on an owner's data on the server."""
        async with client_of(self.url) as client:
            yield operations_at(client, kind, owner)

    def thread(self, name: str, owner: str = "local", key: str = "") -> str:
        """Return the id of an owner's thread of that name."""
        headers, asked = {"x-api-key": key} if key else {}, {"user": owner, "name": name}
        answer = httpx.get(f"{self.url}{API_PATH}/threads/named", params=asked, headers=headers, timeout=None)
        return str(answer.raise_for_status().json())

    def mneme(self, *words: str, stdin: str = "") -> Done:
        """Run the command line beside the server, in the same home."""
        return run_mneme(words, self.environment, stdin)


@dataclass(frozen=True)
class Guarded:
    """A running server that asks for keys, and the file of its users."""

    server: Server
    users: Path

    def key(self, user: str) -> str:
        """Add a user, and return the user's key."""
        return add_user(self.users, user)


@contextmanager
def serving(home: Path, workers: str = "64", **settings: str) -> Iterator[Server]:
    """Run `langgraph dev` as `make dev` does, without --allow-blocking, until it is told to end."""
    with langgraph_dev(home, quiet(home, **settings), workers) as server:
        yield server


@contextmanager
def langgraph_dev(home: Path, environment: Mapping[str, str], workers: str = "64") -> Iterator[Server]:
    """Run the server in a home of its own, without --allow-blocking, until it is told to end.

    Raises MnemeError with the end of its log where it does not start.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    given = {**environment, "LANGGRAPH_NO_VERSION_CHECK": "1", "LANGGRAPH_CLI_NO_ANALYTICS": "1"}
    home.mkdir(exist_ok=True)
    log = home / "server.log"
    command = [str(Path(sys.executable).parent / "langgraph"), "dev", "--no-browser", "--no-reload"]
    command += ["--config", str(ROOT / "langgraph.json"), "--n-jobs-per-worker", workers]
    with log.open("ab") as output:
        process = subprocess.Popen(
            [*command, "--port", str(port)], cwd=home, env=given, stdout=output, stderr=output
        )
    server = Server(f"http://127.0.0.1:{port}", given, process, log)
    try:
        _wait_until_ready(server)
        yield server
        process.send_signal(signal.SIGINT)
        process.wait()
    finally:
        server.kill()


def _wait_until_ready(server: Server) -> None:
    """Wait for the server's first answer."""
    while server.process.poll() is None:
        try:
            if httpx.get(f"{server.url}/ok").is_success:
                return
        except httpx.TransportError:
            time.sleep(0.1)
    raise MnemeError(f"langgraph dev did not start: {server.log.read_text()[-3000:]}")
