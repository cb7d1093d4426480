"""A real `langgraph dev`, run as a user does."""

import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
from langgraph_sdk import get_client
from langgraph_sdk.client import LangGraphClient

from tests.doubles.command_line import Done, quiet, run_mneme

ROOT = Path(__file__).parents[2]


@dataclass
class Server:
    """A running server: where it is, and with which environment."""

    url: str
    environment: dict[str, str]
    process: "subprocess.Popen[bytes]"
    log: Path

    def client(self, key: str | None = None) -> LangGraphClient:
        """Return a client that the test closes: `async with server.client() as client`."""
        return get_client(url=self.url, api_key=key)

    def thread(self, name: str, owner: str = "local", key: str = "") -> str:
        """Return the id of an owner's thread of that name."""
        body = {"owner": owner, "arguments": {"name": name}}
        headers = {"x-api-key": key} if key else {}
        answer = httpx.post(f"{self.url}/mneme/threads/named", json=body, headers=headers)
        return str(answer.raise_for_status().json())

    def mneme(self, *words: str, stdin: str = "") -> Done:
        """Run the command line beside the server, in the same home."""
        return run_mneme(words, self.environment, stdin)

    def kill(self) -> None:
        """End the server at once, as a power cut would."""
        self.process.kill()
        self.process.wait()


@contextmanager
def serving(home: Path, workers: str = "8", **settings: str) -> Iterator[Server]:
    """Run `langgraph dev` as `make dev` does, without --allow-blocking, until it is told to end."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = quiet(home, LANGGRAPH_NO_VERSION_CHECK="1", LANGGRAPH_CLI_NO_ANALYTICS="1", **settings)
    home.mkdir(exist_ok=True)
    log = home / "server.log"
    command = [str(Path(sys.executable).parent / "langgraph"), "dev", "--no-browser", "--no-reload"]
    command += ["--config", str(ROOT / "langgraph.json"), "--n-jobs-per-worker", workers]
    with log.open("ab") as output:
        process = subprocess.Popen(
            [*command, "--port", str(port)], cwd=home, env=environment, stdout=output, stderr=output
        )
    server = Server(f"http://127.0.0.1:{port}", environment, process, log)
    try:
        wait_until_ready(server)
        yield server
        process.send_signal(signal.SIGINT)
        process.wait()
    finally:
        server.kill()


def wait_until_ready(server: Server) -> None:
    """Wait for the server's first answer; tell its log if it ends before."""
    while server.process.poll() is None:
        try:
            if httpx.get(f"{server.url}/ok").is_success:
                return
        except httpx.TransportError:
            time.sleep(0.1)
    pytest.fail(server.log.read_text()[-3000:])
