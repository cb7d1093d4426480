"""What a model writes is checked against the message; what is only doubted stands, with a flag."""

import json
from collections.abc import Sequence
from datetime import date
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage

from mneme.api.inbox import Messages
from mneme.api.memories import Memories
from mneme.api.rendering import row_of
from mneme.core.errors import NotFound
from mneme.graphs.chatbot import builder as chatbot
from mneme.graphs.memory_agent import builder as memory_agent
from mneme.graphs.remember import builder as remember
from mneme.nodes.chat.context import ChatContext, MemoryContext
from mneme.nodes.chat.memory_operations import MAX_STATEMENTS
from mneme.prompts.every import questions
from mneme.stores.ledger.base_store import LedgerStore
from mneme.stores.ledger.ledger import Ledger
from mneme.stores.ledger.records import Change
from mneme.stores.recall import Asker, recall
from mneme.stores.users.inbox import MAX_TRIES, Inbox
from mneme.stores.users.memories import Memory, Past, Statement, UserMemories
from tests.doubles.ollama import Model
from tests.doubles.served import served

SMALL = MemoryContext(memory_agent="ollama:small", min_similarity=-1)
RULES = MemoryContext(memory_agent="rules")
MESSAGE = "Actually, Max is a Labrador mix; he’s 5."
MEMORY = "Max, a golden retriever, loves fetch."
UNDATED = {"since": "", "until": "", "unclear": ""}
FACT = {
    "content": "The user's dog Max is a Labrador mix and is 5 years old.",
    "quote": "max is a labrador mix; he's 5",
    "kind": "semantic",
    "entities": ["Max"],
    "relations": [],
    **UNDATED,
}
JUDGED = {
    "fact": 0,
    "memory": 0,
    "reason": "Another breed.",
    "relation": "correction",
    "outdated": "a Golden Retriever",
    "updated": "",
}
RENEWED = {"content": "Max, a Labrador mix, is 5 years old and loves fetch.", "entities": [], "relations": []}
NOTHING: dict[str, Any] = {"look": "", "judgements": []}


@pytest.fixture
async def ledger(edge_ledger: Ledger) -> Ledger:
    await known(edge_ledger, Memory(content=MEMORY))
    return edge_ledger


async def known(ledger: Ledger, memory: Memory) -> str:
    """Insert a memory, and return its key."""
    made = await UserMemories(ledger, "local").insert(memory, change=Change(reason="said so", actor="user"))
    return made.key


class Script:
    """Answer each question by its script, the last line for ever; remember what was asked, and how."""

    def __init__(self, **lines: Any) -> None:
        self.lines = {name: list(said) if isinstance(said, list) else [said] for name, said in lines.items()}
        self.asked: list[str] = []
        self.told: list[str] = []

    def __call__(self, body: dict[str, Any]) -> str:
        system = body["messages"][0]["content"]
        (name,) = [name for name in self.lines if system.startswith(questions()["chat", name].system)]
        self.asked.append(name)
        self.told.append(body["messages"][-1]["content"])
        lines = self.lines[name]
        said = lines.pop(0) if len(lines) > 1 else lines[0]
        return said if isinstance(said, str) else json.dumps(said)

    def told_to(self, name: str) -> list[str]:
        """Return the last message of each question of a name."""
        return [told for asked, told in zip(self.asked, self.told, strict=True) if asked == name]


async def tell(ledger: Ledger, script: Script, message: str = MESSAGE, **given: str) -> dict[str, Any]:
    graph: Any = memory_agent.compile(store=LedgerStore(ledger))
    with pytest.MonkeyPatch.context() as patched, served(patched, Model("small"), brain=script):
        result: dict[str, Any] = await graph.ainvoke({"message": message, **given}, context=SMALL)
    return result


def script(**lines: Any) -> Script:
    usual = {
        "read_message": reading(FACT),
        "compare_memories": judged({}),
        "rewrite_memory": RENEWED,
    }
    return Script(**usual | lines)


def reading(*memories: dict[str, Any], route: str = "store") -> dict[str, Any]:
    return {"rationale": "New facts.", "route": route, "memories": list(memories)}


def judged(*changes: dict[str, Any]) -> dict[str, Any]:
    return {"look": "", "judgements": [JUDGED | each for each in changes]}


async def contents(ledger: Ledger) -> Sequence[str]:
    return [each.memory.content for each in await UserMemories(ledger, "local").list()]


def done(result: dict[str, Any]) -> list[str]:
    return [each["event"] for each in result["operations"]]


@pytest.mark.parametrize(("updated", "asked"), [("", 3), (RENEWED["content"], 2)])
async def test_a_correction_keeps_the_rest_of_the_memory_and_the_messages_own_words(
    ledger: Ledger, updated: str, asked: int
) -> None:
    result = await tell(ledger, script(compare_memories=judged({"updated": updated})))
    assert result["asked"]["questions"] == asked
    assert result["asked"]["repaired"] == result["asked"]["refused"] == 0
    assert result["asked"]["prompt_tokens"] > 0
    (memory,) = await UserMemories(ledger, "local").list()
    assert done(result) == ["update"]
    assert (memory.memory.content, memory.memory.flag) == (RENEWED["content"], "")
    assert memory.memory.quote == "Max is a Labrador mix; he’s 5."


async def test_a_memory_that_the_reader_was_shown_is_compared_whatever_its_language(
    edge_ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mneme.nodes.chat.conflict_router.FLOOR", 1.1)  # the embedder knows no Spanish
    for each in ("The user lives in Burgos.", "The user eats meat every day."):
        await known(edge_ledger, Memory(content=each))
    message = "Sigo en Burgos, pero la carne ya no la toco."
    fact = FACT | {"content": "La usuaria de Burgos ya no come carne.", "quote": message, "entities": []}
    said = script(read_message=reading(fact), compare_memories=NOTHING)
    await tell(edge_ledger, said, message)
    assert "eats meat every day" in said.told_to("compare_memories")[0]


async def test_a_fact_that_says_all_that_still_holds_takes_the_place_of_the_memory(ledger: Ledger) -> None:
    fact = FACT | {"content": "The user's dog Max, a Labrador mix, loves fetch."}
    said = script(read_message=reading(fact))
    result = await tell(ledger, said)
    assert (done(result), said.asked) == (["update"], ["read_message", "compare_memories"])
    assert await contents(ledger) == [fact["content"]]


async def test_a_quote_that_the_message_does_not_have_is_asked_for_again(ledger: Ledger) -> None:
    said = script(read_message=[reading(FACT | {"quote": "Max is a poodle"}), reading(FACT)])
    result = await tell(ledger, said)
    assert "memories[0].quote is not in the message" in said.told_to("read_message")[1]
    assert (result["asked"]["repaired"], await Memories(ledger, "local").flagged()) == (1, [])


@pytest.mark.parametrize(
    ("wrong", "kept"),
    [
        ({"quote": "Max is a poodle"}, FACT["content"]),
        ({"content": " "}, "The user said: “Max is a Labrador mix; he’s 5.”"),
    ],
)
async def test_what_is_never_put_right_is_kept_with_a_flag(
    ledger: Ledger, wrong: dict[str, str], kept: str
) -> None:
    said = script(read_message=reading(FACT | wrong), compare_memories=NOTHING)
    result = await tell(ledger, said)
    assert await contents(ledger) == [MEMORY, kept]
    (flagged,) = await Memories(ledger, "local").flagged()
    assert "memories[0]" not in kept and "Not as it should be" in flagged.memory.flag
    assert (len(said.told_to("read_message")), result["asked"]["refused"]) == (3, 1)


@pytest.mark.parametrize(
    ("odd", "named"),
    [
        ({"content": "Max is a Labrador mix and lives with Zoe.", "entities": ["Max", "Zoe"]}, "'Zoe'"),
        ({"content": "Max is a Labrador mix and 6 years old."}, "has 6:"),
    ],
)
async def test_a_doubt_is_told_once_and_then_noted(ledger: Ledger, odd: dict[str, Any], named: str) -> None:
    said = script(read_message=reading(FACT | odd), compare_memories=NOTHING)
    result = await tell(ledger, said)
    first, again = said.told_to("read_message")
    assert named not in first and named in again
    assert await contents(ledger) == [MEMORY, odd["content"]]
    operations = Memories(ledger, "local")
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


async def test_a_correction_must_show_what_it_makes_false(ledger: Ledger) -> None:
    said = script(compare_memories=[judged({"outdated": "a poodle"}), judged({})])
    result = await tell(ledger, said)
    assert said.asked.count("compare_memories") == 2
    assert (result["asked"]["questions"], result["asked"]["repaired"]) == (3, 1)
    assert await contents(ledger) == [RENEWED["content"]]


async def test_a_change_that_shows_nothing_outdated_is_kept_beside_the_memory_and_linked(
    ledger: Ledger,
) -> None:
    result = await tell(ledger, script(compare_memories=judged({"outdated": "a poodle"})))
    old, new = await UserMemories(ledger, "local").list()
    assert (old.memory.content, new.memory.content) == (MEMORY, FACT["content"])
    assert new.memory.may_contradict == [old.key]
    assert result["asked"]["refused"] == 1


async def test_what_is_unclear_is_linked_until_somebody_accepts_it(ledger: Ledger) -> None:
    said = script(compare_memories=judged({"relation": "unclear", "outdated": ""}))
    result = await tell(ledger, said)
    assert (done(result), said.asked) == (["insert"], ["read_message", "compare_memories"])
    memories = UserMemories(ledger, "local")
    old, new = await memories.list()
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


async def test_nothing_written_down_is_asked_again_and_then_said(ledger: Ledger) -> None:
    await tell(ledger, script(read_message=[reading(), reading(FACT)]))
    assert await contents(ledger) == [RENEWED["content"]]
    nothing = await tell(ledger, script(read_message=reading()))
    assert nothing["operations"] == []
    assert "could be written down" in nothing["rationale"]


async def test_what_is_written_down_is_kept_whatever_the_route_says(ledger: Ledger) -> None:
    said = script(read_message=reading(FACT, route="discard"))
    result = await tell(ledger, said)
    assert said.asked.count("read_message") == 3
    assert result["route"] == "store"
    assert await contents(ledger) == [RENEWED["content"]]


async def test_each_statement_of_a_memory_keeps_its_own_quote_and_message(ledger: Ledger) -> None:
    result = await tell(ledger, script())
    (memory,) = await UserMemories(ledger, "local").list()
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
    first = (await UserMemories(edge_ledger, "local").list())[0].memory
    assert (first.since, first.kind) == ("2020", memory.get("kind", "semantic"))


# What holds later, or for a time.

HOME = "The user lives in Porto."
MOVES = {"content": "The user lives in Bergen.", "quote": "I live in Bergen", "entities": ["Bergen"]}


async def moved(
    ledger: Ledger, relation: str = "change", outdated: str = "lives in Porto", **when: str
) -> list[str]:
    """Tell of a move on 2 March 2026, and return what was done."""
    changes = judged({"relation": relation, "outdated": outdated})
    said = script(read_message=reading(FACT | MOVES | when), compare_memories=changes)
    return done(await tell(ledger, said, "I live in Bergen.", time="2026-03-02T10:00:00+00:00"))


async def valid_at(ledger: Ledger, *day: int) -> list[str]:
    found = await UserMemories(ledger, "local").valid_at(date(*day))
    return [each.memory.content for each in found]


async def test_a_change_ends_what_was_true_until_then(edge_ledger: Ledger) -> None:
    await known(edge_ledger, Memory(content=HOME))
    assert await moved(edge_ledger) == ["update"]
    assert await valid_at(edge_ledger, 2026, 3, 1) == [HOME]
    assert await valid_at(edge_ledger, 2026, 3, 2) == await contents(edge_ledger) == [MOVES["content"]]


async def test_what_held_before_a_change_is_recalled_with_it(edge_ledger: Ledger) -> None:
    await known(edge_ledger, Memory(content=HOME, since="2024"))
    assert await moved(edge_ledger) == ["update"]
    before = f"Until 2026-03-01: {HOME}"
    assert await recalled(edge_ledger) == [f"{MOVES['content']} (from 2026-03-02) {before}"]
    wrong = {"relation": "correction", "outdated": "Bergen"}
    assert await moved(edge_ledger, **wrong, content="The user lives in Bodø.") == ["update"]
    assert await recalled(edge_ledger) == [f"The user lives in Bodø. (from 2026-03-02) {before}"]
    (found,) = await UserMemories(edge_ledger, "local").similar("home")
    assert before in str(row_of(found)["note"]), "tools and tables show it, too"
    shared = [each.text for each in await recall(edge_ledger, "Where does the user live?", Asker("local"))]
    assert shared == ["The user lives in Bodø.", before], "what holds comes first"


async def recalled(ledger: Ledger) -> list[str]:
    """Return what the chatbot is shown of the memories."""
    return [each.memory.timed for each in await UserMemories(ledger, "local").similar("home")]


async def test_a_future_change_leaves_the_memory_and_limits_it(edge_ledger: Ledger) -> None:
    key = await known(edge_ledger, Memory(content=HOME))
    assert await moved(edge_ledger, "later", since="2026-06") == ["insert", "update"]
    assert await contents(edge_ledger) == [HOME, MOVES["content"]]
    assert (await UserMemories(edge_ledger, "local").get(key)).memory.until == "2026-05-31"
    assert await valid_at(edge_ledger, 2026, 5, 31) == [HOME]
    assert await valid_at(edge_ledger, 2026, 6, 1) == [MOVES["content"]]


async def test_a_temporary_change_leaves_the_memory_as_it_is(edge_ledger: Ledger) -> None:
    key = await known(edge_ledger, Memory(content=HOME))
    assert await moved(edge_ledger, "later", until="2026-04") == ["insert"]
    assert len(await UserMemories(edge_ledger, "local").history(key)) == 1
    assert await valid_at(edge_ledger, 2026, 4, 30) == [HOME, MOVES["content"]]
    assert await valid_at(edge_ledger, 2026, 5, 1) == [HOME]


async def test_what_says_when_a_memory_ends_or_ended_changes_it(edge_ledger: Ledger) -> None:
    await known(edge_ledger, Memory(content=HOME))
    ends = "The user lives in Porto until April."
    assert await moved(edge_ledger, until="2026-04", content=ends) == ["update"]
    assert await valid_at(edge_ledger, 2026, 4, 30) == [ends]
    assert await valid_at(edge_ledger, 2026, 5, 1) == []
    over = "The user had a flat in Porto until May 2025."
    assert await moved(edge_ledger, until="2025-05", content=over) == ["update"]


async def test_a_new_date_in_place_of_another_one_changes_the_memory(edge_ledger: Ledger) -> None:
    await known(
        edge_ledger, Memory(content="The auditors come on 5 May.", since="2026-05-05", until="2026-05-05")
    )
    put_off = {"content": "The auditors come on 26 May.", "since": "2026-05-26", "until": "2026-05-26"}
    changes = judged({"relation": "change", "outdated": "5 May", "updated": put_off["content"]})
    said = script(read_message=reading(FACT | MOVES | put_off), compare_memories=changes)
    told = await tell(edge_ledger, said, "I live in Bergen.", time="2026-03-02T10:00:00+00:00")
    assert done(told) == ["update"]
    assert await valid_at(edge_ledger, 2026, 5, 5) == []
    assert await valid_at(edge_ledger, 2026, 5, 26) == [put_off["content"]]


# Whom a name means, and what is to be forgotten.


async def test_the_memories_nearest_to_a_message_are_shown_to_its_reader(edge_ledger: Ledger) -> None:
    for memory in (Memory(content=MEMORY), Memory(content=HOME, until="2026-05")):
        await known(edge_ledger, memory)
    said = script(compare_memories=NOTHING)
    await tell(edge_ledger, said)
    assert f"<known>\n{MEMORY}\n{HOME} (until 2026-05)\n</known>" in said.told[0]


async def test_an_unclear_name_is_marked_and_asked_about_in_the_next_reply(ledger: Ledger) -> None:
    question = "Which Max: your dog or your neighbour?"
    said = script(read_message=reading(FACT | {"unclear": question}), compare_memories=NOTHING)
    await tell(ledger, said, message_id="m1")
    operations = Memories(ledger, "local")
    (marked,) = await operations.flagged()
    assert question in await unclear(ledger)
    await operations.accept(marked.key)
    assert question not in await unclear(ledger)


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


async def test_what_is_to_be_forgotten_is_retired_and_can_be_taken_back(ledger: Ledger) -> None:
    memories = Memories(ledger, "local")
    other = await memories.add("The user sails.")
    (max_,) = [
        number
        for number, found in enumerate(await memories.recall(MESSAGE, 5, "dense"))
        if found.key != other.key
    ]
    said = script(
        read_message=reading(route="forget"),
        choose_forgotten={"rationale": "It is of Max.", "numbers": [max_, max_], "rest": []},
    )
    result = await tell(ledger, said)
    assert done(result) == ["retire"]
    assert await contents(ledger) == ["The user sails."]
    await memories.undo()
    assert MEMORY in await contents(ledger)


async def test_a_memory_keeps_what_it_says_beside_what_is_to_be_forgotten(ledger: Ledger) -> None:
    memories = UserMemories(ledger, "local")
    (old,) = await memories.list()
    changed = old.memory.model_copy(
        update={"past": [Past(content="Max is a puppy.")], "since": "2026-02", "is_change": True}
    )
    change = Change(reason="a test", actor="test")
    await memories.update(old.key, changed, change=change, expected_version=1)
    rest = {"memory": 0, "content": "The user sails."}
    said = script(
        read_message=reading(route="forget"),
        choose_forgotten={"rationale": "It is of Max.", "numbers": [0], "rest": [rest]},
    )
    result = await tell(ledger, said)
    assert done(result) == ["update"]
    assert await contents(ledger) == ["The user sails."]
    (left,) = await Memories(ledger, "local").list()
    assert not (left.memory.entities or left.memory.quote or left.memory.relations)
    assert left.memory.timed == "The user sails.", "neither what held before nor since when"


async def test_a_message_may_want_one_thing_forgotten_and_tell_another(ledger: Ledger) -> None:
    again = FACT | {"content": "The user wants Max forgotten."}
    said = script(
        read_message=reading(FACT, again, route="forget"),
        choose_forgotten={"rationale": "It is of Max.", "numbers": [0, 2], "rest": []},
        compare_memories=NOTHING,
    )
    result = await tell(ledger, said)
    assert done(result) == ["retire", "insert"]
    assert await contents(ledger) == [FACT["content"]], "what says again what is to be forgotten is left out"


@pytest.mark.parametrize(
    ("message", "left"),
    [
        ("Please forget that I like jazz.", ["The user lives in Ulm."]),
        ("Forget I live in Ulm.", ["The user likes jazz."]),
        ("Forget where I live: Ulm.", ["The user likes jazz."]),
        ("Forget my shoe size.", ["The user likes jazz.", "The user lives in Ulm."]),
        ("Forget where I live. I play the cello.", ["The user likes jazz.", "I play the cello."]),
        ("I live in Bern now. Please forget where I live.", ["The user likes jazz.", "I live in Bern now."]),
    ],
)
async def test_rules_retire_what_says_all_that_is_to_be_forgotten(
    edge_ledger: Ledger, message: str, left: Sequence[str]
) -> None:
    for content in ("The user likes jazz.", "The user lives in Ulm."):
        await known(edge_ledger, Memory(content=content))
    graph = memory_agent.compile(store=LedgerStore(edge_ledger))
    await graph.ainvoke({"message": message}, context=RULES)
    assert await contents(edge_ledger) == left


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
        for _ in range(MAX_TRIES):
            report = await run(ledger, SMALL, "I live in Ulm.", "I like tea.")
            assert len(report["failed"]) == 2
        assert (await run(ledger, SMALL))["failed"] == []
    assert await operations.waiting() == 0
    first, second = await operations.list()
    assert (first["status"], first["tries"], first["message"]) == ("set aside", MAX_TRIES, "I live in Ulm.")
    assert first["reply"] == "I live in Nonsense."
    assert "3 attempts" in first["error"]

    assert (await operations.retry("m0"))["status"] == "waiting"
    assert (await operations.drop("m1"))["message"] == second["message"]
    assert (await run(ledger, RULES))["remembered"] == 1
    assert await contents(ledger) == [MEMORY, "I live in Ulm."]
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
        for _ in range(MAX_TRIES + 1):
            await run(ledger, SMALL, "I live in Ulm.")
    (letter,) = await Messages(ledger, "local").list()
    assert (letter["status"], letter["tries"]) == ("waiting", 0)


async def test_what_another_writer_said_meanwhile_is_not_lost(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
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
    await tell(ledger, said)
    assert await contents(ledger) == [both]
    assert said.asked.count("rewrite_memory") == 1
