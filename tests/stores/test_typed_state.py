"""Models in a graph's state: checkpoints name no class of ours, and what they hold comes back as models."""

import sqlite3
from pathlib import Path
from typing import Annotated, Any

import pytest
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, Send, interrupt
from typing_extensions import TypedDict

from mneme.nodes.workflow import Plain, Typed
from mneme.stores.checkpoints.checkpointer import open_checkpointer
from mneme.stores.checkpoints.saver import Checkpoints
from mneme.stores.users.memory import Statement

THREAD: Any = {"configurable": {"thread_id": "t"}}
SAID = Statement(content="Ann sails.", quote="I sail.")


class State(TypedDict, total=False):
    said: Annotated[list[Statement], Typed]
    last: Annotated[Statement | None, Typed]
    shown: Annotated[dict[str, Any], Plain]


class Earlier(TypedDict, total=False):
    said: list[Any]
    last: Any
    shown: dict[str, Any]


def write(state: State) -> dict[str, Any]:
    return {"said": [SAID], "last": SAID, "shown": SAID}


def each_statement(state: State) -> list[Send]:
    return [Send("ask", {"one": each}) for each in state["said"]]


def ask(state: dict[str, Any]) -> dict[str, Any]:
    return {"last": interrupt("Which?") and SAID}


def read(state: State) -> dict[str, Any]:
    assert state["last"] is not None
    return {"shown": {"contents": [state["last"].content, *(each.content for each in state["said"])]}}


def asking(saver: Checkpoints) -> Any:
    builder = StateGraph(State)
    for node in (write, ask, read):
        builder.add_node(node)
    builder.add_edge(START, "write")
    builder.add_conditional_edges("write", each_statement, ["ask"])
    builder.add_edge("ask", "read")
    builder.add_edge("read", END)
    return builder.compile(checkpointer=saver)


def reading(saver: Checkpoints, state: type) -> Any:
    builder: StateGraph[Any] = StateGraph(state)
    builder.add_node("read", read if state is State else lambda _: {})
    builder.add_edge(START, "read")
    return builder.compile(checkpointer=saver)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "checkpoints.sqlite"


async def test_models_are_plain_in_a_checkpoint_and_models_again_after_a_restart(file: Path) -> None:
    async with open_checkpointer(str(file)) as saver:
        await asking(saver).ainvoke({}, THREAD)
        (found,) = [each async for each in saver.alist(THREAD, limit=1)]
        assert found.checkpoint["channel_values"]["said"] == [SAID.model_dump()]
    dump = "\n".join(sqlite3.connect(file).iterdump())
    assert b"mneme.".hex().upper() not in dump
    assert SAID.content.encode().hex().upper() in dump
    async with open_checkpointer(str(file)) as saver:
        graph = asking(saver)
        waiting = await graph.aget_state(THREAD)
        assert waiting.values == {"said": [SAID], "last": SAID, "shown": SAID.model_dump()}
        ended = await graph.ainvoke({"last": SAID.model_dump()}, THREAD)
        assert ended["last"] == SAID


async def test_an_interrupted_run_goes_on_with_models(file: Path) -> None:
    async with open_checkpointer(str(file)) as saver:
        await asking(saver).ainvoke({}, THREAD)
    async with open_checkpointer(str(file)) as saver:
        ended = await asking(saver).ainvoke(Command(resume=True), THREAD)
        assert ended["shown"] == {"contents": ["Ann sails.", "Ann sails."]}


async def test_what_an_earlier_version_wrote_as_plain_values_is_read_as_models(file: Path) -> None:
    async with open_checkpointer(str(file)) as saver:
        await reading(saver, Earlier).ainvoke({"said": [SAID.model_dump()], "last": None}, THREAD)
        graph = reading(saver, State)
        assert (await graph.aget_state(THREAD)).values["said"] == [SAID]
        assert (await graph.ainvoke({"last": SAID.model_dump()}, THREAD))["shown"]["contents"]


async def test_a_value_of_an_unknown_form_stays_as_it_is_and_the_thread_goes_on(file: Path) -> None:
    async with open_checkpointer(str(file)) as saver:
        await reading(saver, Earlier).ainvoke({"said": [{"words": "old"}]}, THREAD)
        graph = reading(saver, State)
        assert (await graph.aget_state(THREAD)).values["said"] == [{"words": "old"}]
        anew = await graph.ainvoke({"said": [SAID], "last": SAID}, THREAD)
        assert anew["shown"] == {"contents": ["Ann sails.", "Ann sails."]}
