"""An embedded ledger on a disk that is full or read-only."""

import json
import os
import random
import re
import shutil
import sqlite3
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mneme.core.errors import Damaged, NotWritable, StorageFailure
from mneme.stores.database import kept_of
from mneme.stores.ledger.ledger import open_ledger
from mneme.stores.ledger.opening import open_to_read
from mneme.stores.ledger.records import Version
from mneme.stores.ledger.verifying import repair, verify
from tests.doubles.command_line import failed, run_mneme
from tests.doubles.embedding import WordEmbedder
from tests.doubles.ledgers import ALICE, SAID, forget, put
from tests.doubles.quiet import quiet


@contextmanager
def small_disk(mount_point: Path, megabytes: int) -> Iterator[Path]:
    """Mount a file system of its own, or skip where that is not allowed."""
    mount_point.mkdir()
    options = ["-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(mount_point)]
    if shutil.which("mount") is None or subprocess.run(["mount", *options], check=False).returncode:
        pytest.skip("a small file system cannot be mounted here: that takes root")
    try:
        yield mount_point
    finally:
        subprocess.run(["umount", "-l", str(mount_point)], check=True)


def remount(disk: Path, how: str) -> None:
    subprocess.run(["mount", "-o", f"remount,{how}", str(disk)], check=True)


def rooms() -> list[Path]:
    """Return the folders in which copies are read."""
    return [*Path(tempfile.gettempdir()).glob("mneme-reading-*"), *Path("/dev/shm").glob("mneme-reading-*")]


class TestDisks:
    async def test_a_full_disk_refuses_clearly_and_tears_nothing(
        self, tmp_path: Path, embedder: WordEmbedder
    ) -> None:
        with small_disk(tmp_path / "disk", 96) as disk:
            ledger = await open_ledger(str(disk / "ledger"), embedder)
            kept: list[Version] = []
            with pytest.raises(StorageFailure, match="nearly full"):
                while True:
                    text = random.Random(len(kept)).randbytes(20_000).hex()
                    kept.append(await ledger.insert(ALICE, {"content": text}, text="tea", change=SAID))
            assert len(kept) > 20
            (disk / "ballast").write_bytes(bytes(os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize))
            assert os.statvfs(disk).f_bavail == 0
            with pytest.raises(StorageFailure):
                await put(ledger, "more")
            with pytest.raises(StorageFailure):
                await forget(ledger, ALICE, kept[0].key, reason="", actor="")
            assert await ledger.records(ALICE, limit=1000) == kept
            await ledger.close()
            with pytest.raises(StorageFailure, match="nearly full"):
                await open_ledger(str(disk / "ledger"), embedder)
            remount(disk, "size=300m")
            ledger = await open_ledger(str(disk / "ledger"), embedder)
            assert await ledger.records(ALICE, limit=1000) == kept
            await put(ledger, "more")
            await ledger.close()

    async def test_a_read_only_folder_is_said_and_can_be_read(
        self, tmp_path: Path, embedder: WordEmbedder
    ) -> None:
        with small_disk(tmp_path / "disk", 200) as disk:
            ledger = await open_ledger(str(disk / "ledger"), embedder)
            made = await put(ledger, "tea")
            await ledger.close()
            remount(disk, "ro")
            for folder, reading in (("ledger", False), ("new", False), ("new", True)):
                with pytest.raises(NotWritable, match="Read-only"):
                    await open_ledger(str(disk / folder), embedder, reading=reading)
            await self.is_readable(disk / "ledger", embedder, [made])

    async def test_a_ledger_is_closed_on_a_disk_that_is_full_by_now(
        self, tmp_path: Path, embedder: WordEmbedder
    ) -> None:
        with small_disk(tmp_path / "disk", 120) as disk:
            ledger = await open_ledger(str(disk / "ledger"), embedder)
            made = [await put(ledger, f"tea {number}") for number in range(20)]
            await ledger.search(ALICE, "tea")
            with pytest.raises(OSError, match="No space"), (disk / "ballast").open("wb", buffering=0) as file:
                while True:
                    file.write(bytes(4096))
            await ledger.close()
            (disk / "ballast").unlink()
            ledger = await open_ledger(str(disk / "ledger"), embedder)
            assert await ledger.records(ALICE) == made
            await ledger.close()

    @pytest.mark.parametrize("damage", ["changed rows", "a lost end"])
    async def test_damage_on_a_read_only_disk_is_told_with_what_comes_first(
        self, tmp_path: Path, embedder: WordEmbedder, damage: str
    ) -> None:
        with small_disk(tmp_path / "disk", 200) as disk:
            ledger = await open_ledger(str(disk / "ledger"), embedder)
            await put(ledger, "tea")
            await ledger.close()
            if damage == "a lost end":
                kept_of(disk / "ledger").write_text("9")
            else:
                with sqlite3.connect(disk / "ledger" / "log.sqlite") as connection:
                    connection.execute("DELETE FROM ledger_heads")
                connection.close()
            remount(disk, "ro")
            told = (await verify(str(disk / "ledger"))).problems
            assert str(disk / "ledger" / "log.sqlite") in told[0], "not a copy's"
            with pytest.raises(Damaged) as refused:
                open_to_read(str(disk / "ledger"))
            assert re.search("Read-only.* Then: `mneme verify`", refused.value.hint)

    async def test_a_damaged_log_on_a_full_disk_stays_until_there_is_space(
        self, tmp_path: Path, embedder: WordEmbedder
    ) -> None:
        with small_disk(tmp_path / "disk", 200) as disk:
            ledger = await open_ledger(str(disk / "ledger"), embedder)
            await put(ledger, "tea")
            await ledger.close()
            kept_of(disk / "ledger").write_text("9")
            free = os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize
            (disk / "ballast").write_bytes(bytes(free - 2**24))
            with pytest.raises(NotWritable, match="nearly full"):
                await repair(str(disk / "ledger"), embedder)
            (disk / "ballast").unlink()
            assert (await repair(str(disk / "ledger"), embedder)).lost == ["8 entries of the log"]

    async def test_a_full_disk_can_be_read(self, tmp_path: Path, embedder: WordEmbedder) -> None:
        with small_disk(tmp_path / "disk", 96) as disk:
            ledger = await open_ledger(str(disk / "ledger"), embedder)
            made = await put(ledger, "tea")
            await ledger.close()
            (disk / "ballast").write_bytes(bytes(os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize))
            assert os.statvfs(disk).f_bavail == 0
            await self.is_readable(disk / "ledger", embedder, [made])

    @pytest.fixture(autouse=True)
    def own_temporary_folder(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Keep the copies of other test processes out of sight."""
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    async def is_readable(self, folder: Path, embedder: WordEmbedder, made: list[Version]) -> None:
        """Read everything in every way, twice at once, and be refused where something would be written."""
        copies = set(rooms())
        ledger, other = [await open_ledger(str(folder), embedder, reading=True) for _ in range(2)]
        assert await other.records(ALICE) == made
        await other.close()
        assert await ledger.history(ALICE, made[0].key) == made
        assert [hit.version for hit in await ledger.search(ALICE, "tea", mode="blend")] == made
        assert len([line async for line in ledger.export()]) == len(made)
        assert (await ledger.info()).location == str(folder)
        with pytest.raises(NotWritable):
            await put(ledger, "more")
        with pytest.raises(NotWritable):
            await forget(ledger, ALICE, made[0].key, reason="", actor="")
        await ledger.close()
        assert set(rooms()) == copies, "what was copied to be read is gone"

    def test_commands_that_read_work_on_a_read_only_disk(self, tmp_path: Path) -> None:
        with small_disk(tmp_path / "disk", 300) as disk:
            home = quiet(disk / "home")
            assert run_mneme(["chat"], home, "I live in Austin.\n/quit\n").returncode == 0
            remount(disk, "ro")
            commands = ("list", "export", "search Austin", "review", "list --as-of 2100-01-01")
            for words in commands:
                done = run_mneme(["memories", *words.split(), "--json"], home)
                assert done.returncode == 0, done.stderr
                assert ("Austin" in done.stdout) is (words != "review")
            key = json.loads(run_mneme(["memories", "list", "--json"], home).stdout)["key"]
            for command in ("show", "history"):
                assert "Austin" in run_mneme(["memories", command, key[:6]], home).stdout
            for team_s in ("cards list", "cards search x", "cards export", "share pool list", "discuss list"):
                done = run_mneme(team_s.split(), home)
                assert done.returncode == 0, done.stderr
            failed(run_mneme(["memories", "undo"], home), "Read-only")
            remount(disk, "rw")
