"""What is forgotten is in no file any more, of the data folder and of the server, with one and without."""

import asyncio
import json
import pickle
import sqlite3
import stat
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from langgraph_sdk.client import LangGraphClient
from langgraph_sdk.errors import APIStatusError

from mneme import graphs
from mneme.api.copies import backups_with, note_backup, note_server
from mneme.api.memories import Memories
from mneme.api.shared_memory import SharedMemory
from mneme.api.threads import Threads
from mneme.client.home import open_operations, open_own_ledger
from mneme.core.errors import Damaged, NotFound
from mneme.core.settings import settings
from mneme.nodes.chat.context import MemoryContext
from mneme.stores.checkpoints.checkpointer import opened_checkpointer
from mneme.stores.ledger.base_store import LedgerStore
from mneme.stores.ledger.ledger import Ledger
from tests.doubles.command_line import Done, Run, failed, run_mneme
from tests.doubles.langgraph_server import Server, serving
from tests.doubles.ledger_files import files_with
from tests.doubles.quiet import quiet
from tests.doubles.waiting import eventually

WORD, LATER, ALONE = "Zanzibarrow", "Quillemere", "Ostrawick"
TOLD = "My sister Emily lives in {}."
SERVED = Path(".langgraph_api", ".langgraph_ops.pckl")
ASKED = "Where does my sister Emily live?"


def ok(done: Done) -> str:
    assert done.returncode == 0, done.stderr + done.stdout
    return done.stdout


def lines(done: Done) -> list[Any]:
    return [json.loads(line) for line in ok(done).splitlines()]


async def say(client: LangGraphClient, user: str, text: str, thread: str = "") -> tuple[str, str]:
    """Say something in a thread, or on a new one; return the thread and the reply."""
    on = thread or (await client.threads.create())["thread_id"]
    given: Any = {"messages": [{"role": "user", "content": text}]}
    context: Any = {"user": user, "chatbot": "rules", "memory_agent": "rules", "debounce": 0}
    state: Any = await client.runs.wait(on, "chatbot", input=given, context=context)
    return on, str(state["messages"][-1]["content"])


async def nowhere(folder: Path, word: str) -> bool:
    return files_with(folder, word) == []


async def key_of(server: Server, user: str, word: str) -> str:
    async with server.operations(Memories, user) as memories:
        found = await memories.list()
    return next((each.key for each in found if word in each.memory.content), "")


async def threads_of(server: Server, user: str) -> set[str]:
    async with server.operations(Threads, user) as threads:
        return {each.id for each in await threads.list()}


async def tell(server: Server, client: LangGraphClient, word: str, user: str) -> list[str]:
    """Tell something in one conversation, and ask for it there and in another."""
    told, _ = await say(client, user, TOLD.format(word))
    await eventually(lambda: key_of(server, user, word))
    other, reply = await say(client, user, ASKED)
    assert word in reply and word in (await say(client, user, ASKED, told))[1]
    return [told, other]


@pytest.mark.xdist_group("server")
async def test_a_forgotten_word_is_nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A word is forgotten through the server, another without it; what else was said stays."""
    home = tmp_path / "home"
    with serving(home) as server:
        async with server.client() as client:
            threads = await tell(server, client, WORD, "ann")
            await say(client, "bob", f"I collect {WORD} stamps.")
            await eventually(lambda: key_of(server, "bob", WORD))
            assert len(files_with(home, WORD)) >= 2, "the search finds what is there"
            await say(client, "ann", "I like plum tea.")
            async with server.operations(Memories, "ann") as memories:
                erased = await memories.forget(await key_of(server, "ann", WORD))
            assert (erased.turns, [*erased.left]) == (3, [])
            assert {*threads} < {*erased.threads}, "and from what a third conversation recalled"
            await eventually(lambda: key_of(server, "ann", "plum tea"))
            assert await key_of(server, "bob", WORD), "another user's memory is another one"
            (of_bob,) = await threads_of(server, "bob") - {server.thread("memory/bob", "bob")}
            bobs: Any = await client.threads.get_state(of_bob)
            assert WORD in str(bobs["values"])
            key = await key_of(server, "bob", WORD)
            ok(server.mneme("memories", "forget", key, "--user", "bob", "--yes"))
            await eventually(lambda: nowhere(home / SERVED.parent, WORD))  # it writes them every ten seconds
            await eventually(lambda: nowhere(home, WORD))
            await it_goes_on(client, threads)
            await threads_are_their_owner_s(server, threads)
            await tell(server, client, LATER, "ann")
    assert files_with(home, WORD) == [], "nor did the server write it again at its end"
    assert str(SERVED) in files_with(home, LATER)
    assert stat.S_IMODE((home / SERVED.parent).stat().st_mode) == 0o700
    assert {stat.S_IMODE(each.stat().st_mode) for each in (home / SERVED.parent).iterdir()} == {0o600}
    monkeypatch.setenv("MNEME_HOME", str(home))
    settings.cache_clear()
    await the_rest_goes_without_a_server(home)


async def it_goes_on(client: LangGraphClient, threads: list[str]) -> None:
    """See that a conversation of which something was erased has all its turns and goes on."""
    state: Any = await client.threads.get_state(threads[0])
    assert [each["content"] for each in state["values"]["messages"]] == [
        "[erased]",
        "[erased]",
        ASKED,
        "[erased]",
    ]
    assert WORD not in (await say(client, "ann", ASKED, threads[0]))[1]


async def threads_are_their_owner_s(server: Server, threads: list[str]) -> None:
    """See that a user lists and deletes own threads only."""
    listed, of_bob = await threads_of(server, "ann"), await threads_of(server, "bob")
    assert listed > {*threads}
    assert of_bob and not of_bob & listed
    async with server.operations(Threads, "bob") as theirs:
        with pytest.raises(NotFound):
            await theirs.delete(threads[1])
    async with server.operations(Threads, "ann") as hers:
        await hers.delete(threads[1])
    left = await threads_of(server, "ann")
    assert left >= listed - {threads[1]}, "the one on which is remembered may have come meanwhile"
    assert threads[1] not in left
    async with server.client() as client:
        with pytest.raises(APIStatusError):
            await client.threads.get(threads[1])


async def the_rest_goes_without_a_server(home: Path) -> None:
    async with open_operations(Memories, "ann") as memories:
        (key,) = [each.key for each in await memories.list() if LATER in each.memory.content]
        left = (await memories.forget(key)).left
        assert sum(str(home / SERVED) in each for each in left) == 1, left
        assert all("start the server" in each for each in left), left
        assert files_with(home, LATER) == [str(SERVED)]
        (home / SERVED).unlink()
        assert files_with(home, "plum tea"), "what else was said stays"
        erased = await memories.forget_everything(threads=True)
        assert erased.threads and not erased.left
    assert files_with(home, "plum tea") == []
    for user, has_threads in (("ann", False), ("bob", True)):
        async with open_operations(Threads, user) as threads:
            assert bool(await threads.list()) == has_threads


def test_the_command_line_does_it_too(tmp_path: Path, mneme: Run) -> None:
    """Also whole conversations where that is asked for, and with the backup named that still has it."""
    home = tmp_path / "home"
    ok(mneme("chat", stdin=f"{TOLD.format(ALONE)}\n"))
    ok(mneme("chat", "--thread", "other", stdin="Good morning.\n"))
    ok(mneme("backup", str(tmp_path / "backup")))
    (found,) = lines(mneme("memories", "list", "--json"))
    (erased,) = lines(mneme("memories", "forget", found["key"], "--with-threads", "--yes", "--json"))
    assert files_with(home, ALONE) == []
    assert [each.split(" of ")[0] for each in erased["backups"]] == [str(tmp_path / "backup")]
    assert {each["name"] for each in lines(mneme("threads", "list", "--json"))} == {"chat/local/other"}
    failed(mneme("threads", "delete", "nothing", "--yes"), "no thread", "threads list")
    assert "chat/local/other" in ok(mneme("threads", "delete", "other", "--yes"))
    assert ok(mneme("threads", "list", "--json")) == ""


class TestServerFiles:
    """The files that a server left."""

    def test_one_that_may_hold_it_is_named_and_no_other(self, tmp_path: Path) -> None:
        def mneme(*words: str, stdin: str = "") -> Done:
            return run_mneme(words, quiet(tmp_path), stdin)

        ok(mneme("chat", stdin="I live in Austin.\n"))
        left = tmp_path / "served" / ".langgraph_api" / ".langgraph_ops.pckl"
        left.parent.mkdir(parents=True)
        left.write_bytes(b"another thread")
        notes = {"servers": [{"folder": str(tmp_path / "served"), "pid": 0}]}
        (tmp_path / "copies.json").write_text(json.dumps(notes))
        threads = [each["id"] for each in lines(mneme("threads", "list", "--json"))]
        assert ok(mneme("memories", "forget", "--all", "--yes"))
        ok(mneme("chat", stdin="I live in Boston.\n"))
        left.write_bytes(pickle.dumps([UUID(each) for each in threads], 2))
        done = mneme("memories", "forget", "--all", "--yes")
        assert done.returncode == 1
        assert str(left) in done.stdout.replace("\n", "")


def test_backups_that_may_hold_it_are_known(tmp_path: Path) -> None:
    settings().home.mkdir()
    assert backups_with(["a key"]) == []
    note_backup(tmp_path / "moved")
    note_backup(tmp_path / "moved")
    note_server()
    assert [each.file for each in backups_with(["a key"])] == [str(tmp_path / "moved")]
    (settings().home / "copies.json").write_text("{broken")
    assert backups_with([str(uuid4())]) == []


async def killed(*_: Any, **__: Any) -> None:
    raise KeyboardInterrupt


FACT = f"Reporting runs on {WORD} since May."
TASK = "Design the reporting database for the sales team. It must answer within a second."


async def test_a_discussion_that_repeats_it_goes_from_its_thread_and_its_files(
    tmp_path: Path, mneme: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files elsewhere are named; where it ends before the ledger is erased, the same again does the rest."""
    (added,) = lines(mneme("add", FACT, "--json"))
    inside, outside = tmp_path / "home" / "written", tmp_path / "outside"
    given = ("--agents", "rules", "--id", "d1", "--max-turns", "4")
    ok(mneme("discuss", TASK, *given, "--out", str(inside)))
    ok(mneme("discuss", "report", "d1", "--out", str(outside)))
    ok(
        mneme(
            "discuss",
            "A name for the new cat of the office",
            "--agents",
            "rules",
            "--id",
            "d2",
            "--out",
            str(inside / "d2"),
        )
    )
    assert files_with(tmp_path / "home", WORD) and files_with(inside, WORD)
    with monkeypatch.context() as here:
        here.setenv("MNEME_HOME", str(tmp_path / "home"))
        here.setattr(Ledger, "forget_records", killed)
        settings.cache_clear()
        async with open_operations(Memories, "local") as memories:
            with pytest.raises(KeyboardInterrupt):
                await memories.forget(added["key"])
    done = mneme("memories", "forget", added["key"], "--yes")
    assert done.returncode == 1, done.stdout
    assert done.stdout.startswith("forgotten: 1 fact, 1 discussion, "), done.stdout
    assert f"- not erased: {outside}: written of a discussion" in " ".join(done.stdout.split()), done.stdout
    assert files_with(tmp_path / "home", WORD) == [] and [*inside.iterdir()] == [inside / "d2"]
    assert [each["name"] for each in lines(mneme("threads", "list", "--json"))] == ["discuss/local/d2"]


def change_checkpoints(folder: Path, change: str) -> None:
    with closing(sqlite3.connect(folder / "checkpoints.sqlite")) as connection, connection:
        connection.execute(f"UPDATE checkpoints SET {change}")


async def test_a_question_about_it_that_nobody_answered_goes_with_its_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MNEME_HOME", str(tmp_path))
    settings.cache_clear()
    ledger = await open_own_ledger()
    await SharedMemory(ledger, "ann").set_policy("analysts", "ask", ["reporting"])
    async with opened_checkpointer() as saver:
        builder = graphs.load("remember").builder
        graph = builder.compile(store=LedgerStore(ledger), checkpointer=saver)
        config: Any = {"configurable": {"thread_id": str(uuid4())}, "metadata": {"user": "ann"}}
        context = MemoryContext(user="ann", memory_agent="rules", asks_owner=True)
        given: Any = {"messages": [{"role": "user", "content": f"Reporting is in {WORD}."}]}
        state = await graph.ainvoke(given, config, context=context)
    (asked,) = state["__interrupt__"]
    assert WORD in str(asked.value) and "checkpoints.sqlite" in files_with(tmp_path, WORD)
    change_checkpoints(tmp_path, "type = 'x' || type")
    with pytest.raises(Damaged, match=config["configurable"]["thread_id"]):
        await Memories(ledger, "ann").forget(asked.value["key"])
    change_checkpoints(tmp_path, "type = substr(type, 2)")
    await Memories(ledger, "ann").forget(asked.value["key"])
    await ledger.close()
    assert files_with(tmp_path, WORD) == []


def test_a_household_run_that_was_shown_it_and_repeats_it_goes(tmp_path: Path, mneme: Run) -> None:
    (added,) = lines(mneme("add", "At home we keep the wine in the fridge.", "--json"))
    for name, tokens in (("shown", "300"), ("alone", "0")):
        given = ("--agents", "rules", "--id", name, "--shared-tokens", tokens)
        mneme("household", "run", "--task", "Prepare Tea", "--seed", "0", *given)
    erased = ok(mneme("memories", "forget", added["key"], "--yes"))
    assert erased.startswith("forgotten: 1 fact, 1 household run; "), erased
    assert [run["run"] for run in lines(mneme("household", "list", "--json"))] == ["alone"]
    (thread,) = lines(mneme("threads", "list", "--json"))
    assert thread["name"].startswith("household/alone/")


@pytest.mark.xdist_group("server")
async def test_a_run_under_way_is_stopped_and_goes_on_without_what_was_forgotten(tmp_path: Path) -> None:
    """One that was shown it and repeats it goes, as it does at rest; neither holds up who forgets."""
    known = "At home we keep each waterglass in the bathroom cabinet."
    with serving(tmp_path / "home") as server:
        async with server.client() as client, server.operations(Memories, "local") as memories:
            for text, is_shown in (("At home we keep the wine in the fridge.", False), (known, True)):
                words = (
                    "--task",
                    "Set up Table",
                    "--members",
                    "3",
                    "--seed",
                    "4",
                    "--id",
                    f"r{is_shown:d}",
                )
                command = ("household", "run", *words, "--agents", "rules")
                key = (await memories.add(text)).key
                playing = asyncio.create_task(asyncio.to_thread(server.mneme, *command))
                await eventually(partial(under_way, client, f"household/r{is_shown:d}/"))
                erased = await memories.forget(key)
                told = (len(erased.stopped), erased.kinds.get("household run", 0))
                assert told == ((0, 1) if is_shown else (1, 0)) and not erased.left
                failed(await playing, "The run was stopped.", "the same command goes on")
                assert "done in 16 steps" in ok(await asyncio.to_thread(server.mneme, *command))
                assert files_with(tmp_path / "home", text) == []


async def under_way(client: LangGraphClient, name: str) -> bool:
    """Say whether a household run has played a step and goes on."""
    for thread in await client.threads.search(status="busy", metadata={"graph_id": "mita"}):
        state: Any = await client.threads.get_state(thread["thread_id"])
        if (state["metadata"] or {}).get("thread_name", "").startswith(name):
            return bool(state["values"].get("steps"))
    return False
