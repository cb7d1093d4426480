"""What is forgotten is in no file any more, of the data folder and of the server, with one and without."""

import json
import os
import pickle
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph_sdk.client import LangGraphClient
from langgraph_sdk.errors import APIStatusError

from mneme.api import inert_pickle, server_tables
from mneme.api.copies import backups_with, note_backup, note_server
from mneme.api.memories import MemoryOperations
from mneme.api.threads import ThreadOperations
from mneme.client.home import open_operations
from mneme.core.settings import settings
from mneme.evals.commands import quiet
from mneme.stores.checkpoints.erasing import Eraser
from mneme.stores.users.told import Told
from tests.doubles.command_line import Done, failed, run_mneme
from tests.doubles.langgraph_server import Server, serving
from tests.doubles.waiting import eventually

WORD, LATER, ALONE = "Zanzibarrow", "Quillemere", "Ostrawick"
TOLD = "My sister Emily lives in {}."
ASKED = "Where does my sister Emily live?"
WHY: Any = {"reason": "a test", "actor": "test"}


def holding(folder: Path, word: str) -> list[str]:
    """Return the files below a folder that have a word in them, at any place."""
    files = [file for file in folder.rglob("*") if file.is_file()]
    return [str(file.relative_to(folder)) for file in files if word.encode() in file.read_bytes()]


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


async def asked_of(server: Server, operation: str, user: str, **arguments: Any) -> Any:
    """Ask the server for an operation on a user's data; return its result, or its error."""
    async with httpx.AsyncClient(timeout=None) as client:
        body = {"owner": user, "arguments": arguments}
        return (await client.post(f"{server.url}/mneme/{operation}", json=body)).json()


async def key_of(server: Server, user: str, word: str) -> str:
    found = await asked_of(server, "memories/list", user)
    return next((each["key"] for each in found if word in each["memory"]["content"]), "")


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
            assert len(holding(home, WORD)) >= 3, "the search finds what is there"
            await say(client, "ann", "I like plum tea.")
            erased = await asked_of(
                server, "memories/forget", "ann", key=await key_of(server, "ann", WORD), **WHY
            )
            assert (erased["turns"], erased["left"]) == (3, [])
            assert set(threads) < set(erased["threads"]), "and from what a third conversation recalled"
            await eventually(lambda: key_of(server, "ann", "plum tea"))
            assert await key_of(server, "bob", WORD), "another user's memory is another one"
            bobs: Any = await client.threads.get_state(
                (await asked_of(server, "threads/list", "bob"))[0]["id"]
            )
            assert WORD in str(bobs["values"])
            key = await key_of(server, "bob", WORD)
            ok(server.mneme("memories", "forget", key, "--user", "bob", "--yes"))
            assert holding(home, WORD) == []
            await it_goes_on(client, threads)
            await threads_are_their_owner_s(server, threads)
            await tell(server, client, LATER, "ann")
    assert holding(home, WORD) == [], "nor did the server write it again at its end"
    assert ".langgraph_api/.langgraph_ops.pckl" in holding(home, LATER)
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
    listed = {each["id"]: each for each in await asked_of(server, "threads/list", "ann")}
    assert listed.keys() > set(threads)
    of_bob = {each["id"] for each in await asked_of(server, "threads/list", "bob")}
    assert of_bob and not of_bob & listed.keys()
    refused = await asked_of(server, "threads/delete", "bob", name=threads[1])
    assert refused["error"] == "NotFound"
    await asked_of(server, "threads/delete", "ann", name=threads[1])
    assert {each["id"] for each in await asked_of(server, "threads/list", "ann")} == listed.keys() - {
        threads[1]
    }
    async with server.client() as client:
        with pytest.raises(APIStatusError):
            await client.threads.get(threads[1])


async def the_rest_goes_without_a_server(home: Path) -> None:
    async with open_operations(MemoryOperations, "ann") as memories:
        (key,) = [each.key for each in await memories.list() if LATER in each.memory.content]
        assert not (await memories.forget(key, **WHY)).left
        assert holding(home, LATER) == []
        assert holding(home, "plum tea"), "what else was said stays"
        erased = await memories.forget_everything(**WHY, threads=True)
        assert erased.threads and not erased.left
    assert holding(home, "plum tea") == []
    for user, has_threads in (("ann", False), ("bob", True)):
        async with open_operations(ThreadOperations, user) as threads:
            assert bool(await threads.list()) == has_threads


def test_the_command_line_does_it_too(tmp_path: Path) -> None:
    """Also whole conversations where that is asked for, and with the backup named that still has it."""
    home = tmp_path / "home"

    def mneme(*words: str, stdin: str = "") -> Done:
        return run_mneme(words, quiet(home), stdin)

    ok(mneme("chat", stdin=f"{TOLD.format(ALONE)}\n"))
    ok(mneme("chat", "--thread", "other", stdin="Good morning.\n"))
    ok(mneme("backup", str(tmp_path / "backup")))
    (found,) = lines(mneme("memories", "list", "--json"))
    (erased,) = lines(mneme("memories", "forget", found["key"], "--with-threads", "--yes", "--json"))
    assert holding(home, ALONE) == []
    assert [each.split(" of ")[0] for each in erased["backups"]] == [str(tmp_path / "backup")]
    assert {each["name"] for each in lines(mneme("threads", "list", "--json"))} == {"chat/local/other"}
    failed(mneme("threads", "delete", "nothing", "--yes"), "no thread", "threads list")
    assert "chat/local/other" in ok(mneme("threads", "delete", "other", "--yes"))
    assert ok(mneme("threads", "list", "--json")) == ""


class TestServerFiles:
    """The files that a server left."""

    def test_no_code_in_them_runs(self, tmp_path: Path) -> None:
        class Harm:
            def __reduce__(self) -> tuple[Any, ...]:
                return os.mkdir, (str(tmp_path / "harm"),)

        rows = [{"values": [HumanMessage("tea", id="1"), AIMessage("plum")], "harm": Harm()}]
        tables = {"threads": rows, "at": datetime.now(UTC), "id": UUID(int=3), "kinds": {1, "a"}}
        inert = inert_pickle.load(pickle.dumps(tables, inert_pickle.PROTOCOL))
        written = inert_pickle.dump(inert_pickle.load(inert_pickle.dump(inert)))
        assert not (tmp_path / "harm").exists()
        read: Any = pickle.loads(written)
        assert (tmp_path / "harm").exists(), "it is the same file for whoever loads it"
        assert {**read, "threads": []} == {**tables, "threads": []}
        assert read["threads"][0]["values"] == rows[0]["values"]

    def test_messages_in_them_are_erased(self) -> None:
        eraser = Eraser(Told(frozenset({"told"})), lambda reply: False)
        row = {"thread_id": UUID(int=1), "values": {"messages": [HumanMessage("In A.", id="told")]}}
        tables = inert_pickle.load(pickle.dumps({"threads": [row], "runs": []}, inert_pickle.PROTOCOL))
        assert server_tables.erase(tables, {str(UUID(int=1))}, eraser)
        cleaned: Any = pickle.loads(inert_pickle.dump(tables))
        assert cleaned["threads"][0]["values"]["messages"] == [HumanMessage("[erased]", id="told")]
        assert not server_tables.delete(tables, {str(UUID(int=2))})
        assert server_tables.delete(tables, {str(UUID(int=1))})
        assert tables["threads"] == []

    def test_broken_ones_are_refused(self) -> None:
        for broken in (b"", b"no pickle", pickle.dumps([1])[:-2]):
            with pytest.raises(ValueError, match="cannot be read"):
                inert_pickle.load(broken)

    def test_one_that_cannot_be_cleaned_is_named(self, tmp_path: Path) -> None:
        def mneme(*words: str, stdin: str = "") -> Done:
            return run_mneme(words, quiet(tmp_path), stdin)

        ok(mneme("chat", stdin="I live in Austin.\n"))
        left = tmp_path / "served" / ".langgraph_api" / ".langgraph_ops.pckl"
        left.parent.mkdir(parents=True)
        left.write_bytes(b"no pickle")
        notes = {"servers": [{"folder": str(tmp_path / "served"), "pid": 0}]}
        (tmp_path / "copies.json").write_text(json.dumps(notes))
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
