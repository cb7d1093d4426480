"""The memory agent as two agents: what is inserted at once, and what is put together later."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from mneme.evals.chat.two_agents import Batch, FoundUpdates, find_updates, inserter, updater
from mneme.models.embedding.embedders import open_embedder
from mneme.nodes.chat.context import MemoryContext
from mneme.prompts.chat.memory_agent.comparing import Fact
from mneme.stores.ledger.base_store import LedgerStore
from mneme.stores.ledger.ledger import Ledger, open_ledger
from mneme.stores.ledger.records import Change
from mneme.stores.users.memories import Memory, UserMemories
from tests.doubles.ollama import Model
from tests.doubles.served import served

RULES = MemoryContext(memory_agent="rules")
DENVER = "I live in Denver, not in Austin."
KNOWN = Change(reason="known", actor="test")


@pytest.fixture
async def ledger(tmp_path: Path) -> AsyncIterator[Ledger]:
    opened = await open_ledger(str(tmp_path / "ledger"), await open_embedder("bundled"))
    yield opened
    await opened.close()


async def insert(ledger: Ledger, *messages: str) -> list[dict[str, Any]]:
    graph = inserter.compile(store=LedgerStore(ledger))
    return [await graph.ainvoke({"message": each}, context=RULES) for each in messages]


async def update(ledger: Ledger, context: MemoryContext = RULES) -> dict[str, Any]:
    graph: Any = updater.compile(store=LedgerStore(ledger))
    told: dict[str, Any] = await graph.ainvoke({}, context=context)
    return told


async def contents(ledger: Ledger) -> list[str]:
    return [each.memory.content for each in await UserMemories(ledger, "local").list()]


async def test_every_message_of_the_papers_table_1_is_inserted_and_one_batch_corrects_the_breed(
    ledger: Ledger,
) -> None:
    told = await insert(
        ledger,
        "My dog Max is a golden retriever. He loves playing fetch.",
        "Actually, Max is a Labrador mix, not a purebred.",
        "Max gets anxious during thunderstorms.",
        "What do we know about Max?",
        "Max is now 5 years old.",
    )
    assert [[op["event"] for op in each["operations"]] for each in told] == [
        ["insert"], ["insert"], ["insert"], [], ["insert"],
    ]  # fmt: skip
    assert len(await contents(ledger)) == 4

    updated = await update(ledger)
    profile, storms, age = await contents(ledger)
    assert "Labrador mix" in profile and "retriever" not in profile and "fetch" in profile
    assert "thunderstorms" in storms and "5" in age
    assert updated["asked"]["questions"] == 2, "one for the batch, one for the rewriting"
    assert all(operation["reason"] for operation in updated["operations"])


async def test_a_chain_of_changes_in_one_batch_ends_with_the_last(ledger: Ledger) -> None:
    await insert(ledger, "I live in Austin.", DENVER, "I live in Boston, not in Denver.")
    await update(ledger)

    (home,) = await contents(ledger)
    assert "in Boston" in home


async def test_a_thread_goes_on_where_the_last_run_ended(ledger: Ledger) -> None:
    graph = updater.compile(store=LedgerStore(ledger), checkpointer=InMemorySaver())
    config: Any = {"configurable": {"thread_id": "t"}}
    await insert(ledger, "I live in Austin.", "My cat is called Zoe.")
    first = await graph.ainvoke({}, config, context=RULES)
    again = await graph.ainvoke({}, config, context=RULES)
    await insert(ledger, DENVER)
    third = await graph.ainvoke({}, config, context=RULES)

    assert [each["asked"]["questions"] for each in (first, again, third)] == [1, 0, 1]
    assert [each["event"] for each in third["operations"]] == ["update", "retire"]
    assert len(await contents(ledger)) == 2


async def test_two_facts_of_one_message_both_go_into_one_memory(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    memories, facts = (
        UserMemories(ledger, "local"),
        ("Max is a poodle.", "Max is 5 years old.", "Max is black."),
    )
    for content in facts:
        memory = Memory(content=content, quote=content, message_id="m1")
        await memories.insert(memory, change=KNOWN)
    pair = {"reason": "Of Max.", "older": 0, "relation": "addition", "outdated": ""}
    found = json.dumps({"updates": [{**pair, "newer": 1}, {**pair, "newer": 2}]})
    with served(monkeypatch, Model("small"), brain=lambda _: found):
        updated = await update(ledger, MemoryContext(memory_agent="ollama:small"))

    (profile,) = await memories.list()
    assert profile.memory.content == " ".join(facts)
    assert [each.message_id for each in profile.memory.statements] == ["m1"] * 3
    assert updated["asked"]["questions"] == 1, "an addition asks for no rewriting"


async def test_more_new_memories_than_one_question_takes_are_looked_at_in_turn(ledger: Ledger) -> None:
    memories = UserMemories(ledger, "local")
    for number in range(9):
        await memories.insert(Memory(content=f"The user owns book number {number}."), change=KNOWN)
    assert (await update(ledger))["asked"]["questions"] >= 2


@pytest.mark.parametrize(
    ("pair", "message"),
    [
        ({"newer": 0, "older": 0, "relation": "addition"}, "not new"),
        ({"newer": 2, "older": 2, "relation": "addition"}, "lower number"),
        ({"newer": 2, "older": 0, "relation": "conflict", "outdated": "Rome"}, "not in memory 0"),
    ],
)
def test_a_pair_that_cannot_be_carried_out_is_refused(pair: dict[str, Any], message: str) -> None:
    batch = Batch(memories=[Fact(content=each) for each in ("I live in Ulm.", "b", "c")], new=1)
    with pytest.raises(ValueError, match=message):
        find_updates.verify(batch, FoundUpdates.model_validate({"updates": [{"reason": "r", **pair}]}))


def test_a_pair_is_listed_once() -> None:
    batch = Batch(memories=[Fact(content="a"), Fact(content="b")], new=1)
    pair = {"reason": "r", "newer": 1, "older": 0, "relation": "duplicate"}
    with pytest.raises(ValueError, match="twice"):
        find_updates.verify(batch, FoundUpdates.model_validate({"updates": [pair, pair]}))
