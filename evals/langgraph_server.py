"""A real `langgraph dev` on a free port, started as `make dev` does."""

import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

from mneme.core.errors import MnemeError
from mneme.evals.report import ROOT


@dataclass
class Server:
    """A running server: where it is, and with which environment."""

    url: str
    environment: dict[str, str]
    process: "subprocess.Popen[bytes]"
    log: Path

    def kill(self) -> None:
        """End the server at once, as a power cut would."""
        self.process.kill()
        self.process.wait()


@contextmanager
def langgraph_dev(home: Path, environment: Mapping[str, str], workers: str = "8") -> Iterator[Server]:
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
        process = subprocess.Popen(  # noqa: S603  (our own command)
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
