"""Who may read what people said: its owner alone, whatever the umask."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mneme.api.household_runs import Run
from mneme.core.settings import settings
from mneme.stores.checkpoints.checkpointer import open_checkpointer
from mneme.stores.ledger.ledger import open_ledger
from mneme.stores.ledger.records import Change
from tests.doubles.embedding import WordEmbedder
from tests.doubles.ledgers import forget

SAID = Change(reason="said so", actor="agent")
ALICE = ("users", "alice", "memories")


@contextmanager
def umask(mask: int) -> Iterator[None]:
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def readable_by_others(folder: Path) -> list[Path]:
    return [path for path in (folder, *folder.rglob("*")) if mode(path) & 0o077]


async def use(home: Path, embedder: WordEmbedder) -> None:
    """Write, forget and close a ledger and checkpoints in a home, and check them while they are open."""
    ledger = await open_ledger(str(home / "ledger"), embedder)
    made = await ledger.insert(ALICE, {}, text="tea", change=SAID)
    await forget(ledger, ALICE, made.key, reason="", actor="")
    await ledger.insert(ALICE, {}, text="dog", change=SAID)
    assert not mode(home / "ledger") & 0o007
    await ledger.close()
    async with open_checkpointer(str(home / "checkpoints.sqlite")) as saver:
        await saver.adelete_thread("none")
        found = [path for path in readable_by_others(home) if path.name.startswith("checkpoints")]
        assert not any(mode(path) & 0o007 for path in found)


@pytest.mark.parametrize("mask", [0o000, 0o002, 0o022, 0o077])
async def test_what_is_made_is_private(tmp_path: Path, embedder: WordEmbedder, mask: int) -> None:
    with umask(mask):
        await use(tmp_path / "share" / "home", embedder)
    assert readable_by_others(tmp_path / "share") == []


async def test_what_everybody_could_read_is_closed_and_said(
    tmp_path: Path, embedder: WordEmbedder, caplog: pytest.LogCaptureFixture
) -> None:
    with umask(0o022):
        await use(tmp_path / "home", embedder)
        for path in (tmp_path / "home").rglob("*"):
            path.chmod(0o755 if path.is_dir() else 0o644)
        assert "Everybody" not in caplog.text
        await use(tmp_path / "home", embedder)
    assert readable_by_others(tmp_path / "home") == []
    assert "Everybody on this machine could read" in caplog.text


async def test_nothing_is_said_of_a_folder_that_could_not_be_closed(
    tmp_path: Path, embedder: WordEmbedder, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError

    (tmp_path / "ledger").mkdir()
    (tmp_path / "ledger").chmod(0o777)
    monkeypatch.setattr(Path, "chmod", refuse)  # as for the folder of another user
    await (await open_ledger(str(tmp_path / "ledger"), embedder)).close()
    assert caplog.text == ""


async def test_what_a_home_that_everybody_may_enter_holds_is_private(embedder: WordEmbedder) -> None:
    home = settings().home
    with umask(0o022):
        (home / "household").mkdir(parents=True)  # as earlier versions did
        ledger = await open_ledger(settings().ledger_location, embedder)
        await ledger.insert(ALICE, {}, text="tea", change=SAID)
        await ledger.search(ALICE, "tea")
        with Run("tea").played_alone():
            assert readable_by_others(home) == [home], "while it is in use"
        await ledger.close()
    assert readable_by_others(home) == [home]


async def test_what_a_group_shares_stays_shared(
    tmp_path: Path, embedder: WordEmbedder, caplog: pytest.LogCaptureFixture
) -> None:
    await use(tmp_path / "home", embedder)
    for path in (tmp_path / "home").rglob("*"):
        path.chmod(0o770 if path.is_dir() else 0o660)
    await use(tmp_path / "home", embedder)
    assert mode(tmp_path / "home" / "ledger") == 0o770
    assert mode(tmp_path / "home" / "checkpoints.sqlite") == 0o660
    assert caplog.text == ""
