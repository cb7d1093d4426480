"""The library: `mneme.open`, in this process, beside others, and through a server."""

import ast
import asyncio
import copy
import doctest
import pickle
import runpy
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, assert_type

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

import mneme
from mneme.api.memories import Memories
from mneme.core.errors import BadInput
from mneme.core.settings import settings
from mneme.prompts.chat.memory_agent.comparing import compare_memories
from mneme.prompts.chat.memory_agent.reading import read_message
from tests.doubles.brains import by_rules
from tests.doubles.command_line import run_mneme
from tests.doubles.langgraph_server import Server, serving
from tests.doubles.ollama import Model, Reply
from tests.doubles.quiet import quiet
from tests.doubles.served import served
from tests.doubles.waiting import eventually

pytestmark = pytest.mark.usefixtures("no_model")
ROOT = Path(__file__).parents[2]
RULES: Any = {"memory_agent": "rules"}


def test_importing_loads_nothing_and_has_what_it_promises() -> None:
    code = "import mneme, sys; print(sum(m.startswith('mneme.') for m in sys.modules), mneme.__version__)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split()[0] == "0"
    assert all(getattr(mneme, name) for name in mneme.__all__)
    with pytest.raises(AttributeError):
        _ = mneme.nonsense


def test_in_a_node_of_a_langgraph_server_nothing_blocks_the_event_loop(tmp_path: Path) -> None:
    """The server watches its loop in this way; what it has imported itself is imported here before."""
    pytest.importorskip("langgraph_runtime_inmem", reason="the extra `serve` is not installed")
    code = (
        "import asyncio, os, zoneinfo, httpx, langgraph.graph, langgraph.pregel.remote, pydantic.fields\n"
        "from langgraph_runtime_inmem.queue import _enable_blockbuster\n"
        "import mneme\n"
        "async def main():\n"
        "    _enable_blockbuster()\n"
        "    async with mneme.open('ann') as memory:\n"
        "        said = [{'role': 'user', 'content': 'I live in Oslo.'}]\n"
        "        await memory.remember(said, memory_agent='rules')\n"
        "        print([each.text for each in await memory.recall('Where do I live?')], flush=True)\n"
        "    os._exit(0)\n"  # what it patches does not always outlive the interpreter's end
        "asyncio.run(main())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env=quiet(tmp_path), capture_output=True, text=True, check=False
    )
    assert done.stdout == "['I live in Oslo.']\n", done.stderr


@pytest.mark.parametrize("name", ["", *sorted({*mneme.__all__} - {"__version__"})])
def test_every_name_has_an_example_that_is_true(name: str) -> None:
    of = getattr(mneme, name) if name else mneme
    (found,) = doctest.DocTestFinder(recurse=False).find(of, name or "mneme")
    assert found.examples
    assert doctest.DocTestRunner().run(found).failed == 0


def test_a_call_is_held_to_the_declared_bounds_before_anything_is_done() -> None:
    with mneme.open("ann", "team") as memory:
        calls: dict[str, Callable[[], object]] = {
            "limit": lambda: memory.recall("a dog", limit=0),
            "offset": lambda: memory.memories.list(offset=-1),
            "reason": lambda: memory.memories.add("Ann has a dog.", reason="x" * 2001),
            "content": lambda: memory.memories.add(""),
            "to_version": lambda: memory.rollback("key", 0),
            "seconds": lambda: memory.remember("I have a dog.", seconds=-1),
            "claim": lambda: memory.cards.propose("", "why"),
        }
        for field, call in calls.items():
            with pytest.raises(BadInput, match=f"^The request is not valid: {field}: .+") as refused:
                call()
            assert "reference" in refused.value.hint
        with pytest.raises(BadInput, match=r"limit: .*; query: "):
            memory.recall(None, limit=1001)  # type: ignore[arg-type]
        assert memory.memories.count() == 0


def test_a_memory_that_is_not_opened_says_how() -> None:
    unopened: Any = mneme.open("ann")
    with pytest.raises(BadInput, match=r"`with mneme.open\(…\) as memory:`, or `async with`"):
        unopened.recall("Where does she live?")
    assert not hasattr(unopened, "recall")
    with pickle.loads(pickle.dumps(copy.deepcopy(unopened))) as memory:
        assert memory.user == "ann"


def test_a_memory_that_is_closed_says_so() -> None:
    with mneme.open("ann") as memory:
        assert memory.list() == []
    with pytest.raises(BadInput, match="is closed"):
        memory.list()


def test_what_blocks_has_every_operation_with_its_types() -> None:
    """`assert_type` is read by mypy, which `make check` runs."""
    generator = ROOT / "docs" / "generate" / "blocking_stub.py"
    written = runpy.run_path(str(generator))["stub"]()
    kept = (ROOT / "mneme" / "client" / "blocking_memory.pyi").read_text(encoding="utf-8")
    assert ast.dump(ast.parse(kept)) == ast.dump(ast.parse(written)), f"run {generator}"
    with mneme.open("ann") as memory:
        assert {"remember", "recall", "memories"} <= {*dir(memory)}
        assert {*Memories.OFFERED} <= {*dir(memory.memories)}
        assert_type(memory.memories.add("Ann has a dog."), mneme.Written)
        assert_type(memory.recall("a dog", limit=1), Sequence[mneme.MemoryRecord])
        assert_type(memory.remember("I live in Oslo.", **RULES), Sequence[mneme.Remembered])
        assert_type(memory.cards.count(), int)


async def test_a_memory_is_remembered_corrected_taken_back_and_erased() -> None:
    async with mneme.open("ann") as memory:
        (told,) = await memory.remember("I live in Oslo.", **RULES)
        assert told.status == "stored" and told.outcome is not None
        (found,) = await memory.recall("Where does the user live?")
        (kept,) = await memory.list()
        assert kept.key == found.key and found.similarity is not None
        edited = await memory.memories.update(found.key[:8], "The user lives in Bergen.", reason="a slip")
        assert edited.version == 2
        *_, last = await memory.history(found.key)
        assert (last.change.actor, last.change.reason) == ("library", "a slip")
        assert (await memory.rollback(found.key, 1)).memory.content == found.memory.content
        assert len(await memory.export()) == 3
        undone = await memory.undo()
        assert undone is not None and undone.memory.content == "The user lives in Bergen."
        assert (await memory.forget(found.key)).records == 1
        assert not await memory.list()
        with pytest.raises(mneme.MnemeError, match="has no memory"):
            await memory.history(found.key)


async def test_messages_of_every_form_are_taken_and_a_thread_only_once() -> None:
    chat: list[Any] = [
        {"role": "user", "content": "I have a cat.", "time": "2026-01-01T10:00:00+00:00"},
        AIMessage("What is it called?"),
        ToolMessage("42", tool_call_id="t"),
        HumanMessage("My cat is called Zoe."),
    ]
    async with mneme.open("bob") as memory:
        first = await memory.remember(chat, "greeting", **RULES)
        again = await memory.remember(chat, "greeting", **RULES)
        assert [each.message_id for each in first] == [each.message_id for each in again]
        assert {each.status for each in first} == {"stored"}
        assert any("Zoe" in each.memory.content for each in await memory.list())
        wrongs: list[Any] = [5, [5], [{"role": "pope", "content": "x"}], {"content": "x"}, [], "x" * 40_000]
        for wrong in wrongs:
            with pytest.raises(mneme.MnemeError):
                await memory.remember(wrong, **RULES)
        assert await memory.inbox.waiting() == 0


async def test_an_edited_memory_has_the_names_and_the_words_of_its_new_text() -> None:
    async with mneme.open("ann") as memory:
        added = await memory.memories.add("Max lives in Portland with Emily.", entities=["Portland", "Emily"])
        edited = await memory.memories.update(added.key, "Max lives in Boston with Emily.")
        assert sorted(edited.memory.entities) == ["Boston", "Emily", "Max"]
        assert edited.memory.quote == "Max lives in Boston with Emily."
        again = await memory.memories.add("max lives in boston with emily")
        assert (again.is_new, again.key) == (False, added.key)
        then = await memory.list(as_of=added.at)
        assert [each.memory.content for each in then] == ["Max lives in Portland with Emily."]


async def test_a_period_added_to_what_is_known_is_a_change_of_it() -> None:
    async with mneme.open("ann") as memory:
        added = await memory.memories.add("Ann lives in Oslo.", since="2024")
        ended = await memory.memories.add("Ann lives in Oslo.", until="2026-06")
        assert (ended.key, ended.version, ended.is_new) == (added.key, 2, True)
        assert (ended.memory.since, ended.memory.until) == ("2024", "2026-06")
        again = await memory.memories.add("ann lives in oslo", since="2024", until="2026-06")
        assert (again.version, again.is_new) == (2, False)
        _, latest = await memory.memories.history(added.key)
        assert (latest.event, latest.change.reason) == ("update", "its period was added by hand")
        later = await memory.memories.add("Ann lives in Oslo.", since="2027")
        assert later.key != added.key, "it holds at another time"
        rome = await memory.memories.add("Bo lives in Rome.", until="2020")
        await memory.memories.add("Bo lives in Oslo.", since="2024")
        longer = await memory.memories.add("Bo lives in Oslo.", since="2019")
        assert longer.version == 2
        assert longer.memory.may_contradict == [rome.key]


async def test_what_is_not_remembered_in_time_goes_on_and_what_fails_says_so() -> None:
    async with mneme.open("eve") as memory:
        (told,) = await memory.remember("I live in Rome.", **RULES, seconds=0)
        assert told.status == "waiting"
        (later,) = await memory.remember("I like tea.", **RULES)
        assert later.status == "stored"
        assert len(await memory.list()) == 2
        (down,) = await memory.remember("I like figs.", memory_agent="ollama:none")
        (letter,) = await memory.inbox.list()
        assert down.status == "failed" and down.error == letter["error"] != ""
        assert (letter["tries"], letter["status"]) == (0, "waiting")
        with pytest.raises(BadInput, match="'gpt4' names no model"):
            await memory.remember("I like plums.", memory_agent="gpt4")
        assert await memory.inbox.list() == [letter]


async def test_what_rules_have_read_is_read_again_in_the_background(monkeypatch: pytest.MonkeyPatch) -> None:
    brain = by_rules(read_message, compare_memories)
    async with mneme.open("ida") as memory:
        await memory.remember("I live in Rome.", **RULES)
        with served(monkeypatch, Model("small"), brain=brain) as double:
            double.brain = lambda body: (
                Reply(seconds=3600) if "Rome.\\n</message>" in str(body) else brain(body)
            )
            (told,) = await memory.remember("I like tea.", memory_agent="ollama:small")
            assert told.status == "stored", "nothing waits for what is read again"
            assert [each.memory.read_by for each in await memory.list()] == ["rules", "ollama:small"]
            double.brain = brain
            await memory.remember("I like figs.", memory_agent="ollama:small")

            async def is_reread() -> bool:
                return {each.memory.read_by for each in await memory.list()} == {"ollama:small"}

            await eventually(is_reread)


def test_the_class_shows_what_its_objects_can_do() -> None:
    offered = {"remember", "recall", "list", "history", "rollback", "undo", "forget", "export"}
    assert offered == {each for each in dir(mneme.Memory) if not each.startswith("_")}
    assert "the best first" in str(mneme.Memory.recall.__doc__)


def test_blocking_calls_and_a_command_beside_an_idle_program(tmp_path: Path) -> None:
    beside = quiet(tmp_path / "mneme_home")
    with mneme.open("ann", "crew") as memory:
        memory.remember("I live in Oslo.", **RULES)
        listed = run_mneme(("memories", "list", "--user", "ann", "--json"), beside)
        assert "Oslo" in listed.stdout
        assert run_mneme(("memories", "undo", "--user", "ann"), beside).returncode == 0
        assert memory.list() == []
        assert memory.cards.list() == [] and memory.team == "crew"
    with pytest.raises(AttributeError):
        memory.cards.nonsense()  # type: ignore[attr-defined]


@pytest.mark.parametrize("runs", [1, pytest.param(2, marks=pytest.mark.long)])
def test_an_app_of_thirty_lines_remembers(tmp_path: Path, runs: int) -> None:
    app, beside = Path(__file__).parents[2] / "examples" / "app.py", quiet(tmp_path / "mneme_home")
    said = [
        subprocess.run(
            [sys.executable, str(app), words], env=beside, capture_output=True, text=True, check=True
        ).stdout
        for words in ("I live in Oslo.", "Where do I live?")[:runs]
    ]
    assert "nothing yet" in said[0]
    assert runs == 1 or "live in Oslo" in said[1]


async def test_a_store_for_graphs_of_one_s_own() -> None:
    async with mneme.open_store() as store:
        await store.aput(("notes",), "tea", {"text": "green"})
    async with mneme.open_store() as store:
        item = await store.aget(("notes",), "tea")
    assert item is not None and item.value == {"text": "green"}


async def test_blocking_calls_are_refused_in_a_coroutine() -> None:
    with pytest.raises(mneme.MnemeError, match="event loop"), mneme.open():
        pass


async def remembered_once(memory: mneme.Memory) -> str:
    """Call what the library offers, and return the key of what is remembered then."""
    (told,) = await memory.remember("I live in Oslo.", **RULES)
    assert told.status == "stored"
    (found,) = await memory.recall("Where does the user live?")
    with pytest.raises(mneme.MnemeError, match="has no memory"):
        await memory.history("none")
    again = await asyncio.gather(*(memory.history(found.key) for _ in range(5)))
    assert [len(each) for each in again] == [1] * 5
    return found.key


def live_in(home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MNEME_HOME", home)
    settings.cache_clear()


@pytest.mark.xdist_group("server")
async def test_the_same_calls_go_through_a_server(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    live_in(server.environment["MNEME_HOME"], monkeypatch)
    async with mneme.open("lib") as memory:
        await remembered_once(memory)


@pytest.mark.long
@pytest.mark.xdist_group("server")
async def test_they_go_on_when_the_server_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    live_in(str(home), monkeypatch)
    async with mneme.open("ann") as memory:
        with serving(home):
            key = await remembered_once(memory)
        assert [each.key for each in await memory.list()] == [key]
