"""`mneme import` as a user meets it: it can be killed at any moment, and goes on with the same command."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from mneme.prompts.chat.memory_agent.comparing import compare_memories
from mneme.prompts.chat.memory_agent.reading import read_message
from mneme.prompts.chat.memory_agent.rewriting import rewrite_memory
from tests.doubles.command_line import Done, Running, failed, run_mneme
from tests.doubles.langgraph_server import Server
from tests.doubles.ollama import OllamaDouble, Reply, by_rules
from tests.doubles.quiet import quiet
from tests.doubles.waiting import wait_until
from tests.importing.exports import talk, written, zipped

MODEL = ("--agents", "ollama:llama3.1:8b")
PROMPTS = (read_message, compare_memories, rewrite_memory)
SAID = ("I live in Austin.", "I have a cat called Zoe.", "What is the weather?", "I moved to Denver.")


@pytest.fixture
def export(tmp_path: Path) -> Path:
    """Make an export whose last conversation stands first, as ChatGPT's does."""
    given = [talk("c2", *SAID[3:], day=9), talk("c1", *SAID[:3])]
    return zipped(tmp_path / "export.zip", conversations_json=given, user_json={"id": "x"})


def listed(done: Done) -> list[tuple[str, int]]:
    """Return the content and the version of every memory."""
    found: Sequence[dict[str, Any]] = [json.loads(line) for line in done.stdout.splitlines()]
    return [(each["memory"]["content"], each["version"]) for each in found]


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
        assert "ChatGPT: 4 messages of 2 conversations" in stopped.stderr, "said before it begins"
        assert "Stopped" in stopped.stderr and "same command" in stopped.stderr
        done = run_mneme((*words, "--json"), home)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    assert told["remembered"] + told["nothing"] + told["known"] == told["messages"] == 4
    assert sorted(listed(run_mneme(("memories", "list", "--json"), home))) == [
        ("I have a cat called Zoe.", 1),
        ("I live in Austin.", 1),
        ("I moved to Denver.", 1),
    ], "each once; what may contradict stands beside"


def test_a_dry_run_says_what_would_come(export: Path, tmp_path: Path) -> None:
    home, words = quiet(tmp_path / "home"), ("import", "chatgpt", str(export), "--dry-run")
    shown = run_mneme((*words, "--since", "2024-06-02"), home)
    assert "ChatGPT: 1 message of 1 conversation, from 2024-06-10 to 2024-06-10." in shown.stdout
    assert "left out: 3 older than the date given" in shown.stdout
    *items, last = [json.loads(line) for line in run_mneme((*words, "--json"), home).stdout.splitlines()]
    assert [each["text"] for each in items] == [*SAID]
    assert last == {"items": 4, "skipped": {}, "notes": []}
    assert not (tmp_path / "home" / "ledger").exists()
    failed(run_mneme((*words, "--since", "soon"), home), "'soon' is not a date")


@pytest.mark.long
@pytest.mark.xdist_group("server")
def test_imports_go_through_the_server(server: Server, tmp_path: Path) -> None:
    kayak = {"id": "1", "memory": "Owns a red kayak", "user_id": "ann", "created_at": "2024-03-01T09:00:00Z"}
    zoe = ("--user", "zoe", "--json")
    mem0 = server.mneme("import", "mem0", str(written(tmp_path / "all.json", [kayak])), *zoe)
    assert json.loads(mem0.stdout)["imported"] == 1, mem0.stderr
    (tmp_path / "note.md").write_text("# Pets\n- I have a parrot called Rio.\n")
    words = ("import", "markdown", str(tmp_path / "note.md"), "--agents", "rules", *zoe)
    assert json.loads(server.mneme(*words).stdout)["remembered"] == 1
    assert json.loads(server.mneme(*words).stdout)["known"] == 1
    assert listed(server.mneme("memories", "list", *zoe)) == [
        ("Owns a red kayak", 1),
        ("I have a parrot called Rio.", 1),
    ]
