"""What a model writes is checked against the message; what is only doubted stands, with a flag."""

from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage

from mneme.api.inbox import Messages
from mneme.api.memories import Memories
from mneme.core.errors import NotFound
from mneme.graphs.chatbot import builder as chatbot
from mneme.graphs.remember import builder as remember
from mneme.nodes.chat.context import ChatContext, MemoryContext
from mneme.nodes.chat.memory_operations import MAX_STATEMENTS
from mneme.stores.ledger.base_store import LedgerStore
from mneme.stores.ledger.ledger import Ledger
from mneme.stores.ledger.records import Change
from mneme.stores.users.inbox import MAX_TRIES, Inbox
from mneme.stores.users.memories import UserMemories
from mneme.stores.users.memory import Memory, Statement
from tests.doubles.ollama import Model
from tests.doubles.remembering import (
    FACT,
    HOME,
    MEMORY,
    MESSAGE,
    NOTHING,
    RENEWED,
    RULES,
    SMALL,
    contents,
    done,
    judged,
    known,
    reading,
    script,
    tell,
)
from tests.doubles.served import served


@pytest.mark.parametrize(("updated", "asked"), [("", 3), (RENEWED["content"], 2)])
async def test_a_correction_keeps_the_rest_of_the_memory_and_the_messages_own_words(
    max_ledger: Ledger, updated: str, asked: int
) -> None:
    result = await tell(max_ledger, script(compare_memories=judged({"updated": updated})))
    assert result["asked"]["questions"] == asked
    assert result["asked"]["repaired"] == result["asked"]["refused"] == 0
    assert result["asked"]["prompt_tokens"] > 0
    (memory,) = await UserMemories(max_ledger, "local").all()
    assert done(result) == ["update"]
    assert (memory.memory.content, memory.memory.flag) == (RENEWED["content"], "")
    assert memory.memory.quote == "Max is a Labrador mix; he’s 5."


async def test_a_memory_that_the_reader_was_shown_is_compared_whatever_its_language(
    edge_ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mneme.nodes.chat.memory_agent.MIN_SIMILARITY", 1.1)  # the embedder knows no Spanish
    for each in ("The user lives in Burgos.", "The user eats meat every day."):
        await known(edge_ledger, Memory(content=each))
    message = "Sigo en Burgos, pero la carne ya no la toco."
    fact = FACT | {"content": "La usuaria de Burgos ya no come carne.", "quote": message, "entities": []}
    said = script(read_message=reading(fact), compare_memories=NOTHING)
    await tell(edge_ledger, said, message)
    assert "eats meat every day" in said.told_to("compare_memories")[0]


async def test_a_fact_that_says_all_that_still_holds_takes_the_place_of_the_memory(
    max_ledger: Ledger,
) -> None:
    fact = FACT | {"content": "The user's dog Max, a Labrador mix, loves fetch."}
    said = script(read_message=reading(fact))
    result = await tell(max_ledger, said)
    assert (done(result), said.asked) == (["update"], ["read_message", "compare_memories"])
    assert await contents(max_ledger) == [fact["content"]]


async def test_a_quote_that_the_message_does_not_have_is_asked_for_again(max_ledger: Ledger) -> None:
    said = script(read_message=[reading(FACT | {"quote": "Max is a poodle"}), reading(FACT)])
    result = await tell(max_ledger, said)
    assert "memories[0].quote is not in the message" in said.told_to("read_message")[1]
    assert (result["asked"]["repaired"], await Memories(max_ledger, "local").flagged()) == (1, [])


@pytest.mark.parametrize(
    ("wrong", "kept"),
    [
        ({"quote": "Max is a poodle"}, FACT["content"]),
        ({"content": " "}, "The user said: “Max is a Labrador mix; he’s 5.”"),
    ],
)
async def test_what_is_never_put_right_is_kept_with_a_flag(
    max_ledger: Ledger, wrong: dict[str, str], kept: str
) -> None:
    said = script(read_message=reading(FACT | wrong), compare_memories=NOTHING)
    result = await tell(max_ledger, said)
    assert await contents(max_ledger) == [MEMORY, kept]
    (flagged,) = await Memories(max_ledger, "local").flagged()
    assert "memories[0]" not in kept and "Not as it should be" in flagged.memory.flag
    assert (len(said.told_to("read_message")), result["asked"]["refused"]) == (3, 1)


@pytest.mark.parametrize(
    ("odd", "named"),
    [
        ({"content": "Max is a Labrador mix and lives with Zoe.", "entities": ["Max", "Zoe"]}, "'Zoe'"),
        ({"content": "Max is a Labrador mix and 6 years old."}, "has 6:"),
    ],
)
async def test_a_doubt_is_told_once_and_then_noted(
    max_ledger: Ledger, odd: dict[str, Any], named: str
) -> None:
    said = script(read_message=reading(FACT | odd), compare_memories=NOTHING)
    result = await tell(max_ledger, said)
    first, again = said.told_to("read_message")
    assert named not in first and named in again
    assert await contents(max_ledger) == [MEMORY, odd["content"]]
    operations = Memories(max_ledger, "local")
    (flagged,) = await operations.flagged()
    assert flagged.memory.flag.startswith("In doubt: it ") and named in flagged.memory.flag
    assert (result["operations"][0]["key"], result["asked"]["refused"]) == (flagged.key, 0)
    await operations.accept(flagged.key)
    assert await operations.flagged() == []


async def test_a_rewrite_that_may_lose_something_is_doubted_and_the_history_keeps_it(
    edge_ledger: Ledger,
) -> None:
    key = await known(edge_ledger, Memory(content=f"{MEMORY} He was born in Ulm."))
    lossy = RENEWED | {"content": "Max is a Labrador mix and loves fetch."}
    said = script(rewrite_memory=lossy)
    await tell(edge_ledger, said)
    assert "born in Ulm" in said.told_to("rewrite_memory")[1]
    memories = UserMemories(edge_ledger, "local")
    (flagged,) = await memories.flagged()
    assert (flagged.key, flagged.memory.content) == (key, lossy["content"])
    assert flagged.memory.flag == "It may leave out what still holds: 'He was born in Ulm'."
    assert "born in Ulm" in str((await memories.history(key))[0].value["content"])


async def test_since_when_a_memory_holds_is_not_left_out_of_its_text(edge_ledger: Ledger) -> None:
    await known(edge_ledger, Memory(content=MEMORY, since="2026-10", until="2027"))
    said = script(compare_memories=judged({"updated": RENEWED["content"]}))
    await tell(edge_ledger, said)
    (told,) = said.told_to("compare_memories")
    assert f"{MEMORY} (from 2026-10, until 2027)" in told
    assert await Memories(edge_ledger, "local").flagged() == []


async def test_a_correction_must_show_what_it_makes_false(max_ledger: Ledger) -> None:
    said = script(compare_memories=[judged({"outdated": "a poodle"}), judged({})])
    result = await tell(max_ledger, said)
    assert said.asked.count("compare_memories") == 2
    assert (result["asked"]["questions"], result["asked"]["repaired"]) == (3, 1)
    assert await contents(max_ledger) == [RENEWED["content"]]


async def test_a_change_that_shows_nothing_outdated_is_kept_beside_the_memory_and_linked(
    max_ledger: Ledger,
) -> None:
    result = await tell(max_ledger, script(compare_memories=judged({"outdated": "a poodle"})))
    old, new = await UserMemories(max_ledger, "local").all()
    assert (old.memory.content, new.memory.content) == (MEMORY, FACT["content"])
    assert new.memory.may_contradict == [old.key]
    assert result["asked"]["refused"] == 1


async def test_what_is_unclear_is_linked_until_somebody_accepts_it(max_ledger: Ledger) -> None:
    said = script(compare_memories=judged({"relation": "unclear", "outdated": ""}))
    result = await tell(max_ledger, said)
    assert (done(result), said.asked) == (["insert"], ["read_message", "compare_memories"])
    memories = UserMemories(max_ledger, "local")
    old, new = await memories.all()
    assert [each.key for each in await memories.flagged()] == [old.key, new.key]
    assert new.memory.attention == f"It may contradict {old.key}."
    accepted = await memories.accept(new.key)
    assert (accepted.memory.may_contradict, accepted.memory.attention) == ([], "")
    assert await memories.flagged() == []


@pytest.mark.parametrize("read_by", ["ollama:small", "ollama:another", ""])
async def test_an_unchanged_rewrite_of_what_is_known_is_no_failure_and_no_version(
    edge_ledger: Ledger, read_by: str
) -> None:
    key = await known(edge_ledger, Memory(content=MEMORY, read_by=read_by))
    said = script(rewrite_memory=RENEWED | {"content": MEMORY})
    assert done(await tell(edge_ledger, said)) == ["discard"]
    assert await contents(edge_ledger) == [MEMORY]
    assert len(await UserMemories(edge_ledger, "local").history(key)) == 1


async def test_nothing_written_down_is_asked_again_and_then_said(max_ledger: Ledger) -> None:
    await tell(max_ledger, script(read_message=[reading(), reading(FACT)]))
    assert await contents(max_ledger) == [RENEWED["content"]]
    nothing = await tell(max_ledger, script(read_message=reading()))
    assert nothing["operations"] == []
    assert "could be written down" in nothing["rationale"]


async def test_what_is_written_down_is_kept_whatever_the_route_says(max_ledger: Ledger) -> None:
    said = script(read_message=reading(FACT, route="discard"))
    result = await tell(max_ledger, said)
    assert said.asked.count("read_message") == 3
    assert result["route"] == "store"
    assert await contents(max_ledger) == [RENEWED["content"]]


async def test_each_statement_of_a_memory_keeps_its_own_quote_and_message(max_ledger: Ledger) -> None:
    result = await tell(max_ledger, script())
    (memory,) = await UserMemories(max_ledger, "local").all()
    before, new = memory.memory.statements
    assert before.content == MEMORY
    assert (new.content, new.quote) == (FACT["content"], "Max is a Labrador mix; he’s 5.")
    assert new.message_id == memory.memory.message_id != ""
    assert result["operations"][0]["version"] == 2


async def test_each_of_two_facts_on_one_memory_uses_its_own_outdated_words(edge_ledger: Ledger) -> None:
    await known(edge_ledger, Memory(content="Max, a golden retriever, lives in Ulm and loves fetch."))
    breed = FACT | {"content": "Max is a Labrador mix.", "quote": "Max is a Labrador mix"}
    home = FACT | {"content": "Max lives in Bonn.", "quote": "he lives in Bonn"}
    both = judged({}, {"fact": 1, "relation": "change", "outdated": "lives in Ulm"})
    steps = (
        "Max, a Labrador mix, lives in Ulm and loves fetch.",
        "Max, a Labrador mix in Bonn, loves fetch.",
    )
    rewrites = [RENEWED | {"content": each} for each in steps]
    said = script(read_message=reading(breed, home), compare_memories=both, rewrite_memory=rewrites)
    result = await tell(edge_ledger, said, "Max is a Labrador mix, and now he lives in Bonn.")
    assert done(result) == ["update"]
    assert await contents(edge_ledger) == [steps[1]]
    first, second = said.told_to("rewrite_memory")
    assert "No longer true in the memory: a golden retriever" in first
    assert "No longer true in the memory: lives in Ulm" in second and steps[0] in second


@pytest.mark.parametrize(
    ("memory", "told", "operation"),
    [
        ({}, {}, "update"),
        ({"kind": "episodic"}, {}, "update"),
        ({}, {"kind": "episodic"}, "update"),
        ({"statements": [Statement(content=MEMORY, quote="")] * MAX_STATEMENTS}, {}, "insert"),
    ],
)
async def test_an_addition_is_appended_word_for_word_while_the_memory_has_room(
    edge_ledger: Ledger,
    memory: dict[str, Any],
    told: dict[str, Any],
    operation: str,
) -> None:
    await known(edge_ledger, Memory(content=MEMORY, entities=["Max"], since="2020", **memory))
    adds = judged({"relation": "addition", "outdated": ""})
    said = script(read_message=reading(FACT | told), compare_memories=adds)
    assert done(await tell(edge_ledger, said)) == [operation]
    assert said.asked == ["read_message", "compare_memories"]
    assert " ".join(await contents(edge_ledger)) == f"{MEMORY} {FACT['content']}"
    first = (await UserMemories(edge_ledger, "local").all())[0].memory
    assert (first.since, first.kind) == ("2020", memory.get("kind", "semantic"))


async def test_the_memories_nearest_to_a_message_are_shown_to_its_reader(edge_ledger: Ledger) -> None:
    for memory in (Memory(content=MEMORY), Memory(content=HOME, until="2026-05")):
        await known(edge_ledger, memory)
    said = script(compare_memories=NOTHING)
    await tell(edge_ledger, said)
    assert f"<known>\n{MEMORY}\n{HOME} (until 2026-05)\n</known>" in said.told[0]


async def test_an_unclear_name_is_marked_and_asked_about_in_the_next_reply(max_ledger: Ledger) -> None:
    question = "Which Max: your dog or your neighbour?"
    said = script(read_message=reading(FACT | {"unclear": question}), compare_memories=NOTHING)
    await tell(max_ledger, said, message_id="m1")
    operations = Memories(max_ledger, "local")
    (marked,) = await operations.flagged()
    assert question in await unclear(max_ledger)
    await operations.accept(marked.key)
    assert question not in await unclear(max_ledger)


async def unclear(ledger: Ledger) -> str:
    """Return what the chatbot's model reads after the message that was remembered."""
    chat: Any = chatbot.compile(store=LedgerStore(ledger))
    told = [HumanMessage(MESSAGE, id="m1"), AIMessage("Noted."), HumanMessage("And now?", id="m2")]
    context = ChatContext(chatbot="ollama:small", memory_agent="rules")
    with (
        pytest.MonkeyPatch.context() as patched,
        served(patched, Model("small"), brain=lambda _: "Hm.") as double,
    ):
        await chat.ainvoke({"messages": told}, context=context)
        return str(double.chats[-1].body["messages"][-1]["content"])


async def run(ledger: Ledger, context: MemoryContext, *messages: str) -> dict[str, Any]:
    graph = remember.compile(store=LedgerStore(ledger))
    batch: Any = {"messages": [{"message": each, "message_id": f"m{n}"} for n, each in enumerate(messages)]}
    report: dict[str, Any] = await graph.ainvoke(batch, {"recursion_limit": 200}, context=context)
    return report


async def test_a_message_that_fails_too_often_is_set_aside_until_somebody_decides(
    max_ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    operations = Messages(max_ledger, "local")
    with served(monkeypatch, Model("small"), brain=lambda _: "I live in Nonsense."):
        for _ in range(MAX_TRIES):
            report = await run(max_ledger, SMALL, "I live in Ulm.", "I like tea.")
            assert len(report["failed"]) == 2
        assert (await run(max_ledger, SMALL))["failed"] == []
    assert await operations.waiting() == 0
    first, second = await operations.list()
    assert (first["status"], first["tries"], first["message"]) == ("set aside", MAX_TRIES, "I live in Ulm.")
    assert first["reply"] == "I live in Nonsense."
    assert "3 attempts" in first["error"]

    assert (await operations.retry("m0"))["status"] == "waiting"
    assert (await operations.drop("m1"))["message"] == second["message"]
    assert (await run(max_ledger, RULES))["remembered"] == 1
    assert await contents(max_ledger) == [MEMORY, "I live in Ulm."]
    assert await operations.list() == []
    outcome = await Inbox(max_ledger).outcome("local", "m1")
    assert outcome is not None
    assert "Dropped" in outcome["rationale"]
    with pytest.raises(NotFound, match="begins with"):
        await operations.get("m1")


async def test_a_server_that_is_down_sets_nothing_aside(
    max_ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MNEME_RETRIES", "0")
    with served(monkeypatch, Model("another")):
        for _ in range(MAX_TRIES + 1):
            await run(max_ledger, SMALL, "I live in Ulm.")
    (letter,) = await Messages(max_ledger, "local").list()
    assert (letter["status"], letter["tries"]) == ("waiting", 0)


async def test_what_another_writer_said_meanwhile_is_not_lost(
    max_ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    update, raced = UserMemories.update, list[str]()

    async def after_another(self: UserMemories, key: str, memory: Memory, **more: Any) -> Any:
        if not raced:
            raced.append(key)
            other = Memory(content=f"{MEMORY} Max snores.")
            await update(self, key, other, change=Change(reason="heard it", actor="bob"), expected_version=1)
        return await update(self, key, memory, **more)

    monkeypatch.setattr(UserMemories, "update", after_another)
    both = "Max, a Labrador mix, loves fetch. Max snores."
    compared = judged({"updated": "Max, a Labrador mix, loves fetch."})
    said = script(compare_memories=compared, rewrite_memory=RENEWED | {"content": both})
    await tell(max_ledger, said)
    assert await contents(max_ledger) == [both]
    assert said.asked.count("rewrite_memory") == 1
