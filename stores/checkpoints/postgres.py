"""Checkpoints in Postgres: an extra, opened by `stores.checkpoints.checkpointer`."""

import asyncio
import operator
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import psycopg
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.checkpoint.postgres.base import PRUNE_DELTA_THREADS_SQL
from psycopg.rows import DictRow, dict_row
from psycopg_pool import AsyncConnectionPool
from tenacity import retry, retry_if_result, wait_fixed

from mneme.core.errors import StorageFailure
from mneme.stores.checkpoints.guarding import (
    KEEP_LATEST,
    Guarded,
    PlainSerializer,
    deltas_in_the_way,
    first_line,
    to_the_end,
)
from mneme.stores.checkpoints.rows import Change, Kept, Stored, Value, changed, kept
from mneme.stores.checkpoints.turns import first_kept, is_old
from mneme.stores.ledger.postgres import CONNECT_SECONDS, POOL_SIZE, place_of

Connection = psycopg.AsyncConnection[DictRow]
Pool = AsyncConnectionPool[Connection]

SETUP_LOCK = 0x6D6E656D65  # "mneme"

_RUN_INDEX = """CREATE INDEX CONCURRENTLY IF NOT EXISTS checkpoints_run_id_idx
    ON checkpoints ((metadata ->> 'run_id'))"""

_FIRST_KEPT = first_kept(thread="%(thread)s", others="%(others)s", source="metadata ->> 'source'")
_IS_OLD = is_old(
    thread="%(thread)s",
    first="%(first)s",
    root="(c.metadata -> 'parents' ->> '')",
    is_call="strpos(c.checkpoint_ns, ':') > 0",
)
_DELETE = """DELETE FROM checkpoints AS c WHERE {which}
    RETURNING thread_id, checkpoint_ns, checkpoint_id, checkpoint -> 'channel_versions' AS versions"""
_DELETE_RUNS = _DELETE.format(which="metadata ->> 'run_id' = ANY(%(runs)s)")
_DELETE_OLD = _DELETE.format(which=_IS_OLD)
_CUT_PARENTS = """UPDATE checkpoints SET parent_checkpoint_id = NULL WHERE thread_id = %(thread)s
    AND parent_checkpoint_id NOT IN (SELECT checkpoint_id FROM checkpoints WHERE thread_id = %(thread)s)"""
_DELETE_WRITES = """DELETE FROM checkpoint_writes WHERE (thread_id, checkpoint_ns, checkpoint_id) IN
    (SELECT * FROM unnest(%s::text[], %s::text[], %s::text[]))"""
# Only what a deleted checkpoint used and no other does: a run saves blobs before their checkpoint.
_DELETE_BLOBS = """DELETE FROM checkpoint_blobs AS b
    USING (SELECT DISTINCT * FROM unnest(%s::text[], %s::text[], %s::text[], %s::text[])
           AS u (thread_id, checkpoint_ns, channel, version)) AS freed
    WHERE b.thread_id = freed.thread_id AND b.checkpoint_ns = freed.checkpoint_ns
    AND b.channel = freed.channel AND b.version = freed.version
    AND NOT EXISTS (SELECT 1 FROM checkpoints AS c
        WHERE c.thread_id = b.thread_id AND c.checkpoint_ns = b.checkpoint_ns
        AND c.checkpoint -> 'channel_versions' ->> b.channel = b.version)"""

_COPY_THREAD = (
    """INSERT INTO checkpoints
        (thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id, type, checkpoint, metadata)
        SELECT %(target)s, checkpoint_ns, checkpoint_id, parent_checkpoint_id, type, checkpoint,
            jsonb_set(metadata, '{thread_id}', to_jsonb(%(target)s::text), false)
        FROM checkpoints WHERE thread_id = %(source)s ON CONFLICT DO NOTHING""",
    """INSERT INTO checkpoint_blobs (thread_id, checkpoint_ns, channel, version, type, blob)
        SELECT %(target)s, checkpoint_ns, channel, version, type, blob
        FROM checkpoint_blobs WHERE thread_id = %(source)s ON CONFLICT DO NOTHING""",
    """INSERT INTO checkpoint_writes
        (thread_id, checkpoint_ns, checkpoint_id, task_id, task_path, idx, channel, type, blob)
        SELECT %(target)s, checkpoint_ns, checkpoint_id, task_id, task_path, idx, channel, type, blob
        FROM checkpoint_writes WHERE thread_id = %(source)s ON CONFLICT DO NOTHING""",
)


_THREADS = """SELECT * FROM (
        SELECT DISTINCT ON (thread_id) thread_id, checkpoint_id, metadata,
            count(*) OVER (PARTITION BY thread_id) AS count
        FROM checkpoints WHERE checkpoint_ns = '' ORDER BY thread_id, checkpoint_id DESC) AS latest
    ORDER BY checkpoint_id"""

_COLUMNS = (
    (
        "SELECT ctid::text AS key, 'json' AS kind, convert_to(checkpoint::text, 'UTF8') AS data "
        "FROM checkpoints WHERE thread_id = %s FOR UPDATE",
        "UPDATE checkpoints SET checkpoint = convert_from(%s, 'UTF8')::jsonb WHERE ctid = %s::tid",
    ),
    *(
        (
            f"SELECT ctid::text AS key, type AS kind, blob AS data "  # noqa: S608 - constants
            f"FROM {table} WHERE thread_id = %s FOR UPDATE",
            f"UPDATE {table} SET blob = %s WHERE ctid = %s::tid",  # noqa: S608
        )
        for table in ("checkpoint_blobs", "checkpoint_writes")
    ),
)
"""How the values of a thread are read and replaced, by table."""


class PostgresCheckpoints(Guarded, AsyncPostgresSaver):
    """Checkpoints in a Postgres database.

    No query finds a deleted thread's rows any more; Postgres overwrites their bytes later (VACUUM,
    recycling of the write-ahead log).
    """

    failures = (psycopg.Error,)

    def __init__(self, pool: Pool, place: str, turns: int = 0) -> None:
        super().__init__(pool, serde=PlainSerializer())
        self.pool, self.place, self.turns = pool, place, turns

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Delete what the runs saved, in every thread and namespace."""
        with self.storage_failures():
            await to_the_end(self._delete(_DELETE_RUNS, {"runs": [str(run_id) for run_id in run_ids]}))

    async def _delete(self, checkpoints: str, given: dict[str, Any], *afterwards: str) -> int:
        """Delete checkpoints with their writes and with the blobs of no other; return how many they were."""
        async with self.pool.connection() as connection, connection.transaction():
            deleted = await (await connection.execute(checkpoints, given)).fetchall()
            places = [(row["thread_id"], row["checkpoint_ns"], row["checkpoint_id"]) for row in deleted]
            blobs = [
                (row["thread_id"], row["checkpoint_ns"], channel, str(version))
                for row in deleted
                for channel, version in (row["versions"] or {}).items()
            ]
            await connection.execute(_DELETE_WRITES, _columns(places, 3))
            await connection.execute(_DELETE_BLOBS, _columns(blobs, 4))
            for statement in afterwards:
                await connection.execute(statement, given)
        return len(deleted)

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy a thread whole; to copy it again changes nothing."""
        with self.storage_failures():
            await to_the_end(self._copy({"source": str(source_thread_id), "target": str(target_thread_id)}))

    async def _copy(self, threads: dict[str, str]) -> None:
        async with self.pool.connection() as connection, connection.transaction():
            await connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            for statement in _COPY_THREAD:
                await connection.execute(statement, threads)

    async def keep_latest(self, thread_ids: Sequence[str]) -> None:
        try:
            await AsyncPostgresSaver.aprune(self, thread_ids, strategy=KEEP_LATEST)
        except NotImplementedError as refusal:
            raise deltas_in_the_way(", ".join(thread_ids)) from refusal

    async def keep_turns(self, thread_id: str, turns: int) -> int:
        given: dict[str, Any] = {"thread": thread_id, "others": turns - 1}
        async with self.pool.connection() as connection:
            first = await (await connection.execute(_FIRST_KEPT, given)).fetchone()
            deltas = await (await connection.execute(PRUNE_DELTA_THREADS_SQL, ([thread_id],) * 2)).fetchone()
        if not first or deltas:
            return 0
        return await self._delete(_DELETE_OLD, given | {"first": first["checkpoint_id"]}, _CUT_PARENTS)

    async def threads(self) -> list[Kept]:
        with self.storage_failures():
            async with self.pool.connection() as connection:
                found = await (await connection.execute(_THREADS)).fetchall()
        return [kept(row["thread_id"], row["checkpoint_id"], row["count"], row["metadata"]) for row in found]

    async def values(self, thread_id: str) -> list[Value]:
        with self.storage_failures():
            async with self.pool.connection() as connection:
                columns = [await _stored(connection, select, thread_id) for select, _ in _COLUMNS]
        return [(kind, data) for stored in columns for _, kind, data in stored if data]

    async def rewrite(self, thread_id: str, change: Change) -> int:
        with self.storage_failures():
            return await to_the_end(self._rewrite(thread_id, change))

    async def _rewrite(self, thread_id: str, change: Change) -> int:
        count = 0
        async with self.pool.connection() as connection, connection.transaction():
            for select, update in _COLUMNS:
                new = await asyncio.to_thread(changed, await _stored(connection, select, thread_id), change)
                for pair in new:
                    await connection.execute(update, pair)
                count += len(new)
        return count


async def _stored(connection: Connection, select: str, thread_id: str) -> list[Stored]:
    found: list[dict[str, Any]] = await (await connection.execute(select, (thread_id,))).fetchall()
    return [(row["key"], row["kind"], bytes(row["data"] or b"")) for row in found]


def _columns(rows: Sequence[tuple[str, ...]], width: int) -> list[list[str]]:
    return [[row[column] for row in rows] for column in range(width)]


@asynccontextmanager
async def open_postgres(url: str, turns: int) -> AsyncIterator[Guarded]:
    """Open the checkpoints at a Postgres URL, making or migrating their tables."""
    place = place_of(url, "MNEME_CHECKPOINTS")
    try:
        await _make_tables(url)
        pool = await _open_pool(url)
    except psycopg.Error as failure:
        raise StorageFailure(
            f"Postgres at {place} cannot be used: {first_line(failure)}",
            "Check that the server runs and that MNEME_CHECKPOINTS has its address, user and password.",
        ) from failure
    async with pool:
        yield PostgresCheckpoints(pool, place, turns)


async def _make_tables(url: str) -> None:
    """Set the tables up, one process at a time.

    The lock is tried, not waited for: waiting holds a snapshot open, and the index that the other
    process builds concurrently would wait for that snapshot in turn.
    """
    async with await Connection.connect(url, **_settings()) as connection:
        await _lock(connection)
        await AsyncPostgresSaver(connection).setup()
        await connection.execute(_RUN_INDEX)


@retry(retry=retry_if_result(operator.not_), wait=wait_fixed(0.1))
async def _lock(connection: Connection) -> bool:
    cursor = await connection.execute("SELECT pg_try_advisory_lock(%s) AS ours", (SETUP_LOCK,))
    row = await cursor.fetchone()
    return row is not None and bool(row["ours"])


async def _open_pool(url: str) -> Pool:
    """Open a pool of connections.

    `reconnect_timeout` is short, since the pool waits twice as long after each attempt that fails: after
    some minutes without a server it would not notice for minutes that the server is back.
    """
    pool: Pool = AsyncConnectionPool(
        url,
        kwargs=_settings(),
        min_size=1,
        max_size=POOL_SIZE,
        timeout=CONNECT_SECONDS,
        reconnect_timeout=CONNECT_SECONDS,
        check=AsyncConnectionPool.check_connection,
        open=False,
    )
    await pool.open(wait=True, timeout=CONNECT_SECONDS)
    return pool


def _settings() -> dict[str, Any]:
    return {
        "autocommit": True,
        "prepare_threshold": 0,
        "row_factory": dict_row,
        "connect_timeout": CONNECT_SECONDS,
    }
