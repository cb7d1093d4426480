"""Checkpoints in SQLite files and in Postgres: complete, shared by processes, erased when told so."""

import asyncio
import os
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager
from dataclasses import dataclass
from itertools import chain
from operator import add
from pathlib import Path
from typing import Annotated, Any, cast
from uuid import uuid4

import psycopg.sql
import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.channels.delta import DeltaChannel
from langgraph.checkpoint.base import BaseCheckpointSaver, Checkpoint, CheckpointMetadata, empty_checkpoint
from langgraph.checkpoint.conformance import checkpointer_test, validate
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt
from psycopg.conninfo import conninfo_to_dict
from typing_extensions import TypedDict

from mneme.core.errors import BadInput, MnemeError, StorageFailure
from mneme.core.settings import settings
from mneme.stores import database as sql
from mneme.stores import postgres
from mneme.stores.checkpoints.checkpointer import checkpointer, open_checkpointer

NOBODY = 65534
Saver = BaseCheckpointSaver[str]


@pytest.fixture
async def saver(database: str) -> AsyncIterator[Saver]:
    async with open_checkpointer(database) as opened:
        yield opened


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


def thread(name: str, **metadata: str) -> RunnableConfig:
    return {"configurable": {"thread_id": name}, "metadata": metadata}


async def put(saver: Saver, name: str, value: Any, **metadata: Any) -> RunnableConfig:
    """Save one checkpoint of one channel in a thread."""
    checkpoint: Checkpoint = {**empty_checkpoint(), "channel_values": {"x": value}}
    version = f"1.{uuid4().int}"
    checkpoint["channel_versions"] = {"x": version}
    config: RunnableConfig = {"configurable": {"thread_id": name, "checkpoint_ns": ""}}
    described = cast(CheckpointMetadata, {"source": "input", "step": 0, **metadata})
    return await saver.aput(config, checkpoint, described, {"x": version})


async def values(saver: Saver, name: str) -> list[Any]:
    """Return what the checkpoints of a thread hold, newest first."""
    return [each.checkpoint["channel_values"]["x"] async for each in saver.alist(thread(name))]


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


def in_differences() -> Any:
    """Return the builder of a graph that keeps its state as differences."""

    def joined(state: list[str], writes: Sequence[list[str]]) -> list[str]:
        return [*state, *chain.from_iterable(writes)]

    class Deltas(TypedDict):
        notes: Annotated[list[str], DeltaChannel(joined, list)]

    async def note(state: Deltas) -> Deltas:
        return {"notes": ["noted"]}

    return StateGraph(Deltas).add_node(note).add_edge(START, "note")


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


# SQLite only


async def open_and_close(place: AbstractAsyncContextManager[Saver]) -> None:
    async with place:
        pass


async def refused(database: str | Path) -> MnemeError:
    """Return the error that opening a place meets, checked for what every error must have."""
    with pytest.raises(MnemeError) as met:
        await open_and_close(open_checkpointer(str(database)))
    assert met.value.hint
    assert "\n" not in str(met.value)
    return met.value


def bytes_of(path: Path) -> bytes:
    return b"".join(each.read_bytes() for each in path.parent.iterdir() if each.name.startswith(path.name))


async def test_a_deleted_thread_is_gone_from_the_disk(tmp_path: Path) -> None:
    path = tmp_path / "checkpoints.sqlite"
    secrets = {f"t{number}": f"secret-{uuid4().hex}" for number in range(120)}
    async with open_checkpointer(str(path)) as saver:
        for number, (name, secret) in enumerate(secrets.items()):
            config = await put(saver, name, secret * (1 + number * 7 % 400), note=secret)
            await saver.aput_writes(config, [("x", f"write of {secret}")], "task")
        gone, kept = list(secrets)[::2], list(secrets)[1::2]
        assert all(secrets[name].encode() in bytes_of(path) for name in secrets)
        for name in gone:
            await saver.adelete_thread(name)
            assert secrets[name].encode() not in bytes_of(path)
        left = bytes_of(path)
        assert [name for name in gone if secrets[name].encode() in left] == []
        assert [name for name in kept if secrets[name].encode() not in left] == []


async def test_a_pruned_thread_s_past_is_gone_from_the_disk(tmp_path: Path) -> None:
    path = tmp_path / "checkpoints.sqlite"
    async with open_checkpointer(str(path)) as saver:
        await put(saver, "t", "what was said before " * 300)
        await put(saver, "t", "what is said now")
        await saver.aprune(["t"])
        assert b"said before" not in bytes_of(path)
        assert await values(saver, "t") == ["what is said now"]


async def test_traces_that_another_reader_holds_back_are_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "checkpoints.sqlite"
    monkeypatch.setattr(sql, "BUSY_SECONDS", 0.05)
    monkeypatch.setattr(sql, "LOG_WAITS", (0.0, 0.05))
    async with open_checkpointer(str(path)) as saver:
        await put(saver, "t", "secret")
        reader = sqlite3.connect(path)
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM checkpoints").fetchall()
        with pytest.raises(StorageFailure, match="traces remain"):
            await saver.adelete_thread("t")
        assert await values(saver, "t") == []
        reader.close()
        await saver.adelete_thread("t")
        assert b"secret" not in bytes_of(path)


async def test_metadata_that_is_no_json_is_kept_and_in_nobody_s_way(tmp_path: Path) -> None:
    async with open_checkpointer(str(tmp_path / "checkpoints.sqlite")) as saver:
        await put(saver, "t", 1, score=float("nan"), run_id="r")
        await put(saver, "t", 2, run_id="r")
        await saver.adelete_for_runs(["r"])
        await saver.acopy_thread("t", "copy")
        await saver.aprune(["t"])
        assert (await values(saver, "t"), await values(saver, "copy")) == ([1], [1])


async def test_the_settings_name_the_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MNEME_HOME", str(tmp_path / "not" / "there" / "yet"))
    settings.cache_clear()
    await open_and_close(checkpointer())
    settings.cache_clear()
    assert (tmp_path / "not" / "there" / "yet" / "checkpoints.sqlite").exists()


async def test_a_place_that_holds_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("This is no database. " * 100)
    assert isinstance(await refused(tmp_path / "text"), BadInput)
    assert (tmp_path / "text").read_text().startswith("This is no database.")
    assert isinstance(await refused(tmp_path), BadInput)
    assert isinstance(await refused(tmp_path / "text" / "under a file.sqlite"), StorageFailure)
    with sqlite3.connect(tmp_path / "bookmarks.sqlite") as other:
        other.execute("CREATE TABLE bookmarks (url)")
    other.close()
    assert isinstance(await refused(tmp_path / "bookmarks.sqlite"), BadInput)
    assert isinstance(await refused("mysql://localhost/mneme"), BadInput)


@contextmanager
def as_nobody() -> Iterator[None]:
    """Act without root's right to write anywhere."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def read_only() -> Iterator[Path]:
    """Give a folder, outside of what only root may enter, in which nothing can be written."""
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(open_and_close(open_checkpointer(f"{folder}/old.sqlite")))
        Path(folder, "old.sqlite").chmod(0o444)
        Path(folder).chmod(0o555)
        yield Path(folder)
        Path(folder).chmod(0o755)


@pytest.mark.parametrize("name", ["old.sqlite", "new.sqlite", "new/new.sqlite"])
async def test_what_cannot_be_written_is_said_at_once(read_only: Path, name: str) -> None:
    with as_nobody():
        assert isinstance(await refused(read_only / name), StorageFailure)


async def test_a_full_disk_is_an_error_and_tears_nothing(tmp_path: Path) -> None:
    path = tmp_path / "checkpoints.sqlite"
    async with open_checkpointer(str(path)) as saver:
        await put(saver, "t", "before")
        with saver.database.reading() as cursor:
            cursor.execute("PRAGMA max_page_count = 30")
        with pytest.raises(StorageFailure, match="full"):
            await put(saver, "t", "x" * 1_000_000)
        assert await values(saver, "t") == ["before"]
    async with open_checkpointer(str(path)) as saver:
        assert await values(saver, "t") == ["before"]


# Postgres only


async def test_an_address_that_is_none_is_refused_without_telling_the_password() -> None:
    failure = await refused("postgresql://mneme:secret@[nowhere/mneme")
    assert isinstance(failure, BadInput)
    assert "secret" not in str(failure) + failure.hint


async def test_a_postgres_that_is_not_there_is_an_error() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    failure = await refused(f"postgresql://mneme:secret@127.0.0.1:{port}/mneme")
    assert isinstance(failure, StorageFailure)
    assert "secret" not in str(failure)
    assert f"127.0.0.1:{port}" in str(failure)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres, "CONNECT_SECONDS", 1)


@pytest.mark.usefixtures("impatient")
async def test_a_postgres_that_does_not_answer_is_not_waited_for() -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        failure = await refused(f"postgresql://127.0.0.1:{silent.getsockname()[1]}/mneme")
    assert isinstance(failure, StorageFailure)


async def test_a_connection_that_postgres_closed_is_made_anew(postgres_url: str) -> None:
    async with open_checkpointer(postgres_url) as saver:
        await put(saver, "t", 1)
        async with await psycopg.AsyncConnection.connect(postgres_url, autocommit=True) as other:
            await other.execute("""SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                WHERE datname = current_database() AND pid <> pg_backend_pid()""")
        await put(saver, "t", 2)
        assert await values(saver, "t") == [2, 1]


@pytest.mark.usefixtures("impatient")
async def test_a_database_that_is_gone_is_an_error(postgres_url: str, postgres_server: str) -> None:
    async with open_checkpointer(postgres_url) as saver:
        await put(saver, "t", 1)
        async with await psycopg.AsyncConnection.connect(postgres_server, autocommit=True) as other:
            name = psycopg.sql.Identifier(str(conninfo_to_dict(postgres_url)["dbname"]))
            await other.execute(psycopg.sql.SQL("DROP DATABASE {} WITH (FORCE)").format(name))
        with pytest.raises(StorageFailure, match="failed"):
            await put(saver, "t", 2)
