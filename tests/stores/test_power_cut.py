"""A power cut at any moment: what was acknowledged is there when the ledger is opened again."""

import asyncio
import errno
import fcntl
import logging
import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from mneme.core.errors import PowerCut, StorageFailure
from mneme.stores.ledger import sealing
from mneme.stores.ledger.ledger import Ledger, open_ledger
from mneme.stores.ledger.records import Change
from mneme.stores.ledger.sparse import copy_folder
from mneme.stores.ledger.verifying import repair, verify
from tests.doubles.calls import Call
from tests.doubles.embedding import WordEmbedder
from tests.doubles.power import Disk
from tests.doubles.waiting import until
from tests.stores.test_ledger_recovery import texts

SAID = Change(reason="said so", actor="agent")
ALICE = ("users", "alice", "memories")
Restart = Callable[[], None]


@pytest.fixture
def restart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Restart:
    """Return what starts the machine anew, as far as a ledger can tell."""
    start = tmp_path / "boot_id"
    start.write_text("first")
    monkeypatch.setattr(sealing, "START", start)

    def restarted() -> None:
        start.write_text("second")

    return restarted


async def put(ledger: Ledger, number: int) -> None:
    await ledger.insert(ALICE, {"n": number}, text=f"tea {number}", change=SAID, key=f"k{number}")


@pytest.fixture
async def cut(tmp_path: Path, embedder: WordEmbedder, restart: Restart) -> Path:
    """Give the folder of a ledger with three records that was open when the machine stopped."""
    ledger = await open_ledger(str(tmp_path / "ledger"), embedder)
    for number in range(3):
        await put(ledger, number)
    copy_folder(tmp_path / "ledger", tmp_path / "cut")
    await ledger.close()
    restart()
    return tmp_path / "cut"


def lose_vectors(folder: Path) -> None:
    [vectors] = folder.glob("*/segments/*/vector_storage-dense/vectors/chunk_0.mmap")
    vectors.write_bytes(bytes(vectors.stat().st_size))


def generations(folder: Path) -> list[str]:
    return [path.name for path in folder.glob("generation-*")]


ALL = ["tea 0", "tea 1", "tea 2"]


class TestOpening:
    async def test_the_index_is_built_anew(
        self, cut: Path, embedder: WordEmbedder, caplog: pytest.LogCaptureFixture
    ) -> None:
        lose_vectors(cut)
        with caplog.at_level(logging.WARNING):
            ledger = await open_ledger(str(cut), embedder)
        assert "built anew" in caplog.text
        [hit] = await ledger.search(ALICE, "tea 2", mode="dense", limit=1)
        assert (hit.version.text, round(hit.score, 3)) == ("tea 2", 1.0)
        await ledger.close()
        assert (await verify(str(cut))).problems == []
        assert generations(cut) == ["generation-000002"]

    @pytest.mark.parametrize("torn", [b"0123", b"\0\0\0\0", b"01234567 [\n\0\0\n"])
    async def test_what_was_not_acknowledged_may_be_torn(
        self, cut: Path, embedder: WordEmbedder, torn: bytes
    ) -> None:
        with (cut / "generation-000001" / "versions.journal").open("ab") as journal:
            journal.write(torn)
        assert await texts(cut, embedder) == ALL

    async def test_damage_before_that_is_for_a_repair(self, cut: Path, embedder: WordEmbedder) -> None:
        journal = cut / "generation-000001" / "versions.journal"
        journal.write_bytes(journal.read_bytes().replace(b"tea 1", b"TEA 1"))
        with pytest.raises(PowerCut, match="cannot be trusted") as refused:
            await open_ledger(str(cut), embedder)
        assert "mneme repair" in refused.value.hint
        assert "stopped while" in (await verify(str(cut))).problems[0]
        assert (await repair(str(cut), embedder)).lost == []
        assert await texts(cut, embedder) == ALL

    async def test_a_kill_is_no_power_cut(self, tmp_path: Path, embedder: WordEmbedder) -> None:
        ledger = await open_ledger(str(tmp_path / "ledger"), embedder)
        await put(ledger, 0)
        copy_folder(tmp_path / "ledger", tmp_path / "killed")
        await ledger.close()
        assert await texts(tmp_path / "killed", embedder) == ["tea 0"]
        assert generations(tmp_path / "killed") == ["generation-000001"]

    async def test_the_engines_lock_of_a_dying_process_is_waited_for(
        self, tmp_path: Path, embedder: WordEmbedder
    ) -> None:
        await (await open_ledger(str(tmp_path / "ledger"), embedder)).close()
        held = os.open(tmp_path / "ledger" / "generation-000001" / "wal", os.O_RDONLY)
        fcntl.flock(held, fcntl.LOCK_EX)
        threading.Timer(0.3, os.close, [held]).start()
        assert await texts(tmp_path / "ledger", embedder) == []

    async def test_a_cancelled_forgetting_ends_before_the_ledger_is_closed(
        self, tmp_path: Path, embedder: WordEmbedder
    ) -> None:
        ledger = await open_ledger(str(tmp_path / "ledger"), embedder)
        for number in (0, 1):
            await put(ledger, number)
        forgetting = asyncio.create_task(ledger.forget(ALICE, "k0", reason="asked", actor="alice"))
        making = tmp_path / "ledger" / "making-000002"
        await until(lambda: making.exists() or forgetting.done())  # a quick disk may be done before one looks
        forgetting.cancel()
        await ledger.close()
        assert await texts(tmp_path / "ledger", embedder) == ["tea 1"]


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Disk:
    """Note what Python syncs; what the engine syncs is not seen, and so counts as not synced."""
    if not Path("/proc/self/fd").is_dir():
        pytest.skip("the names of open files are read from /proc")
    (tmp_path / "disk").mkdir()
    disk, one, real = Disk(tmp_path / "disk"), threading.Lock(), os.fsync

    def fsync(file: int) -> None:
        with one:
            disk.note(Call("sync", Path(f"/proc/self/fd/{file}").readlink()))
            real(file)

    monkeypatch.setattr(os, "fsync", fsync)
    return disk


async def test_what_was_acknowledged_survives_without_the_engines_files(
    tmp_path: Path, embedder: WordEmbedder, disk: Disk, restart: Restart
) -> None:
    ledger = await open_ledger(str(disk.root / "ledger"), embedder)
    for number in range(3):
        await put(ledger, number)
        disk.cut(tmp_path / f"cut-{number}")
    await ledger.forget(ALICE, "k0", reason="asked", actor="alice")
    disk.cut(tmp_path / "cut-forgotten")
    await ledger.close()
    disk.cut(tmp_path / "cut-closed")
    restart()
    for number in range(3):
        assert await texts(tmp_path / f"cut-{number}" / "ledger", embedder) == ALL[: number + 1]
    for name in ("cut-forgotten", "cut-closed"):
        assert await texts(tmp_path / name / "ledger", embedder) == ALL[1:]


class TestFailingSyncs:
    async def test_a_write_that_is_not_synced_is_not_acknowledged(
        self, tmp_path: Path, embedder: WordEmbedder, monkeypatch: pytest.MonkeyPatch, restart: Restart
    ) -> None:
        ledger = await open_ledger(str(tmp_path / "ledger"), embedder)
        await put(ledger, 0)
        with monkeypatch.context() as broken:
            broken.setattr(os, "fsync", _broken)
            for number in (1, 2):
                with pytest.raises(StorageFailure, match="Input/output error"):
                    await put(ledger, number)
        await put(ledger, 3)  # the journal is written anew first
        copy_folder(tmp_path / "ledger", tmp_path / "cut")
        await ledger.close()
        restart()
        assert {"tea 0", "tea 3"} <= set(await texts(tmp_path / "cut", embedder))


def _broken(file: int) -> None:
    raise OSError(errno.EIO, os.strerror(errno.EIO))
