"""Where graphs keep their checkpoints: an SQLite file by default, Postgres by URL.

Both are complete in the sense of the LangGraph server: deletion by thread and by run, copying a
thread, pruning. What they read is restored through an allow-list of plain types (no pickle, no
class of ours), so that whoever can write to the database cannot make a reader run code.
"""

import asyncio
import json
import sqlite3
from collections.abc import AsyncIterator, Coroutine, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from pathlib import Path
from threading import local
from typing import Any, TypeVar, cast

import aiosqlite
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
)
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from tenacity import retry, retry_if_exception, stop_after_delay, wait_random

from mneme.errors import BadInput, StorageFailure
from mneme.settings import read_settings

Result = TypeVar("Result")

_here = local()  # `saver`: what `checkpointer` has open on this thread.

BUSY_SECONDS = 30.0
POSTGRES = ("postgres://", "postgresql://")
KEEP_LATEST = "keep_latest"
DELETE = ("delete", "delete_all")  # LangGraph's base class says the one, its server the other.


def open_checkpointer(location: str) -> AbstractAsyncContextManager[BaseCheckpointSaver[str]]:
    """Open the checkpoints at an SQLite file's path or a Postgres URL.

    Raises `BadInput` for a location that holds something else, `StorageFailure` for one that
    cannot be read and written; each with a hint.
    """
    if location.startswith(POSTGRES):
        return _open_postgres(location)
    if "://" in location:
        raise BadInput(
            f"{location.partition('://')[0]}:// is no place for checkpoints.",
            "Set MNEME_CHECKPOINTS to a file's path or to a postgresql:// URL.",
        )
    return _open_sqlite(Path(location).expanduser().absolute())


@asynccontextmanager
async def checkpointer() -> AsyncIterator[BaseCheckpointSaver[str]]:
    """Open the checkpoints that the settings name: `checkpointer.path` in `langgraph.json`.

    The server enters it once on each thread that has an event loop, and keeps it open.
    """
    async with open_checkpointer((await read_settings()).checkpoints_location) as saver:
        _here.saver = saver
        try:
            yield saver
        finally:
            del _here.saver


async def thread_owner(thread_id: str) -> str | None:
    """Return who owns a thread's checkpoints in this server: "" is nobody, None that there are none."""
    saver: BaseCheckpointSaver[str] = _here.saver
    found = await saver.aget_tuple({"configurable": {"thread_id": thread_id, "checkpoint_ns": ""}})
    return None if found is None else str(cast(dict[str, Any], found.metadata).get("owner", ""))


def strict_serializer() -> JsonPlusSerializer:
    """Return a serializer that restores LangGraph's safe types and no other."""
    return JsonPlusSerializer(pickle_fallback=False, allowed_msgpack_modules=None)


class Guarded(BaseCheckpointSaver[str]):
    """Tell a database's failure in our own words, and never leave a write half-done.

    `failures` are the driver's exceptions; `place` names the database, without a password.
    """

    place: str
    failures: tuple[type[Exception], ...]

    @contextmanager
    def told(self) -> Iterator[None]:
        """Raise `StorageFailure` where the database raises an exception of its own."""
        try:
            yield
        except self.failures as failure:
            raise StorageFailure(
                f"The checkpoints at {self.place} cannot be used: {failure}",
                "`mneme doctor` checks the disk and the database.",
            ) from failure

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        with self.told():
            return await super().aget_tuple(config)

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """List checkpoints, newest first.

        All are read before the first is handed out: SQLite's saver holds its lock while it lists,
        and a caller who asks it anything between two of them would wait for ever.
        """
        with self.told():
            listed = super().alist(config, filter=filter, before=before, limit=limit)
            found = [each async for each in listed]
        for each in found:
            yield each

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        with self.told():
            return await to_the_end(super().aput(config, checkpoint, metadata, new_versions))

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        with self.told():
            await to_the_end(super().aput_writes(config, writes, task_id, task_path))

    async def adelete_thread(self, thread_id: str) -> None:
        with self.told():
            await to_the_end(super().adelete_thread(thread_id))

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = KEEP_LATEST) -> None:
        """Keep only the latest checkpoint of every namespace, or, with `delete`, nothing at all."""
        if strategy in DELETE:
            for thread_id in thread_ids:
                await self.adelete_thread(thread_id)
            return
        if strategy != KEEP_LATEST:
            raise BadInput(f"{strategy} is no way to prune.", f"One of {KEEP_LATEST}, {', '.join(DELETE)}.")
        with self.told():
            await to_the_end(self.keep_latest([str(thread_id) for thread_id in thread_ids]))

    async def keep_latest(self, thread_ids: Sequence[str]) -> None:
        """Drop every checkpoint that is not its namespace's latest."""
        raise NotImplementedError


async def to_the_end(work: Coroutine[Any, Any, Result]) -> Result:
    """Await a write that ends even when its caller is cancelled meanwhile.

    Cut off between a statement and its commit, a connection would keep the database locked
    against every other process.
    """
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        raise


# SQLite

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
    "PRAGMA secure_delete = ON",  # What is deleted is overwritten with zeros, not only unlinked.
    "PRAGMA journal_mode = WAL",  # Readers and a writer, in several processes, at the same time.
    "BEGIN IMMEDIATE",  # A file that cannot be written is found out now, not in the middle of a run.
    "ROLLBACK",
)


LOG_WAITS = (0.05, 0.1, 0.2, 0.4, 0.8)
"""Seconds between attempts to cut a log that another process holds."""


class SqliteCheckpoints(Guarded, AsyncSqliteSaver):
    """Checkpoints in an SQLite file that several processes may use at once."""

    failures = (sqlite3.Error,)

    def __init__(self, conn: aiosqlite.Connection, place: str) -> None:
        super().__init__(conn, serde=strict_serializer())
        self.place = place

    async def adelete_thread(self, thread_id: str) -> None:
        """Erase a thread: its bytes are gone from the file and from its write-ahead log."""
        await super().adelete_thread(str(thread_id))
        await self._empty_log()

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
        await self._empty_log()

    async def _refuse_deltas(self, thread_id: str) -> None:
        async with self.lock, self.conn.execute(_USES_DELTAS, {"thread": thread_id}) as found:
            if await found.fetchone():
                raise deltas_in_the_way(thread_id)

    async def _change(self, statements: Sequence[str], **given: str) -> None:
        """Execute the statements in one transaction."""
        with self.told():
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

    async def _empty_log(self) -> None:
        """Move the write-ahead log into the file and cut it to nothing.

        Deleted text is otherwise still readable in the log. Readers in other processes, or another's
        cutting, hold it back for moments; what holds it back for longer is an error, since erasure was
        asked for.
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
        """Try to cut the log; return whether somebody holds it."""
        with self.told():
            async with self.lock, self.conn.execute("PRAGMA wal_checkpoint(TRUNCATE)") as cursor:
                row = await cursor.fetchone()
        return row is not None and bool(row[0])


def deltas_in_the_way(threads: str) -> BadInput:
    """Say that a thread whose state is kept as differences has no latest checkpoint by itself."""
    return BadInput(
        f"{threads} keeps state as differences: its latest checkpoint needs the older ones.",
        "Prune with `delete`, or leave the thread as it is.",
    )


@asynccontextmanager
async def _open_sqlite(path: Path) -> AsyncIterator[BaseCheckpointSaver[str]]:
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
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as failure:
        raise StorageFailure(
            f"The folder of {path} cannot be made: {failure.strerror}",
            "Set MNEME_CHECKPOINTS, or MNEME_HOME, to a place you may write to.",
        ) from failure


async def _connect(path: Path) -> aiosqlite.Connection:
    try:
        return await aiosqlite.connect(path, timeout=BUSY_SECONDS)
    except sqlite3.Error as failure:
        raise _unusable(path, failure) from failure


async def _prepare(saver: SqliteCheckpoints, path: Path) -> None:
    try:
        await _refuse_foreign(saver.conn, path)
        await _set_up(saver)
    except sqlite3.Error as failure:
        raise _unusable(path, failure) from failure


async def _refuse_foreign(connection: aiosqlite.Connection, path: Path) -> None:
    """Refuse a database of something else before a table of ours is put into it."""
    async with connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'") as found:
        tables = {name async for (name,) in found}
    if tables and "checkpoints" not in tables:  # The first that is made: another process may be at it.
        raise BadInput(f"{path} is a database of something else.", "Set MNEME_CHECKPOINTS to another file.")


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


# Postgres


@asynccontextmanager
async def _open_postgres(location: str) -> AsyncIterator[BaseCheckpointSaver[str]]:
    try:
        from stores.postgres_checkpoints import open_postgres  # noqa: PLC0415 - an extra
    except ImportError as missing:
        raise BadInput(
            f"Checkpoints in Postgres need a package that is not installed ({missing.name}).",
            "pip install 'mneme[postgres]'",
        ) from missing
    async with open_postgres(location) as saver:
        yield saver
