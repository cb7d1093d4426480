"""Checkpoints in SQLite files and in Postgres: complete, and shared by processes."""

import asyncio
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from functools import partial
from operator import add
from pathlib import Path
from typing import Annotated

import pytest
from langgraph.checkpoint.conformance import checkpointer_test, validate
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt
from typing_extensions import TypedDict

from mneme.core.errors import BadInput
from mneme.stores.checkpoints.checkpointer import open_checkpointer
from tests.doubles.checkpoints import Saver, in_differences, put, thread, values
from tests.doubles.waiting import eventually


class Notes(TypedDict, total=False):
    notes: Annotated[list[str], add]


def asks_inside() -> StateGraph[Notes]:
    """Make a graph whose subgraph asks a person for a note."""

    async def ask(state: Notes) -> Notes:
        return {"notes": [str(interrupt("which note?"))]}

    async def sign(state: Notes) -> Notes:
        return {"notes": ["signed"]}

    inner = StateGraph(Notes).add_node("ask", ask).add_edge(START, "ask").compile()
    outer = StateGraph(Notes).add_node("inner", inner).add_node("sign", sign)
    outer.add_edge(START, "inner").add_edge("inner", "sign").add_edge("sign", END)
    return outer


async def test_the_conformance_package_passes_in_full(database: str) -> None:
    @checkpointer_test(name=database)
    async def ours() -> AsyncIterator[Saver]:
        async with open_checkpointer(database) as opened:
            yield opened

    report = await validate(ours)
    assert {name: result.failures for name, result in report.results.items() if not result.passed} == {}
    assert len(report.results) == 8


async def test_a_copied_thread_goes_on_by_itself(saver: Saver) -> None:
    graph = asks_inside().compile(checkpointer=saver)
    await graph.ainvoke({"notes": ["first"]}, thread("old"))
    await saver.acopy_thread("old", "new")
    await saver.acopy_thread("old", "new")

    await graph.ainvoke(Command(resume="mine"), thread("new"))

    assert (await graph.aget_state(thread("new"))).values == {"notes": ["first", "first", "mine", "signed"]}
    assert (await graph.aget_state(thread("old"))).next == ("inner",)


async def has_writes(saver: Saver, name: str) -> bool:
    saved = await saver.aget_tuple(thread(name))
    return saved is not None and bool(saved.pending_writes)


async def test_a_step_that_is_stopped_before_it_knows_the_next_is_run_again(saver: Saver) -> None:
    """Its output alone would pass for all that it did: the run would end, and nothing would come next."""
    choosing, may_choose = asyncio.Event(), asyncio.Event()

    async def note(state: Notes) -> Notes:
        return {"notes": ["noted"]}

    async def after(state: Notes) -> str:
        choosing.set()
        await may_choose.wait()
        return "sign"

    async def sign(state: Notes) -> Notes:
        return {"notes": ["signed"]}

    builder = StateGraph(Notes).add_node(note).add_node(sign).add_edge(START, "note").add_edge("sign", END)
    graph = builder.add_conditional_edges("note", after, ["sign"]).compile(checkpointer=saver)

    async def run() -> None:
        async for _ in graph.astream({"notes": ["first"]}, thread("stopped"), stream_mode="custom"):
            pass

    running = asyncio.create_task(run())
    await choosing.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    await eventually(partial(has_writes, saver, "stopped"))  # LangGraph does not wait for them
    may_choose.set()
    assert await graph.ainvoke(None, thread("stopped")) == {"notes": ["first", "noted", "signed"]}


async def test_a_thread_is_copied_whole_while_it_is_written(saver: Saver) -> None:
    async def write() -> None:
        for number in range(40):
            await put(saver, "old", [{"n": number}])

    writing, copies = asyncio.create_task(write()), list[str]()
    while not writing.done():
        copies.append(f"copy {len(copies)}")
        await saver.acopy_thread("old", copies[-1])
    await writing
    for copy in copies:
        numbers = [said["n"] for [said] in await values(saver, copy)]
        assert numbers == [*reversed(range(len(numbers)))]


async def test_a_copy_is_of_the_new_thread_in_its_metadata_too(saver: Saver) -> None:
    await put(saver, "old", 1, thread_id="old", run_id="r")
    await saver.acopy_thread("old", "new")
    (copy,) = [each async for each in saver.alist(thread("new"))]
    assert copy.metadata.items() >= {"thread_id": "new", "run_id": "r"}.items()


async def test_runs_are_deleted_wherever_they_wrote_and_no_other(saver: Saver) -> None:
    await put(saver, "a", ["kept"], run_id="kept")
    gone = await put(saver, "a", ["gone"], run_id="gone")
    await saver.aput_writes(gone, [("x", "pending")], "task")
    await put(saver, "b", ["gone too"], run_id="gone")
    await put(saver, "b", ["of no run"])

    await saver.adelete_for_runs(["gone", "never was", "'; DROP TABLE checkpoints; --"])

    assert await values(saver, "a") == [["kept"]]
    assert await values(saver, "b") == [["of no run"]]
    assert await saver.aget_tuple(gone) is None


async def test_pruning_keeps_what_a_waiting_thread_needs(saver: Saver) -> None:
    graph = asks_inside().compile(checkpointer=saver)
    for number in range(3):
        await graph.ainvoke({"notes": [str(number)]}, thread("t"))
        await graph.ainvoke(Command(resume=f"answer {number}"), thread("t"))
    await graph.ainvoke({"notes": ["last"]}, thread("t"))
    before = await graph.aget_state(thread("t"))
    assert len([each async for each in saver.alist(thread("t"))]) > 10

    await saver.aprune(["t"])

    left = [each async for each in saver.alist(thread("t"))]
    assert len(left) == 2, "the root's latest and the waiting subgraph's latest"
    assert all(each.parent_config is None for each in left)
    assert (await graph.aget_state(thread("t"))).values == before.values
    done = await graph.ainvoke(Command(resume="after"), thread("t"))
    assert done["notes"][-2:] == ["after", "signed"]


async def test_a_thread_kept_as_differences_is_not_pruned_to_nothing(saver: Saver) -> None:
    graph = in_differences().compile(checkpointer=saver)
    await graph.ainvoke({"notes": ["first"]}, thread("t"))
    with pytest.raises(BadInput, match="differences"):
        await saver.aprune(["t"])
    assert (await graph.aget_state(thread("t"))).values == {"notes": ["first", "noted"]}
    await saver.aprune(["t"], strategy="delete_all")
    assert await saver.aget_tuple(thread("t")) is None


async def test_an_unknown_way_to_prune_deletes_nothing(saver: Saver) -> None:
    await put(saver, "t", 1)
    with pytest.raises(BadInput, match="not a way to prune"):
        await saver.aprune(["t"], strategy="keep_some")
    with pytest.raises(BadInput, match="not a way to prune"):
        await saver.aprune([], strategy="keep_some")
    assert await values(saver, "t") == [1]


@dataclass
class Payload:
    """What somebody who can write to the database would like a reader to make."""

    command: str


async def test_no_class_is_made_of_what_is_stored(saver: Saver) -> None:
    await put(saver, "t", Payload("rm -rf /"))
    (found,) = await values(saver, "t")
    assert found == {"command": "rm -rf /"}


async def test_a_caller_may_ask_while_it_lists(saver: Saver) -> None:
    for number in range(3):
        await put(saver, "t", number)
    asked = [await saver.aget_tuple(each.config) async for each in saver.alist(thread("t"))]
    assert len(asked) == 3


async def test_a_graph_runs_without_an_event_loop(saver: Saver) -> None:
    def run() -> None:
        graph = StateGraph(Notes).add_node("sign", lambda _: {"notes": ["signed"]}).add_edge(START, "sign")
        signing = graph.compile(checkpointer=saver)
        for number in range(2):
            signing.invoke({"notes": [str(number)]}, thread("t"))
        assert signing.get_state(thread("t")).values == {"notes": ["0", "signed", "1", "signed"]}
        assert len([*signing.get_state_history(thread("t"))]) == 6
        saver.delete_thread("t")
        assert signing.get_state(thread("t")).values == {}

    await asyncio.to_thread(run)


async def test_a_cancelled_write_leaves_the_database_free(database: str) -> None:
    async with open_checkpointer(database) as one, open_checkpointer(database) as other:
        for number in range(40):
            task = asyncio.ensure_future(put(one, "t", number))
            await asyncio.sleep(number / 20000)  # wherever it is by then
            task.cancel()
            await asyncio.wait([task])
            await put(other, "t", number)
        assert len(await values(other, "t")) >= 40


TURNS = """
import asyncio, sys
from operator import add
from typing import Annotated
from typing_extensions import TypedDict
from langgraph.graph import START, StateGraph
from mneme.stores.checkpoints.checkpointer import open_checkpointer

class State(TypedDict):
    notes: Annotated[list[str], add]

async def step(state: State) -> State:
    return {"notes": ["stepped"]}

async def turns(graph, name):
    for _ in range(15):
        await graph.ainvoke({"notes": ["asked"]}, {"configurable": {"thread_id": name}})

async def main(database, name):
    async with open_checkpointer(database) as saver:
        graph = StateGraph(State).add_node(step).add_edge(START, "step").compile(checkpointer=saver)
        await asyncio.gather(*(turns(graph, f"{name}-{number}") for number in range(4)))
        await saver.adelete_thread(f"{name}-3")

asyncio.run(main(sys.argv[1], sys.argv[2]))
"""


def run_python(code: str, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
    )


@pytest.mark.long
async def test_processes_share_a_place_that_none_has_opened_before(database: str) -> None:
    running = [run_python(TURNS, database, f"process-{number}") for number in range(3)]
    errors = [(await asyncio.to_thread(each.communicate))[1] for each in running]
    assert [each.returncode for each in running] == [0, 0, 0], errors
    assert "locked" not in "".join(errors)
    async with open_checkpointer(database) as saver:
        for number in range(3):
            latest = await saver.aget_tuple(thread(f"process-{number}-0"))
            assert latest is not None
            assert latest.checkpoint["channel_values"]["notes"] == ["asked", "stepped"] * 15
            assert await saver.aget_tuple(thread(f"process-{number}-3")) is None


OPENS = """
import asyncio, sys, time
from mneme.stores.checkpoints.checkpointer import open_checkpointer

async def open_and_close(path):
    async with open_checkpointer(path):
        pass

print("ready", flush=True)
start = float(sys.stdin.readline())
for number in range(40):
    time.sleep(max(0, start + number / 20 - time.time()))
    asyncio.run(open_and_close(f"{sys.argv[1]}/{number}.sqlite"))
"""


@pytest.mark.long
def test_processes_open_new_places_at_the_same_moment(tmp_path: Path) -> None:
    running = [run_python(OPENS, str(tmp_path)) for _ in range(4)]
    assert [each.stdout.readline() for each in running if each.stdout] == ["ready\n"] * 4
    start = f"{time.time() + 0.2}\n"
    for each in running:
        each.stdin.write(start)  # type: ignore[union-attr]
        each.stdin.flush()  # type: ignore[union-attr]
    errors = [each.communicate()[1] for each in running]
    assert [each.returncode for each in running] == [0] * 4, errors


KILLED = """
import asyncio, os, signal, sys
from operator import add
from pathlib import Path
from typing import Annotated
from typing_extensions import TypedDict
from langgraph.graph import START, StateGraph
from mneme.stores.checkpoints.checkpointer import open_checkpointer

class State(TypedDict):
    notes: Annotated[list[str], add]

async def first(state: State) -> State:
    with Path(sys.argv[2]).open("a") as log:
        log.write("first ran\\n")
    return {"notes": ["first"]}

async def second(state: State) -> State:
    if sys.argv[3] == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    return {"notes": ["second"]}

async def main():
    async with open_checkpointer(sys.argv[1]) as saver:
        graph = StateGraph(State).add_node(first).add_node(second)
        graph.add_edge(START, "first").add_edge("first", "second")
        given = {"notes": ["asked"]} if sys.argv[3] == "die" else None
        turn = graph.compile(checkpointer=saver).ainvoke
        done = await turn(given, {"configurable": {"thread_id": "t"}}, durability="sync")
        assert done["notes"] == ["asked", "first", "second"], done

asyncio.run(main())
"""


def test_a_turn_killed_in_the_middle_goes_on_where_it_was(database: str, tmp_path: Path) -> None:
    log = tmp_path / "log"
    killed = run_python(KILLED, database, str(log), "die")
    killed.communicate()
    assert killed.returncode == -9
    resumed = run_python(KILLED, database, str(log), "resume")
    assert (resumed.communicate()[1], resumed.returncode) == ("", 0)
    assert log.read_text() == "first ran\n"
