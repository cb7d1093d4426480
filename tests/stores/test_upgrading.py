"""Ledgers of older formats: opened by this version, everything is found, also after a kill half way.

`data/home_of_format_1.tar.xz` is the home folder of the team and user `ann.b` as that version left it,
with 4 pairs of each pool and without the thread of a household run; `said/` is what its commands printed.
"""

import asyncio
import json
import os
import sys
import tarfile
import zlib
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from qdrant_client import AsyncQdrantClient, models

from mneme.api.cards import Cards
from mneme.api.discussions import TeamDiscussions
from mneme.api.inbox import Messages
from mneme.api.memories import Memories
from mneme.api.pools import Pools
from mneme.core.errors import Damaged, NotFound
from mneme.graphs.chatbot import builder
from mneme.nodes.chat.context import ChatContext
from mneme.stores.checkpoints.checkpointer import open_checkpointer
from mneme.stores.episodes.episodic_memory import EpisodicMemory
from mneme.stores.ledger import upgrading
from mneme.stores.ledger.base_store import LedgerStore
from mneme.stores.ledger.ledger import Ledger, open_ledger
from mneme.stores.ledger.namespaces import escaped, is_escaped, team_namespace
from mneme.stores.ledger.records import (
    Change,
    Namespace,
    Version,
    microseconds,
    receipt_id,
    record_id,
    tombstone_id,
    version_id,
)
from mneme.stores.ledger.upgrading import Manifest
from mneme.stores.pools.lessons import RetrieverLessons
from mneme.stores.pools.memory_pool import MemoryPool
from tests.doubles.embedding import WordEmbedder

ROOT = Path(__file__).parents[2]
HOME = Path(__file__).parent / "data" / "home_of_format_1.tar.xz"
OWNER = "ann.b"
POOLS = ("literary_creation", "plan_generation", "unconventional_logic")
CHAT = "a789d277-1efb-5fd1-a27b-207df483892f"
RUN = "cfdafc7c-8b8e-53fc-831d-311465a323cb"
RULES = ChatContext(user=OWNER, chatbot="rules", memory_agent="rules")
SAID = Change(reason="said so", actor="agent")

ALICE = ("users", "alice")
START = datetime(2026, 1, 1, tzinfo=UTC)


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
        assert format_of(home) == 3
        assert not [*(home / "ledger").glob("generation-*")]
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
            "before the log is checked",
            "before the log is in its place",
            "before the older files are removed",
        ],
    )
    async def test_a_kill_half_way_loses_nothing(self, home: Path, moment: str) -> None:
        killed = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tests.stores.test_upgrading", str(home), moment),
            env=os.environ | {"PYTHONPATH": str(ROOT)},
        )
        assert await killed.wait() == KILLED
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


Entries = list[tuple[str, dict[str, Any]]]
"""The points of an older ledger, by their ids."""


def history(namespace: Namespace, key: str, *texts: str | None) -> list[Version]:
    """Return the versions of a record, the last of them retired where its text is None."""
    versions: list[Version] = []
    for number, text in enumerate(texts, 1):
        versions.append(
            Version(
                namespace=namespace,
                key=key,
                version=number,
                event="retire" if text is None else "update" if versions else "insert",
                value={"n": number},
                text=versions[-1].text if text is None else text,
                at=START + timedelta(seconds=number),
                created=START + timedelta(seconds=1),
                change=SAID,
                live=text is not None,
                idempotency_key=f"{key} {number}",
            )
        )
    return versions


def entries_of(*histories: list[Version]) -> Entries:
    return [
        (version_id(record_id(each.namespace, each.key), each.version), {"event": each.model_dump_json()})
        for versions in histories
        for each in versions
    ]


async def in_a_folder(place: Path, format: int, entries: Entries) -> str:
    """Write an older ledger with a journal, whose engine's files are lost."""
    generation = place / "ledger" / "generation-000001"
    generation.mkdir(parents=True)
    made = {"format": format, "embedder": "bundled:all-MiniLM-L6-v2", "dimension": 384, "generation": 1}
    for folder in (place / "ledger", generation):
        (folder / "mneme.json").write_text(json.dumps(made))
    bodies = [json.dumps([*entry, 0]) for entry in entries]
    lines = [f"{zlib.crc32(body.encode()):08x} {body}\n" for body in bodies]
    (generation / "versions.journal").write_text("".join(lines))
    return str(place / "ledger")


async def on_a_server(url: str, place: Path, format: int, entries: Entries) -> str:
    """Write an older ledger that a Qdrant server alone has."""
    client = AsyncQdrantClient(url=url, check_compatibility=False)
    dense = models.VectorParams(size=384, distance=models.Distance.COSINE)
    await client.create_collection("mneme-000001", vectors_config={"dense": dense})
    made = {"format": format, "embedder": "bundled:all-MiniLM-L6-v2", "dimension": 384, "generation": 1}
    manifest = ("00000000-0000-0000-0000-000000000001", {"manifest": json.dumps(made)})
    points = [models.PointStruct(id=id_, vector={}, payload=payload) for id_, payload in [*entries, manifest]]
    await client.upsert("mneme-000001", points)
    alias = models.CreateAlias(collection_name="mneme-000001", alias_name="mneme")
    await client.update_collection_aliases([models.CreateAliasOperation(create_alias=alias)])
    await client.close()
    return f"{place / 'ledger'}|{url}"


@pytest.fixture(params=["folder", "server"])
def written(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[..., Awaitable[str]]:
    """Write entries of an older format; return where the ledger is to be opened."""
    if request.param == "folder":
        return partial(in_a_folder, tmp_path)
    double = request.getfixturevalue("double_location").partition("|")[2]
    return partial(on_a_server, double, tmp_path)


Writing = Callable[[int, Entries], Awaitable[str]]


class TestOlderLedgers:
    async def test_records_move_with_all_their_versions(self, written: Writing) -> None:
        expected: dict[Namespace, list[Version]] = {}
        older: list[list[Version]] = []
        for team in ("red", "ann.b", "50%", "ann.b/x%y"):
            for rest in (("rubrics",), ("pools", "p", "pairs"), ("discussions", "d", "turns")):
                made = history(below(team, *rest), "k", "Max is four", "Max is five")
                gone = history(below(team, *rest), "gone", "tea", None)
                older += [made, gone]
                new = team_namespace(team, *rest)
                expected[new] = [each.model_copy(update={"namespace": new}) for each in (*made, *gone)]
        location = await written(1, entries_of(*older))
        for _ in range(2):  # once more changes nothing
            ledger = await open_ledger(location, embedder())
            assert await ledger.namespaces(include_retired=True) == sorted(expected)
            assert await ledger.count(include_retired=True) == 2 * len(expected)
            for namespace, versions in expected.items():
                both = [*await ledger.history(namespace, "k"), *await ledger.history(namespace, "gone")]
                assert both == versions
                for mode in ("dense", "bm25"):
                    hits = await ledger.search(namespace, "is Max five", mode=mode)
                    assert [hit.version for hit in hits] == [versions[1]]
            await ledger.close()

    async def test_replays_and_what_was_forgotten_are_known(self, written: Writing) -> None:
        kept, gone = history(ALICE, "k", "tea"), record_id(ALICE, "gone")
        mark = {"namespace": ALICE, "versions": 2, "at": START.isoformat(), "reason": "asked", "actor": "a"}
        void = receipt_id(gone, "once")
        note = {"scope": "xusers\x1falice\x1f", "created": microseconds(START), "last": 2}
        entries: Entries = [
            *entries_of(kept),
            (tombstone_id(gone), {**note, "forgotten": json.dumps(mark)}),
            (void, {"version": 0}),
        ]
        ledger = await open_ledger(await written(2, entries), embedder())
        again = await ledger.insert(ALICE, {}, text="x", change=SAID, key="k", idempotency_key="k 1")
        assert again == kept[0]
        with pytest.raises(NotFound, match="forgotten"):
            await ledger.insert(ALICE, {}, text="x", change=SAID, key="gone", idempotency_key="once")
        assert (await ledger.insert(ALICE, {}, text="x", change=SAID, key="gone")).version == 3
        assert [each.reason for each in await ledger.forgotten(ALICE)] == ["asked"]
        await ledger.close()

    async def test_where_two_records_meet_both_stay(self, written: Writing) -> None:
        old, new = below("ann.b", "rubrics"), team_namespace("ann.b", "rubrics")
        both = entries_of(history(old, "k", "the old one"), history(new, "k", "the new one"))
        ledger = await open_ledger(await written(1, both), embedder())
        assert [each.text for each in await ledger.records(new)] == ["the new one"]
        assert [each.text for each in await ledger.records(old)] == ["the old one"]
        await ledger.close()

    async def test_what_a_graph_stored_by_itself_stays(self, written: Writing) -> None:
        own = history(below("50%", "my own things"), "k", "tea")
        ledger = await open_ledger(await written(1, entries_of(own)), embedder())
        assert await ledger.records(below("50%", "my own things")) == own
        await ledger.close()


async def test_a_ledger_of_which_a_version_is_missing_is_left_as_it_is(tmp_path: Path) -> None:
    entries = entries_of(history(ALICE, "k", "one", "two", "three"))
    location = await in_a_folder(tmp_path, 2, [entries[0], entries[2]])
    for _ in range(2):
        with pytest.raises(Damaged, match="k, version 2"):
            await open_ledger(location, embedder())
    assert (tmp_path / "ledger" / "generation-000001" / "versions.journal").exists()


KILLED = 9


async def _open_and_die(home: str, moment: str) -> None:
    """Open a home's ledger, and end the process at once at a moment of the upgrade."""

    def die(*_: Any) -> None:
        os._exit(KILLED)

    if moment == "before the log is checked":
        upgrading.problems_of = die  # type: ignore[assignment,attr-defined]
    elif moment == "before the log is in its place":
        Path.rename = die  # type: ignore[assignment,method-assign]
    else:
        upgrading.sync = die  # type: ignore[assignment,attr-defined]
    await opened(Path(home))


if __name__ == "__main__":
    asyncio.run(_open_and_die(*sys.argv[1:]))
