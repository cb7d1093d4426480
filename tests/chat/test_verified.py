"""What a model writes is held to the message, through the graph; what fails is set aside, never lost."""

import json
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage

from mneme.api.inbox import Messages
from mneme.api.memories import Memories
from mneme.core.errors import NotFound
from mneme.evals.doubles.ollama import Model
from mneme.graphs.chatbot import builder as chatbot
from mneme.graphs.memory_agent import builder as memory_agent
from mneme.graphs.remember import builder as remember
from mneme.nodes.chat.context import ChatContext, MemoryContext
from mneme.nodes.chat.remembering import MOST_STATEMENTS
from mneme.prompts.every import questions
from mneme.stores.ledger.base_store import LedgerStore
from mneme.stores.ledger.ledger import Ledger, open_ledger
from mneme.stores.ledger.records import Change
from mneme.stores.users.inbox import MOST_TRIES, Inbox
from mneme.stores.users.memories import Memory, Statement, UserMemories
from tests.doubles.embedding import WordEmbedder
from tests.doubles.served import served

SMALL = MemoryContext(memory_agent="ollama:small", min_similarity=-1)
RULES = MemoryContext(memory_agent="rules")
MESSAGE = "Actually, Max is a Labrador mix; he’s 5."
MEMORY = "Max, a golden retriever, loves fetch."
FACT = {
    "content": "The user's dog Max is a Labrador mix and is 5 years old.",
    "quote": "max is a labrador mix; he's 5",
    "kind": "semantic",
    "entities": ["Max"],
    "relations": [],
    "unclear": "",
}
JUDGED = {"pair": 0, "reason": "Another breed.", "relation": "conflict", "outdated": "a Golden Retriever"}
RENEWED = {"content": "Max, a Labrador mix, is 5 years old and loves fetch.", "entities": [], "relations": []}


@pytest.fixture
async def ledger(tmp_path: Path) -> AsyncIterator[Ledger]:
    opened = await open_ledger(str(tmp_path / "ledger"), WordEmbedder())
    said = Change(reason="said so", actor="user")
    await UserMemories(opened, "local").insert(Memory(content=MEMORY), change=said)
    yield opened
    await opened.close()


class Script:
    """Answer each question by its script, the last line for ever; remember which system texts were read."""

    def __init__(self, **lines: Any) -> None:
        self.lines = {name: list(said) if isinstance(said, list) else [said] for name, said in lines.items()}
        self.asked: list[str] = []

    def __call__(self, body: dict[str, Any]) -> str:
        system = body["messages"][0]["content"]
        (name,) = [name for name in self.lines if system.startswith(questions()["chat", name].system)]
        self.asked.append(name)
        lines = self.lines[name]
        said = lines.pop(0) if len(lines) > 1 else lines[0]
        return said if isinstance(said, str) else json.dumps(said)


async def tell(ledger: Ledger, script: Script, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    graph = memory_agent.compile(store=LedgerStore(ledger))
    with served(monkeypatch, Model("small"), brain=script):
        result: dict[str, Any] = await graph.ainvoke({"message": MESSAGE}, context=SMALL)
    return result


def script(**lines: Any) -> Script:
    usual = {
        "read_message": reading(FACT),
        "compare_memories": {"judgements": [JUDGED]},
        "rewrite_memory": RENEWED,
    }
    return Script(**usual | lines)


def reading(*memories: dict[str, Any], route: str = "store") -> dict[str, Any]:
    return {"rationale": "New facts.", "route": route, "memories": list(memories)}


async def contents(ledger: Ledger) -> Sequence[str]:
    return [each.memory.content for each in await UserMemories(ledger, "local").list()]


async def test_the_messages_own_words_are_stored_as_the_quote(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = await tell(ledger, script(), monkeypatch)
    assert result["asked"]["questions"] == 3
    assert result["asked"]["repaired"] == result["asked"]["refused"] == 0
    assert result["asked"]["prompt_tokens"] > 0
    (memory,) = await UserMemories(ledger, "local").list()
    assert [each["operation"] for each in result["operations"]] == ["update"]
    assert memory.memory.content == RENEWED["content"]
    assert memory.memory.quote == "Max is a Labrador mix; he’s 5."


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"content": "Max is a Labrador mix. The user's PIN is 4711."}, "4711"),
        ({"content": "Max is a Labrador mix and lives with Zoe."}, "Zoe"),
        ({"content": "Max is not well."}, "not"),
        ({"quote": "Max is a poodle"}, "quote"),
    ],
)
async def test_what_nobody_said_is_asked_again_by_name(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch, wrong: dict[str, str], named: str
) -> None:
    said = script(read_message=[reading(FACT | wrong), reading(FACT)])
    graph = memory_agent.compile(store=LedgerStore(ledger))
    with served(monkeypatch, Model("small"), brain=said) as double:
        await graph.ainvoke({"message": MESSAGE}, context=SMALL)
        again = [body.body["messages"] for body in double.chats][1]
    assert named in again[-1]["content"]
    assert await contents(ledger) == [RENEWED["content"]]


async def test_what_is_never_put_right_is_kept_in_the_users_own_words(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    invented = FACT | {"content": "The user's PIN is 4711."}
    unrelated = JUDGED | {"relation": "unrelated", "outdated": ""}
    said = script(read_message=reading(invented), compare_memories={"judgements": [unrelated]})
    result = await tell(ledger, said, monkeypatch)
    assert await contents(ledger) == [MEMORY, "The user said: “Max is a Labrador mix; he’s 5.”"]
    assert "4711" in result["operations"][0]["flag"]
    assert result["asked"]["refused"] == 1


@pytest.mark.parametrize(
    "lossy",
    ["DELETED", "Max is a Labrador mix and 5 years old.", "Max, a golden retriever, loves fetch so much."],
)
async def test_a_rewrite_that_loses_something_leaves_the_memory_and_stands_beside_it(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch, lossy: str
) -> None:
    result = await tell(ledger, script(rewrite_memory=RENEWED | {"content": lossy}), monkeypatch)
    assert await contents(ledger) == [MEMORY, FACT["content"]]
    operations = Memories(ledger, "local")
    (flagged,) = await operations.flagged()
    assert flagged.memory.flag == result["operations"][0]["flag"] != ""
    await operations.accept(flagged.key)
    assert await operations.flagged() == []


async def test_a_conflict_must_show_what_becomes_false(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = {"judgements": [JUDGED | {"outdated": "a poodle"}]}
    said = script(compare_memories=[wrong, {"judgements": [JUDGED]}])
    result = await tell(ledger, said, monkeypatch)
    assert said.asked.count("compare_memories") == 2
    assert (result["asked"]["questions"], result["asked"]["repaired"]) == (3, 1)
    assert await contents(ledger) == [RENEWED["content"]]


async def test_a_memory_that_could_not_be_compared_is_named_beside_the_new_one(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = script(compare_memories={"judgements": [JUDGED | {"outdated": "a poodle"}]})
    result = await tell(ledger, said, monkeypatch)
    old, new = await UserMemories(ledger, "local").list()
    assert (old.memory.content, new.memory.content) == (MEMORY, FACT["content"])
    assert old.key in new.memory.flag
    assert result["asked"]["refused"] == 1


async def test_an_unchanged_rewrite_of_what_is_known_is_no_failure(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    fact = {
        "content": "Max loves fetch.",
        "quote": "Max",
        "kind": "semantic",
        "entities": [],
        "relations": [],
        "unclear": "",
    }
    said = script(read_message=reading(fact), rewrite_memory=RENEWED | {"content": MEMORY})
    result = await tell(ledger, said, monkeypatch)
    assert [each["operation"] for each in result["operations"]] == ["discard"]
    assert await contents(ledger) == [MEMORY]


async def test_nothing_written_down_is_asked_again_and_then_said(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    await tell(ledger, script(read_message=[reading(), reading(FACT)]), monkeypatch)
    assert await contents(ledger) == [RENEWED["content"]]
    nothing = await tell(ledger, script(read_message=reading()), monkeypatch)
    assert nothing["operations"] == []
    assert "could be written down" in nothing["rationale"]


async def test_what_is_written_down_is_kept_whatever_the_route_says(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = script(read_message=reading(FACT, route="discard"))
    result = await tell(ledger, said, monkeypatch)
    assert said.asked.count("read_message") == 3
    assert result["route"] == "store"
    assert await contents(ledger) == [RENEWED["content"]]


async def test_a_statement_with_a_name_is_asked_for_once_and_then_left(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = script()
    graph = memory_agent.compile(store=LedgerStore(ledger))
    with served(monkeypatch, Model("small"), brain=said) as double:
        message = f"{MESSAGE} And we met Oskar. Did Anna call?"
        await graph.ainvoke({"message": message}, context=SMALL)
        again = [body.body["messages"] for body in double.chats][1]
    assert "And we met Oskar." in again[-1]["content"]
    assert said.asked.count("read_message") == 2
    assert await contents(ledger) == [RENEWED["content"]]


async def test_each_statement_of_a_memory_keeps_its_own_quote_and_message(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = await tell(ledger, script(), monkeypatch)
    (memory,) = await UserMemories(ledger, "local").list()
    before, new = memory.memory.statements
    assert before.content == MEMORY
    assert (new.content, new.quote) == (FACT["content"], "Max is a Labrador mix; he’s 5.")
    assert new.message_id == memory.memory.message_id != ""
    assert result["operations"][0]["version"] == 2


@pytest.mark.parametrize(
    ("known", "told", "operation"),
    [
        ({}, {}, "update"),
        ({"kind": "episodic"}, {}, "insert"),
        ({}, {"kind": "episodic"}, "insert"),
        ({"statements": [Statement(content=MEMORY, quote="")] * MOST_STATEMENTS}, {}, "insert"),
    ],
)
async def test_a_memory_holds_so_many_statements_and_an_event_stands_alone(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    known: dict[str, Any],
    told: dict[str, Any],
    operation: str,
) -> None:
    opened = await open_ledger(str(tmp_path / "other"), WordEmbedder())
    said = Change(reason="said so", actor="user")
    await UserMemories(opened, "local").insert(Memory(content=MEMORY, **known), change=said)
    adds = {"judgements": [JUDGED | {"relation": "addition", "outdated": ""}]}
    renewed = RENEWED | {"content": "Max, a golden retriever, loves fetch; he is a Labrador mix and 5."}
    lines = script(read_message=reading(FACT | told), compare_memories=adds, rewrite_memory=renewed)
    result = await tell(opened, lines, monkeypatch)
    assert [each["operation"] for each in result["operations"]] == [operation]
    await opened.close()


async def test_an_unclear_name_is_marked_and_asked_about_in_the_next_reply(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    question = "Which Max: your dog or your neighbour?"
    unrelated = {"judgements": [JUDGED | {"relation": "unrelated", "outdated": ""}]}
    said = script(read_message=reading(FACT | {"unclear": question}), compare_memories=unrelated)
    graph: Any = memory_agent.compile(store=LedgerStore(ledger))
    with served(monkeypatch, Model("small"), brain=said) as double:
        await graph.ainvoke({"message": MESSAGE, "message_id": "m1"}, context=SMALL)
        assert MEMORY in double.chats[0].body["messages"][-1]["content"]
    operations = Memories(ledger, "local")
    (marked,) = await operations.flagged()
    assert question in await unclear(ledger, monkeypatch)
    await operations.accept(marked.key)
    assert question not in await unclear(ledger, monkeypatch)


async def unclear(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return what the chatbot's model reads after the message that was remembered."""
    chat: Any = chatbot.compile(store=LedgerStore(ledger))
    told = [HumanMessage(MESSAGE, id="m1"), AIMessage("Noted."), HumanMessage("And now?", id="m2")]
    context = ChatContext(chatbot="ollama:small", memory_agent="rules")
    with served(monkeypatch, Model("small"), brain=lambda _: "Hm.") as double:
        await chat.ainvoke({"messages": told}, context=context)
        return str(double.chats[-1].body["messages"][-1]["content"])


async def test_what_is_to_be_forgotten_is_retired_and_can_be_taken_back(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    memories = Memories(ledger, "local")
    other = await memories.add("The user sails.")
    (max_,) = [
        number
        for number, found in enumerate(await memories.recall(MESSAGE, 5, "dense"))
        if found.key != other.key
    ]
    said = script(
        read_message=reading(route="forget"),
        choose_forgotten={"rationale": "It is of Max.", "numbers": [max_, max_]},
    )
    result = await tell(ledger, said, monkeypatch)
    assert [each["operation"] for each in result["operations"]] == ["retire"]
    assert await contents(ledger) == ["The user sails."]
    await memories.undo()
    assert MEMORY in await contents(ledger)


@pytest.mark.parametrize(
    ("message", "left"),
    [
        ("Please forget that I like jazz.", ["The user lives in Ulm."]),
        ("Forget where I live: Ulm.", ["The user likes jazz."]),
        ("Don't forget to call Ann.", ["The user likes jazz.", "The user lives in Ulm."]),
        ("Forget my shoe size.", ["The user likes jazz.", "The user lives in Ulm."]),
    ],
)
async def test_rules_retire_what_says_all_that_is_to_be_forgotten(
    tmp_path: Path, message: str, left: Sequence[str]
) -> None:
    opened = await open_ledger(str(tmp_path / "other"), WordEmbedder())
    for content in ("The user likes jazz.", "The user lives in Ulm."):
        change = Change(reason="said so", actor="user")
        await UserMemories(opened, "local").insert(Memory(content=content), change=change)
    graph = memory_agent.compile(store=LedgerStore(opened))
    await graph.ainvoke({"message": message}, context=RULES)
    assert await contents(opened) == left
    await opened.close()


# The inbox.


async def run(ledger: Ledger, context: MemoryContext, *messages: str) -> dict[str, Any]:
    graph = remember.compile(store=LedgerStore(ledger))
    batch: Any = {"messages": [{"message": each, "message_id": f"m{n}"} for n, each in enumerate(messages)]}
    report: dict[str, Any] = await graph.ainvoke(batch, {"recursion_limit": 200}, context=context)
    return report


async def test_a_message_that_fails_too_often_is_set_aside_until_somebody_decides(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    operations = Messages(ledger, "local")
    with served(monkeypatch, Model("small"), brain=lambda _: "I live in Nonsense."):
        for _ in range(MOST_TRIES):
            report = await run(ledger, SMALL, "I live in Ulm.", "I like tea.")
            assert len(report["failed"]) == 2
        assert (await run(ledger, SMALL))["failed"] == []
    assert await operations.waiting() == 0
    first, second = await operations.list()
    assert (first["status"], first["tries"], first["message"]) == ("set aside", MOST_TRIES, "I live in Ulm.")
    assert first["reply"] == "I live in Nonsense."
    assert "3 attempts" in first["error"]

    assert (await operations.retry("m0"))["status"] == "waiting"
    assert (await operations.drop("m1"))["message"] == second["message"]
    assert (await run(ledger, RULES))["remembered"] == 1
    assert await contents(ledger) == [MEMORY, "The user lives in Ulm."]
    assert await operations.list() == []
    outcome = await Inbox(ledger).outcome("local", "m1")
    assert outcome is not None
    assert "Dropped" in outcome["rationale"]
    with pytest.raises(NotFound, match="begins with"):
        await operations.get("m1")


async def test_a_server_that_is_down_sets_nothing_aside(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MNEME_RETRIES", "0")
    with served(monkeypatch, Model("another")):
        for _ in range(MOST_TRIES + 1):
            await run(ledger, SMALL, "I live in Ulm.")
    (letter,) = await Messages(ledger, "local").list()
    assert (letter["status"], letter["tries"]) == ("waiting", 0)
