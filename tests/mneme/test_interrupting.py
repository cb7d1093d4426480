"""Ctrl-C: a command ends at once, with status 130, and says how long work goes on."""

import fcntl
import json
import signal
import subprocess
import sys
import termios
import threading
import time
from asyncio import sleep
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pytest
import typer
from typer.testing import CliRunner

from mneme.cli.derived import Command
from tests.doubles.command_line import Run
from tests.doubles.quiet import quiet
from tests.doubles.terminal import at_a_terminal


@pytest.fixture(autouse=True)
def interruptible() -> Iterator[None]:
    """Let commands hear Ctrl-C, which a shell has ignored by what it runs in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


QUESTIONS = {
    ("memories", "forget"): "Erase it?",
    ("threads", "delete", "main"): "Erase it?",
    ("setup",): "[Y/n]",
    ("cards", "review"): "[q] quit",
    ("chat",): "you: ",
    ("mcp",): "Ctrl-C ends it.",
}


@pytest.mark.parametrize("words", QUESTIONS, ids=" ".join)
def test_ctrl_c_at_a_question_ends_at_once_and_changes_nothing(
    mneme: Run, tmp_path: Path, words: tuple[str, ...]
) -> None:
    added = json.loads(mneme("add", "I have a cat.", "--json").stdout)["key"]
    mneme("cards", "add", "Cats like boxes.", "--rationale", "Seen.")
    if "threads" in words:
        assert mneme("chat", stdin="Hello.\n/quit\n").returncode == 0
    editors = {"CODEX_HOME": str(tmp_path / "codex"), "MNEME_SETTINGS": str(tmp_path / "settings.env")}
    (tmp_path / "codex").mkdir()
    key = [added] if "forget" in words else []
    with at_a_terminal(*words, *key, **quiet(tmp_path / "home", **editors)) as (process, seen, _):
        seen(QUESTIONS[words])
        process.send_signal(signal.SIGINT)
        assert process.wait(10) == 130
    assert not list((tmp_path / "codex").iterdir())
    assert "I have a cat." in mneme("memories", "list").stdout


@pytest.mark.parametrize("words", [("chat",), ("remember", "-")], ids=" ".join)
def test_ctrl_c_while_a_pipe_is_read_ends_at_once(tmp_path: Path, words: tuple[str, ...]) -> None:
    command, pipe = [sys.executable, "-m", "mneme", *words], subprocess.PIPE
    environment = quiet(tmp_path / "home")
    with subprocess.Popen(command, env=environment, stdin=pipe, stdout=pipe, stderr=pipe) as process:
        assert process.stdin is not None
        process.stdin.write(b"\n")
        process.stdin.flush()
        while unread(process.stdin):
            assert process.poll() is None
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, complaints = process.communicate(timeout=10)
    assert process.returncode == 130
    assert b"Fatal" not in complaints and b"Traceback" not in complaints


def unread(pipe: IO[bytes]) -> int:
    """Return how many bytes in a pipe nobody has read yet."""
    return int.from_bytes(fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)), sys.byteorder)


LONG, SHORT = 30, 20
"""Seconds that a command sleeps, and that it may take to end."""


def test_a_signal_that_wakes_no_sleeping_loop_ends_the_command() -> None:
    """As one that comes just before the loop falls asleep: here another thread gets it."""
    app = typer.Typer()

    async def work() -> None:
        me = threading.get_ident
        threading.Timer(0.3, lambda: signal.pthread_kill(me(), signal.SIGINT)).start()
        await sleep(LONG)

    app.command("work")(Command(work))
    began = time.monotonic()
    assert CliRunner().invoke(app).exit_code == 130
    assert time.monotonic() - began < SHORT
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


QUERY = "SELECT user_id, COUNT(*) FROM user_events GROUP BY user_id"
GOES_ON = {
    ("household", "run", "--members", "2", "--seed", "5"): ("step", "the same command goes on"),
    ("learn", "Faster.", "--query", QUERY, "--rows", "20000"): ("recall", "the same command goes on"),
    ("discuss", "A pipeline for logs.", "--id", "one"): ("2. ", "`mneme discuss --id one` goes on"),
}


@pytest.mark.parametrize("words", GOES_ON, ids=lambda words: words[0])
def test_what_ctrl_c_stopped_says_what_is_kept_and_goes_on(
    mneme: Run, tmp_path: Path, words: tuple[str, ...]
) -> None:
    command, begun, pipe = [sys.executable, "-m", "mneme", *words], GOES_ON[words][0], subprocess.PIPE
    environment = quiet(tmp_path / "home", MNEME_AGENTS="rules")
    with subprocess.Popen(
        command, env=environment, cwd=tmp_path, stdout=pipe, stderr=pipe, text=True, pipesize=4096
    ) as process:
        assert process.stdout is not None
        assert any(begun in line for line in process.stdout)
        process.send_signal(signal.SIGINT)
        _, complaints = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "Stopped. " in complaints and GOES_ON[words][1] in complaints
    again = words if words[0] != "discuss" else ("discuss", "--id", "one", "--out", str(tmp_path / "out"))
    assert mneme(*again).returncode in (0, 1)
