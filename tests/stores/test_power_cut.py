"""A kill or a power cut at any moment: what was acknowledged is there when the ledger is opened again."""

import asyncio
from pathlib import Path

from mneme.stores.ledger.ledger import Ledger, open_ledger
from mneme.stores.ledger.records import Change
from mneme.stores.ledger.verifying import verify
from tests.doubles.copying import copy_folder
from tests.doubles.embedding import WordEmbedder
from tests.doubles.ledgers import forget

SAID = Change(reason="said so", actor="agent")
ALICE = ("users", "alice", "memories")


async def put(ledger: Ledger, number: int) -> None:
    await ledger.insert(ALICE, {"n": number}, text=f"tea {number}", change=SAID, key=f"k{number}")


async def texts(folder: Path, embedder: WordEmbedder) -> list[str]:
    """Open a ledger, read it, search it, and close it."""
    ledger = await open_ledger(str(folder), embedder)
    try:
        found = [version.text for version in await ledger.records(())]
        hits = await ledger.search(ALICE, "tea", mode="dense", limit=100)
        assert {hit.version.text for hit in hits} == set(found)
        return found
    finally:
        await ledger.close()


async def test_what_was_acknowledged_is_there_after_a_kill_and_without_the_index(
    tmp_path: Path, embedder: WordEmbedder
) -> None:
    ledger = await open_ledger(str(tmp_path / "ledger"), embedder)
    await ledger.search(ALICE, "tea")
    for number in range(3):
        await put(ledger, number)
        copy_folder(tmp_path / "ledger", tmp_path / f"killed-{number}")
    await forget(ledger, ALICE, "k0", reason="asked", actor="alice")
    copy_folder(tmp_path / "ledger", tmp_path / "killed-forgotten")
    await ledger.close()
    for number in range(3):
        for vectors in (tmp_path / f"killed-{number}").rglob("chunk_0.mmap"):
            vectors.write_bytes(bytes(vectors.stat().st_size))
        assert await texts(tmp_path / f"killed-{number}", embedder) == [f"tea {n}" for n in range(number + 1)]
        assert (await verify(str(tmp_path / f"killed-{number}"))).problems == []
    assert await texts(tmp_path / "killed-forgotten", embedder) == ["tea 1", "tea 2"]


async def test_what_was_not_acknowledged_may_be_torn(tmp_path: Path, embedder: WordEmbedder) -> None:
    ledger = await open_ledger(str(tmp_path / "ledger"), embedder)
    await put(ledger, 0)
    await put(ledger, 1)
    copy_folder(tmp_path / "ledger", tmp_path / "cut")
    await ledger.close()
    with (tmp_path / "cut" / "log.sqlite-wal").open("ab") as log:
        log.write(b"\1" * 5000)
    assert await texts(tmp_path / "cut", embedder) == ["tea 0", "tea 1"]


async def test_a_cancelled_forgetting_ends_before_the_ledger_is_closed(
    tmp_path: Path, embedder: WordEmbedder
) -> None:
    ledger = await open_ledger(str(tmp_path / "ledger"), embedder)
    for number in (0, 1):
        await put(ledger, number)
    await ledger.search(ALICE, "tea")
    forgetting = asyncio.create_task(forget(ledger, ALICE, "k0", reason="asked", actor="alice"))
    await asyncio.sleep(0.01)
    forgetting.cancel()
    await ledger.close()
    assert set(await texts(tmp_path / "ledger", embedder)) - {"tea 0"} == {"tea 1"}
    assert (await verify(str(tmp_path / "ledger"))).problems == []
