"""A chat that is killed at any moment goes on where it was: nothing is lost, nothing written twice."""

import json
import random
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from langgraph.types import Send

from mneme.graphs.memory_agent import builder as memory_agent
from mneme.nodes.chat import message_lifecycle
from mneme.nodes.chat.context import MemoryContext
from mneme.prompts.chat.chatbot import reply
from mneme.prompts.chat.memory_agent.comparing import compare_memories
from mneme.prompts.chat.memory_agent.reading import read_message
from mneme.prompts.chat.memory_agent.rewriting import rewrite_memory
from mneme.stores.checkpoints.checkpointer import open_checkpointer
from mneme.stores.ledger.base_store import LedgerStore
from mneme.stores.ledger.ledger import Ledger
from mneme.stores.users.memories import UserMemories
from tests.doubles.command_line import Running, run_mneme
from tests.doubles.ollama import OllamaDouble, by_rules
from tests.doubles.quiet import quiet
from tests.doubles.waiting import wait_until

MODEL = "ollama:llama3.1:8b"
SAID = (
    "I live in Austin.",
    "I have a cat called Zoe.",
    "My brother Tom plays the cello.",
    "I live in Denver, not in Austin.",
    "I am allergic to penicillin.",
)


def listed(home: Path, command: str, *words: str) -> list[dict[str, Any]]:
    told = run_mneme(("memories", command, *words, "--json"), quiet(home))
    assert told.returncode == 0, told.stderr
    return [json.loads(line) for line in told.stdout.splitlines()]


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("said", "kept"),
    [((SAID[0], SAID[3]), (1, 1)), pytest.param(SAID, (1, 2, 3, 3, 4), marks=pytest.mark.long)],
)
def test_a_chat_that_is_killed_in_the_middle_of_a_turn_goes_on(
    tmp_path: Path, said: Sequence[str], kept: Sequence[int]
) -> None:
    """Say things in order; kill the chat at random moments, also while it goes on from the last kill."""
    home, chance = tmp_path / "home", random.Random(7)
    prompts = (reply, read_message, compare_memories, rewrite_memory)
    with OllamaDouble(brain=by_rules(*prompts), seconds=0.1) as double:
        who = {"MNEME_OLLAMA_URL": double.url, "MNEME_AGENTS": MODEL}
        chat = partial(Running, ("chat", "--json"), quiet(home, MNEME_TRACEBACK="1", **who))
        for words, memories_kept in zip(said, kept, strict=True):
            with chat(f"{words}\n"):
                wait_until(partial(is_asked, double, words))  # before that nothing has been said
                time.sleep(chance.uniform(0, 0.8))
            with chat():
                time.sleep(chance.uniform(0, 0.8))
            with chat() as last:
                assert last.end().returncode == 0, last.end().stderr
            assert len(listed(home, "list")) == memories_kept

    memories = {each["key"]: each["memory"]["content"] for each in listed(home, "list")}
    contents = sorted(memories.values())
    assert len(contents) == kept[-1], contents
    for word in ("Denver", "Zoe", "cello", "penicillin")[: kept[-1]]:
        assert sum(word in content for content in contents) == 1
    versions = {word: len(listed(home, "history", key)) for key, word in memories.items()}
    assert sorted(versions.values()) == [1] * (kept[-1] - 1) + [2], "one insert each, one update"


def test_two_commands_at_once_read_each_message_once_and_go_on_after_one_that_is_killed(
    tmp_path: Path,
) -> None:
    """The second waits for the message that the first works on, and takes over that of a killed one."""
    home = tmp_path / "home"
    with OllamaDouble(brain=by_rules(read_message, compare_memories), seconds=0.5, parallel=4) as double:
        how = quiet(home, MNEME_OLLAMA_URL=double.url, MNEME_PARALLEL="4")
        remember = [partial(Running, ("remember", words, "--agents", MODEL, "--json"), how) for words in SAID]
        with remember[0]() as killed:
            wait_until(partial(is_asked, double, SAID[0]))
            killed.kill()
        with remember[1]() as first:
            wait_until(lambda: times_read(double, SAID[0]) > 1)
            with remember[2]() as second:
                done = [first.end(), second.end()]

    assert [json.loads(each.stdout)["remembered"] for each in done] == [1, 1], done
    assert sorted(each["memory"]["content"] for each in listed(home, "list")) == sorted(SAID[:3])
    assert [times_read(double, words) for words in SAID[:3]] == [2, 1, 1]


def times_read(double: OllamaDouble, words: str) -> int:
    """Return how often a model was asked to read a message of these words."""
    return sum(f"{words}\\n</message>" in json.dumps(request.body) for request in double.chats)


def is_asked(double: OllamaDouble, words: str) -> bool:
    """Tell whether these words have reached the model."""
    return any(words in json.dumps(request.body) for request in double.chats)


@pytest.mark.parametrize("is_earlier", [False, True])
async def test_a_run_that_was_killed_before_its_writes_does_them_when_it_goes_on(
    bundled: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_earlier: bool
) -> None:
    """An earlier version sent each node the values of one task."""

    def send(node: str, given: dict[str, Any]) -> Send:
        (task,) = given["tasks"]
        return Send(node, task)

    if is_earlier:
        monkeypatch.setattr(message_lifecycle, "Send", send)
    for words in (SAID[0], SAID[3]):
        thread: Any = {"configurable": {"thread_id": words}}
        for given in ({"message": words}, None):
            async with open_checkpointer(str(tmp_path / "checkpoints.sqlite")) as saver:
                stops = ["insert_memory", "update_memory"] if given else []
                store = LedgerStore(bundled)
                graph = memory_agent.compile(checkpointer=saver, store=store, interrupt_before=stops)
                await graph.ainvoke(given, thread, context=MemoryContext(memory_agent="rules"))
    (memory,) = await UserMemories(bundled, "local").all()
    assert (memory.memory.content, memory.version) == ("I live in Denver.", 2)
