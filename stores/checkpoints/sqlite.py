"""Checkpoints in an SQLite file, which several processes may use at once."""

import asyncio
import json
import sqlite3
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

import aiosqlite
import ormsgpack
from langchain_core.runnables import RunnableConfig
from tenacity import retry, retry_if_exception_message, stop_after_delay, wait_random

from mneme.core.errors import BadInput, Damaged, StorageFailure
from mneme.core.private import close_to_others, is_shared, make_private_file, make_private_folder
from mneme.stores.checkpoints import statements
from mneme.stores.checkpoints.files import note_kept, refuse_gone
from mneme.stores.checkpoints.guarding import Guarded, PlainSerializer, deltas_in_the_way, to_the_end
from mneme.stores.checkpoints.lists import LIST_TABLES, SWEEP_ITEMS, ListsApart
from mneme.stores.checkpoints.packing import MSGPACK
from mneme.stores.checkpoints.rows import Change, Kept, Value, changed, kept
from mneme.stores.checkpoints.tally import (
    KEPT,
    ROWS_MADE,
    SET_UP,
    UNCOUNT,
    note_made,
    noted,
    refuse_cut,
    table_deleted,
)

BUSY_SECONDS = 30.0
LOG_WAITS = (0.05, 0.1, 0.2, 0.4, 0.8)
"""Seconds between attempts to empty a write-ahead log that another process still reads."""

_PREPARE = (
    f"PRAGMA busy_timeout = {int(BUSY_SECONDS * 1000)}",
    "PRAGMA foreign_keys = ON",  # A checkpoint's lists are deleted with it.
    "PRAGMA secure_delete = ON",  # Overwrite with zeros what is deleted.
    "PRAGMA journal_mode = WAL",  # Readers and a writer, in several processes, at the same time.
    "BEGIN IMMEDIATE",  # Notice now, and not in the middle of a run, a file that cannot be written.
    "ROLLBACK",
)


class SqliteCheckpoints(Guarded, ListsApart):
    """Checkpoints in an SQLite file that several processes may use at once."""

    failures = (sqlite3.Error,)

    def __init__(self, conn: aiosqlite.Connection, place: str, turns: int = 0) -> None:
        super().__init__(conn, serde=PlainSerializer())
        self.place, self.turns = place, turns

    async def adelete_thread(self, thread_id: str) -> None:
        """Erase a thread: its bytes are gone from the file and from its write-ahead log."""
        await self._change(statements.DELETE_THREAD, thread=str(thread_id))
        await self.empty_log()

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Delete what the runs saved, in every thread and namespace."""
        runs = json.dumps([str(run_id) for run_id in run_ids])
        threads = [str(row[0]) for row in await self._read(statements.THREADS_OF_RUNS, runs=runs)]
        await self._change(statements.DELETE_RUNS, runs=runs)
        for thread_id in threads:
            await self._change([SWEEP_ITEMS], thread=thread_id)

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy a thread whole; to copy it again changes nothing."""
        await self._change(statements.COPY_THREAD, source=str(source_thread_id), target=str(target_thread_id))

    async def keep_latest(self, thread_ids: Sequence[str]) -> None:
        for thread_id in thread_ids:
            if await self._read(statements.USES_DELTAS, thread=thread_id):
                raise deltas_in_the_way(thread_id)
            await self._change(statements.KEEP_LATEST, thread=thread_id)
        await self.empty_log()

    async def keep_turns(self, thread_id: str, turns: int) -> int:
        first = await self._read(statements.FIRST_KEPT, thread=thread_id, others=turns - 1)
        return await self._change(statements.KEEP_FROM, thread=thread_id, first=first[0][0]) if first else 0

    async def give_back(self) -> None:
        await self._read("VACUUM")
        await self.empty_log()

    async def threads(self) -> list[Kept]:
        found = await self._read(statements.THREADS)
        return [kept(thread, last, count, _metadata(text)) for thread, last, count, text in found]

    async def values(self, thread_id: str) -> list[Value]:
        """Return all values; of a channel's items, one list in which each reply is behind its message."""
        whole = await self._read(statements.VALUES, thread=thread_id)
        items = await self._read(statements.ITEMS, thread=thread_id, kind=MSGPACK)
        lists = ([ormsgpack.Fragment(row[1]) for row in rows] for _, rows in groupby(items, itemgetter(0)))
        return [
            *((kind, data) for kind, data in whole if data),
            *((MSGPACK, ormsgpack.packb(each)) for each in lists),
        ]

    async def rewrite(self, thread_id: str, change: Change) -> int:
        with self.storage_failures():
            return await to_the_end(self._rewrite(thread_id, change))

    async def _rewrite(self, thread_id: str, change: Change) -> int:
        count = 0
        async with self.transaction():
            await self.conn.execute("BEGIN IMMEDIATE")
            for select, update in statements.COLUMNS:
                found = await self.conn.execute_fetchall(select, (thread_id,))
                stored = [(key, kind, data) for key, kind, data in found]
                new = await asyncio.to_thread(changed, stored, change)
                await self.conn.executemany(update, new)
                count += len(new)
        return count

    async def finish(self) -> None:
        await self.empty_log()

    async def _read(self, query: str, **given: str | int | None) -> list[Any]:
        with self.storage_failures():
            async with self.lock:
                return [*await self.conn.execute_fetchall(query, given)]

    async def _change(self, changes: Sequence[str], **given: str) -> int:
        """Execute the statements in one transaction; return how many rows the first one changed."""
        with self.storage_failures():
            return await to_the_end(self._execute(changes, given))

    async def _execute(self, changes: Sequence[str], given: dict[str, str]) -> int:
        counts = list[int]()
        async with self.transaction():
            for each in changes:
                counts.append((await self.conn.execute(each, given)).rowcount)
                if table := table_deleted(each):
                    await self.conn.execute(UNCOUNT, {"table": table})
        return counts[0]

    async def aput(self, *given: Any, **named: Any) -> RunnableConfig:
        saved = await super().aput(*given, **named)
        await self._note_made()
        return saved

    async def aput_writes(self, *given: Any, **named: Any) -> None:
        await super().aput_writes(*given, **named)
        await self._note_made()

    async def _note_made(self) -> None:
        """Note how much was written: it is in the database for good, so the note is never ahead of it."""
        ((made,),) = await self._read(ROWS_MADE)
        with suppress(OSError):  # it was written; the note says a little less
            await asyncio.to_thread(note_made, Path(self.place), made)

    async def empty_log(self) -> None:
        """Move the write-ahead log into the file and empty it.

        Else deleted text could still be read in the log. Readers in other processes, or another that
        empties it, prevent that for moments; where it lasts longer this is an error, since the caller
        asked to erase.
        """
        for wait in LOG_WAITS:
            if not await self._is_log_held():
                return
            await asyncio.sleep(wait)
        if await self._is_log_held():
            raise StorageFailure(
                f"Deleted, but another process still reads {self.place}: traces remain in {self.place}-wal.",
                "Stop the other process, then delete once more.",
            )

    async def _is_log_held(self) -> bool:
        """Try to empty the log; return whether another process prevents it."""
        with self.storage_failures():
            async with self.lock, self.conn.execute("PRAGMA wal_checkpoint(TRUNCATE)") as cursor:
                row = await cursor.fetchone()
        return row is not None and bool(row[0])


def _metadata(text: str | None) -> dict[str, Any]:
    try:
        found = json.loads(text or "{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


@asynccontextmanager
async def open_sqlite(path: Path, turns: int) -> AsyncIterator[Guarded]:
    await asyncio.to_thread(_make_folder, path)
    await asyncio.to_thread(refuse_gone, path)
    connection = await _connect(path)
    try:
        saver = SqliteCheckpoints(connection, str(path), turns)
        await _prepare(saver, path)
        yield saver
    finally:
        await connection.close()


def _make_folder(path: Path) -> None:
    if path.is_dir():
        raise BadInput(f"{path} is a folder.", "MNEME_CHECKPOINTS names a file.")
    try:
        make_private_folder(path.parent)
    except OSError as failure:
        raise StorageFailure(
            f"The folder of {path} cannot be made: {failure.strerror}",
            "Set MNEME_CHECKPOINTS, or MNEME_HOME, to a place you may write to.",
        ) from failure


async def _refuse_damaged(connection: aiosqlite.Connection, path: Path) -> None:
    async with connection.execute("PRAGMA quick_check(1)") as found:
        row = await found.fetchone()
    if row is not None and row[0] != "ok":
        raise Damaged(
            f"The checkpoints at {path} are damaged: {row[0]}.",
            f"`mneme verify` lists all damage. Restore a backup, or move {path}* away ({KEPT} too).",
        )


def _keep_private(path: Path) -> None:
    """Close the file to others, unless it is open to its group alone; SQLite makes its log alike."""
    if not is_shared(path):
        for end in ("", "-wal", "-shm", KEPT):
            close_to_others(Path(f"{path}{end}"))


async def _connect(path: Path) -> aiosqlite.Connection:
    with suppress(OSError):  # SQLite says it better
        await asyncio.to_thread(make_private_file, path)
    try:
        # aiosqlite leaves a thread behind where it fails to open; it may outlive the event loop and fail.
        await asyncio.to_thread(lambda: sqlite3.connect(path).close())
        return await aiosqlite.connect(path, timeout=BUSY_SECONDS)
    except sqlite3.Error as failure:
        raise _unusable(path, failure) from failure


async def _prepare(saver: SqliteCheckpoints, path: Path) -> None:
    try:
        await _refuse_foreign(saver.conn, path)
        await _refuse_damaged(saver.conn, path)
        await asyncio.to_thread(_keep_private, path)
        await _set_up(saver)
        await asyncio.to_thread(note_kept, path)
        before = await asyncio.to_thread(noted, path)  # before what it is compared with: others write, too
        ((made,),) = await saver.conn.execute_fetchall(ROWS_MADE)
        refuse_cut(path, before, made)
    except sqlite3.Error as failure:
        raise _unusable(path, failure) from failure


async def _refuse_foreign(connection: aiosqlite.Connection, path: Path) -> None:
    """Refuse another program's database before a table of ours is put into it."""
    async with connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'") as found:
        tables = {name async for (name,) in found}
    if tables and "checkpoints" not in tables:  # It is made first: another process may be making the others.
        raise BadInput(f"{path} is a database of another program.", "Set MNEME_CHECKPOINTS to another file.")


# SQLite does not wait its busy time-out where two processes turn a new file into WAL mode at once.
@retry(
    retry=retry_if_exception_message(match=".*locked"),
    stop=stop_after_delay(BUSY_SECONDS),
    wait=wait_random(0.01, 0.1),
    reraise=True,
)
async def _set_up(saver: SqliteCheckpoints) -> None:
    for statement in _PREPARE:
        # Read to its end: an open `PRAGMA journal_mode` is undone by the ROLLBACK that follows.
        await saver.conn.execute_fetchall(statement)
    await saver.setup()
    for statement in (statements.RUN_INDEX, *LIST_TABLES, *SET_UP):
        await saver.conn.execute(statement)
    await saver.conn.commit()


def _unusable(path: Path, failure: sqlite3.Error) -> BadInput | StorageFailure:
    if "not a database" in str(failure) or "malformed" in str(failure):
        return BadInput(f"{path} is not an SQLite file.", "Set MNEME_CHECKPOINTS to another file.")
    return StorageFailure(
        f"The checkpoints at {path} cannot be opened: {failure}",
        "Make the file and its folder writable, or set MNEME_CHECKPOINTS to another file.",
    )
