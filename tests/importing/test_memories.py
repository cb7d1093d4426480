"""Memories of Mem0 and LangMem, read from what their own libraries wrote, and written as they are."""

import json
import pickle
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from langgraph.store.sqlite import SqliteStore
from qdrant_client import QdrantClient, models

from mneme.api.memories import Memories
from mneme.core.errors import BadInput
from mneme.importing import langmem, mem0
from mneme.importing.item import Item, Reading
from mneme.importing.writing import MemoryCounts, write
from mneme.stores.ledger.ledger import Ledger
from tests.importing.exports import texts, written

AUSTIN, REX, TEA = (str(UUID(int=number)) for number in (1, 2, 3))
MARCH, APRIL = "2024-03-01T09:00:00+00:00", "2024-04-01T09:00:00+00:00"
HISTORY = """CREATE TABLE history (id TEXT PRIMARY KEY, memory_id TEXT, old_memory TEXT, new_memory TEXT,
event TEXT, created_at DATETIME, updated_at DATETIME, is_deleted INTEGER, actor_id TEXT, role TEXT)"""


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Make a local store as Mem0 does: by Qdrant's client, with a history of changes beside it."""
    client = QdrantClient(path=str(tmp_path / "qdrant"))
    client.create_collection(
        "mem0", vectors_config=models.VectorParams(size=2, distance=models.Distance.COSINE)
    )
    given = [
        (AUSTIN, {"data": "Lives in Denver", "user_id": "alice", "created_at": MARCH, "updated_at": APRIL}),
        (REX, {"data": "Has a dog called Rex", "user_id": "alice", "created_at": APRIL, "hash": "x"}),
        (TEA, {"data": "Likes tea", "user_id": "bob", "created_at": MARCH, "category": "food"}),
        (str(UUID(int=4)), {"user_id": "alice", "note": "no data"}),
    ]
    client.upsert(
        "mem0", [models.PointStruct(id=name, vector=[1.0, 0.5], payload=more) for name, more in given]
    )
    client.close()
    with closing(sqlite3.connect(tmp_path / "history.db")) as history:
        history.execute(HISTORY)
        for number, (memory, old, new, at) in enumerate(
            [(AUSTIN, None, "Lives in Austin", MARCH), (AUSTIN, "Lives in Austin", "Lives in Denver", APRIL)]
        ):
            row = (str(number), memory, old, new, "UPDATE" if old else "ADD", MARCH, at, 0, None, "user")
            history.execute(f"INSERT INTO history VALUES ({', '.join('?' * 10)})", row)
        history.commit()
    return tmp_path / "qdrant"


def contents(folder: Path) -> dict[Path, bytes]:
    return {file: file.read_bytes() for file in folder.rglob("*") if file.is_file()}


async def imported(reading: Reading, memories: Memories) -> MemoryCounts:
    """Write what was read, and return the last report."""
    return [each async for each in write(reading.chosen(None, None).items, "Mem0", memories)][-1]


async def test_a_store_of_mem0_is_taken_over_with_its_times_and_only_once(
    store: Path, tmp_path: Path, edge_ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEM0_DIR", str(tmp_path))
    before = contents(store)
    local, bob = Memories(edge_ledger, "local"), Memories(edge_ledger, "b.b")
    with pytest.raises(BadInput, match="several owners") as refused:
        mem0.read(store)
    assert "--of and one of: alice (2), bob (1)" in refused.value.hint

    assert await imported(mem0.read(store, "alice"), local) == MemoryCounts(memories=2, imported=2)
    assert await imported(mem0.read(store, "alice"), local) == MemoryCounts(memories=2, known=2)
    assert await imported(mem0.read(store, "bob"), bob) == MemoryCounts(memories=1, imported=1)

    denver, rex = await local.list()
    assert (denver.memory.content, rex.memory.content) == ("Lives in Denver", "Has a dog called Rex")
    assert rex.at == datetime.fromisoformat(APRIL) == datetime.fromisoformat(rex.memory.time)
    versions = await local.history(denver.key)
    assert [each.value["content"] for each in versions] == ["Lives in Austin", "Lives in Denver"]
    assert [each.at for each in versions] == [*map(datetime.fromisoformat, (MARCH, APRIL))]
    assert versions[0].change.reason == "imported from Mem0 (mem0/alice)"
    (then,) = await local.list(as_of=datetime(2024, 3, 15, tzinfo=UTC))
    assert then.memory.content == "Lives in Austin"
    assert [each.key for each in await local.recall("Denver", limit=1)] == [denver.key]

    await local.update(denver.key, "Lives in Boulder")
    await local.forget(rex.key)
    again = await imported(mem0.read(store, "alice"), local)
    assert again == MemoryCounts(memories=2, known=1, differing=1, forgotten=1), (
        "what is changed or erased stays so"
    )
    assert [each.memory.content for each in await local.list()] == ["Lives in Boulder"]
    assert contents(store) == before


async def test_what_the_ledger_does_not_take_is_refused_by_itself(edge_ledger: Ledger) -> None:
    wild = [Item(str(number), text, None, "x") for number, text in enumerate(["fine", "also fine"])]
    odd = Item("", "without an id", None, "x")
    (*_, done) = [each async for each in write([*wild, odd], "Mem0", Memories(edge_ledger, "local"))]
    assert (done.imported, len(done.refused)) == (2, 1)


class Hostile:
    def __init__(self, file: Path) -> None:
        self.file = file

    def __reduce__(self) -> Any:
        return Path.touch, (self.file,)


def test_a_store_runs_no_code_and_what_cannot_be_read_is_left_out(store: Path, tmp_path: Path) -> None:
    evil = tmp_path / "evil"
    with closing(sqlite3.connect(store / "collection" / "mem0" / "storage.sqlite")) as database:
        for number, blob in enumerate([pickle.dumps(Hostile(evil)), b"garbage", b""]):
            database.execute("INSERT INTO points VALUES (?, ?)", (f"x{number}", blob))
        database.commit()
    reading = mem0.read(store, "*", history=tmp_path / "history.db")
    assert sorted(texts(reading.items)) == ["Has a dog called Rex", "Likes tea", "Lives in Denver"]
    assert not evil.exists()
    with pytest.raises(BadInput, match="no collection 'other'") as refused:
        mem0.read(store, collection="other")
    assert "mem0" in refused.value.hint
    with pytest.raises(BadInput, match="cannot be read as a database"):
        mem0.read(store, "alice", history=written(tmp_path / "no.db", "x"))


def test_what_get_all_returned_is_read_in_its_forms(tmp_path: Path) -> None:
    ann = {"id": "1", "memory": "Likes tea", "user_id": "ann", "created_at": "2024-03-01T01:00:00-08:00"}
    helper = {"id": "2", "memory": "Be brief", "agent_id": "helper", "metadata": None}
    given = {"results": [ann, helper, {"id": "3"}, "x"], "relations": []}
    reading = mem0.read(written(tmp_path / "all.json", given), "agent_id/helper")
    assert texts(reading.items) == ["Be brief"]
    assert reading.skipped["entries without words"] == 2
    (item,) = mem0.read(written(tmp_path / "all.json", [ann])).items
    assert item.time == datetime(2024, 3, 1, 9, tzinfo=UTC)
    with pytest.raises(BadInput, match="Nothing there is of zoe") as refused:
        mem0.read(written(tmp_path / "all.json", given), "zoe")
    assert "agent_id/helper (1), ann (1)" in refused.value.hint
    with pytest.raises(BadInput, match="holds no memories"):
        mem0.read(written(tmp_path / "all.json", {"results": []}))


VALUES = {
    "a": {"kind": "Memory", "content": {"content": "User prefers dark mode."}},
    "b": {
        "kind": "Profile",
        "content": {"name": "Ann", "likes": ["tea", "skiing"], "age": None, "of": {"x": 1}},
    },
    "c": {"content": "User has a cat."},
    "d": {"text": "User runs.", "tags": ["sport"]},
    "e": {"kind": "Episode", "content": {"observation": "Asked for help.", "result": "Got it."}},
    "f": {"kind": "Memory", "content": {}},
}
WORDS = [
    "User prefers dark mode.",
    "Profile: likes: tea, skiing; name: Ann; of: (x: 1)",
    "User has a cat.",
    "User runs.",
    "Episode: observation: Asked for help.; result: Got it.",
]


def put(store: Any) -> None:
    """Put memories as LangMem does, and one of somebody else."""
    for key, value in VALUES.items():
        store.put(("memories", "ann"), key, value)
    store.put(("memories", "bob"), "a", {"content": "Bob is tall."})


def check(source: str) -> Sequence[str]:
    """Read a store, and return the ids of what was found."""
    reading = langmem.read(source, "memories/ann")
    assert texts(reading.items) == WORDS
    assert reading.skipped["entries without words"] == 1
    assert [each.kind for each in reading.items] == [*["semantic"] * 4, "episodic"]
    assert all(each.time and each.time.date() == datetime.now().astimezone().date() for each in reading.items)
    assert len(langmem.read(source, "*").items) == 6
    with pytest.raises(BadInput, match="several owners") as refused:
        langmem.read(source)
    assert "memories/ann (5), memories/bob (1)" in refused.value.hint
    return [each.id for each in reading.items]


def test_langmem_is_read_from_json_and_from_sqlite_beside_its_writer(tmp_path: Path) -> None:
    file = tmp_path / "store.db"
    with closing(sqlite3.connect(file, isolation_level=None, check_same_thread=False)) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
        store = SqliteStore(connection)
        store.setup()
        put(store)
        found = [item.dict() for item in store.search(("memories",), limit=100)]
        assert Path(f"{file}-wal").stat().st_size, "not all is in the file itself"
        stored = check(str(file))
    found.sort(key=lambda each: (each["namespace"], each["key"]))
    items = json.loads(json.dumps(found, default=str))
    assert check(str(written(tmp_path / "items.json", items))) == stored
    assert check(str(written(tmp_path / "search.json", {"items": items}))) == stored


def test_langmem_is_read_from_postgres_without_writing(postgres_url: str) -> None:
    from langgraph.store.postgres import PostgresStore  # noqa: PLC0415

    with PostgresStore.from_conn_string(postgres_url) as store:
        store.setup()
        put(store)
        check(postgres_url)
    with pytest.raises(BadInput, match="cannot be read") as refused:
        langmem.read("postgresql://ann:secret@127.0.0.1:1/none?connect_timeout=1")
    assert "secret" not in f"{refused.value} {refused.value.hint}"


async def test_langmem_goes_into_the_ledger(tmp_path: Path, edge_ledger: Ledger) -> None:
    items = [{"namespace": ["m"], "key": key, "value": value} for key, value in VALUES.items()]
    file, memories = str(written(tmp_path / "items.json", items)), Memories(edge_ledger, "local")
    assert await imported(langmem.read(file), memories) == MemoryCounts(memories=5, imported=5)
    assert [each.memory.content for each in await memories.list()] == WORDS
    items[0]["value"] = {"content": "User prefers light mode."}
    written(tmp_path / "items.json", items)
    assert await imported(langmem.read(file), memories) == MemoryCounts(memories=5, known=5, differing=1)
