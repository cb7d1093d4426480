"""A real `mneme serve`, and a model server with OpenAI's protocol to put behind it."""

import json
import os
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx

from mneme.api.operation import API_PATH
from mneme.client.home import OWN_SERVER, Announcement
from tests.doubles.command_line import Done, Running, run_mneme

SERVER_SECONDS = 30.0


@dataclass
class OwnServer:
    """A running `mneme serve`: where it is, and in which environment."""

    url: str
    environment: dict[str, str]
    running: Running

    def get(self, path: str, **asked: Any) -> Any:
        """Return what an operation that reads answers."""
        return httpx.get(f"{self.url}{API_PATH}/{path}", params=asked).raise_for_status().json()

    def mneme(self, *words: str, stdin: str = "") -> Done:
        """Run the command line beside the server, in the same home."""
        return run_mneme(words, self.environment, stdin)

    def memories(self) -> list[str]:
        """Return what is remembered of the one user, as soon as nothing waits any more."""
        end = time.monotonic() + SERVER_SECONDS
        while self.get("inbox/count"):
            assert time.monotonic() < end
            time.sleep(0.05)
        return [each["memory"]["content"] for each in self.get("memories")]


@contextmanager
def own_server(home: Path, *words: str, **more: str) -> Iterator[OwnServer]:
    """Run `mneme serve` on a home, with rules as the memory agent."""
    environment = {**os.environ, "MNEME_HOME": str(home), "MNEME_AUTO": "rules", **more}
    with Running(["serve", "--port", "0", *words], environment) as running:
        yield OwnServer(announced_in(home, running), environment, running)


def announced_in(home: Path, running: Running | None = None) -> str:
    """Return the address of the server of a home, once it answers."""
    file, end = home / "ledger" / OWN_SERVER, time.monotonic() + SERVER_SECONDS
    while not file.is_file() or not file.read_text():
        assert time.monotonic() < end, running and running.complaints()
        time.sleep(0.05)
    return Announcement.model_validate_json(file.read_bytes()).url


@dataclass
class ChatServer:
    """What was asked of a model server, which says `reply` to everything."""

    url: str
    reply: str = "So be it."
    asked: list[dict[str, Any]] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)

    def shown(self) -> str:
        """Return the system message of the last request; "" where it had none."""
        first = self.asked[-1]["messages"][0]
        return str(first["content"]) if first["role"] == "system" else ""


@contextmanager
def chat_server() -> Iterator[ChatServer]:
    """Run a model server with `/v1/models` and `/v1/chat/completions`, streaming included."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer("application/json", json.dumps({"object": "list", "data": [{"id": "echo"}]}))

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            server.asked.append(body)
            server.keys.append(self.headers.get("authorization", ""))
            if body.get("stream"):
                parts = [{"choices": [{"delta": {"content": each}}]} for each in server.reply]
                lines = [*(f"data: {json.dumps(each)}\n\n" for each in parts), "data: [DONE]\n\n"]
                self._answer("text/event-stream", "".join(lines))
            else:
                message = {"role": "assistant", "content": server.reply}
                self._answer("application/json", json.dumps({"choices": [{"message": message}]}))

        def _answer(self, kind: str, text: str) -> None:
            self.send_response(200)
            self.send_header("content-type", kind)
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listening:
        server = ChatServer(f"http://127.0.0.1:{listening.server_port}/v1")
        thread = threading.Thread(target=listening.serve_forever, args=[0.02], daemon=True)
        thread.start()
        try:
            yield server
        finally:
            listening.shutdown()
            thread.join()


def chat(server: OwnServer, *messages: Mapping[str, Any], **more: Any) -> httpx.Response:
    """Send a chat to a server's endpoint; `more` is for the request's body, or its `headers`."""
    headers = more.pop("headers", {})
    body = {"model": "echo", "messages": [*messages], **more}
    return httpx.post(f"{server.url}/v1/chat/completions", json=body, headers=headers, timeout=SERVER_SECONDS)


def user(text: str) -> dict[str, str]:
    """Return a message of the user."""
    return {"role": "user", "content": text}
