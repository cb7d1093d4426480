"""`mneme import` as a user meets it: it can be killed at any moment, and goes on with the same command."""

import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from mneme.evals.commands import quiet
from mneme.evals.doubles.ollama import OllamaDouble, Reply, by_rules
from mneme.prompts.chat.memory_agent import compare_memories, read_message, rewrite_memory
from tests.doubles.command_line import Done, Running, failed, run_mneme
from tests.doubles.langgraph_server import Server
from tests.doubles.waiting import wait_until
from tests.importing.exports import talk, written, zipped

MODEL = ("--memory-agent", "ollama:llama3.1:8b", "--json")
PROMPTS = (read_message, compare_memories, rewrite_memory)
SAID = ("I live in Austin.", "I have a cat called Zoe.", "What is the weather?", "I moved to Denver.")


@pytest.fixture
def export(tmp_path: Path) -> Path:
    """Make an export whose last conversation stands first, as ChatGPT's does."""
    given = [talk("c2", *SAID[3:], day=9), talk("c1", *SAID[:3])]
    return zipped(tmp_path / "export.zip", conversations_json=given, user_json={"id": "x"})


def counts(done: Done) -> list[int]:
    """Return how many messages were remembered, had nothing to remember, were known before, and failed."""
    told = json.loads(done.stdout.splitlines()[-1])
    return [told["remembered"], told["nothing"], told["known"], len(told["failed"])]


def kept(environment: dict[str, str]) -> list[tuple[str, int, str]]:
    """Return every memory with its version and its time."""
    done = run_mneme(("memories", "list", "--json"), environment)
    found: Sequence[dict[str, Any]] = [json.loads(line) for line in done.stdout.splitlines()]
    return sorted((each["memory"]["content"], each["version"], each["memory"]["time"]) for each in found)


def test_an_import_that_is_killed_or_loses_its_model_goes_on(export: Path, tmp_path: Path) -> None:
    words = ("import", "chatgpt", str(export), *MODEL)
    with OllamaDouble(brain=by_rules(*PROMPTS), seconds=0.1) as double:
        home = quiet(tmp_path / "home", MNEME_OLLAMA_URL=double.url, MNEME_RETRIES="0")
        with Running(words, home) as run:
            wait_until(lambda: len(double.chats) >= 2)
            run.kill()
        double.chat.reply(Reply(status=503, error="overloaded"))
        stopped = run_mneme(words, home)
        assert stopped.returncode == 1
        assert "Stopped" in stopped.stderr and "same command" in stopped.stderr
        done = run_mneme(words, home)
        again = run_mneme(words, home)
    assert done.returncode == 0, done.stderr
    remembered, nothing, known, fails = counts(done)
    assert (remembered + nothing + known, fails) == (4, 0)
    assert counts(again) == [0, 0, 4, 0]

    other = quiet(tmp_path / "other")
    straight = run_mneme(("import", "chatgpt", str(export), "--memory-agent", "rules", "--json"), other)
    assert counts(straight) == [3, 1, 0, 0]
    assert kept(home) == kept(other)
    assert [(each[0], each[1]) for each in kept(other)] == [
        ("The user has a cat called Zoe.", 1),
        ("The user moved to Denver.", 2),
    ], "what was said later counts, though it stands first"


def test_a_try_says_what_would_come_and_a_limit_takes_the_oldest(export: Path, tmp_path: Path) -> None:
    home, words = quiet(tmp_path / "home"), ("import", "chatgpt", str(export))
    shown = run_mneme((*words, "--dry-run", "--since", "2024-06-02"), home)
    assert "ChatGPT: 1 message of 1 conversation, from 2024-06-10 to 2024-06-10." in shown.stdout
    assert "left out: 3 older than the date given" in shown.stdout
    listed = run_mneme((*words, "--dry-run", "--json"), home).stdout.splitlines()
    assert [json.loads(line)["text"] for line in listed[:-1]] == [*SAID]
    assert json.loads(listed[-1]) == {"items": 4, "skipped": {}, "notes": []}
    failed(run_mneme((*words, "--since", "soon"), home), "'soon' is not a date")
    first = run_mneme((*words, "--limit", "1", "--memory-agent", "rules"), home)
    assert "1 messages: 1 remembered" in first.stdout
    assert "ChatGPT: 1 message" in first.stderr, "how many come is said before it begins"
    assert [each[0] for each in kept(home)] == ["The user lives in Austin."]


@pytest.mark.xdist_group("server")
def test_imports_go_through_the_server(server: Server, export: Path, tmp_path: Path) -> None:
    owned = [
        {"id": "1", "memory": "Owns a red kayak", "user_id": "ann", "created_at": "2024-03-01T09:00:00Z"}
    ]
    mem0 = partial(
        server.mneme, "import", "mem0", str(written(tmp_path / "all.json", owned)), "--user", "zoe"
    )
    assert json.loads(mem0("--json").stdout)["imported"] == 1
    assert json.loads(mem0("--json").stdout)["known"] == 1
    (tmp_path / "note.md").write_text("# Pets\n- I have a parrot called Rio.\n")
    words = ("import", "markdown", str(tmp_path / "note.md"), "--user", "zoe", "--memory-agent", "rules")
    assert counts(server.mneme(*words, "--json")) == [1, 0, 0, 0]
    assert counts(server.mneme(*words, "--json")) == [0, 0, 1, 0]
    told = server.mneme("memories", "list", "--user", "zoe", "--json").stdout
    assert [json.loads(line)["memory"]["content"] for line in told.splitlines()] == [
        "Owns a red kayak",
        "The user has a parrot called Rio.",
    ]
