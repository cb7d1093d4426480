"""What checkpoints keep: of each thread the last turns, each message once; older files go on."""

import asyncio
import sqlite3
import time
from contextlib import closing
from operator import add
from pathlib import Path
from typing import Annotated, Any

import psycopg
import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, RemoveMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.base import id as ids
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import Command, interrupt
from typing_extensions import TypedDict

from mneme.core.errors import Damaged
from mneme.stores.checkpoints.checkpointer import open_checkpointer
from mneme.stores.checkpoints.saver import Checkpoints
from tests.doubles.checkpoints import in_differences

pytest_plugins = ["tests.doubles.postgres"]

THREAD: RunnableConfig = {"configurable": {"thread_id": "t"}}


class Talk(TypedDict, total=False):
    messages: Annotated[list[AnyMessage], add_messages]
    recalled: list[dict[str, str]]


def chat(saver: BaseCheckpointSaver[Any]) -> Any:
    """Compile a chat of two steps a turn, with a responder that numbers its replies."""

    async def recall(state: Talk) -> Talk:
        return {"recalled": [{"content": state["messages"][-1].text}]}

    async def respond(state: Talk) -> Talk:
        return {"messages": [AIMessage(f"reply {len(state['messages']) // 2}")]}

    builder = StateGraph(Talk).add_node(recall).add_node(respond)
    return builder.add_edge(START, "recall").add_edge("recall", "respond").compile(checkpointer=saver)


async def say(graph: Any, *turns: int, config: RunnableConfig = THREAD) -> None:
    for turn in turns:
        await graph.ainvoke({"messages": [HumanMessage(f"message {turn}", id=f"m{turn}")]}, config)


async def texts(graph: Any, config: RunnableConfig = THREAD) -> list[str]:
    return [each.text for each in (await graph.aget_state(config)).values.get("messages", [])]


def talk_of(*turns: int) -> list[str]:
    return [text for turn in turns for text in (f"message {turn}", f"reply {turn}")]


async def test_a_clock_that_was_set_back_loses_no_turn(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_checkpointer(database) as saver:
        await say(chat(saver), 0, 1)
    now = time.time_ns()
    monkeypatch.setattr(time, "time_ns", lambda: now - 10**9 * 86400 * 365)
    monkeypatch.setattr(ids, "_last_v6_timestamp", None)  # as in a new process
    async with open_checkpointer(database) as saver:
        await say(chat(saver), 2, 3)
    async with open_checkpointer(database) as saver:
        assert await texts(chat(saver)) == talk_of(0, 1, 2, 3)


async def test_the_last_turns_can_be_gone_back_to(database: str) -> None:
    async with open_checkpointer(database, turns=3) as saver:
        graph = chat(saver)
        await say(graph, *range(8))
        assert await texts(graph) == talk_of(*range(8))
        history = [each async for each in graph.aget_state_history(THREAD)]
        assert [each.metadata["source"] for each in history].count("input") == 3
        seen = [[each.text for each in state.values["messages"]] for state in history]
        assert seen[-1] == talk_of(*range(5)), "what the oldest of the three began from"
        assert seen == sorted(seen, key=len, reverse=True)
        assert history[-1].parent_config is None

        await say(graph, 9, config=history[-1].config)
        assert await texts(graph) == [*talk_of(*range(5)), "message 9", "reply 5"]


async def test_without_a_bound_all_turns_are_kept(database: str) -> None:
    async with open_checkpointer(database) as saver:
        graph = chat(saver)
        await say(graph, *range(5))
        first = [each async for each in graph.aget_state_history(THREAD)][-2]
        assert [each.text for each in first.values["messages"]] == ["message 0"]


class Notes(TypedDict, total=False):
    notes: Annotated[list[str], add]


async def test_a_waiting_question_and_its_subgraph_stay(database: str) -> None:
    async def work(state: Notes) -> Notes:
        return {"notes": ["worked"]}

    async def ask(state: Notes) -> Notes:
        return {"notes": [str(interrupt("which note?"))]}

    inner = StateGraph(Notes).add_node(work).add_node(ask)
    inner.add_edge(START, "work").add_edge("work", "ask")
    async with open_checkpointer(database, turns=1) as saver:
        outer = StateGraph(Notes).add_node("inner", inner.compile())
        graph: Any = outer.add_edge(START, "inner").compile(checkpointer=saver)
        for turn in range(4):
            await graph.ainvoke({"notes": [f"turn {turn}"]}, THREAD)
            before = [each.checkpoint["id"] async for each in saver.alist(THREAD)]
            await graph.ainvoke(Command(resume=f"answer {turn}"), THREAD)
            assert set(before) < {each.checkpoint["id"] async for each in saver.alist(THREAD)}
        assert (await graph.aget_state(THREAD)).values["notes"][-1] == "answer 3"
        calls = {each.config["configurable"]["checkpoint_ns"] async for each in saver.alist(THREAD)} - {""}
        assert len(calls) == 1, "the calls of earlier turns are gone"


async def test_a_thread_kept_as_differences_is_left_whole(database: str) -> None:
    async with open_checkpointer(database, turns=1) as saver:
        graph = in_differences().compile(checkpointer=saver)
        for turn in range(3):
            await graph.ainvoke({"notes": [f"turn {turn}"]}, THREAD)
        noted = (await graph.aget_state(THREAD)).values["notes"]
    assert noted == [text for turn in range(3) for text in (f"turn {turn}", "noted")]


async def test_a_deleted_run_leaves_no_items_behind(database: str) -> None:
    async with open_checkpointer(database) as saver:
        graph = chat(saver)
        await say(graph, 0, config=THREAD | {"metadata": {"run_id": "kept"}})
        before = items(saver)
        await say(graph, 1, config=THREAD | {"metadata": {"run_id": "gone"}})
        assert items(saver) > before > 0
        await saver.adelete_for_runs(["gone"])
        assert items(saver) == before
        assert await texts(graph) == talk_of(0)


def items(saver: Checkpoints) -> int:
    with saver.database.reading() as cursor:
        return int(cursor.execute("SELECT count(*) FROM items").fetchone()[0])


async def test_a_graph_that_runs_without_a_loop_keeps_its_state(database: str) -> None:
    async with open_checkpointer(database) as saver:
        builder = StateGraph(Notes).add_node("note", lambda _: {"notes": ["noted"]}).add_edge(START, "note")
        graph: Any = builder.compile(checkpointer=saver)
        for _ in range(2):
            await asyncio.to_thread(graph.invoke, {"notes": ["asked"]}, THREAD)
        states = await asyncio.to_thread(lambda: [*graph.get_state_history(THREAD)])
        assert states[0].values == {"notes": ["asked", "noted"] * 2}
        await asyncio.to_thread(saver.delete_thread, "t")
        assert await saver.aget_tuple(THREAD) is None


async def test_the_checkpoints_of_another_program_in_a_postgres_stay(postgres_url: str) -> None:
    with psycopg.connect(postgres_url) as connection:
        connection.execute("CREATE TABLE public.checkpoints (thread_id text)")
        connection.execute("CREATE TABLE public.checkpoint_blobs (thread_id text)")
        connection.execute("INSERT INTO public.checkpoints VALUES ('theirs')")
    async with open_checkpointer(postgres_url) as saver:
        await say(chat(saver), 0)
        assert await texts(chat(saver)) == talk_of(0)
    with psycopg.connect(postgres_url) as connection:
        assert connection.execute("SELECT * FROM public.checkpoints").fetchall() == [("theirs",)]


# SQLite only


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "checkpoints.sqlite"


def rows(file: Path, query: str) -> list[Any]:
    with closing(sqlite3.connect(file)) as connection:
        return connection.execute(query).fetchall()


def on_disk(file: Path) -> bytes:
    """Return the bytes of the file and of its write-ahead log."""
    return b"".join(each.read_bytes() for each in file.parent.iterdir() if each.name.startswith(file.name))


async def test_the_file_of_a_long_chat_stays_small(tmp_path: Path) -> None:
    sizes = []
    for turns in (20, 80):
        file = tmp_path / f"{turns}.sqlite"
        async with open_checkpointer(str(file), 10) as saver:
            await say(chat(saver), *range(turns))
        sizes.append(file.stat().st_size)
    assert sizes[1] < 1.5 * sizes[0], "four times the turns"


async def test_each_message_is_stored_once(file: Path) -> None:
    async with open_checkpointer(str(file)) as saver:
        await say(chat(saver), *range(30))
        sizes = [size for (size,) in rows(file, "SELECT length(checkpoint) FROM checkpoints ORDER BY rowid")]
        assert sum(sizes[-10:]) < 1.1 * sum(sizes[10:20]), "a checkpoint does not grow with the conversation"
        stored = [value for (value,) in rows(file, "SELECT value FROM items WHERE channel = 'messages'")]
        for said in talk_of(17):
            assert sum(said.encode() in value for value in stored) == 1
        assert rows(file, "SELECT max(place) FROM spans WHERE channel = 'messages'") == [(0,)]


async def test_a_list_that_changes_in_the_middle_is_restored(file: Path) -> None:
    async with open_checkpointer(str(file), turns=2) as saver:
        graph = chat(saver)
        await say(graph, 0, 1, 2)
        await graph.aupdate_state(THREAD, {"messages": [RemoveMessage("m1"), HumanMessage("new", id="m0")]})
        expected = ["new", "reply 0", "reply 1", *talk_of(2)]
        assert await texts(graph) == expected
        before = (await graph.aget_state(THREAD)).parent_config
        assert await texts(graph, before) == talk_of(0, 1, 2)
        await say(graph, 3, 4, 5)
        assert (await texts(graph))[: len(expected)] == expected
    assert not rows(file, "SELECT 1 FROM items WHERE instr(value, CAST('message 1' AS BLOB))")


async def test_a_file_of_an_earlier_version_goes_on(file: Path) -> None:
    async with AsyncSqliteSaver.from_conn_string(str(file)) as earlier:
        earlier.serde = JsonPlusSerializer(pickle_fallback=False, allowed_msgpack_modules=None)
        await say(chat(earlier), *range(4))
    async with open_checkpointer(str(file), turns=2) as saver:
        graph = chat(saver)
        old = [each async for each in graph.aget_state_history(THREAD)]
        assert await texts(graph) == talk_of(*range(4))
        assert await texts(graph, old[-2].config) == ["message 0"]
        await say(graph, 4)
        assert await texts(graph) == talk_of(*range(5))
        assert await texts(graph, old[-2].config) == [], "its turn is not one of the last two"
        await say(graph, 5, 6)
        assert await texts(graph) == talk_of(*range(7))


async def test_a_checkpoint_that_is_put_again_has_its_new_list(file: Path) -> None:
    async with open_checkpointer(str(file)) as saver:
        await say(chat(saver), 0, 1)
        found = await saver.aget_tuple(THREAD)
        assert found and found.parent_config
        messages = found.checkpoint["channel_values"]["messages"]
        again: Any = {**found.checkpoint, "channel_values": {"messages": messages[1:2]}}
        await saver.aput(found.parent_config, again, found.metadata, {"messages": "9"})
        assert await texts(chat(saver)) == ["reply 0"]


async def test_what_was_pruned_is_gone_from_the_file(file: Path) -> None:
    async with open_checkpointer(str(file)) as saver:
        graph = chat(saver)
        await say(graph, *range(10))
        await graph.aupdate_state(THREAD, {"messages": [RemoveMessage("m7")]})
        await say(graph, 10, 11)
        assert await saver.keep_turns("t", 2) > 20
        before = on_disk(file)
        await saver.give_back()
        after = on_disk(file)
        assert len(after) < len(before) / 2
        assert b"message 7" in before and b"message 7" not in after and b"message 8" in after


async def test_lost_items_are_said(file: Path) -> None:
    async with open_checkpointer(str(file)) as saver:
        graph = chat(saver)
        await say(graph, 0, 1)
        with closing(sqlite3.connect(file)) as connection, connection:
            connection.execute("DELETE FROM items WHERE channel = 'messages' AND number = 1")
        with pytest.raises(Damaged, match="lost items of messages"):
            await texts(graph)
        with pytest.raises(Damaged):
            _ = [each async for each in saver.alist(THREAD)]


async def test_a_deleted_thread_and_a_deleted_run_leave_no_message(file: Path) -> None:
    async with open_checkpointer(str(file)) as saver:
        graph = chat(saver)
        await say(graph, 0)
        await say(graph, 1, config=THREAD | {"metadata": {"run_id": "gone"}})
        await saver.adelete_for_runs(["gone"])
        assert await texts(graph) == talk_of(0)
        assert not rows(file, "SELECT 1 FROM items WHERE instr(value, CAST('message 1' AS BLOB))")
        await saver.adelete_thread("t")
        for table in ("checkpoints", "writes", "items", "spans"):
            assert rows(file, f"SELECT * FROM {table}") == []
        assert b"message 0" not in on_disk(file)


async def test_a_copy_keeps_its_own_messages(file: Path) -> None:
    other: RunnableConfig = {"configurable": {"thread_id": "copy"}}
    async with open_checkpointer(str(file)) as saver:
        graph = chat(saver)
        await say(graph, 0)
        await saver.acopy_thread("t", "copy")
        await say(graph, 1)
        await say(graph, 2, config=other)
        await saver.acopy_thread("t", "copy")
        assert await texts(graph) == talk_of(0, 1)
        assert await texts(graph, other) == ["message 0", "reply 0", "message 2", "reply 1"]
