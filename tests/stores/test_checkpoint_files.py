"""Damage to the file of checkpoints: it ends in a clear error, and never in an empty list or other words."""

import asyncio
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from shutil import copyfile
from typing import Any

import pytest

from mneme.core.errors import Damaged, MnemeError
from mneme.core.settings import settings
from mneme.stores.checkpoints import files
from mneme.stores.checkpoints.checkpointer import open_checkpointer, opened_checkpointer
from mneme.stores.checkpoints.files import (
    PRIMARY_KEYS,
    accept_missing,
    check_checkpoints,
    check_sqlite,
    copy_sqlite,
    missing_rows,
)
from mneme.stores.database import Cursor, kept_of


@pytest.fixture
async def file(tmp_path: Path) -> Path:
    """Give a file with twenty threads that nobody has open."""
    async with open_checkpointer(str(tmp_path / "checkpoints.sqlite")) as saver:
        for number in range(20):
            await put(saver, f"thread-{number}")
    return tmp_path / "checkpoints.sqlite"


async def put(saver: Any, thread: str, messages: list[Any] | None = None) -> Any:
    checkpoint = {
        "v": 4,
        "id": "1f0c0000-0000-6000-8000-000000000000",
        "ts": "2026-01-01T00:00:00+00:00",
        "channel_values": {"messages": messages or [f"{thread} says {number}" for number in range(200)]},
        "channel_versions": {"messages": "1"},
        "versions_seen": {},
    }
    config = {"configurable": {"thread_id": thread, "checkpoint_ns": ""}}
    return await saver.aput(config, checkpoint, {"source": "loop", "step": 1}, {"messages": "1"})


def size_of(file: Path) -> int:
    return file.stat().st_size


async def test_where_a_copy_is_read_the_real_file_is_named(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await asyncio.to_thread(file.write_bytes, b"no database" * 1000)
    monkeypatch.setattr(files, "ROOM", 2**62)  # bytes that are never free
    monkeypatch.setenv("MNEME_CHECKPOINTS", str(file))
    with pytest.raises(MnemeError) as refused:
        async with opened_checkpointer(to_read=True):
            pass
    told = [str(refused.value), refused.value.hint, *check_sqlite(file)]
    assert str(file) in told[0] and str(file) in told[2]
    assert not any("mneme-reading" in each for each in told)


async def threads(file: Path) -> int:
    async with open_checkpointer(str(file)) as saver:
        return len([each async for each in saver.alist(None)])


@pytest.mark.parametrize("begin", [0, 0.1, 0.5, 0.9])
async def test_zeros_in_the_file_are_said(file: Path, begin: float) -> None:
    assert await threads(file) == 20
    size = size_of(file)
    with file.open("r+b") as raw:
        raw.seek(int(begin * size))
        raw.write(bytes(size // 4))
        raw.truncate(size)
    with pytest.raises(MnemeError) as refused:
        await threads(file)
    assert refused.value.hint
    assert check_sqlite(file)


async def test_half_a_file_is_said(file: Path) -> None:
    with file.open("r+b") as raw:
        raw.truncate(size_of(file) // 2)
    with pytest.raises(MnemeError):
        await threads(file)
    assert check_sqlite(file)


async def test_what_others_write_while_the_file_is_read_is_not_missed(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def later(cursor: Cursor, path: Path, before: int) -> list[str]:
        with closing(sqlite3.connect(path)) as other, other:
            other.execute("DELETE FROM checkpoints")
        kept_of(path).write_text("1000000")
        return missing_rows(cursor, path, before)

    monkeypatch.setattr(files, "missing_rows", later)
    assert check_sqlite(file) == []
    monkeypatch.undo()
    assert len(check_sqlite(file)) == 2


@pytest.mark.parametrize(
    "other",
    [
        "checkpoint = x'c1ff'",
        "checkpoint = CAST(replace(CAST(checkpoint AS TEXT), 'ts', 'tz') AS BLOB)",
        "type = 'x' || type",
        "type = replace(type, ':', ';')",
    ],
)
async def test_a_checkpoint_that_is_not_what_was_written_is_said(file: Path, other: str) -> None:
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute(f"UPDATE checkpoints SET {other} WHERE thread_id = 'thread-7'")
    with pytest.raises(Damaged, match="damaged"):
        await threads(file)


async def test_what_others_write_is_not_taken_for_damage(file: Path) -> None:
    with closing(sqlite3.connect(file)) as other, other:
        other.execute("UPDATE checkpoints SET parent_checkpoint_id = NULL")
        columns = "checkpoint_ns, checkpoint_id, type, checkpoint, metadata"
        one = f"SELECT 'new', {columns} FROM checkpoints WHERE thread_id = 'thread-3'"
        other.execute(f"INSERT INTO checkpoints (thread_id, {columns}) {one}")
    async with open_checkpointer(str(file)) as saver:
        await saver.acopy_thread("new", "newer")
        await saver.aprune(["thread-1"])
    assert await threads(file) == 22
    assert check_checkpoints(file) == []


@pytest.mark.parametrize("lose", [Path.unlink, lambda path: path.write_bytes(b"")])
async def test_a_file_that_is_gone_is_missed(file: Path, lose: Callable[[Path], object]) -> None:
    lose(file)
    for _ in range(2):
        with pytest.raises(Damaged, match="are gone") as refused:
            await threads(file)
    assert "are gone" in str(check_checkpoints(file))
    note = file.with_name("checkpoints.sqlite-kept")
    assert f"remove {note}" in refused.value.hint
    note.unlink()
    assert await threads(file) == 0
    assert check_checkpoints(file) == []


async def test_it_is_copied_while_it_is_written(file: Path, tmp_path: Path) -> None:
    async with open_checkpointer(str(file)) as saver:
        await put(saver, "another")
        copy_sqlite(file, tmp_path / "copy.sqlite")
    assert await threads(tmp_path / "copy.sqlite") == 21
    assert check_sqlite(tmp_path / "copy.sqlite") == []


@pytest.mark.parametrize(
    "damage",
    ["DELETE FROM items", "DELETE FROM checkpoints WHERE thread_id = 'thread-3'", "DELETE FROM writes"],
)
async def test_rows_that_another_program_deleted_are_missed_until_that_is_accepted(
    file: Path, damage: str
) -> None:
    async with open_checkpointer(str(file)) as saver:
        for number in range(3):  # the second and the third time change nothing
            config = await put(saver, "talk", [{"text": f"{each}"} for each in range(9)])
            await saver.aput_writes(config, [("messages", "a"), ("other", number)], "task")
        await saver.adelete_thread("thread-1")
        await saver.aprune(["thread-2", "talk"])
    assert check_checkpoints(file) == []
    with closing(sqlite3.connect(file)) as other, other:
        deleted = other.execute(damage).rowcount
    (told,) = check_checkpoints(file)
    assert f"{deleted} rows of " in told and "mneme repair" in told
    assert accept_missing(file) and check_checkpoints(file) == []


async def test_a_log_that_is_lost_after_a_kill_is_missed(file: Path, tmp_path: Path) -> None:
    killed = tmp_path / "killed"
    killed.mkdir()
    async with open_checkpointer(str(file)) as saver:
        await put(saver, "the newest")
        for name in (file.name, f"{file.name}-kept"):  # and not its write-ahead log
            copyfile(file.with_name(name), killed / name)
    cut = killed / file.name
    with pytest.raises(Damaged, match="The newest 1 rows") as refused:
        await threads(cut)
    assert "mneme repair" in refused.value.hint
    assert "The newest 1 rows" in str(check_checkpoints(cut))
    assert accept_missing(cut) and await threads(cut) == 20
    assert check_checkpoints(cut) == []


@pytest.mark.parametrize("damage", ["DELETE FROM counted", "DROP TABLE counted"])
async def test_counts_that_are_lost_are_missed_until_that_is_accepted(file: Path, damage: str) -> None:
    with closing(sqlite3.connect(file)) as other, other:
        other.execute(damage)
    assert "newest 20 rows" in str(check_checkpoints(file))
    with pytest.raises(Damaged, match="are gone"):
        await threads(file)
    assert accept_missing(file) and await threads(file) == 20
    assert check_checkpoints(file) == []


async def test_what_was_written_by_an_earlier_version_is_counted_from_then_on(file: Path) -> None:
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("DROP TABLE counted")
        for table in PRIMARY_KEYS:
            connection.execute(f"DROP TRIGGER {table}_counted")
        connection.execute("DELETE FROM checkpoints WHERE thread_id = 'thread-3'")
    file.with_name(f"{file.name}-kept").write_bytes(b"")
    assert check_checkpoints(file) == []
    assert await threads(file) == 19
    assert check_checkpoints(file) == []


async def test_a_file_on_a_full_or_read_only_disk_is_read_and_copied_all_the_same(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MNEME_CHECKPOINTS", str(file))
    settings.cache_clear()
    monkeypatch.setattr(files, "ROOM", 2**62)  # no disk has that much
    assert check_checkpoints(file) == [] == accept_missing(file)
    copy_sqlite(file, tmp_path / "copy.sqlite")
    assert await threads(tmp_path / "copy.sqlite") == 20
    async with opened_checkpointer(to_read=True) as saver:
        assert len(await saver.threads()) == 20
        assert saver.place != str(file), "a copy"
