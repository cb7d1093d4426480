"""Damaged files of a ledger: those of the log are told and repaired; the index is built anew."""

import asyncio
import json
import logging
import multiprocessing
import os
import shutil
import signal
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import cast

import numpy as np
import pytest

from mneme.core.errors import Damaged, LedgerInUse, LedgerMismatch, MnemeError
from mneme.models.embedding.absent import Absent
from mneme.stores.database import Sqlite
from mneme.stores.ledger.folder import seal
from mneme.stores.ledger.ledger import Ledger, open_ledger
from mneme.stores.ledger.log import Kind, Transaction, commit
from mneme.stores.ledger.records import Change
from mneme.stores.ledger.verifying import repair, verify
from tests.doubles.copying import copy_folder
from tests.doubles.embedding import WordEmbedder
from tests.doubles.ledgers import forget

SAID = Change(reason="said so", actor="agent")
LATEST = 9
ALICE = ("users", "alice", "memories")


async def fill(ledger: Ledger) -> None:
    """Write histories, a retired record, a forgotten one, receipts, and a shelf with groups."""
    for number in range(30):
        made = await ledger.insert(
            ALICE,
            {"n": number},
            text=f"tea {number}",
            change=SAID,
            key=f"k{number}",
            idempotency_key=str(number),
        )
        if number % 3 == 0:
            await ledger.update(ALICE, made.key, {}, text=f"dög {number}", change=SAID, expected_version=1)
    await ledger.retire(ALICE, "k1", change=SAID, expected_version=1)
    await forget(ledger, ALICE, "k2", reason="asked", actor="alice")
    await ledger.search(ALICE, "tea")


async def seen(folder: Path, embedder: WordEmbedder) -> list[object]:
    """Open a ledger and return all that there is to see."""
    ledger = await open_ledger(str(folder), embedder)
    try:
        return [
            sorted([line async for line in ledger.export()]),
            [version.key for version in await ledger.records(())],
            [hit.version.key for hit in await ledger.search(ALICE, "tea 7", mode="dense", limit=1)],
            [hit.version.key for hit in await ledger.search(ALICE, "tea 7", mode="bm25", limit=1)],
            await ledger.forgotten(),
            (await ledger.insert(ALICE, {}, text="again", change=SAID, idempotency_key="5", key="k5")).text,
        ]
    finally:
        await ledger.close()


@pytest.fixture
async def folder(tmp_path: Path, embedder: WordEmbedder) -> Path:
    ledger = await open_ledger(str(tmp_path / "home" / "ledger"), embedder)
    await fill(ledger)
    await ledger.close()
    return tmp_path / "home" / "ledger"


def fill_and_die(folder: Path) -> None:
    """Be the process that is killed in the midst of writing."""

    async def write() -> None:
        ledger = await open_ledger(str(folder), WordEmbedder())
        await fill(ledger)
        for number in range(LATEST):
            await ledger.insert(ALICE, {}, text=f"the latest, {number}", change=SAID, key=f"latest{number}")
        os.kill(os.getpid(), signal.SIGKILL)

    asyncio.run(write())


@pytest.fixture
def killed(tmp_path: Path) -> Path:
    """Return the folder of a ledger whose process was killed: what it wrote last is in a file of its own."""
    folder = tmp_path / "killed" / "ledger"
    process = multiprocessing.get_context("spawn").Process(target=fill_and_die, args=[folder])
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL and (folder / "log.sqlite-wal").stat().st_size
    return folder


def set_aside(folder: Path) -> list[str]:
    return [str(path) for path in folder.glob("set-aside-*") if any(path.iterdir())]


def files_in(folder: Path) -> list[Path]:
    return [path.relative_to(folder) for path in sorted(folder.rglob("*")) if path.is_file()]


def halve(path: Path) -> None:
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size // 2)


def zero(path: Path) -> None:
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.truncate(0)
        file.truncate(size)


def flip_in_the_middle(path: Path) -> None:
    """Turn one bit in the middle of what a file holds besides zeros."""
    data = np.fromfile(path, np.uint8)
    written = np.flatnonzero(data)
    if len(written):
        data[written[len(written) // 2]] ^= 1
        data.tofile(path)


def changed(folder: Path, statement: str) -> None:
    """Change rows of the log, as somebody with the program `sqlite3` would."""
    with sqlite3.connect(folder / "log.sqlite") as connection:
        assert connection.execute(statement).rowcount
    connection.close()


def kill(folder: Path) -> None:
    """Leave a ledger as a killed process does: with nothing that says how it was closed."""
    for path in folder.rglob("mneme.seal"):
        path.unlink()


def largest(folder: Path, pattern: str) -> Path:
    return max(folder.glob(pattern), key=lambda path: path.stat().st_size)


INDEX = [
    "index-1/*/segments/*/payload_storage/page_0.dat",
    "index-1/*/segments/*/vector_storage-dense/**/*.mmap",
]


@pytest.mark.parametrize("damage", [Path.unlink, halve, zero, flip_in_the_middle])
@pytest.mark.parametrize("file", INDEX)
async def test_a_damaged_index_is_told_and_built_anew_at_once(
    folder: Path,
    embedder: WordEmbedder,
    file: str,
    damage: Callable[[Path], None],
    caplog: pytest.LogCaptureFixture,
) -> None:
    before = await seen(folder, embedder)
    damage(largest(folder, file))
    assert (await verify(str(folder))).problems
    with caplog.at_level(logging.WARNING):
        assert await seen(folder, embedder) == before
    assert "built anew" in caplog.text
    assert (await verify(str(folder))).problems == []


@pytest.mark.parametrize(
    ("file", "damage"),
    [
        ("index-1/*/segments/*/vector_storage-dense/deleted/status.dat", halve),
        ("index-1/*/segments/*/payload_storage/page_0.dat", zero),
        ("index-1/*/segments/*/payload_index/config.json", Path.unlink),
    ],
)
async def test_an_index_that_the_engine_cannot_read_is_built_anew_without_a_word_of_the_engine(
    folder: Path,
    embedder: WordEmbedder,
    file: str,
    damage: Callable[[Path], None],
    capfd: pytest.CaptureFixture[str],
) -> None:
    before = await seen(folder, embedder)
    damage(largest(folder, file))
    seal(folder / "index-1")  # so that only the engine notices
    assert await seen(folder, embedder) == before
    assert capfd.readouterr().err == ""


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    ("is_killed", "log"), [(False, ["log.sqlite"]), (True, ["log.sqlite", "log.sqlite-wal"])]
)
@pytest.mark.parametrize("damage", [Path.unlink, halve, zero, flip_in_the_middle])
async def test_whatever_file_is_damaged_is_told_and_repaired(
    folder: Path,
    killed: Path,
    is_killed: bool,
    log: list[str],
    tmp_path: Path,
    embedder: WordEmbedder,
    damage: Callable[[Path], None],
) -> None:
    folder, damaged = killed if is_killed else folder, tmp_path / "damaged" / "ledger"
    copy_folder(folder.parent, damaged.parent)
    before, told = await seen(damaged, embedder), list[str]()
    for file in files_in(folder):
        shutil.rmtree(damaged.parent)
        copy_folder(folder.parent, damaged.parent)
        damage(damaged / file)
        try:
            assert await seen(damaged, embedder) == before, f"{file}: a silent loss"
        except MnemeError as error:
            assert error.hint
            told.append(str(file))
    assert told == log, "the index is built anew"


@pytest.mark.parametrize("damage", [Path.unlink, halve, zero, flip_in_the_middle])
async def test_the_newest_entries_of_a_killed_process_are_missed_until_the_loss_is_accepted(
    killed: Path, embedder: WordEmbedder, damage: Callable[[Path], None]
) -> None:
    damage(killed / "log.sqlite-wal")
    for _ in range(2):
        with pytest.raises(Damaged, match="its end was lost") as refused:
            await open_ledger(str(killed), embedder)
        assert "mneme repair" in refused.value.hint
        assert "its end was lost" in (await verify(str(killed))).problems[0]
    repaired = await repair(str(killed), embedder)
    missing = 29 + LATEST - repaired.records
    assert missing and repaired.lost == [f"{missing} entries of the log"]
    assert (await verify(str(killed))).problems == []
    ledger = await open_ledger(str(killed), embedder)
    await ledger.insert(ALICE, {}, text="later", change=SAID)
    await ledger.close()
    assert (await verify(str(killed))).problems == []


CHANGES = [
    "DELETE FROM ledger_entries WHERE seq = 7",
    "DELETE FROM ledger_entries WHERE seq > 20",
    "UPDATE ledger_entries SET body = replace(body, 'tea', 'TEA') WHERE seq = 7",
    "UPDATE ledger_entries SET body = NULL, nonce = NULL WHERE seq = 7",
    "UPDATE ledger_entries SET record = 'x' WHERE seq = 7",
    "DELETE FROM ledger_heads WHERE number = 1",
    "UPDATE ledger_heads SET scope = scope || 'x'",
    "DELETE FROM ledger_receipts",
    "DELETE FROM ledger_tombstones",
    "UPDATE ledger_tombstones SET last = 0",
    "DELETE FROM ledger_state",
    "UPDATE ledger_vectors SET dense = zeroblob(256)",
]


@pytest.mark.parametrize("change", CHANGES)
async def test_rows_that_were_changed_by_hand_are_told(
    folder: Path, embedder: WordEmbedder, change: str
) -> None:
    changed(folder, change)
    for _ in range(2):
        with pytest.raises(Damaged) as refused:
            await open_ledger(str(folder), embedder)
    assert "mneme repair" in refused.value.hint
    assert (await verify(str(folder))).problems


@pytest.mark.parametrize("change", CHANGES[5:10])
async def test_what_follows_from_the_log_is_repaired_without_a_loss(
    folder: Path, embedder: WordEmbedder, change: str
) -> None:
    before = await seen(folder, embedder)
    changed(folder, change)
    repaired = await repair(str(folder), embedder)
    assert (repaired.records, repaired.lost) == (29, [])
    assert set_aside(folder) == [repaired.old], "nothing is deleted"
    assert await seen(folder, embedder) == before
    assert (await verify(str(folder))).problems == []


async def test_records_that_an_earlier_version_put_into_groups_are_as_they_were_written(
    folder: Path, embedder: WordEmbedder
) -> None:
    def divide(transaction: Transaction) -> None:
        asked = "SELECT record, scope FROM ledger_heads WHERE searched = 1"
        for record, scope in transaction.cursor.execute(asked).fetchall():
            transaction.add(cast(Kind, "place"), body=json.dumps({f"{scope}.group.": [record]}))
        transaction.cursor.execute("UPDATE ledger_heads SET scope = scope || '.group.' WHERE searched = 1")

    commit(database := Sqlite(folder / "log.sqlite"), divide)
    database.close()
    kill(folder)
    assert (await verify(str(folder))).problems == []
    ledger = await open_ledger(str(folder), embedder)
    assert [hit.version.key for hit in await ledger.search(ALICE, "tea 7", mode="dense", limit=1)] == ["k7"]
    await ledger.update(ALICE, "k7", {}, text="coffee", change=SAID, expected_version=1)
    await ledger.close()
    assert (await verify(str(folder))).problems == []


async def test_a_version_that_is_damaged_is_listed_as_lost(folder: Path, embedder: WordEmbedder) -> None:
    changed(folder, 'UPDATE ledger_entries SET body = \'x\' WHERE body LIKE \'%"key":"k6","version":1%\'')
    repaired = await repair(str(folder), embedder)
    assert (repaired.records, repaired.versions, repaired.lost) == (29, 39, ["k6, version 1"])
    after = await open_ledger(str(folder), embedder)
    assert [version.version for version in await after.history(ALICE, "k6")] == [2]
    await after.close()
    assert (await verify(str(folder))).problems == []


async def test_a_listing_that_ends_at_damage_holds_on_to_nothing(
    folder: Path, embedder: WordEmbedder
) -> None:
    ledger = await open_ledger(str(folder), embedder)
    changed(folder, 'UPDATE ledger_entries SET body = \'x\' WHERE body LIKE \'%"key":"k6","version":2%\'')
    with pytest.raises(Damaged) as refused:
        await ledger.records(ALICE, filter={"n": {"$gte": 0}})
    changed(folder, "UPDATE ledger_heads SET updated = updated + 1")
    await ledger.insert(ALICE, {}, text="written since", change=SAID, key="new")
    assert await ledger.get(ALICE, "new") is not None
    assert "mneme repair" in refused.value.hint, (
        "while somebody has the refusal still, with where it came from"
    )
    await ledger.close()


@pytest.mark.parametrize("damage", [halve, flip_in_the_middle])
async def test_of_a_damaged_file_what_can_be_read_is_kept(
    folder: Path, embedder: WordEmbedder, damage: Callable[[Path], None]
) -> None:
    damage(folder / "log.sqlite")
    kill(folder)
    try:
        await (await open_ledger(str(folder), embedder)).close()
    except Damaged:
        repaired = await repair(str(folder), embedder)
        ledger = await open_ledger(str(folder), embedder)
        kept = [line async for line in ledger.export()]
        await ledger.close()
        assert len(kept) == repaired.versions
        assert repaired.lost or repaired.versions == 40


async def test_a_log_that_is_missing_is_told(folder: Path, embedder: WordEmbedder) -> None:
    (folder / "log.sqlite").unlink()
    with pytest.raises(MnemeError, match="missing"):
        await open_ledger(str(folder), embedder)


async def test_an_older_log_put_in_place_is_told(
    folder: Path, tmp_path: Path, embedder: WordEmbedder
) -> None:
    copy_folder(folder, tmp_path / "older")
    ledger = await open_ledger(str(folder), embedder)
    await ledger.insert(ALICE, {}, text="the latest", change=SAID)
    await ledger.search(ALICE, "latest")
    await ledger.close()
    for name in ("log.sqlite", "mneme.seal"):
        shutil.copy(tmp_path / "older" / name, folder / name)
    for _ in range(2):
        with pytest.raises(Damaged, match="an older copy was put in its place"):
            await open_ledger(str(folder), embedder)
        assert "an older copy" in (await verify(str(folder))).problems[0]
    assert (await repair(str(folder), embedder)).lost == ["1 entries of the log"]
    ledger = await open_ledger(str(folder), embedder)
    assert await ledger.search(ALICE, "latest", mode="bm25") == []
    await ledger.close()
    assert (await verify(str(folder))).problems == []


def make_unreadable(note: Path) -> None:
    note.unlink()
    note.mkdir()


async def test_without_a_note_that_can_be_read_no_end_is_missed(folder: Path, embedder: WordEmbedder) -> None:
    make_unreadable(folder.with_name("ledger-kept"))  # as one of a group cannot read the note of another
    ledger = await open_ledger(str(folder), embedder)
    await ledger.insert(ALICE, {}, text="later", change=SAID)
    await ledger.close()
    assert (await verify(str(folder))).problems == []


async def test_a_vector_that_came_later_is_in_the_log(tmp_path: Path, embedder: WordEmbedder) -> None:
    ledger = await open_ledger(str(tmp_path), Absent(embedder.name, embedder.dimension))
    await ledger.insert(ALICE, {}, text="tea", change=SAID)
    await ledger.close()
    await (await open_ledger(str(tmp_path), embedder)).close()
    assert (await verify(str(tmp_path))).problems == []
    changed(tmp_path, "UPDATE ledger_vectors SET sum = sum + 1")
    assert "1 vectors" in (await verify(str(tmp_path))).problems[0]
    await repair(str(tmp_path), embedder)
    assert (await verify(str(tmp_path))).problems == []


async def test_a_ledger_that_is_open_is_verified_and_not_repaired(
    folder: Path, embedder: WordEmbedder
) -> None:
    ledger = await open_ledger(str(folder), embedder)
    assert (await verify(str(folder))).problems == []
    with ledger._log.database.writing() as cursor:
        cursor.execute("DELETE FROM ledger_receipts")
    assert (await verify(str(folder))).problems
    with pytest.raises(LedgerInUse):
        await repair(str(folder), embedder)
    await ledger.close()
    with pytest.raises(LedgerMismatch):
        await verify(str(folder / "nowhere"))


async def test_nothing_is_changed_where_nothing_is_wrong(folder: Path, embedder: WordEmbedder) -> None:
    repaired = await repair(str(folder), embedder)
    assert (repaired.records, repaired.old) == (29, "")
    assert set_aside(folder) == []
