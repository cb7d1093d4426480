"""The memory agent: what it stores, updates and discards, and that it does so once."""

import asyncio
import json
from functools import partial
from typing import Any, Literal, cast
from unittest.mock import AsyncMock

import pytest
from langchain_core.messages import AIMessage, HumanMessage

from mneme.api.inbox import Messages
from mneme.api.memories import Memories
from mneme.core.errors import BadInput, ModelUnavailable
from mneme.evals.chat.msc import VERSIONS, Name
from mneme.graphs.baselines.memory_agent_v1 import builder as version_1
from mneme.graphs.memory_agent import builder as ours
from mneme.graphs.remember import builder as remember
from mneme.nodes.chat.context import MemoryContext
from mneme.stores.ledger.base_store import LedgerStore
from mneme.stores.ledger.ledger import Ledger
from mneme.stores.users.inbox import Inbox, Message
from mneme.stores.users.memories import UserMemories
from mneme.stores.users.memory import MemoryRecord
from tests.doubles.ollama import Model, Reply
from tests.doubles.served import served
from tests.doubles.waiting import eventually

RULES = MemoryContext(memory_agent="rules")
HOME = "I live in Austin."
DENVER = "I live in Denver, not in Austin."
TABLE_1 = (
    "My dog Max is a golden retriever. He loves playing fetch.",
    "Actually, Max is a Labrador mix, not a purebred.",
    "Max gets anxious during thunderstorms.",
    "Max lives with my sister Emily in Portland.",
    "What do we know about Max?",
    "Max is now 5 years old.",
)

PLAYED = {"Anna": "cello", "Ben": "piano", "Cleo": "drums", "Dan": "oboe", "Eve": "harp", "Finn": "tuba"}


async def tell(
    ledger: Ledger, message: str, arm: Name = "ours", context: MemoryContext = RULES, **given: Any
) -> dict[str, Any]:
    told = cast(Message, {"message": message, **given})
    return await VERSIONS[arm].compile(store=LedgerStore(ledger)).ainvoke(told, context=context)


async def contents(ledger: Ledger, user: str = "local") -> list[str]:
    return [each.memory.content for each in await UserMemories(ledger, user).all()]


def done(told: dict[str, Any]) -> list[str]:
    return [operation["event"] for operation in told["operations"]] or [told["route"]]


async def test_rules_keep_all_of_the_papers_table_1_and_correct_the_breed(bundled: Ledger) -> None:
    turns = [f"user: {each}" for each in TABLE_1]
    told = [await tell(bundled, each, preceding=turns[:number]) for number, each in enumerate(TABLE_1)]

    operations = [done(each) for each in told]
    assert operations == [["insert"], ["update"], ["insert"], ["insert"], ["discard"], ["insert"]]
    profile, storms, home, age = await contents(bundled)
    assert "Labrador mix" in profile and "retriever" not in profile and "fetch" in profile
    assert storms == "Max gets anxious during thunderstorms."
    assert home == "Max lives with my sister Emily in Portland."
    assert age == "Max is now 5 years old."
    assert all(each["rationale"] for each in told)


@pytest.mark.parametrize(("arm", "retrieval"), [*((each, "fixed") for each in VERSIONS), ("v1", "agent")])
async def test_every_version_inserts_updates_and_discards(
    bundled: Ledger, arm: Name, retrieval: Literal["fixed", "agent"]
) -> None:
    context = RULES.model_copy(update={"retrieval": retrieval})
    assert done(await tell(bundled, "I live in Austin.", arm, context)) == ["insert"]
    assert "update" in done(await tell(bundled, DENVER, arm, context))
    assert done(await tell(bundled, "Thanks a lot!", arm, context)) == ["discard"]
    (memory,) = await contents(bundled)
    assert "in Denver" in memory


async def test_one_message_may_update_one_memory_and_insert_another(bundled: Ledger) -> None:
    await tell(bundled, "I live in Austin.")
    told = await tell(bundled, f"{DENVER} My brother Tom plays the cello.")

    assert sorted(done(told)) == ["insert", "update"]
    home, brother = await contents(bundled)
    assert "Denver" in home
    assert "cello" in brother


async def test_the_facts_of_one_message_are_listed_in_their_order(bundled: Ledger) -> None:
    facts = [f"{name} plays the {what}." for name, what in PLAYED.items()]
    await tell(bundled, " ".join(facts))

    assert await contents(bundled) == facts


async def test_what_is_known_is_discarded_with_the_memory_that_knows_it(bundled: Ledger) -> None:
    first = await tell(bundled, "My sister Emily lives in Portland.")
    (operation,) = (await tell(bundled, "Emily lives in Portland."))["operations"]

    assert operation["event"] == "discard"
    assert operation["key"] == first["operations"][0]["key"]
    assert operation["reason"]
    assert len(await contents(bundled)) == 1


async def test_a_memory_carries_the_words_it_rests_on(bundled: Ledger) -> None:
    message = "By the way, my sister Emily lives in Portland."
    await tell(bundled, message, message_id="m1", thread="t1")

    (memory,) = await UserMemories(bundled, "local").all()
    assert memory.memory.quote and memory.memory.quote in message
    assert (memory.memory.message_id, memory.memory.thread) == ("m1", "t1")
    assert "Emily" in " ".join(memory.memory.entities)
    (version,) = await UserMemories(bundled, "local").history(memory.key)
    assert version.change.model == "rules"
    assert version.change.source.messages == ["m1"]


async def test_a_message_that_comes_twice_is_remembered_once(bundled: Ledger) -> None:
    first = await tell(bundled, "I live in Austin.", message_id="m1")
    again = await tell(bundled, "I live in Austin.", message_id="m1")

    assert done(first) == ["insert"]
    assert again["route"] == "store" and again["operations"] == []
    assert len(await contents(bundled)) == 1


@pytest.mark.parametrize("wrong", [{"message": 5}, {"message": "I sail.", "preceding": [5]}])
async def test_input_of_a_wrong_type_does_not_wait_in_the_inbox(bundled: Ledger, wrong: Any) -> None:
    graph = ours.compile(store=LedgerStore(bundled))
    with pytest.raises(BadInput, match="string"):
        await graph.ainvoke(wrong, context=RULES)
    assert await Inbox(bundled).pending("local") == []


async def test_the_next_message_on_a_thread_starts_afresh(bundled: Ledger) -> None:
    from langgraph.checkpoint.memory import InMemorySaver  # noqa: PLC0415

    graph = ours.compile(store=LedgerStore(bundled), checkpointer=InMemorySaver())
    config: Any = {"configurable": {"thread_id": "t"}}
    await graph.ainvoke({"message": "I live in Austin.", "message_id": "m1"}, config, context=RULES)
    told = await graph.ainvoke({"message": "My cat is called Zoe."}, config, context=RULES)

    assert done(told) == ["insert"]
    assert len(await contents(bundled)) == 2


async def test_two_updates_of_one_memory_at_once_both_survive(bundled: Ledger) -> None:
    await tell(bundled, "My dog Max is a Labrador aged 4.")
    corrections = ("Max is aged 5, not 4.", "Max is not a Labrador but a Poodle.")
    told = await asyncio.gather(*(tell(bundled, message) for message in corrections))

    assert [done(each) for each in told] == [["update"], ["update"]]
    (memory,) = await contents(bundled)
    assert "5" in memory and "a Poodle" in memory


async def test_users_see_nothing_of_one_another(bundled: Ledger) -> None:
    graph = ours.compile(store=LedgerStore(bundled))
    for user, place in (("ann", "Austin"), ("bob", "Denver")):
        context = MemoryContext(memory_agent="rules", user=user)
        told = await graph.ainvoke({"message": f"I live in {place}."}, context=context)
        assert done(told) == ["insert"], "another user's memory is no conflict"
    assert await contents(bundled, "ann") == ["I live in Austin."]
    assert await contents(bundled, "bob") == ["I live in Denver."]


async def test_an_empty_message_is_refused(bundled: Ledger) -> None:
    with pytest.raises(BadInput, match="empty"):
        await tell(bundled, "  \n")


async def test_a_batch_is_remembered_in_order(bundled: Ledger) -> None:
    graph = remember.compile(store=LedgerStore(bundled))
    batch: Any = {"messages": [{"message": "I live in Austin."}, {"message": "I moved to Denver."}]}
    report = await graph.ainvoke(batch, {"recursion_limit": 100}, context=RULES)

    assert (report["remembered"], report["failed"]) == (2, [])
    first, second = await UserMemories(bundled, "local").all()
    assert (first.memory.content, second.memory.content) == (HOME, "I moved to Denver.")
    assert second.memory.may_contradict == [first.key], "rules overwrite nothing that may still hold"
    assert await Inbox(bundled).pending("local") == []


async def test_a_chat_is_remembered_by_what_its_user_says(bundled: Ledger) -> None:
    graph = remember.compile(store=LedgerStore(bundled))
    chat: Any = [
        HumanMessage("My dog is called Max."),
        {"role": "assistant", "content": [{"type": "text", "text": "I live in Paris."}]},
        {"role": "user", "content": "He is 5 years old."},
    ]
    report = await graph.ainvoke({"messages": chat}, {"recursion_limit": 100}, context=RULES)

    assert (report["remembered"], report["failed"]) == (2, [])
    assert await contents(bundled) == [
        "My dog is called Max.",
        "My dog is called Max. He is 5 years old.",
    ], "what went before says who `he` is"


@pytest.mark.parametrize("version", [ours, version_1], ids=["ours", "version 1"])
async def test_an_agent_reads_the_end_of_a_chat(bundled: Ledger, version: Any) -> None:
    graph = version.compile(store=LedgerStore(bundled))
    chat = [HumanMessage("I have a dog called Max."), AIMessage("Nice."), HumanMessage("He is 5 years old.")]
    told = await graph.ainvoke({"messages": chat}, context=RULES)
    assert done(told) == ["insert"]
    (memory,) = await contents(bundled)
    assert memory.endswith("He is 5 years old.")
    for wrong in ([AIMessage("Nice.")], [{"content": "no role"}], [HumanMessage(" ")], [7]):
        with pytest.raises(BadInput, match="messages: "):
            await graph.ainvoke({"messages": wrong}, context=RULES)


async def test_a_message_that_no_model_makes_sense_of_is_kept(
    bundled: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = remember.compile(store=LedgerStore(bundled))
    batch: Any = {"messages": [{"message": "I live in Austin.", "message_id": "m1"}]}
    with served(monkeypatch, Model("small"), brain=lambda _: "Well, I do not know, really."):
        context = MemoryContext(memory_agent="ollama:small")
        report = await graph.ainvoke(batch, {"recursion_limit": 100}, context=context)
    assert report["remembered"] == 0
    assert [failure["message_id"] for failure in report["failed"]] == ["m1"]
    assert [each["message_id"] for each in await Inbox(bundled).pending("local")] == ["m1"]

    again = await graph.ainvoke({}, {"recursion_limit": 100}, context=RULES)
    assert (again["remembered"], again["failed"]) == (1, [])
    assert await contents(bundled) == ["I live in Austin."]


# What rules have kept is read again once a model answers.

SMALL = MemoryContext(memory_agent="ollama:small")
READ = {
    "content": "The user's sister Emily lives in Portland.",
    "quote": "sis Emily lives in Portland",
    "kind": "semantic",
    "entities": ["Emily"],
    "relations": [],
    "since": "",
    "until": "",
    "unclear": "",
}


def reads(*memories: dict[str, Any]) -> str:
    """Return what a model answers that reads a message."""
    return json.dumps(
        {"rationale": "Read.", "route": "store" if memories else "discard", "memories": memories}
    )


@pytest.fixture
async def kept(bundled: Ledger) -> MemoryRecord:
    await tell(bundled, "btw sis Emily lives in Portland", message_id="m1", thread="t1")
    (memory,) = await UserMemories(bundled, "local").all()
    assert memory.memory.read_by == "rules"
    return memory


async def catch_up(
    ledger: Ledger,
    monkeypatch: pytest.MonkeyPatch,
    reply: str,
    model: str = "small",
    context: MemoryContext = SMALL,
) -> Any:
    """Let a model remember what waits; return the report, and what the model was asked."""
    graph: Any = remember.compile(store=LedgerStore(ledger))
    with served(monkeypatch, Model(model), brain=lambda _: reply) as double:
        report = await graph.ainvoke({}, {"recursion_limit": 100}, context=context)
        return report, [each.body["messages"][-1]["content"] for each in double.chats]


async def test_a_model_reads_again_what_rules_kept_and_the_history_shows_both(
    bundled: Ledger, kept: MemoryRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    rules, _ = await catch_up(bundled, monkeypatch, reads(READ), model="another")
    assert [each["message_id"] for each in rules["failed"]] == [f"reread-{kept.key}-1"]
    report, (asked,) = await catch_up(bundled, monkeypatch, reads(READ))
    assert (report["remembered"], report["reread"], report["failed"]) == (0, 1, [])
    assert kept.memory.quote in asked
    first, second = await UserMemories(bundled, "local").history(kept.key)
    assert (first.change.model, first.value["content"]) == ("rules", kept.memory.content)
    assert (second.change.model, second.value["content"]) == ("ollama:small", READ["content"])
    assert (second.value["message_id"], second.value["thread"]) == ("m1", "t1")
    report, asked = await catch_up(bundled, monkeypatch, reads(READ))
    assert (report["reread"], asked) == (0, [])


async def test_of_words_with_something_between_them_both_ends_are_compared(
    bundled: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    await tell(bundled, "I drive an old Octavia.")
    message = f"The Octavia sent me a photo {'of the lake and then another one ' * 9}so my Kia is happy."
    read = READ | {"content": "The user drives a Kia.", "quote": "The Octavia … my Kia is happy."}
    asked: list[str] = []

    def brain(body: dict[str, Any]) -> str:
        asked.append(body["messages"][-1]["content"])
        return '{"look": "", "judgements": []}' if "<facts" in asked[-1] else reads(read)

    with served(monkeypatch, Model("small"), brain=brain):
        await tell(bundled, message, context=SMALL)
    (compared,) = (each for each in asked if "<facts" in each)
    said = compared.partition("</facts>")[0]
    assert "The Octavia sent me" in said and "my Kia is happy" in said and len(said) < len(message)


async def test_what_was_just_said_goes_before_what_is_read_again_which_can_be_left_for_later(
    bundled: Ledger, kept: MemoryRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    await catch_up(bundled, monkeypatch, reads(READ), model="another")
    waiting = Message(message="I live in Austin.", message_id="m2")
    assert await Inbox(bundled).add("local", waiting) is None
    assert await Messages(bundled, "local").waiting() == 1
    later = SMALL.model_copy(update={"reread": False})
    report, (asked,) = await catch_up(bundled, monkeypatch, reads(), context=later)
    assert (report["remembered"], report["reread"]) == (1, 0)
    assert "Austin" in asked
    assert await Messages(bundled, "local").waiting() == 0
    report, _ = await catch_up(bundled, monkeypatch, reads(READ))
    assert (report["remembered"], report["reread"]) == (0, 1)


async def test_what_may_contradict_a_memory_says_so_in_its_reason(bundled: Ledger) -> None:
    await tell(bundled, "I'm vegan.")
    (told,) = (await tell(bundled, "I don't eat meat anymore."))["operations"]
    assert "It may contradict" in told["reason"]
    assert "It may contradict" in (await Memories(bundled, "local").show(told["key"])).memory.attention


async def test_a_run_that_ends_before_the_outcome_is_noted_writes_nothing_twice(
    bundled: Ledger, kept: MemoryRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as broken, pytest.raises(OSError, match="full"):
        broken.setattr(Inbox, "close", AsyncMock(side_effect=OSError("The disk is full.")))
        await catch_up(bundled, monkeypatch, reads(READ))
    report, asked = await catch_up(bundled, monkeypatch, reads(READ))
    assert (report["reread"], report["failed"], len(asked)) == (1, [], 1)
    assert len(await UserMemories(bundled, "local").history(kept.key)) == 2
    assert await Inbox(bundled).pending("local") == []
    outcome = await Inbox(bundled).outcome("local", f"reread-{kept.key}-1")
    assert outcome and outcome["route"] == "store"
    assert [(each["event"], each["version"]) for each in outcome["operations"]] == [("update", 2)]


async def test_a_run_that_ends_between_two_writes_does_the_second_when_it_goes_on(
    bundled: Ledger, kept: MemoryRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    memories, both = UserMemories(bundled, "local"), reads(READ, READ | {"content": "Emily is her name."})

    async def fails_after_the_update(*_: object, **__: object) -> None:
        await eventually(partial(is_changed, memories, kept.key))
        raise OSError("The disk is full.")

    with monkeypatch.context() as broken, pytest.raises(OSError, match="full"):
        broken.setattr(UserMemories, "insert", fails_after_the_update)
        await catch_up(bundled, monkeypatch, both)
    await catch_up(bundled, monkeypatch, both)
    assert await contents(bundled) == [READ["content"], "Emily is her name."]
    assert len(await memories.history(kept.key)) == 2


async def is_changed(memories: UserMemories, key: str) -> bool:
    return (await memories.get(key)).version > 1


@pytest.mark.parametrize("has_waited", [False, True])
async def test_what_a_person_has_edited_is_not_read_again(
    bundled: Ledger, kept: MemoryRecord, monkeypatch: pytest.MonkeyPatch, has_waited: bool
) -> None:
    if has_waited:
        await catch_up(bundled, monkeypatch, "", model="another")
    edited = await Memories(bundled, "local").update(kept.key, "Emily lives in Salem.")
    report, asked = await catch_up(bundled, monkeypatch, reads(READ))
    assert (report["failed"], asked) == ([], [])
    assert await UserMemories(bundled, "local").get(kept.key) == MemoryRecord(**dict(edited))


async def test_what_says_nothing_to_a_model_is_retired_and_can_be_taken_back(
    bundled: Ledger, kept: MemoryRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    await catch_up(bundled, monkeypatch, reads())
    assert await contents(bundled) == []
    await Memories(bundled, "local").undo()
    assert await contents(bundled) == [kept.memory.content]


async def test_version_1_needs_a_model_with_tools(bundled: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = version_1.compile(store=LedgerStore(bundled))
    with (
        served(monkeypatch, Model("plain", capabilities=("completion",))),
        pytest.raises(ModelUnavailable, match="tools"),
    ):
        context = MemoryContext(memory_agent="ollama:plain")
        await graph.ainvoke({"message": "I live in Austin."}, context=context)


async def test_version_1_is_asked_again_where_it_describes_a_call(
    bundled: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = version_1.compile(store=LedgerStore(bundled))
    insert = {"name": "insert_memory", "arguments": {"quote": "I live in Austin"}}
    written = {
        "content": HOME,
        "quote": "I live in Austin",
        "kind": "semantic",
        "entities": [],
        "relations": [],
    }
    with served(monkeypatch, Model("small")) as double:
        composed = json.dumps({"memories": [written]})
        double.chat.reply('insert_memory(quote="Austin")', Reply(tool_calls=(insert,)), composed)
        context = MemoryContext(memory_agent="ollama:small")
        told = await graph.ainvoke({"message": "I live in Austin."}, context=context)

    assert done(told) == ["insert"]
    assert await contents(bundled) == [HOME]


async def test_version_1_discards_with_the_agents_own_words(
    bundled: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = version_1.compile(store=LedgerStore(bundled))
    with served(monkeypatch, Model("small"), brain=lambda _: "That is nice to hear!"):
        context = MemoryContext(memory_agent="ollama:small")
        told = await graph.ainvoke({"message": "I live in Austin."}, context=context)

    assert done(told) == ["discard"]
    assert told["rationale"] == "The agent called no tool. It wrote: That is nice to hear!"
