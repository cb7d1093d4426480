"""Checkpoints in an SQLite file, which several processes may use at once."""

import asyncio
import json
import sqlite3
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import aiosqlite
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from tenacity import retry, retry_if_exception, stop_after_delay, wait_random

from mneme.core.errors import BadInput, Damaged, StorageFailure
from mneme.core.private import close_to_others, is_shared, make_private_file, make_private_folder
from mneme.stores.checkpoints.guarding import Guarded, deltas_in_the_way, strict_serializer, to_the_end

BUSY_SECONDS = 30.0
LOG_WAITS = (0.05, 0.1, 0.2, 0.4, 0.8)
"""Seconds between attempts to empty a write-ahead log that another process still reads."""

# Metadata is JSON in a BLOB; a row whose JSON SQLite finds malformed (it may hold NaN) has no run.
_RUN = (
    "CASE WHEN json_valid(CAST(metadata AS TEXT)) THEN json_extract(CAST(metadata AS TEXT), '$.run_id') END"
)
_RUN_INDEX = f"CREATE INDEX IF NOT EXISTS checkpoints_run ON checkpoints ({_RUN})"
_OF_RUNS = f"FROM checkpoints WHERE {_RUN} IN (SELECT value FROM json_each(:runs))"  # noqa: S608 - constants
_DELETE_RUNS = (
    f"""DELETE FROM writes WHERE (thread_id, checkpoint_ns, checkpoint_id) IN
        (SELECT thread_id, checkpoint_ns, checkpoint_id {_OF_RUNS})""",  # noqa: S608
    f"DELETE {_OF_RUNS}",
)

_COPY_THREAD = (
    """INSERT OR IGNORE INTO checkpoints
        (thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id, type, checkpoint, metadata)
        SELECT :target, checkpoint_ns, checkpoint_id, parent_checkpoint_id, type, checkpoint,
            CASE WHEN json_valid(CAST(metadata AS TEXT))
            THEN CAST(json_replace(CAST(metadata AS TEXT), '$.thread_id', :target) AS BLOB) ELSE metadata END
        FROM checkpoints WHERE thread_id = :source""",
    """INSERT OR IGNORE INTO writes
        (thread_id, checkpoint_ns, checkpoint_id, task_id, task_path, idx, channel, type, value)
        SELECT :target, checkpoint_ns, checkpoint_id, task_id, task_path, idx, channel, type, value
        FROM writes WHERE thread_id = :source""",
)

_USES_DELTAS = """SELECT 1 FROM checkpoints WHERE thread_id = :thread
    AND json_valid(CAST(metadata AS TEXT))
    AND json_type(CAST(metadata AS TEXT), '$.counters_since_delta_snapshot') IS NOT NULL LIMIT 1"""

# A subgraph call's namespace ends in its task's id after a colon. Its checkpoints belong to the
# root's checkpoint that the call started from, and go with that one.
_ENDED_CALLS = """SELECT h.checkpoint_ns FROM
        (SELECT checkpoint_ns, max(checkpoint_id) AS checkpoint_id FROM checkpoints
         WHERE thread_id = :thread AND instr(checkpoint_ns, ':') GROUP BY checkpoint_ns) AS h
    JOIN checkpoints AS c ON c.thread_id = :thread
        AND c.checkpoint_ns = h.checkpoint_ns AND c.checkpoint_id = h.checkpoint_id
    JOIN checkpoints AS r ON r.thread_id = :thread AND r.checkpoint_ns = ''
        AND r.checkpoint_id = json_extract(CAST(c.metadata AS TEXT), '$.parents.""')
    WHERE r.checkpoint_id <> (SELECT max(checkpoint_id) FROM checkpoints
        WHERE thread_id = :thread AND checkpoint_ns = '')"""
_LATEST = """(SELECT max(h.checkpoint_id) FROM checkpoints AS h
    WHERE h.thread_id = :thread AND h.checkpoint_ns = {table}.checkpoint_ns)"""
# Writes may be saved before the checkpoint they belong to: only an older checkpoint's go.
_KEEP_LATEST = (
    f"DELETE FROM writes WHERE thread_id = :thread AND checkpoint_ns IN ({_ENDED_CALLS})",  # noqa: S608
    f"DELETE FROM checkpoints WHERE thread_id = :thread AND checkpoint_ns IN ({_ENDED_CALLS})",  # noqa: S608
    f"DELETE FROM writes WHERE thread_id = :thread AND checkpoint_id < {_LATEST.format(table='writes')}",  # noqa: S608
    f"""DELETE FROM checkpoints WHERE thread_id = :thread
        AND checkpoint_id < {_LATEST.format(table="checkpoints")}""",  # noqa: S608
    "UPDATE checkpoints SET parent_checkpoint_id = NULL WHERE thread_id = :thread",
)

_PREPARE = (
    f"PRAGMA busy_timeout = {int(BUSY_SECONDS * 1000)}",
    "PRAGMA secure_delete = ON",  # Overwrite with zeros what is deleted.
    "PRAGMA journal_mode = WAL",  # Readers and a writer, in several processes, at the same time.
    "BEGIN IMMEDIATE",  # Notice now, and not in the middle of a run, a file that cannot be written.
    "ROLLBACK",
)


class SqliteCheckpoints(Guarded, AsyncSqliteSaver):
    """Checkpoints in an SQLite file that several processes may use at once."""

    failures = (sqlite3.Error,)

    def __init__(self, conn: aiosqlite.Connection, place: str) -> None:
        super().__init__(conn, serde=strict_serializer())
        self.place = place

    async def adelete_thread(self, thread_id: str) -> None:
        """Erase a thread: its bytes are gone from the file and from its write-ahead log."""
        await super().adelete_thread(str(thread_id))
        await self.empty_log()

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Delete what the runs saved, in every thread and namespace."""
        await self._change(_DELETE_RUNS, runs=json.dumps([str(run_id) for run_id in run_ids]))

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy a thread whole; to copy it again changes nothing."""
        await self._change(_COPY_THREAD, source=str(source_thread_id), target=str(target_thread_id))

    async def keep_latest(self, thread_ids: Sequence[str]) -> None:
        for thread_id in thread_ids:
            await self._refuse_deltas(thread_id)
            await self._change(_KEEP_LATEST, thread=thread_id)
        await self.empty_log()

    async def _refuse_deltas(self, thread_id: str) -> None:
        async with self.lock, self.conn.execute(_USES_DELTAS, {"thread": thread_id}) as found:
            if await found.fetchone():
                raise deltas_in_the_way(thread_id)

    async def _change(self, statements: Sequence[str], **given: str) -> None:
        """Execute the statements in one transaction."""
        with self.storage_failures():
            await to_the_end(self._transaction(statements, given))

    async def _transaction(self, statements: Sequence[str], given: dict[str, str]) -> None:
        async with self.lock:
            await self.conn.execute("BEGIN IMMEDIATE")
            try:
                for statement in statements:
                    await self.conn.execute(statement, given)
                await self.conn.commit()
            except sqlite3.Error:
                await self.conn.rollback()
                raise

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


@asynccontextmanager
async def open_sqlite(path: Path) -> AsyncIterator[BaseCheckpointSaver[str]]:
    await asyncio.to_thread(_make_folder, path)
    connection = await _connect(path)
    try:
        saver = SqliteCheckpoints(connection, str(path))
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
            "`mneme verify` lists all damage. Move the file away, or restore a backup.",
        )


def _keep_private(path: Path) -> None:
    """Close the file to others, unless it is open to its group alone; SQLite makes its log alike."""
    if not is_shared(path):
        for each in (path, Path(f"{path}-wal"), Path(f"{path}-shm")):
            close_to_others(each)


async def _connect(path: Path) -> aiosqlite.Connection:
    with suppress(OSError):  # SQLite says it better
        await asyncio.to_thread(make_private_file, path)
    try:
        return await aiosqlite.connect(path, timeout=BUSY_SECONDS)
    except sqlite3.Error as failure:
        raise _unusable(path, failure) from failure


async def _prepare(saver: SqliteCheckpoints, path: Path) -> None:
    try:
        await _refuse_foreign(saver.conn, path)
        await _refuse_damaged(saver.conn, path)
        await asyncio.to_thread(_keep_private, path)
        await _set_up(saver)
    except sqlite3.Error as failure:
        raise _unusable(path, failure) from failure


async def _refuse_foreign(connection: aiosqlite.Connection, path: Path) -> None:
    """Refuse another program's database before a table of ours is put into it."""
    async with connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'") as found:
        tables = {name async for (name,) in found}
    if tables and "checkpoints" not in tables:  # It is made first: another process may be making the others.
        raise BadInput(f"{path} is a database of another program.", "Set MNEME_CHECKPOINTS to another file.")


def _is_locked(failure: BaseException) -> bool:
    return isinstance(failure, sqlite3.OperationalError) and "locked" in str(failure)


# SQLite does not wait its busy time-out where two processes turn a new file into WAL mode at once.
@retry(
    retry=retry_if_exception(_is_locked),
    stop=stop_after_delay(BUSY_SECONDS),
    wait=wait_random(0.01, 0.1),
    reraise=True,
)
async def _set_up(saver: SqliteCheckpoints) -> None:
    for statement in _PREPARE:
        # Read to its end: an open `PRAGMA journal_mode` is undone by the ROLLBACK that follows.
        await saver.conn.execute_fetchall(statement)
    await saver.setup()
    await saver.conn.execute(_RUN_INDEX)
    await saver.conn.commit()


def _unusable(path: Path, failure: sqlite3.Error) -> BadInput | StorageFailure:
    if "not a database" in str(failure) or "malformed" in str(failure):
        return BadInput(f"{path} is not an SQLite file.", "Set MNEME_CHECKPOINTS to another file.")
    return StorageFailure(
        f"The checkpoints at {path} cannot be opened: {failure}",
        "Make the file and its folder writable, or set MNEME_CHECKPOINTS to another file.",
    )
