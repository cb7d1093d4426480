"""The chatbot: it answers at once, from memory, within its window, and hands over what the user said."""

from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver

from mneme.core.errors import BadInput
from mneme.graphs.chatbot import builder
from mneme.nodes.chat.context import ChatContext
from mneme.stores.ledger.base_store import LedgerStore
from mneme.stores.ledger.ledger import Ledger
from mneme.stores.ledger.records import Change
from mneme.stores.users.inbox import Inbox
from mneme.stores.users.memories import UserMemories
from mneme.stores.users.memory import Memory
from tests.doubles.ollama import Model, OllamaDouble
from tests.doubles.served import served

RULES = ChatContext(chatbot="rules", memory_agent="rules")
CONFIG: Any = {"configurable": {"thread_id": "t"}}


@pytest.fixture
async def ledger(bundled: Ledger) -> Ledger:
    known = Memory(content="The user's sister Emily lives in Portland.")
    await UserMemories(bundled, "local").insert(known, change=Change(reason="", actor="test"))
    return bundled


@pytest.fixture
def graph(ledger: Ledger) -> Any:
    return builder.compile(store=LedgerStore(ledger), checkpointer=InMemorySaver())


async def say(graph: Any, *words: str, context: ChatContext = RULES) -> str:
    told: dict[str, Any] = {}
    for each in words:
        told = await graph.ainvoke({"messages": [HumanMessage(each)]}, CONFIG, context=context)
    return str(told["messages"][-1].text)


async def test_the_reply_stands_on_what_is_remembered(graph: Any) -> None:
    assert "Portland" in await say(graph, "Where does my sister Emily live?")


async def test_what_was_just_said_is_known_before_it_is_remembered(graph: Any) -> None:
    assert "Austin" in await say(graph, "I live in Austin.", "Where do I live?")


async def test_recall_finds_what_was_told_beside_a_good_hit_unless_told_to_go_by_words(
    graph: Any, ledger: Ledger
) -> None:
    memories, change = UserMemories(ledger, "local"), Change(reason="", actor="test")
    for content in ("The user took a welding class.", "It was full of retired sailors."):
        await memories.insert(Memory(content=content, thread="t1"), change=change)
    recalled: dict[str, list[str]] = {}
    for search in ("blend", "bm25"):
        context = RULES.model_copy(update={"recall": 2, "search": search})
        config: Any = {"configurable": {"thread_id": search}}
        question = {"messages": [HumanMessage("How was the welding class?")]}
        await graph.ainvoke(question, config, context=context)
        state = await graph.aget_state(config)
        recalled[search] = [each["content"] for each in state.values["recalled"]]
    assert recalled["blend"] == ["The user took a welding class.", "It was full of retired sailors."]
    assert recalled["bm25"] == ["The user took a welding class."]


async def test_the_reply_streams_piece_by_piece(graph: Any) -> None:
    given = {"messages": [HumanMessage("Where does my sister Emily live?")]}
    chunks = graph.astream(given, CONFIG, context=RULES, stream_mode="messages")
    pieces = [chunk.text async for chunk, _ in chunks]

    assert len(pieces) > 3
    state = await graph.aget_state(CONFIG)
    assert "".join(pieces) == state.values["messages"][-1].text


async def test_only_the_users_words_are_handed_over(graph: Any, ledger: Ledger) -> None:
    await say(graph, "Hello!", "I live in Austin.")

    first, second = await Inbox(ledger).pending("local")
    assert (first["message"], second["message"]) == ("Hello!", "I live in Austin.")
    assert [turn.partition(":")[0] for turn in second["preceding"]] == ["user", "assistant"]
    assert second["thread"] == "t"
    assert second["message_id"] in {m.id for m in (await graph.aget_state(CONFIG)).values["messages"]}


async def test_a_users_chat_recalls_nothing_of_another(graph: Any) -> None:
    stranger = RULES.model_copy(update={"user": "stranger"})
    assert "Portland" not in await say(graph, "Where does my sister Emily live?", context=stranger)


async def test_the_model_sees_whole_turns_that_fit_the_window(
    graph: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with served(
        monkeypatch, Model("small"), brain=lambda _: " ".join(f"word{n}" for n in range(100))
    ) as double:
        context = ChatContext(chatbot="ollama:small", window=256)
        await say(graph, *(f"Message number {number} is here." for number in range(5)), context=context)
        said = roles_and_texts(double)

    assert said[0][0] == "system"
    assert "Message number 4" in said[-1][1]
    assert said[1][0] == "user", "the window starts with a whole turn"
    assert not any("number 0" in text for _, text in said)


def roles_and_texts(double: OllamaDouble) -> list[tuple[str, str]]:
    return [(message["role"], message["content"]) for message in double.chats[-1].body["messages"]]


@pytest.mark.parametrize(
    ("messages", "complaint"),
    [
        ([HumanMessage("  ")], "no message"),
        ([], "no message"),
        (
            [HumanMessage([{"type": "image_url", "image_url": {"url": "data:image/png;base64,"}}])],
            "no message",
        ),
        ([HumanMessage("word " * 20_000)], "window holds 8192"),
    ],
)
async def test_what_cannot_be_answered_is_refused(
    graph: Any, messages: list[BaseMessage], complaint: str
) -> None:
    with pytest.raises(BadInput, match=complaint) as refusal:
        await graph.ainvoke({"messages": messages}, CONFIG, context=RULES)
    assert refusal.value.hint


async def test_a_reply_is_one_message_with_the_id_that_streamed(graph: Any) -> None:
    await say(graph, "Hello!")
    last = (await graph.aget_state(CONFIG)).values["messages"][-1]
    assert isinstance(last, AIMessage)
    assert last.id
