"""Ledgers of format 2, opened by this version, also after a kill half way; those of released versions too
are in `test_released`."""

import asyncio
import json
import os
import sys
import zlib
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from qdrant_client import AsyncQdrantClient, models

from mneme.core.errors import Damaged, LedgerMismatch, NotFound
from mneme.stores.database import Sqlite
from mneme.stores.ledger import upgrading
from mneme.stores.ledger.folder import Folder
from mneme.stores.ledger.ledger import open_ledger
from mneme.stores.ledger.log import commit, write_log
from mneme.stores.ledger.reading import state_of
from mneme.stores.ledger.records import (
    Change,
    Namespace,
    Version,
    microseconds,
    receipt_id,
    record_id,
    tombstone_id,
)
from mneme.stores.ledger.verifying import repair
from tests.doubles.embedding import WordEmbedder

ROOT = Path(__file__).parents[2]
SAID = Change(reason="said so", actor="agent")

ALICE = ("users", "alice")
START = datetime(2026, 1, 1, tzinfo=UTC)


def embedder() -> WordEmbedder:
    return WordEmbedder("bundled:all-MiniLM-L6-v2", 384)


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
    entries: Entries = []
    for each in chain.from_iterable(histories):
        name = receipt_id(record_id(each.namespace, each.key), f"version {each.version}")
        entries.append((name, {"event": each.model_dump_json()}))
    return entries


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
    async def test_records_have_all_their_versions_and_are_found(self, written: Writing) -> None:
        made = history(ALICE, "k", "Max is four", "Max is five")
        gone = history(ALICE, "gone", "tea", None)
        location = await written(2, entries_of(made, gone))
        for _ in range(2):  # once more changes nothing
            ledger = await open_ledger(location, embedder())
            assert [*await ledger.history(ALICE, "k"), *await ledger.history(ALICE, "gone")] == made + gone
            for mode in ("dense", "bm25"):
                hits = await ledger.search(ALICE, "is Max five", mode=mode)
                assert [hit.version for hit in hits] == [made[1]]
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

    async def test_format_1_is_refused_and_says_how_to_bring_it_over(self, written: Writing) -> None:
        location = await written(1, entries_of(history(ALICE, "k", "tea")))
        with pytest.raises(LedgerMismatch, match="format 1") as refused:
            await open_ledger(location, embedder())
        assert "memories export" in refused.value.hint

    async def test_another_embedder_is_refused(self, tmp_path: Path) -> None:
        location = await in_a_folder(tmp_path, 2, entries_of(history(ALICE, "k", "tea")))
        with pytest.raises(LedgerMismatch, match="MiniLM") as refused:
            await open_ledger(location, WordEmbedder("test:other", 32))
        assert "mneme memories reembed" in refused.value.hint


@pytest.mark.parametrize("cut", ["a line is damaged", "the last line is cut"])
async def test_only_the_end_of_a_journal_may_be_damaged(tmp_path: Path, cut: str) -> None:
    location = await in_a_folder(tmp_path, 2, entries_of(history(ALICE, "k", "one", "two")))
    journal = tmp_path / "ledger" / "generation-000001" / "versions.journal"
    first, second, _ = journal.read_bytes().split(b"\n")
    damaged = [first[:-5], second] if cut == "a line is damaged" else [first, second[:-5]]
    journal.write_bytes(b"\n".join(damaged))
    if cut == "a line is damaged":
        for opened in (open_ledger, repair):
            with pytest.raises(Damaged, match="Line 1"):
                await opened(location, embedder())
        assert journal.exists()
        return
    ledger = await open_ledger(location, embedder())
    assert [each.text for each in await ledger.history(ALICE, "k")] == ["one"]
    await ledger.close()


async def test_a_ledger_of_which_a_version_is_missing_is_left_as_it_is(tmp_path: Path) -> None:
    entries = entries_of(history(ALICE, "k", "one", "two", "three"))
    location = await in_a_folder(tmp_path, 2, [entries[0], entries[2]])
    for _ in range(2):
        with pytest.raises(Damaged, match="k, version 2"):
            await open_ledger(location, embedder())
    assert (tmp_path / "ledger" / "generation-000001" / "versions.journal").exists()


KILLED = 9


@pytest.mark.parametrize(
    "moment",
    ["before the log is checked", "before the log is in its place", "before the older files are removed"],
)
async def test_a_kill_half_way_loses_nothing(tmp_path: Path, moment: str) -> None:
    made = history(ALICE, "k", "Max is four", "Max is five")
    location = await in_a_folder(tmp_path, 2, entries_of(made))
    killed = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.stores.test_upgrading", location, moment),
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )
    assert await killed.wait() == KILLED
    ledger = await open_ledger(location, embedder())
    assert await ledger.history(ALICE, "k") == made
    await ledger.close()
    assert not [*(tmp_path / "ledger").glob("generation-*")]


def test_what_two_processes_take_over_at_once_is_written_once(tmp_path: Path) -> None:
    work = partial(upgrading.bring_in, points=entries_of(history(ALICE, "k", "one", "two")))
    write_log(tmp_path / "log.sqlite", ("test", 8), work)
    database = Sqlite(tmp_path / "log.sqlite")
    commit(database, work)
    assert database.read(state_of).seq == 2
    database.close()


async def test_who_waits_for_an_upgrade_that_is_killed_upgrades(tmp_path: Path) -> None:
    made = history(ALICE, "k", "Max is four", "Max is five")
    folder = Folder(Path(await in_a_folder(tmp_path, 2, entries_of(made))))
    assert folder.is_alone()
    waiting = asyncio.create_task(open_ledger(str(folder.path), embedder()))
    await asyncio.sleep(0.3)  # a process that comes too late for this one opens it all the same
    folder.release()
    ledger = await waiting
    assert await ledger.history(ALICE, "k") == made
    await ledger.close()


async def test_older_files_stay_beside_a_damaged_log(tmp_path: Path) -> None:
    location = await in_a_folder(tmp_path, 2, entries_of(history(ALICE, "k", "one", "two")))
    (tmp_path / "ledger" / "log.sqlite").touch()
    with pytest.raises(Damaged):
        await open_ledger(location, embedder())
    assert (tmp_path / "ledger" / "generation-000001" / "versions.journal").exists()


async def test_whether_a_ledger_is_older_is_asked_without_a_change(tmp_path: Path) -> None:
    await (await open_ledger(str(tmp_path / "ledger"), embedder())).close()
    (left := tmp_path / "ledger" / "generation-000001").mkdir()
    folder = Folder(tmp_path / "ledger")
    assert not upgrading.is_older(folder)
    assert left.exists()
    folder.release()
    await (await open_ledger(str(tmp_path / "ledger"), embedder())).close()
    assert not left.exists()


async def _open_and_die(location: str, moment: str) -> None:
    """Open a ledger, and end the process at once at a moment of the upgrade."""

    def die(*_: Any) -> None:
        os._exit(KILLED)

    if moment == "before the log is checked":
        upgrading.problems_in = die  # type: ignore[assignment,attr-defined]
    elif moment == "before the log is in its place":
        Path.rename = die  # type: ignore[assignment,method-assign]
    else:
        upgrading.Folder.note_format = die  # type: ignore[assignment,attr-defined,method-assign]
    await open_ledger(location, embedder())


if __name__ == "__main__":
    asyncio.run(_open_and_die(*sys.argv[1:]))
