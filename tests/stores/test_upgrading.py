"""Ledgers of format 1: opened by this version, everything is found, also after a kill half way.

`data/home_of_format_1.tar.xz` is the home folder of the team and user `ann.b` as that version left it,
with 4 pairs of each pool and without the thread of a household run; `said/` is what its commands printed.
"""

import asyncio
import json
import os
import sys
import tarfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from mneme.stores.ledger.edge import EdgeEngine
from mneme.stores.ledger.manifest import Manifest
from mneme.stores.ledger.server import ServerEngine
from mneme.stores.ledger.server_collection import MANIFEST_ID
from qdrant_client import AsyncQdrantClient

from mneme.api.cards import Cards
from mneme.api.discussions import TeamDiscussions
from mneme.api.inbox import Messages
from mneme.api.memories import Memories
from mneme.api.pools import Pools
from mneme.core.errors import StorageFailure
from mneme.graphs.chatbot import builder
from mneme.nodes.chat.context import ChatContext
from mneme.stores.checkpoints.checkpointer import open_checkpointer
from mneme.stores.episodes.episodic_memory import EpisodicMemory
from mneme.stores.ledger import upgrading
from mneme.stores.ledger.base_store import LedgerStore
from mneme.stores.ledger.ledger import Ledger, open_ledger
from mneme.stores.ledger.namespaces import escaped, is_escaped, team_namespace
from mneme.stores.ledger.records import Change, Namespace, Version
from mneme.stores.pools.lessons import RetrieverLessons
from mneme.stores.pools.memory_pool import MemoryPool
from tests.doubles.embedding import WordEmbedder
from tests.doubles.qdrant_server import at

ROOT = Path(__file__).parents[2]
HOME = Path(__file__).parent / "data" / "home_of_format_1.tar.xz"
OWNER = "ann.b"
POOLS = ("literary_creation", "plan_generation", "unconventional_logic")
CHAT = "a789d277-1efb-5fd1-a27b-207df483892f"
RUN = "cfdafc7c-8b8e-53fc-831d-311465a323cb"
RULES = ChatContext(user=OWNER, chatbot="rules", memory_agent="rules")
SAID = Change(reason="said so", actor="agent")

Opening = Callable[[], Awaitable[Ledger]]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    with tarfile.open(HOME) as archive:
        archive.extraction_filter = getattr(tarfile, "data_filter", None)  # Python 3.11.2 has none
        archive.extractall(tmp_path)
    return tmp_path / "home"


def embedder() -> WordEmbedder:
    """Return a double under the name of the embedder that the home's ledger was made with."""
    return WordEmbedder("bundled:all-MiniLM-L6-v2", 384)


async def opened(home: Path) -> Ledger:
    return await open_ledger(str(home / "ledger"), embedder())


def said(home: Path, command: str) -> list[Any]:
    return [json.loads(line) for line in (home / "said" / f"{command}.json").read_text().splitlines()]


def as_json(found: Any) -> list[Any]:
    return [each.model_dump(mode="json") for each in found]


class TestAHomeOfFormat1:
    async def test_everything_is_found(self, home: Path) -> None:
        ledger = await opened(home)
        await everything_is_found(home, ledger)
        await ledger.close()

    async def test_it_is_upgraded_once(self, home: Path) -> None:
        assert format_of(home) == 1
        await (await opened(home)).close()
        manifest = (home / "ledger" / "mneme.json").read_text()
        assert format_of(home) == 2
        await (await opened(home)).close()
        assert (home / "ledger" / "mneme.json").read_text() == manifest

    async def test_no_name_of_a_team_is_left_as_it_was(self, home: Path) -> None:
        ledger = await opened(home)
        names = {namespace[1] for namespace in await ledger.namespaces(include_retired=True)}
        assert names == {"ann%2Eb"}
        await ledger.close()

    async def test_threads_are_read_and_go_on(self, home: Path) -> None:
        ledger = await opened(home)
        async with open_checkpointer(str(home / "checkpoints.sqlite")) as saver:
            threads = {each.config["configurable"]["thread_id"] async for each in saver.alist(None)}
            assert len(threads) == 6
            remembered = await saver.aget_tuple({"configurable": {"thread_id": RUN}})
            assert remembered is not None
            graph = builder.compile(store=LedgerStore(ledger), checkpointer=saver)
            config: Any = {"configurable": {"thread_id": CHAT}}
            before = (await graph.aget_state(config)).values["messages"]
            assert before[0].text == "Hello, my sister Emily lives in Portland."
            given: Any = {"messages": [HumanMessage("Where does my sister Emily live?")]}
            told = await graph.ainvoke(given, config, context=RULES)
            assert [each.text for each in told["messages"][: len(before)]] == [each.text for each in before]
            assert "Portland" in told["messages"][-1].text
        await ledger.close()

    @pytest.mark.parametrize(
        "moment",
        [
            "all copies",
            *(pytest.param(each, marks=pytest.mark.long) for each in ("the first copies", "the removal")),
        ],
    )
    async def test_a_kill_half_way_loses_nothing(self, home: Path, moment: str) -> None:
        killed = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tests.stores.test_upgrading", str(home), moment),
            env=os.environ | {"PYTHONPATH": str(ROOT)},
        )
        assert await killed.wait() == KILLED
        assert format_of(home) == 1
        ledger = await opened(home)
        await everything_is_found(home, ledger)
        assert {each[1] for each in await ledger.namespaces(include_retired=True)} == {"ann%2Eb"}
        await ledger.close()


def format_of(home: Path) -> int:
    return Manifest.model_validate_json((home / "ledger" / "mneme.json").read_text()).format


async def everything_is_found(home: Path, ledger: Ledger) -> None:
    memories = Memories(ledger, OWNER)
    kept = said(home, "mem")
    assert without_new_fields(as_json(await memories.list()), kept) == kept
    assert await Messages(ledger, OWNER).waiting() == 0
    cards = Cards(ledger, OWNER)
    kept = said(home, "cards")
    assert without_new_fields(as_json(await cards.list()), kept) == kept
    assert [task.id for task in await cards.list_tasks()] == ["t1"]
    await pools_are_found(ledger)
    await a_discussion_is_found(said(home, "disc")[0], ledger)
    [episode] = await EpisodicMemory(ledger, OWNER, "home-3").recall()
    assert episode.success
    steps = await ledger.namespaces(team_namespace(OWNER, "task_memory", "intrinsic"))
    assert [namespace[-1] for namespace in steps] == ["second_agent", "solver"]


def without_new_fields(now: Any, then: Any) -> Any:
    """Leave out what has been added to records since; it must be empty."""
    if isinstance(now, dict) and isinstance(then, dict):
        assert not any(value for name, value in now.items() if name not in then)
        return {name: without_new_fields(now[name], then[name]) for name in now if name in then}
    if isinstance(now, list) and isinstance(then, list) and len(now) == len(then):
        return [without_new_fields(*both) for both in zip(now, then, strict=True)]
    return now


async def pools_are_found(ledger: Ledger) -> None:
    found = await Pools(ledger, OWNER).list()
    assert [(each.pool, each.memories, each.waiting) for each in found] == [(name, 4, 4) for name in POOLS]
    for name in POOLS:
        pool = MemoryPool(ledger, OWNER, name)
        vectors = await pool.vectors()
        for pair in await pool.first(4):
            vector = vectors[pool.point(pair.key)]
            [nearest] = await pool.retrieve(pair.pair.prompt, 1, vector=vector)
            assert nearest.key == pair.key
            assert nearest.similarity == pytest.approx(1, abs=1e-4)
            assert pair.key in [each.key for each in await pool.retrieve(pair.pair.answer, 4, mode="bm25")]
            assert not await pool.add(pair.pair, change=SAID)  # it is known
        keys = [pair.key for pair in await pool.first(4)]
        assert len(await RetrieverLessons(pool).vectors(keys)) == 4


async def a_discussion_is_found(expected: dict[str, Any], ledger: Ledger) -> None:
    discussions = TeamDiscussions(ledger, OWNER)
    [found] = await discussions.list()
    told = found.model_dump(mode="json")
    assert {name: told[name] for name in expected if name in told} == {
        name: value for name, value in expected.items() if name in told
    }
    turns = await discussions.turns(found.id)
    assert [turn.number for turn in turns] == list(range(1, 28))
    history = await discussions.memory_history(found.id, "data_engineer")
    assert [each.version for each in history] == list(range(1, len(history) + 1))
    assert len(history) > 1


class TestNames:
    @pytest.mark.parametrize("name", ["red", "ann.b", "50%", "a%25b", "a%2Eb", "ann.b/red"])
    def test_what_is_escaped_is_known_as_such(self, name: str) -> None:
        assert is_escaped(escaped(name))

    @pytest.mark.parametrize("name", ["ann.b", "50%", "a%2eb", "a.%25"])
    def test_what_was_never_escaped_is_known_as_such(self, name: str) -> None:
        assert not is_escaped(name)


def below(team: str, *rest: str) -> Namespace:
    """Return a namespace as format 1 wrote it."""
    return ("teams", team, *rest)


async def write_as_format_1(ledger: Ledger) -> dict[Namespace, list[Version]]:
    """Write records of teams with all kinds of names; return their histories under their new namespaces."""
    expected = {}
    for team in ("red", "ann.b", "50%", "ann.b/x%y"):
        for rest in (("rubrics",), ("pools", "p", "pairs"), ("discussions", "d", "turns")):
            old = below(team, *rest)
            made = await ledger.insert(old, {"n": 1}, text="Max is four", change=SAID, idempotency_key="k")
            await ledger.update(old, made.key, {"n": 2}, text=None, change=SAID, expected_version=1)
            gone = await ledger.insert(old, {"n": 3}, text="tea", change=SAID, key="gone")
            await ledger.retire(old, gone.key, change=SAID, expected_version=1)
            new = team_namespace(team, *rest)
            both = [*await ledger.history(old, made.key), *await ledger.history(old, "gone")]
            expected[new] = [version.model_copy(update={"namespace": new}) for version in both]
    return expected


async def check(ledger: Ledger, expected: dict[Namespace, list[Version]]) -> None:
    assert await ledger.namespaces(include_retired=True) == sorted(expected)
    assert await ledger.count(include_retired=True) == 2 * len(expected)
    for namespace, versions in expected.items():
        key = versions[0].key
        assert [*await ledger.history(namespace, key), *await ledger.history(namespace, "gone")] == versions
        for mode in ("dense", "bm25"):
            hits = await ledger.search(namespace, "is Max four", mode=mode)
            assert [hit.version for hit in hits] == [versions[1]]


def reopen_edge(home: Path) -> Opening:
    async def reopen() -> Ledger:
        manifest = home / "ledger" / "mneme.json"
        if manifest.exists():
            manifest.write_text(manifest.read_text().replace('"format": 2', '"format": 1'))
        return await opened(home)

    return reopen


def reopen_server(location: str) -> Opening:
    async def reopen() -> Ledger:
        async with at(location) as (client, name):
            if await client.collection_exists(f"{name}-000001"):
                await set_format_1(client, name)
        return await open_ledger(location, embedder())

    return reopen


async def set_format_1(client: AsyncQdrantClient, name: str) -> None:
    [point] = await client.retrieve(name, [MANIFEST_ID])
    assert point.payload
    older = json.loads(point.payload["manifest"]) | {"format": 1}
    await client.set_payload(name, {"manifest": json.dumps(older)}, [MANIFEST_ID])


@pytest.fixture(params=["edge", "double", "qdrant"])
def reopen(request: pytest.FixtureRequest, tmp_path: Path) -> Opening:
    """Open a ledger that then counts as one of format 1 each time that it is opened again."""
    if request.param == "edge":
        return reopen_edge(tmp_path)
    return reopen_server(request.getfixturevalue(f"{request.param}_location"))


class TestBothEngines:
    async def test_records_move_with_all_their_versions(self, reopen: Opening) -> None:
        ledger = await reopen()
        expected = await write_as_format_1(ledger)
        await ledger.close()
        for _ in range(2):  # once more changes nothing
            ledger = await reopen()
            await check(ledger, expected)
            await ledger.close()

    async def test_a_replayed_write_is_known(self, reopen: Opening) -> None:
        ledger = await reopen()
        old, new = below("ann.b", "pools", "p", "pairs"), team_namespace("ann.b", "pools", "p", "pairs")
        given: Any = {"text": "tea", "change": SAID, "key": "k", "idempotency_key": "once"}
        made = await ledger.insert(old, {}, **given)
        await ledger.close()
        ledger = await reopen()
        again = await ledger.insert(new, {}, **given)
        assert again == made.model_copy(update={"namespace": new})

    async def test_a_failure_half_way_loses_nothing(
        self, reopen: Opening, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        ledger = await reopen()
        expected = await write_as_format_1(ledger)
        await ledger.close()

        async def fail(*_: Any) -> None:
            raise StorageFailure("the disk is full")

        monkeypatch.setattr(upgrading, "AT_ONCE", 5)
        for step in ("erase", "mark_current"):
            with monkeypatch.context() as broken:
                for engine in (EdgeEngine, ServerEngine):
                    broken.setattr(engine, step, fail)
                with pytest.raises(StorageFailure, match="disk is full"):
                    await reopen()
        ledger = await reopen()
        await check(ledger, expected)
        await ledger.close()

    async def test_where_two_records_meet_both_stay(self, reopen: Opening) -> None:
        ledger = await reopen()
        old, new = below("ann.b", "rubrics"), team_namespace("ann.b", "rubrics")
        for namespace, text in ((old, "the old one"), (new, "the new one")):
            await ledger.insert(namespace, {}, text=text, change=SAID, key="k")
        await ledger.close()
        ledger = await reopen()
        assert [each.text for each in await ledger.records(new)] == ["the new one"]
        assert [each.text for each in await ledger.records(old)] == ["the old one"]

    async def test_what_a_graph_stored_by_itself_stays(self, reopen: Opening) -> None:
        ledger = await reopen()
        own = below("50%", "my own things")
        made = await ledger.insert(own, {}, text="tea", change=SAID)
        await ledger.close()
        ledger = await reopen()
        assert await ledger.records(own) == [made]


KILLED = 9


async def _open_and_die(home: str, moment: str) -> None:
    """Open a home's ledger, and end the process at once at a moment of the upgrade."""

    async def die(*_: Any) -> None:
        os._exit(KILLED)

    engine: Any = EdgeEngine
    if moment == "the first copies":
        append, upgrading.AT_ONCE = engine.append, 20

        async def append_and_die(*given: Any) -> None:
            await append(*given)
            os._exit(KILLED)

        engine.append = append_and_die
    else:
        setattr(engine, "erase" if moment == "all copies" else "mark_current", die)
    await opened(Path(home))


if __name__ == "__main__":
    asyncio.run(_open_and_die(*sys.argv[1:]))
