"""Backups: made while the ledger is in use, restored elsewhere, refused where they are damaged."""

import asyncio
import errno
import json
import os
import shutil
import sqlite3
import zipfile
from pathlib import Path

import pytest

from mneme.cli import main
from mneme.client.backups import back_up, restore
from mneme.core.errors import BadInput, Damaged, MnemeError
from mneme.core.settings import settings
from mneme.stores.checkpoints.checkpointer import open_checkpointer
from mneme.stores.ledger.ledger import open_ledger
from mneme.stores.ledger.records import Change
from tests.doubles.command_line import failed, run_mneme
from tests.doubles.embedding import WordEmbedder
from tests.doubles.ledgers import forget
from tests.doubles.quiet import quiet

SAID = Change(reason="said so", actor="agent")
ALICE = ("users", "alice", "memories")


async def exported(embedder: WordEmbedder) -> list[str]:
    ledger = await open_ledger(settings().ledger_location, embedder)
    try:
        return sorted([line async for line in ledger.export()])
    finally:
        await ledger.close()


def move_to(home: Path, patch: pytest.MonkeyPatch) -> None:
    patch.setenv("MNEME_HOME", str(home))
    settings.cache_clear()


def is_shared_or_open(path: Path) -> bool:
    return bool(path.stat().st_mode & 0o077)


async def test_it_is_made_while_the_ledger_is_written(
    tmp_path: Path, embedder: WordEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = await open_ledger(settings().ledger_location, embedder)
    made = [await ledger.insert(ALICE, {}, text=f"tea {n}", change=SAID) for n in range(20)]

    async def go_on() -> None:
        for number in range(40):
            await ledger.insert(ALICE, {}, text=f"more {number}", change=SAID)
            if number % 8 == 0:
                await forget(ledger, ALICE, made[number // 8].key, reason="", actor="")

    writing = asyncio.create_task(go_on())
    backups = [await asyncio.to_thread(back_up, tmp_path / f"backup-{n}") for n in range(5)]
    await writing
    await ledger.close()
    assert all(14 < each.records <= 60 for each in backups)
    whole = await asyncio.to_thread(back_up, tmp_path / "whole")
    before = await exported(embedder)
    move_to(tmp_path / "other", monkeypatch)
    for number in reversed(range(5)):  # each in the place of a later one
        assert await restore(tmp_path / f"backup-{number}", embedder)
        assert len(await exported(embedder)) == backups[number].versions
        await asyncio.to_thread(shutil.rmtree, settings().ledger_location)
    move_to(tmp_path / "home-whole", monkeypatch)
    restored = await restore(tmp_path / "whole", WordEmbedder("test:other", 32))
    assert (restored.records, restored.checkpoints) == (whole.records, False)
    ledger = await open_ledger(settings().ledger_location, WordEmbedder("test:other", 32))
    assert sorted([line async for line in ledger.export()]) == before
    assert (await ledger.search(ALICE, "more 7", limit=1))[0].version.text == "more 7"
    assert len(await ledger.forgotten()) == 5
    await ledger.close()


async def test_checkpoints_come_back(
    tmp_path: Path, embedder: WordEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    await (await open_ledger(settings().ledger_location, embedder)).close()
    async with open_checkpointer(settings().checkpoints_location) as saver:
        await saver.adelete_thread("none")
        assert back_up(tmp_path / "backup").checkpoints
    move_to(tmp_path / "other", monkeypatch)
    assert (await restore(tmp_path / "backup", embedder)).checkpoints
    assert not is_shared_or_open(Path(settings().checkpoints_location))
    with pytest.raises(BadInput, match="exists"):
        await restore(tmp_path / "backup", embedder)


async def test_what_refuses_a_restore_is_named_and_once_moved_it_is_restored(
    tmp_path: Path, embedder: WordEmbedder
) -> None:
    await (await open_ledger(settings().ledger_location, embedder)).close()
    async with open_checkpointer(settings().checkpoints_location) as saver:
        await saver.adelete_thread("none")
        back_up(tmp_path / "backup")
    ledger, checkpoints = Path(settings().ledger_location), Path(settings().checkpoints_location)
    for gone, left in ((ledger, checkpoints), (checkpoints, ledger)):
        gone.rename(tmp_path / f"{gone.name}-gone")
        with pytest.raises(BadInput, match="exists") as refused:
            await restore(tmp_path / "backup", embedder)
        assert f"Move away {left}, or" in refused.value.hint
        left.rename(tmp_path / f"{left.name}-moved")
        assert (await restore(tmp_path / "backup", embedder)).checkpoints


async def test_a_damaged_backup_restores_nothing(
    tmp_path: Path, embedder: WordEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = await open_ledger(settings().ledger_location, embedder)
    await ledger.insert(ALICE, {}, text="tea", change=SAID)
    await ledger.close()
    back_up(tmp_path / "backup")
    whole = (tmp_path / "backup").read_bytes()
    move_to(tmp_path / "other", monkeypatch)
    for number, damaged in enumerate(
        [b"", whole[: len(whole) // 2], bytes(len(whole)), whole[:200] + b"?" + whole[201:]]
    ):
        (tmp_path / f"damaged-{number}").write_bytes(damaged)
        with pytest.raises(MnemeError):
            await restore(tmp_path / f"damaged-{number}", embedder)
    with zipfile.ZipFile(tmp_path / "backup") as archive:
        held = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(tmp_path / "changed", "w") as archive:
        for name, content in held.items():
            archive.writestr(name, content.replace(b"tea", b"tee"))
    with pytest.raises(Damaged, match="nothing was restored"):
        await restore(tmp_path / "changed", embedder)
    assert not (tmp_path / "other").exists()


async def test_a_write_ahead_log_that_is_left_is_not_read_into_a_backup(
    tmp_path: Path, embedder: WordEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = await open_ledger(settings().ledger_location, embedder)
    folder = Path(settings().ledger_location)
    await ledger.insert(ALICE, {}, text="tea", change=SAID)
    back_up(tmp_path / "backup")
    await ledger.insert(ALICE, {}, text="coffee", change=SAID)
    left = (folder / "log.sqlite-wal").read_bytes()
    await ledger.close()
    move_to(tmp_path / "other", monkeypatch)
    (folder := Path(settings().ledger_location)).mkdir(parents=True)
    (folder / "log.sqlite-wal").write_bytes(left)
    with pytest.raises(BadInput, match="-wal exists"):
        await restore(tmp_path / "backup", embedder)
    (folder / "log.sqlite-wal").unlink()
    assert (await restore(tmp_path / "backup", embedder)).versions == 1


def test_the_command_line_verifies_repairs_backs_up_and_restores(tmp_path: Path) -> None:
    home, other = quiet(tmp_path / "home"), quiet(tmp_path / "other")
    failed(run_mneme(["verify"], home), "no ledger")
    assert run_mneme(["chat"], home, "I live in Austin.\n/quit\n").returncode == 0
    whole = run_mneme(["verify"], home).stdout
    assert "Everything is whole" in whole and " 1 records" not in whole
    away = run_mneme(["verify"], home | {"MNEME_INDEX": "http://127.0.0.1:9"}).stdout
    assert "check MNEME_INDEX" in away and "mneme repair" not in away, "what helps while the server is away"
    assert json.loads(run_mneme(["repair", "--vacuum", "--json"], home).stdout)["rewritten"]
    assert run_mneme(["backup", str(tmp_path / "file")], home).returncode == 0
    failed(run_mneme(["backup", str(tmp_path / "file")], home), "exists")
    failed(run_mneme(["restore", str(tmp_path / "file")], home), "exists")
    with sqlite3.connect(tmp_path / "home" / "ledger" / "log.sqlite") as connection:
        connection.execute("DELETE FROM ledger_heads")
    connection.close()
    failed(run_mneme(["memories", "list"], home), "mneme verify", "mneme repair")
    done = run_mneme(["verify", "--json"], home)
    assert done.returncode == 1
    assert "rows of heads are missing" in json.loads(done.stdout)["problems"][0]
    assert run_mneme(["repair"], home).returncode == 0
    assert run_mneme(["restore", str(tmp_path / "file")], other).returncode == 0
    assert f"restored from {tmp_path / 'file'}, of 20" in run_mneme(["verify"], other).stdout
    for each in (home, other):
        assert "Austin" in run_mneme(["memories", "list"], each).stdout


@pytest.mark.parametrize(
    ("damage", "beside"),
    [
        ("DELETE FROM items", "rows of items were deleted"),
        ("DELETE FROM spans", ""),
        ("UPDATE checkpoints SET checkpoint = x'c1ff'", ""),
    ],
)
def test_damaged_conversations_are_named_with_what_to_do(tmp_path: Path, damage: str, beside: str) -> None:
    home = quiet(tmp_path / "home", COLUMNS="300")
    assert run_mneme(["chat"], home, "I live in Austin.\n/quit\n").returncode == 0
    assert run_mneme(["chat", "--user", "ann"], home, "I live in Oslo.\n/quit\n").returncode == 0
    with sqlite3.connect(tmp_path / "home" / "checkpoints.sqlite") as connection:
        assert connection.execute(damage).rowcount
    connection.close()
    told = run_mneme(["chat"], home, "Hello\nHello\n/quit\n")
    failed(told, "is damaged", "mneme verify")
    assert told.stderr.count("is damaged") == 1, "once, and it ends"
    assert beside in run_mneme(["verify"], home).stdout
    run_mneme(["repair"], home)
    named = "chat/local/main", "memory/local", "chat/ann/main --user ann", "memory/ann --user ann"
    for command in ("verify", "repair"):
        done = run_mneme([command], home)
        assert done.returncode == 1 and "whole." not in done.stdout.replace("The ledger is whole.", "")
        assert all(f"`mneme threads delete {each}`" in done.stdout for each in named)
    for each in named:
        assert run_mneme(["threads", "delete", *each.split(), "--yes"], home).returncode == 0
    assert "Everything is whole" in run_mneme(["verify"], home).stdout
    assert "Austin" in run_mneme(["chat"], home, "Where do I live?\n/quit\n").stdout


def test_conversations_that_are_gone_are_not_repaired(tmp_path: Path) -> None:
    home, file = quiet(tmp_path / "home", COLUMNS="300"), tmp_path / "home" / "checkpoints.sqlite"
    assert run_mneme(["chat"], home, "I live in Austin.\n/quit\n").returncode == 0
    with sqlite3.connect(file) as connection:
        connection.execute("DROP TABLE items")
    connection.close()
    failed(run_mneme(["repair"], home), "no such table", "Restore a backup")
    file.unlink()
    for command in ("verify", "repair"):
        done = run_mneme([command], home)
        assert done.returncode == 1 and f"remove {file}-kept, to begin without" in done.stdout


@pytest.mark.parametrize(
    ("number", "hint"), [(errno.EACCES, "who owns the folder"), (errno.ENOSPC, "Free some")]
)
def test_what_the_operating_system_refuses_ends_with_what_to_do(
    number: int, hint: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(**_: object) -> None:
        raise OSError(number, os.strerror(number), "/home/ann/mneme")

    monkeypatch.setattr(main, "app", refuse)
    with pytest.raises(SystemExit):
        main.main()
    assert hint in capsys.readouterr().err
