"""Where checkpoints are kept: erased when told so, and what is wrong with a place is said."""

import asyncio
import os
import socket
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from pathlib import Path
from uuid import uuid4

import psycopg.sql
import pytest
from psycopg.conninfo import conninfo_to_dict

from mneme.core.errors import BadInput, MnemeError, StorageFailure
from mneme.core.settings import settings
from mneme.stores import database as sql
from mneme.stores import postgres
from mneme.stores.checkpoints.checkpointer import checkpointer, open_checkpointer
from tests.doubles.checkpoints import Saver, put, values

NOBODY = 65534


async def open_and_close(place: AbstractAsyncContextManager[Saver]) -> None:
    async with place:
        pass


async def refused(database: str | Path) -> MnemeError:
    """Return the error that opening a place meets, checked for what every error must have."""
    with pytest.raises(MnemeError) as met:
        await open_and_close(open_checkpointer(str(database)))
    assert met.value.hint
    assert "\n" not in str(met.value)
    return met.value


def bytes_of(path: Path) -> bytes:
    return b"".join(each.read_bytes() for each in path.parent.iterdir() if each.name.startswith(path.name))


async def test_a_deleted_thread_is_gone_from_the_disk(tmp_path: Path) -> None:
    path = tmp_path / "checkpoints.sqlite"
    secrets = {f"t{number}": f"secret-{uuid4().hex}" for number in range(120)}
    async with open_checkpointer(str(path)) as saver:
        for number, (name, secret) in enumerate(secrets.items()):
            config = await put(saver, name, secret * (1 + number * 7 % 400), note=secret)
            await saver.aput_writes(config, [("x", f"write of {secret}")], "task")
        gone, kept = list(secrets)[::2], list(secrets)[1::2]
        assert all(secrets[name].encode() in bytes_of(path) for name in secrets)
        for name in gone:
            await saver.adelete_thread(name)
            assert secrets[name].encode() not in bytes_of(path)
        left = bytes_of(path)
        assert [name for name in gone if secrets[name].encode() in left] == []
        assert [name for name in kept if secrets[name].encode() not in left] == []


async def test_a_pruned_thread_s_past_is_gone_from_the_disk(tmp_path: Path) -> None:
    path = tmp_path / "checkpoints.sqlite"
    async with open_checkpointer(str(path)) as saver:
        await put(saver, "t", "what was said before " * 300)
        await put(saver, "t", "what is said now")
        await saver.aprune(["t"])
        assert b"said before" not in bytes_of(path)
        assert await values(saver, "t") == ["what is said now"]


async def test_traces_that_another_reader_holds_back_are_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "checkpoints.sqlite"
    monkeypatch.setattr(sql, "BUSY_SECONDS", 0.05)
    monkeypatch.setattr(sql, "LOG_WAITS", (0.0, 0.05))
    async with open_checkpointer(str(path)) as saver:
        await put(saver, "t", "secret")
        reader = sqlite3.connect(path)
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM checkpoints").fetchall()
        with pytest.raises(StorageFailure, match="traces remain"):
            await saver.adelete_thread("t")
        assert await values(saver, "t") == []
        reader.close()
        await saver.adelete_thread("t")
        assert b"secret" not in bytes_of(path)


async def test_metadata_that_is_no_json_is_kept_and_in_nobody_s_way(tmp_path: Path) -> None:
    async with open_checkpointer(str(tmp_path / "checkpoints.sqlite")) as saver:
        await put(saver, "t", 1, score=float("nan"), run_id="r")
        await put(saver, "t", 2, run_id="r")
        await saver.adelete_for_runs(["r"])
        await saver.acopy_thread("t", "copy")
        await saver.aprune(["t"])
        assert (await values(saver, "t"), await values(saver, "copy")) == ([1], [1])


async def test_the_settings_name_the_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MNEME_HOME", str(tmp_path / "not" / "there" / "yet"))
    settings.cache_clear()
    await open_and_close(checkpointer())
    settings.cache_clear()
    assert (tmp_path / "not" / "there" / "yet" / "checkpoints.sqlite").exists()


async def test_a_place_that_holds_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("This is no database. " * 100)
    assert isinstance(await refused(tmp_path / "text"), BadInput)
    assert (tmp_path / "text").read_text().startswith("This is no database.")
    assert isinstance(await refused(tmp_path), BadInput)
    assert isinstance(await refused(tmp_path / "text" / "under a file.sqlite"), StorageFailure)
    with sqlite3.connect(tmp_path / "bookmarks.sqlite") as other:
        other.execute("CREATE TABLE bookmarks (url)")
    other.close()
    assert isinstance(await refused(tmp_path / "bookmarks.sqlite"), BadInput)
    assert isinstance(await refused("mysql://localhost/mneme"), BadInput)


@contextmanager
def as_nobody() -> Iterator[None]:
    """Act without root's right to write anywhere."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def read_only() -> Iterator[Path]:
    """Give a folder, outside of what only root may enter, in which nothing can be written."""
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(open_and_close(open_checkpointer(f"{folder}/old.sqlite")))
        Path(folder, "old.sqlite").chmod(0o444)
        Path(folder).chmod(0o555)
        yield Path(folder)
        Path(folder).chmod(0o755)


@pytest.mark.parametrize("name", ["old.sqlite", "new.sqlite", "new/new.sqlite"])
async def test_what_cannot_be_written_is_said_at_once(read_only: Path, name: str) -> None:
    with as_nobody():
        assert isinstance(await refused(read_only / name), StorageFailure)


async def test_a_full_disk_is_an_error_and_tears_nothing(tmp_path: Path) -> None:
    path = tmp_path / "checkpoints.sqlite"
    async with open_checkpointer(str(path)) as saver:
        await put(saver, "t", "before")
        with saver.database.reading() as cursor:
            cursor.execute("PRAGMA max_page_count = 30")
        with pytest.raises(StorageFailure, match="full"):
            await put(saver, "t", "x" * 1_000_000)
        assert await values(saver, "t") == ["before"]
    async with open_checkpointer(str(path)) as saver:
        assert await values(saver, "t") == ["before"]


async def test_an_address_that_is_none_is_refused_without_telling_the_password() -> None:
    failure = await refused("postgresql://mneme:secret@[nowhere/mneme")
    assert isinstance(failure, BadInput)
    assert "secret" not in str(failure) + failure.hint


async def test_a_postgres_that_is_not_there_is_an_error() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    failure = await refused(f"postgresql://mneme:secret@127.0.0.1:{port}/mneme")
    assert isinstance(failure, StorageFailure)
    assert "secret" not in str(failure)
    assert f"127.0.0.1:{port}" in str(failure)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres, "POSTGRES_CONNECT_SECONDS", 1)


@pytest.mark.usefixtures("impatient")
async def test_a_postgres_that_does_not_answer_is_not_waited_for() -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        failure = await refused(f"postgresql://127.0.0.1:{silent.getsockname()[1]}/mneme")
    assert isinstance(failure, StorageFailure)


async def test_a_connection_that_postgres_closed_is_made_anew(postgres_url: str) -> None:
    async with open_checkpointer(postgres_url) as saver:
        await put(saver, "t", 1)
        async with await psycopg.AsyncConnection.connect(postgres_url, autocommit=True) as other:
            await other.execute("""SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                WHERE datname = current_database() AND pid <> pg_backend_pid()""")
        await put(saver, "t", 2)
        assert await values(saver, "t") == [2, 1]


@pytest.mark.usefixtures("impatient")
async def test_a_database_that_is_gone_is_an_error(postgres_url: str, postgres_server: str) -> None:
    async with open_checkpointer(postgres_url) as saver:
        await put(saver, "t", 1)
        async with await psycopg.AsyncConnection.connect(postgres_server, autocommit=True) as other:
            name = psycopg.sql.Identifier(str(conninfo_to_dict(postgres_url)["dbname"]))
            await other.execute(psycopg.sql.SQL("DROP DATABASE {} WITH (FORCE)").format(name))
        with pytest.raises(StorageFailure, match="failed"):
            await put(saver, "t", 2)
