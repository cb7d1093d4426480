"""Commands beside one another without a server: they wait in line, and say for whom."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from mneme.client.waiting import Patience
from mneme.stores.ledger.line import TICKET, Line

from mneme.client.announcement import ANNOUNCEMENT, Announcement
from mneme.client.home import open_or_find_server
from mneme.client.session import PoliteSession
from mneme.core.errors import LedgerInUse
from mneme.core.settings import settings
from mneme.evals.commands import quiet
from mneme.stores.ledger.folder import Folder
from tests.doubles.command_line import Running, failed, run_mneme
from tests.doubles.waiting import until, wait_until

LIST = ("memories", "list")
SEARCH = ["memories", "search", "tea"]
"""It needs the vectors, so it cannot read beside the process that writes."""


@pytest.fixture
def place() -> Path:
    """Return the folder of the ledger of the settings."""
    return Path(settings().ledger_location)


@pytest.fixture
def home() -> dict[str, str]:
    """Return the environment of commands in the same home."""
    return quiet(settings().home)


@contextmanager
def another_process(place: Path) -> Iterator["subprocess.Popen[str]"]:
    """Let a process have the ledger open."""
    command = [sys.executable, "-m", "tests.doubles.ledger_writer", str(place), "1", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        try:
            assert writer.stdout.readline() == "open\n"
            yield writer
        finally:
            writer.kill()
            writer.stdout.close()


def test_a_command_waits_and_says_once_for_whom(place: Path, home: dict[str, str]) -> None:
    folder = Folder(place)
    with Running(LIST, home) as command:
        wait_until(lambda: "waiting up to" in command.complaints())
        folder.release()
        done = command.end()
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("waiting up to") == 1 and f"pid {os.getpid()}" in done.stderr
    assert not [*place.glob(f"{TICKET}*")], "nobody stands in the line any more"


def test_with_json_it_says_nothing_but_the_error(place: Path, home: dict[str, str]) -> None:
    folder = Folder(place)
    done = run_mneme(["--wait", "1.5", *LIST, "--json"], home)
    folder.release()
    assert (done.returncode, done.stdout) == (1, "")
    error = json.loads(done.stderr)
    assert error["error"] == "LedgerInUse" and f"pid {os.getpid()}" in error["message"]
    assert "--wait" in error["hint"]


def test_whoever_will_not_wait_is_refused_at_once(place: Path, home: dict[str, str]) -> None:
    assert run_mneme(LIST, home).returncode == 0, "there is a ledger now"
    folder = Folder(place)
    for words, variable in ((("--wait", "0", *SEARCH), "30"), (("verify",), "0")):
        failed(run_mneme(words, home | {"MNEME_WAIT": variable}), f"pid {os.getpid()}")
    folder.release()
    refused = run_mneme(["--wait", "-1", *LIST], home)
    assert refused.returncode == 2 and "--wait" in refused.stderr


def test_nobody_waits_longer_for_a_process_that_is_stopped(place: Path, home: dict[str, str]) -> None:
    with another_process(place) as holder:
        holder.send_signal(signal.SIGSTOP)
        failed(run_mneme(["--wait", "0.2", *SEARCH], home), f"pid {holder.pid}", "stopped")


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_of_many_commands_at_once_all_succeed_and_nothing_is_lost(home: dict[str, str]) -> None:
    def command(number: int) -> list[str]:
        user = ["--user", f"user-{number}"]
        kinds = [["chat", *user], ["remember", "-", *user], LIST, ["verify"], SEARCH, ["inbox", "list"]]
        return [*kinds[number % len(kinds)]]

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


def test_first_come_first_served_but_for_those_who_are_gone(tmp_path: Path) -> None:
    first, second, newcomer = (Line(tmp_path) for _ in range(3))
    first.stand()
    second.stand()
    assert [line.before() for line in (first, second, newcomer)] == [0, 1, 2]
    (ticket, _) = sorted(tmp_path.iterdir())
    os.utime(ticket, (time.time() - 5,) * 2)
    assert second.before() == 0, "the first was killed, or stopped"
    first.stand()
    assert second.before() == 1
    os.utime(ticket, (time.time() - 100,) * 2)
    assert second.before() == 0 and not ticket.exists()
    second.leave()
    assert not [*tmp_path.iterdir()]


def test_there_is_no_order_where_no_ticket_can_be_written(tmp_path: Path) -> None:
    line = Line(tmp_path / "missing")
    line.stand()
    assert line.before() == 0
    line.leave()


async def test_nobody_gives_up_while_the_line_moves_on(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock is the test's: it goes on when the waiting process has seen who is before it."""
    monkeypatch.setenv("MNEME_WAIT", "1.5")
    settings.cache_clear()
    clock, seen = [0.0], {False: -1, True: -1}

    class Seeing(Patience):
        def note(self, before: int) -> None:
            super().note(before)
            seen[self._moves] = before

    monkeypatch.setattr("mneme.client.waiting.monotonic", lambda: clock[0])
    monkeypatch.setattr("mneme.client.waiting.Patience", Seeing)
    with another_process(place):
        first, second = Line(place), Line(place)
        first.stand()
        second.stand()
        with os.scandir(place) as found:
            for ticket in (each for each in found if each.name.startswith(TICKET)):
                os.utime(ticket, (time.time() + 600,) * 2)  # nobody passes them by, however slowly it goes
        waiting = asyncio.create_task(open_or_find_server())
        await until(lambda: seen[False] == 2)
        clock[0] += 1.2
        await until(lambda: seen[True] == 2)
        first.leave()
        await until(lambda: seen[True] == 1)
        clock[0] += 1.2
        second.leave()
        await until(lambda: seen[True] == 0)
        clock[0] += 1.2
        await asyncio.sleep(0.1)
        assert not waiting.done(), "1.5 s begin anew when the last one left"
        clock[0] += 0.4
        with pytest.raises(LedgerInUse):
            await waiting


async def test_a_process_never_waits_behind_those_who_wait_for_it(place: Path) -> None:
    opened = await open_or_find_server()
    Line(place).stand()
    again = await asyncio.wait_for(open_or_find_server(), 30)
    for each in (opened, again):
        assert not isinstance(each, str)
        await each.close()


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
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


async def test_who_waits_uses_a_server_that_starts_meanwhile(place: Path) -> None:
    with another_process(place) as holder, server_that_is_there() as url:
        waiting = asyncio.create_task(open_or_find_server())
        await asyncio.to_thread(wait_until, lambda: [*place.glob(f"{TICKET}*")])
        (place / ANNOUNCEMENT).write_text(Announcement(url=url, pid=holder.pid).model_dump_json())
        assert await waiting == url


async def test_an_idle_chat_gives_way_and_goes_on(home: dict[str, str]) -> None:
    chat = PoliteSession("local")
    session = await chat.open()
    await chat.give_way()
    assert await chat.open() is session, "nobody waits"
    beside = asyncio.create_task(asyncio.to_thread(run_mneme, LIST, home))
    while not beside.done():
        await chat.give_way()
        await asyncio.sleep(0.02)
    assert (await beside).returncode == 0
    assert await (await chat.open()).memories.list() == []
    await chat.close()


async def test_a_library_waits_as_the_settings_say(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MNEME_WAIT", "0")
    settings.cache_clear()
    with another_process(place) as holder, pytest.raises(LedgerInUse, match=f"pid {holder.pid}"):
        await open_or_find_server()
