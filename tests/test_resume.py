"""A chat that is killed at any moment goes on where it was: nothing is lost, nothing written twice."""

import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from evals.ollama_double import OllamaDouble, by_rules
from prompts.chatbot import reply
from prompts.memory_agent import check_conflict, compose_memories, rewrite_memory, route_message

MODEL = "ollama:llama3.1:8b"
SAID = (
    "I live in Austin.",
    "I have a cat called Zoe.",
    "My brother Tom plays the cello.",
    "I moved to Denver.",
    "I am allergic to penicillin.",
)
KILLS = 2
"""After each of the things said."""


def chat(home: Path, double: OllamaDouble, words: str) -> "subprocess.Popen[str]":
    environment = {
        **os.environ,
        "MNEME_HOME": str(home),
        "MNEME_OLLAMA_URL": double.url,
        "MNEME_CHATBOT": MODEL,
        "MNEME_MEMORY_AGENT": MODEL,
        "LANGSMITH_TRACING": "false",
        "MNEME_TRACEBACK": "1",
    }
    process = subprocess.Popen(
        [sys.executable, "-m", "mneme", "chat", "--json"],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    process.stdin.write(words)
    process.stdin.flush()
    return process


def listed(home: Path, command: str, *words: str) -> list[dict[str, Any]]:
    told = subprocess.run(
        [sys.executable, "-m", "mneme", "memories", command, *words, "--json"],
        env={**os.environ, "MNEME_HOME": str(home)},
        capture_output=True,
        text=True,
        check=True,
    )
    return [json.loads(line) for line in told.stdout.splitlines()]


@pytest.mark.timeout(280)
def test_a_chat_that_is_killed_in_the_middle_of_a_turn_goes_on(tmp_path: Path) -> None:
    """Say five things in order; kill the chat at random moments, also while it goes on from the last kill."""
    home, chance = tmp_path / "home", random.Random(7)
    prompts = (reply, route_message, compose_memories, check_conflict, rewrite_memory)
    with OllamaDouble(brain=by_rules(*prompts), seconds=0.1) as double:
        for number, words in enumerate(SAID):
            process = chat(home, double, f"{words}\n")
            wait_for_words(double, words, process)
            for _ in range(KILLS):
                time.sleep(chance.uniform(0, 0.8))
                process.kill()
                process.communicate()
                process = chat(home, double, "")
            _, complaints = process.communicate(input="", timeout=60)
            assert process.returncode == 0, complaints
            assert len(listed(home, "list")) == min(number + 1, 3) + (number == 4)

    memories = {each["key"]: each["memory"]["content"] for each in listed(home, "list")}
    contents = sorted(memories.values())
    assert len(contents) == 4, contents
    for word in ("Denver", "Zoe", "cello", "penicillin"):
        assert sum(word in content for content in contents) == 1
    versions = {word: len(listed(home, "history", key)) for key, word in memories.items()}
    assert sorted(versions.values()) == [1, 1, 1, 2], "one insert each, one update of where the user lives"


def wait_for_words(double: OllamaDouble, words: str, process: "subprocess.Popen[str]") -> None:
    """Wait until the turn has reached the model: before that nothing has been said."""
    end = time.monotonic() + 60
    while not any(words in json.dumps(request.body) for request in double.chats):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end
        time.sleep(0.01)
