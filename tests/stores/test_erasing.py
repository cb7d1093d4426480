"""Messages taken out of stored conversations, in SQLite and in Postgres: the rest stays, and runs go on."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Annotated, Any

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.graph import START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import Command, interrupt
from typing_extensions import TypedDict

from mneme.stores.checkpoints.checkpointer import open_checkpointer
from mneme.stores.checkpoints.erasing import ERASED, Eraser, pack, unpack
from mneme.stores.checkpoints.saver import Checkpoints
from mneme.stores.users.traces import Origins

pytest_plugins = ["tests.doubles.postgres"]

THREAD: RunnableConfig = {"configurable": {"thread_id": "talk"}, "metadata": {"owner": "ann"}}
TOLD = Origins(frozenset({"told"}), frozenset({"The user lives in Austin."}))


class State(TypedDict, total=False):
    messages: Annotated[list[AnyMessage], add_messages]
    recalled: list[dict[str, str]]
    town: str


def talking() -> StateGraph[State]:
    """Make a graph that replies, recalls, keeps a plain text, and then asks a person."""

    async def respond(state: State) -> State:
        said = state["messages"][-1].text
        recalled = [{"content": "The user lives in Austin.", "told_on": "2026-11-22"}]
        return {
            "messages": [AIMessage(f"You said: {said}")],
            "recalled": recalled,
            "town": "I live in Austin.",
        }

    async def ask(state: State) -> State:
        return {"messages": [HumanMessage(str(interrupt("what else?")))]}

    builder = StateGraph(State).add_node("respond", respond).add_node("ask", ask)
    return builder.add_edge(START, "respond").add_edge("respond", "ask")


@pytest.fixture(params=["sqlite", "postgres"])
async def saver(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Checkpoints]:
    is_file = request.param == "sqlite"
    place = str(tmp_path / "checkpoints.sqlite") if is_file else str(request.getfixturevalue("postgres_url"))
    async with open_checkpointer(place) as opened:
        yield opened


def bytes_in(folder: Path) -> bytes:
    return b"".join(file.read_bytes() for file in folder.iterdir())


async def test_a_run_goes_on_after_it_was_cleaned(saver: Checkpoints, tmp_path: Path) -> None:
    graph = talking().compile(checkpointer=saver)
    first: list[AnyMessage] = [
        HumanMessage("Hello.", id="hello"),
        HumanMessage("I live in Austin.", id="told"),
    ]
    await graph.ainvoke({"messages": first}, THREAD)
    eraser = Eraser(TOLD, lambda reply: False)
    eraser.look(await saver.values("talk"))
    assert await saver.rewrite("talk", eraser.rewrite) > 0
    await saver.finish()
    assert await saver.rewrite("talk", Eraser(TOLD, lambda reply: False).rewrite) == 0, "once is enough"
    assert b"Austin" not in bytes_in(tmp_path)
    assert eraser.turns == 2
    async for state in graph.aget_state_history(THREAD):
        assert "Austin" not in str(state)
    ended = await graph.ainvoke(Command(resume="I like tea."), THREAD)
    assert [each.text for each in ended["messages"]] == ["Hello.", ERASED, ERASED, "I like tea."]
    assert ended["recalled"] == [{"content": ERASED, "told_on": "2026-11-22"}]
    (kept,) = await saver.threads()
    assert (kept.id, kept.metadata["owner"]) == ("talk", "ann")


def cleaned(value: Any, told: Origins = TOLD, *, repeats: str = "never said") -> Any:
    eraser = Eraser(told, lambda reply: repeats in reply)
    eraser.look([("json", pack("json", value))])
    return unpack("json", eraser.rewrite("json", pack("json", value)))


def said(role: str, content: str, name: str = "") -> dict[str, Any]:
    return {"role": role, "content": content, "id": name}


def test_replies_go_with_what_they_answer_and_others_stay() -> None:
    talk = [
        said("user", "Hello."),
        said("assistant", "Hello to you."),
        said("user", "Down in A., you know.", "told"),
        said("assistant", "Lovely town."),
        said("assistant", "Really."),
        said("user", "What is for tea?"),
        said("assistant", "In Austin they have cake."),
        said("assistant", "Plum cake."),
    ]
    found = [each["content"] for each in cleaned(talk, repeats="Austin")]
    kept = ["Hello.", "Hello to you.", ERASED, ERASED, ERASED, "What is for tea?", ERASED, "Plum cake."]
    assert found == kept


def test_a_single_word_is_erased_only_where_it_stands_alone() -> None:
    one = Origins(texts=frozenset({"ai"}))
    talk = [said("user", "ai"), said("user", "The main thing."), {"type": "ai", "content": "Well."}]
    assert [each["content"] for each in cleaned(talk, one)] == [ERASED, "The main thing.", "Well."]
    assert cleaned({"kind": "ai", "quote": "ai"}, one) == {"kind": "ai", "quote": ERASED}
