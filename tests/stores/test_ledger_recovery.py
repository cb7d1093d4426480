"""A ledger's folder of which something is missing, foreign or damaged: nothing is deleted, all is said."""

import asyncio
import json
import logging
import shutil
from pathlib import Path

import pytest

from mneme.core.errors import LedgerMismatch, StorageFailure
from mneme.evals.commands import quiet
from mneme.models.embedding.embedders import open_embedder
from mneme.stores.ledger.ledger import Ledger, open_ledger
from mneme.stores.ledger.records import Change
from tests.doubles.command_line import failed, run_mneme
from tests.doubles.embedding import WordEmbedder

SAID = Change(reason="said so", actor="agent")
ALICE = ("users", "alice", "memories")
DAMAGED = ["", "{}", "not JSON", '{"format": 1', "\0" * 84]
FIRST, SECOND = "generation-000001", "generation-000002"


@pytest.fixture
async def folder(tmp_path: Path, embedder: WordEmbedder) -> Path:
    """Give the folder of a ledger with three records that nobody has open."""
    ledger = await open_ledger(str(tmp_path / "ledger"), embedder)
    for number in range(3):
        await ledger.insert(ALICE, {"content": f"tea {number}"}, text=f"tea {number}", change=SAID)
    await ledger.close()
    return tmp_path / "ledger"


async def texts(folder: Path, embedder: WordEmbedder) -> list[str]:
    """Open a ledger, read it, and close it."""
    ledger = await open_ledger(str(folder), embedder)
    try:
        return [version.text for version in await ledger.records(())]
    finally:
        await ledger.close()


def kept_in(folder: Path) -> list[str]:
    """Return what was set aside."""
    return sorted(path.name for path in folder.glob("set-aside-*/*"))


def files_in(folder: Path) -> set[Path]:
    return set(folder.rglob("*"))


def without_copy(generation: Path) -> None:
    """Make a generation as older versions made it."""
    (generation / "mneme.json").unlink()


ALL = ["tea 0", "tea 1", "tea 2"]


class TestTheManifest:
    @pytest.mark.parametrize("content", [None, *DAMAGED])
    async def test_it_is_restored_from_its_copy(
        self, folder: Path, embedder: WordEmbedder, content: str | None, caplog: pytest.LogCaptureFixture
    ) -> None:
        before = (folder / "mneme.json").read_text()
        (folder / "mneme.json").unlink() if content is None else (folder / "mneme.json").write_text(content)
        with caplog.at_level(logging.WARNING):
            assert await texts(folder, embedder) == ALL
        assert "has been restored" in caplog.text
        assert (folder / "mneme.json").read_text() == before
        assert kept_in(folder) == ([] if content is None else ["mneme.json"])

    @pytest.mark.parametrize("content", [None, *DAMAGED])
    async def test_without_a_copy_it_is_said_how_to_write_it(
        self, folder: Path, embedder: WordEmbedder, content: str | None
    ) -> None:
        (folder / "mneme.json").unlink() if content is None else (folder / "mneme.json").write_text(content)
        without_copy(folder / FIRST)
        for _ in range(2):
            with pytest.raises(LedgerMismatch, match="missing or damaged") as refused:
                await open_ledger(str(folder), embedder)
        advice = json.loads(refused.value.hint[refused.value.hint.index("{") :])
        assert advice["dimension"] == embedder.dimension
        (folder / "mneme.json").write_text(json.dumps(advice | {"embedder": embedder.name}))
        assert await texts(folder, embedder) == ALL
        (folder / "mneme.json").unlink()
        assert await texts(folder, embedder) == ALL, "the copy has been made meanwhile"

    async def test_another_embedder_is_told_and_not_the_ledger_replaced(
        self, folder: Path, embedder: WordEmbedder
    ) -> None:
        (folder / "mneme.json").unlink()
        with pytest.raises(LedgerMismatch, match="test:other"):
            await open_ledger(str(folder), WordEmbedder("test:other", 32))
        assert await texts(folder, embedder) == ALL

    def test_the_command_line_erases_nothing(self, tmp_path: Path) -> None:
        home = quiet(tmp_path / "home")
        line = {"content": "I like tea", "quote": "I like tea"}
        asyncio.run(_remembered(tmp_path / "home" / "ledger", line))
        (tmp_path / "home" / "ledger" / "mneme.json").unlink()
        for _ in range(2):
            done = run_mneme(["memories", "list", "--json"], home)
            assert done.returncode == 0, done.stderr
            assert json.loads(done.stdout)["memory"]["content"] == "I like tea"
        without_copy(tmp_path / "home" / "ledger" / FIRST)
        (tmp_path / "home" / "ledger" / "mneme.json").unlink()
        failed(run_mneme(["memories", "list"], home), "mneme.json is missing or damaged", '"generation": 1')
        assert (tmp_path / "home" / "ledger" / FIRST / "segments").is_dir()


async def _remembered(folder: Path, value: dict[str, str]) -> None:
    ledger = await open_ledger(str(folder), await open_embedder("bundled"))
    await ledger.insert(("users", "local", "memories"), dict(value), text=value["content"], change=SAID)
    await ledger.close()


class TestPartialRestores:
    @pytest.mark.parametrize("lost", ["segments", "segments/*"])
    async def test_missing_folders_of_the_engine_are_said(
        self, folder: Path, embedder: WordEmbedder, lost: str
    ) -> None:
        for path in (folder / FIRST).glob(lost):
            shutil.rmtree(path)
        before = files_in(folder)
        with pytest.raises(StorageFailure, match="damaged"):
            await open_ledger(str(folder), embedder)
        assert before - files_in(folder) <= {folder / "mneme.owner", folder / FIRST / "mneme.seal"}

    async def test_a_missing_generation_is_said(self, folder: Path, embedder: WordEmbedder) -> None:
        shutil.rmtree(folder / FIRST)
        with pytest.raises(StorageFailure, match="missing"):
            await open_ledger(str(folder), embedder)
        (folder / "mneme.json").write_text("")
        with pytest.raises(LedgerMismatch, match="are not there"):
            await open_ledger(str(folder), embedder)

    async def test_without_the_lock_and_the_manifest_it_is_a_ledger_still(
        self, folder: Path, embedder: WordEmbedder
    ) -> None:
        for name in ("mneme.json", "mneme.lock"):
            (folder / name).unlink()
        assert await texts(folder, embedder) == ALL

    async def test_an_old_manifest_beside_a_newer_generation_loses_neither(
        self, folder: Path, embedder: WordEmbedder
    ) -> None:
        shutil.copytree(folder, folder.parent / "backup")
        ledger = await open_ledger(str(folder), embedder)
        [first, *_] = await ledger.records(())
        await ledger.forget(ALICE, first.key, reason="", actor="")
        await ledger.close()
        assert await texts(folder, embedder) == ALL[1:]
        shutil.copytree(folder.parent / "backup", folder, dirs_exist_ok=True)
        assert await texts(folder, embedder) == ALL[1:]
        assert kept_in(folder) == [FIRST, "mneme.json"]

    async def test_a_generation_that_is_not_known_is_kept(
        self, folder: Path, embedder: WordEmbedder, caplog: pytest.LogCaptureFixture
    ) -> None:
        shutil.copytree(folder / FIRST, folder / SECOND)
        assert await texts(folder, embedder) == ALL
        assert kept_in(folder) == [SECOND]
        assert "moved to" in caplog.text

    async def test_what_is_half_made_is_removed(self, folder: Path, embedder: WordEmbedder) -> None:
        (folder / "making-000002").mkdir()
        assert await texts(folder, embedder) == ALL
        assert not [path for path in files_in(folder) if "making" in path.name]

    async def test_an_error_leaves_all_generations(self, folder: Path, embedder: WordEmbedder) -> None:
        shutil.copytree(folder / FIRST, folder / SECOND)
        shutil.rmtree(folder / FIRST / "segments")
        with pytest.raises(StorageFailure):
            await open_ledger(str(folder), embedder)
        assert (folder / SECOND / "segments").is_dir()


class TestFoldersOfSomethingElse:
    @pytest.mark.parametrize("name", ["letter.txt", "generation-x", "generations-000001"])
    async def test_they_are_left_alone(self, tmp_path: Path, embedder: WordEmbedder, name: str) -> None:
        (tmp_path / "documents" / name).mkdir(parents=True)
        with pytest.raises(LedgerMismatch, match="nothing was touched"):
            await open_ledger(str(tmp_path / "documents"), embedder)
        assert [path.name for path in (tmp_path / "documents").iterdir()] == [name]

    async def test_other_files_beside_a_ledger_stay(self, folder: Path, embedder: WordEmbedder) -> None:
        for name in ("making-of.txt", "notes.md", "generation-gap"):
            (folder / name).write_text("mine")
        ledger: Ledger = await open_ledger(str(folder), embedder)
        [first, *_] = await ledger.records(())
        await ledger.forget(ALICE, first.key, reason="", actor="")
        await ledger.close()
        for name in ("making-of.txt", "notes.md", "generation-gap"):
            assert (folder / name).read_text() == "mine"
