"""Damaged files of a ledger: noticed when it is opened, listed by verify, built anew by repair."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from mneme.core.errors import Damaged, LedgerInUse, LedgerMismatch, MnemeError
from mneme.models.embedding.absent import Absent
from mneme.stores.ledger.folder import Folder
from mneme.stores.ledger.ledger import Ledger, open_ledger
from mneme.stores.ledger.query import Ranking
from mneme.stores.ledger.records import Change, make_write
from mneme.stores.ledger.sealing import mark_open
from mneme.stores.ledger.sparse import copy_folder
from mneme.stores.ledger.verifying import repair, verify
from tests.doubles.embedding import WordEmbedder

SAID = Change(reason="said so", actor="agent")
ALICE = ("users", "alice", "memories")
JOURNAL = "generation-000001/versions.journal"


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
    await ledger.forget(ALICE, "k2", reason="asked", actor="alice")


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
    ledger = await open_ledger(str(tmp_path / "ledger"), embedder)
    await fill(ledger)
    await ledger.close()
    return tmp_path / "ledger"


def the(folder: Path, pattern: str) -> Path:
    [found] = folder.glob(f"generation-*/{pattern}".rstrip("/"))
    return found


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


def flip(path: Path, at: int = 100) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)


INDEX = ["segments/*/mutable_id_tracker.mappings", "segments/*/payload_storage/page_0.dat"]


@pytest.mark.parametrize("damage", [Path.unlink, halve, zero, flip])
@pytest.mark.parametrize("file", INDEX)
async def test_a_damaged_index_is_noticed_and_built_anew(
    folder: Path, embedder: WordEmbedder, file: str, damage: Callable[[Path], None]
) -> None:
    before = await seen(folder, embedder)
    damage(the(folder, file))
    for _ in range(2):
        with pytest.raises(Damaged, match="changed") as refused:
            await open_ledger(str(folder), embedder)
    assert "mneme verify" in refused.value.hint
    assert "mneme repair" in refused.value.hint
    found = await verify(str(folder))
    assert len(found.problems) == 1
    assert found.problems[0].startswith("segments/")
    repaired = await repair(str(folder), embedder)
    assert (repaired.records, repaired.lost) == (29, [])
    assert set_aside(folder) == [repaired.old], "nothing is deleted"
    assert await seen(folder, embedder) == before
    assert (await verify(str(folder))).problems == []


def turn_signs(path: Path) -> None:
    """Turn the sign of every second number of the vectors, which stay as long as they were."""
    numbers = np.fromfile(path, np.float32)
    numbers[::2] *= -1
    numbers.tofile(path)


def move(path: Path) -> None:
    """Put records below another user, in the index of places alone."""
    data = path.read_bytes()
    assert b"alice" in data
    path.write_bytes(data.replace(b"alice", b"alicf"))


def flip_in_the_middle(path: Path) -> None:
    """Turn one bit in the middle of what a file holds besides zeros."""
    written = np.flatnonzero(np.fromfile(path, np.uint8))
    flip(path, int(written[len(written) // 2])) if len(written) else None


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("killed", [False, True], ids=["closed", "killed"])
@pytest.mark.parametrize("damage", [Path.unlink, halve, zero, flip_in_the_middle])
async def test_whatever_file_is_damaged_is_told_and_repaired(
    folder: Path, tmp_path: Path, embedder: WordEmbedder, damage: Callable[[Path], None], killed: bool
) -> None:
    before = await seen(folder, embedder)
    if killed:
        mark_open(the(folder, ""))
    told = 0
    for file in files_in(folder):
        damaged = tmp_path / "damaged"
        copy_folder(folder, damaged)
        damage(damaged / file)
        try:
            assert await seen(damaged, embedder) == before, f"{file}: a silent loss"
        except MnemeError:
            told += 1
            await repair(str(damaged), embedder)
            assert await seen(damaged, embedder) == before, f"{file}: not repaired"
        shutil.rmtree(damaged)
    assert told > 5


AFTER_A_KILL = [
    ("segments/*/vector_storage-dense/vectors/chunk_0.mmap", zero),
    ("segments/*/vector_storage-dense/vectors/chunk_0.mmap", turn_signs),
    ("segments/*/vector_storage-bm25/store/page_0.dat", zero),
    ("segments/*/payload_index/*-scope-*/page_0.dat", move),
    ("segments/*/payload_index/*-value_im-numeric/page_0.dat", zero),
    ("segments/*/payload_index/*-created-*/page_0.dat", zero),
]


async def test_damage_is_noticed_after_a_kill_too(
    folder: Path, tmp_path: Path, embedder: WordEmbedder
) -> None:
    ledger = await open_ledger(str(folder), embedder)
    await ledger.insert(ALICE, {"importance": 0.5}, text="tea", change=SAID)
    await ledger.search(ALICE, "tea", mode="dense", ranking=Ranking(fields={"importance": 1.0}))
    odd = (2**60 + 1, [1, 2], "much", None)  # what an index of numbers has in another form, or not at all
    writes = [make_write(event="insert", namespace=ALICE, value={"importance": n}, change=SAID) for n in odd]
    await ledger.write(writes)
    await ledger.close()
    before = await seen(folder, embedder)
    mark_open(the(folder, ""))
    assert await seen(folder, embedder) == before, "a kill alone is no damage"
    mark_open(the(folder, ""))
    for number, (file, damage) in enumerate(AFTER_A_KILL):
        copied = tmp_path / str(number)
        copy_folder(folder, copied)
        damage(the(copied, file))
        with pytest.raises(Damaged, match=r"vectors of|the index (finds|has)"):
            await open_ledger(str(copied), embedder)
    await repair(str(copied), embedder)
    assert await seen(copied, embedder) == before


async def test_a_vector_that_came_later_is_checked(tmp_path: Path, embedder: WordEmbedder) -> None:
    ledger = await open_ledger(str(tmp_path), Absent(embedder.name, embedder.dimension))
    await ledger.insert(ALICE, {}, text="tea", change=SAID)
    await ledger.close()
    await (await open_ledger(str(tmp_path), embedder)).close()
    assert (await verify(str(tmp_path))).problems == []
    turn_signs(the(tmp_path, "segments/*/vector_storage-dense/vectors/chunk_0.mmap"))
    mark_open(the(tmp_path, ""))
    with pytest.raises(Damaged, match="vectors of 1 records"):
        await open_ledger(str(tmp_path), embedder)


async def test_a_damaged_line_of_the_journal_is_taken_from_the_index(
    folder: Path, embedder: WordEmbedder
) -> None:
    before = await seen(folder, embedder)
    flip(the(folder, "versions.journal"))
    with pytest.raises(Damaged, match=r"versions\.journal changed"):
        await open_ledger(str(folder), embedder)
    repaired = await repair(str(folder), embedder)
    assert (repaired.records, repaired.lost) == (29, [])
    assert await seen(folder, embedder) == before


async def test_what_is_damaged_in_both_is_listed_as_lost(folder: Path, embedder: WordEmbedder) -> None:
    journal = the(folder, "versions.journal")
    lines = journal.read_text().splitlines(keepends=True)
    [hit] = [n for n, line in enumerate(lines) if '\\"key\\":\\"k6\\",\\"version\\":1' in line]
    journal.write_text("".join([*lines[:hit], lines[hit].replace("tea 6", "tea 9"), *lines[hit + 1 :]]))
    zero(the(folder, INDEX[0]))
    repaired = await repair(str(folder), embedder)
    assert (repaired.records, repaired.versions) == (29, 39)
    assert "k6, version 1" in repaired.lost
    after = await open_ledger(str(folder), embedder)
    assert [version.version for version in await after.history(ALICE, "k6")] == [2]
    await after.close()


@pytest.mark.parametrize(
    "step",
    ["complete", "switch", *(pytest.param(each, marks=pytest.mark.long) for each in ("fresh", "set_aside"))],
)
async def test_a_repair_that_is_killed_loses_nothing(
    folder: Path, tmp_path: Path, embedder: WordEmbedder, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    flip(the(folder, "versions.journal"))
    zero(the(folder, INDEX[0]))
    go_on, damaged, killed = getattr(Folder, step), the(folder, "versions.journal"), tmp_path / "killed"
    bytes_of = damaged.read_bytes()

    def copied_first(*given: object) -> object:
        if not killed.exists():
            copy_folder(folder, killed)
        return go_on(*given)

    monkeypatch.setattr(Folder, step, copied_first)
    lost = (await repair(str(folder), embedder)).lost
    assert lost
    try:
        ledger = await open_ledger(str(killed), embedder)
    except Damaged:
        assert (await repair(str(killed), embedder)).lost == lost
        ledger = await open_ledger(str(killed), embedder)
    assert await ledger.count(ALICE, include_retired=True) == 29 - len(lost)
    await ledger.close()
    assert bytes_of in [path.read_bytes() for path in killed.glob("set-aside-*/*/versions.journal")]


async def test_a_journal_of_an_older_version_is_made(folder: Path, embedder: WordEmbedder) -> None:
    before = await seen(folder, embedder)
    the(folder, "versions.journal").unlink()
    the(folder, "mneme.seal").unlink()
    assert await seen(folder, embedder) == before
    assert (await verify(str(folder))).versions == 40


async def test_groups_survive_a_repair(tmp_path: Path, embedder: WordEmbedder) -> None:
    ledger = await open_ledger(str(tmp_path), embedder)
    lines = []
    for number in range(4):
        made = await ledger.insert(ALICE, {}, text=f"tea {number}", change=SAID)
        lines += [line async for line in ledger.export()][-1:]
        await ledger.forget(ALICE, made.key, reason="", actor="")
    shelved = [json.loads(line) | {"shelf": "cards", "key": f"s{n}"} for n, line in enumerate(lines)]
    await ledger.import_(map(json.dumps, shelved))
    ids = sorted(await ledger.vectors(ALICE, "cards"))
    await ledger.group(ALICE, "cards", {"a": ids[:2], "b": ids[2:]})
    await ledger.close()
    zero(the(tmp_path, INDEX[0]))
    await repair(str(tmp_path), embedder)
    ledger = await open_ledger(str(tmp_path), embedder)
    assert [await ledger.shelved(ALICE, "cards", group) for group in (None, "a", "b", "")] == [4, 2, 2, 0]
    await ledger.close()


async def test_only_a_ledger_that_nobody_has_open_is_verified(folder: Path, embedder: WordEmbedder) -> None:
    ledger = await open_ledger(str(folder), embedder)
    with pytest.raises(LedgerInUse):
        await verify(str(folder))
    await ledger.close()
    with pytest.raises(LedgerMismatch):
        await verify(str(folder / "nowhere"))


async def test_nothing_is_changed_where_nothing_is_wrong(folder: Path, embedder: WordEmbedder) -> None:
    repaired = await repair(str(folder), embedder)
    assert (repaired.records, repaired.old) == (29, "")
    assert set_aside(folder) == []
