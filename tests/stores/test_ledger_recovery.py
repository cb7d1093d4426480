"""A ledger's folder of which something is missing or foreign: nothing is deleted, all is said."""

import asyncio
import shutil
from pathlib import Path

import pytest

from mneme.core.errors import LedgerInUse, LedgerMismatch, StorageFailure
from mneme.stores.ledger.folder import Folder
from mneme.stores.ledger.ledger import open_ledger
from mneme.stores.ledger.records import Change
from tests.doubles.embedding import WordEmbedder
from tests.doubles.ledgers import forget

SAID = Change(reason="said so", actor="agent")
ALICE = ("users", "alice", "memories")
ALL = ["tea 0", "tea 1", "tea 2"]


@pytest.fixture
async def folder(tmp_path: Path, embedder: WordEmbedder) -> Path:
    """Give the folder of a ledger with three records that nobody has open."""
    ledger = await open_ledger(str(tmp_path / "ledger"), embedder)
    for number in range(3):
        await ledger.insert(ALICE, {"content": f"tea {number}"}, text=f"tea {number}", change=SAID)
    await ledger.search(ALICE, "tea")
    await ledger.close()
    return tmp_path / "ledger"


async def texts(folder: Path, embedder: WordEmbedder) -> list[str]:
    """Open a ledger, read it, and close it."""
    ledger = await open_ledger(str(folder), embedder)
    try:
        return [version.text for version in await ledger.records(())]
    finally:
        await ledger.close()


@pytest.mark.parametrize("lost", ["mneme.json", "mneme.lock", "mneme.seal", "index-1", "index-1.lock"])
async def test_what_can_be_made_anew_is_made_anew(folder: Path, embedder: WordEmbedder, lost: str) -> None:
    path = folder / lost
    await asyncio.to_thread(shutil.rmtree if path.is_dir() else Path.unlink, path)
    assert await texts(folder, embedder) == ALL
    ledger = await open_ledger(str(folder), embedder)
    assert len(await ledger.search(ALICE, "tea")) == 3
    await ledger.close()


async def test_a_missing_log_is_said_and_no_new_one_made(folder: Path, embedder: WordEmbedder) -> None:
    (folder / "log.sqlite").unlink()
    for _ in range(2):
        with pytest.raises(StorageFailure, match="missing") as refused:
            await open_ledger(str(folder), embedder)
    assert "mneme restore" in refused.value.hint
    assert not (folder / "log.sqlite").exists()


async def test_a_log_that_is_deleted_while_it_is_open_is_said(folder: Path, embedder: WordEmbedder) -> None:
    other = Folder(folder)
    other.share()
    (folder / "log.sqlite").unlink()
    with pytest.raises(LedgerInUse, match="Another process"):
        await open_ledger(str(folder), embedder)
    other.release()
    assert not (folder / "log.sqlite").exists()


async def test_another_embedder_is_told(folder: Path, embedder: WordEmbedder) -> None:
    with pytest.raises(LedgerMismatch, match="test:words"):
        await open_ledger(str(folder), WordEmbedder("test:other", 32))
    assert await texts(folder, embedder) == ALL


@pytest.mark.parametrize("name", ["letter.txt", "logs.sqlite", "indexes"])
async def test_folders_of_something_else_are_left_alone(
    tmp_path: Path, embedder: WordEmbedder, name: str
) -> None:
    (tmp_path / "documents" / name).mkdir(parents=True)
    with pytest.raises(LedgerMismatch, match="nothing was touched"):
        await open_ledger(str(tmp_path / "documents"), embedder)
    assert [path.name for path in (tmp_path / "documents").iterdir()] == [name]


async def test_other_files_beside_a_ledger_stay(folder: Path, embedder: WordEmbedder) -> None:
    for name in ("making-of.txt", "notes.md", "index-of.txt"):
        (folder / name).write_text("mine")
    ledger = await open_ledger(str(folder), embedder)
    [first, *_] = await ledger.records(())
    await forget(ledger, ALICE, first.key, reason="", actor="")
    await ledger.close()
    for name in ("making-of.txt", "notes.md", "index-of.txt"):
        assert (folder / name).read_text() == "mine"
