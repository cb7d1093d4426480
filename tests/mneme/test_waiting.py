"""Processes beside one another on one home: nobody waits for another, whatever it does."""

import asyncio
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import httpx
import pytest

from mneme.client.home import LANGGRAPH_SERVER, Announcement, opened
from mneme.core.settings import settings
from mneme.stores.ledger.ledger import Ledger
from tests.doubles.command_line import chat, run_mneme
from tests.doubles.ollama import OllamaDouble, Reply
from tests.doubles.quiet import quiet
from tests.doubles.waiting import eventually

LIST = ("memories", "list")
SEARCH = ["memories", "search", "tea"]


@pytest.fixture
def place() -> Path:
    """Return the folder of the ledger of the settings."""
    return Path(settings().ledger_location)


@pytest.fixture
def home() -> dict[str, str]:
    """Return the environment of commands in the same home."""
    return quiet(settings().home)


@contextmanager
def another_process(place: Path, embedder: str = "bundled") -> Iterator["subprocess.Popen[str]"]:
    """Let a process write to the ledger, again and again."""
    command = [sys.executable, "-m", "tests.doubles.ledger_writer", str(place), "1", "0", embedder]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        try:
            assert writer.stdout.readline() == "open\n"
            yield writer
        finally:
            writer.kill()
            writer.stdout.close()


def test_commands_list_search_write_and_verify_beside_a_process_that_writes(
    place: Path, home: dict[str, str]
) -> None:
    with another_process(place):
        told = run_mneme(["remember", "-", "--agents", "rules"], home, "user: I live in Rome.\n")
        assert told.returncode == 0, told.stderr
        for words in (LIST, SEARCH, ["memories", "export"], ["verify"]):
            done = run_mneme(words, home)
            assert done.returncode == 0, (words, done.stderr)
            assert "waiting" not in done.stderr
    found = json.loads(run_mneme([*LIST, "--json"], home).stdout)
    assert "Rome" in found["memory"]["content"]


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_of_many_commands_at_once_all_succeed_and_nothing_is_lost(home: dict[str, str]) -> None:
    def command(number: int) -> list[str]:
        user = ["--user", f"user-{number}"]
        kinds = [["chat", *user], ["remember", "-", *user], LIST, ["verify"], SEARCH, ["inbox", "list"]]
        return [*kinds[number % len(kinds)]]

    assert (
        run_mneme(command(1), home, "user: I live in Rome.\n").returncode == 0
    )  # else there is nothing to verify
    with ThreadPoolExecutor(48) as at_once:
        done = [
            *at_once.map(
                lambda number: run_mneme(command(number), home, "user: I live in Rome.\n"), range(48)
            )
        ]
    assert [each.stderr for each in done if each.returncode] == []
    for number in (each for each in range(48) if each % 6 < 2):
        kept = run_mneme([*LIST, "--user", f"user-{number}", "--json"], home)
        assert "Rome" in kept.stdout, number


@contextmanager
def server_that_is_there() -> Iterator[str]:
    """Serve what says that a server is there."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=[0.02])
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


async def test_a_server_that_is_there_is_asked(place: Path) -> None:
    with another_process(place) as holder, server_that_is_there() as url:
        (place / LANGGRAPH_SERVER).write_text(Announcement(url=url, pid=holder.pid).model_dump_json())
        async with opened() as found:
            assert isinstance(found, httpx.AsyncClient) and str(found.base_url).rstrip("/") == url
    async with opened() as found:
        assert isinstance(found, Ledger), "its process is gone"


async def test_a_second_chat_on_a_thread_answers_only_what_a_killed_one_left(tmp_path: Path) -> None:
    with OllamaDouble(brain=lambda _: Reply(seconds=3600)) as double:
        environment = quiet(tmp_path / "home", MNEME_OLLAMA_URL=double.url)
        first, typed, _ = await chat(
            environment, "--chatbot", "ollama:llama3.1:8b", "--memory-agent", "rules"
        )

        async def asked() -> bool:
            return bool(double.chats)

        typed.write(b"I live in Ulm.\n")
        await eventually(asked)
        second, _, _ = await chat(environment, "--agents", "rules")
        assert second.stderr is not None
        assert b"this one waits" in await asyncio.wait_for(second.stderr.readline(), 60)
        first.kill()
        await first.communicate()
        said, _ = await asyncio.wait_for(second.communicate(b"I have a cat.\n"), 60)
    assert said.count(b"answering your last message: I live in Ulm.") == 1 and said.count(b"Noted.") == 2
