"""LangGraph's checkpoints in SQL: an SQLite file or Postgres, with one body of code for both.

Each change is one transaction of one thread, or of two for a copy. Stored values contain no pickle and no
class of Mneme, and only allow-listed types are restored, so that nobody who can write to the database can
make a reader run code.
"""
# ruff: noqa: S608  (all that is put into these statements are constants, and marks)

import builtins
import json
import random
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import Any, TypeVar

import ormsgpack
from langchain_core.messages import BaseMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    get_checkpoint_metadata,
    writes_sort_key,
)
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.serde.types import ERROR
from langgraph.types import Overwrite, Send
from pydantic import BaseModel

from mneme.core.errors import BadInput, Damaged
from mneme.stores.checkpoints.files import PRIMARY_KEYS, UNCOUNT
from mneme.stores.checkpoints.threads import (
    CHECKPOINT_COLUMNS,
    COUNT,
    MSGPACK,
    SUM,
    VALUE_COLUMNS,
    At,
    CheckpointHead,
    Place,
    Prunable,
    ThreadSummary,
    Value,
    before_latest,
    before_turns,
    intact,
    known_in,
    put_back,
    put_list,
    summed,
    threads_of,
    ticks,
    unused,
    uses_deltas,
)
from mneme.stores.database import Cursor, Database, Worker, upsert
from mneme.stores.internals import follow_id
from mneme.stores.ledger.reading import each_value

T = TypeVar("T")
Change = Callable[[str, bytes], bytes]
"""Returns the bytes that replace a value, given its kind and bytes; the same bytes to keep it."""
KEEP_LATEST = "keep_latest"
DELETE = ("delete", "delete_all")  # LangGraph's base class uses the first word, its server the second.

_AT = " AND ".join(f"{name} = ?" for name in Place._fields)
_THREAD = "thread_id = ?"
_PUT = upsert("checkpoints", CHECKPOINT_COLUMNS["checkpoints"], keys=3)
_PUT_WRITE = upsert("writes", CHECKPOINT_COLUMNS["writes"], keys=5)
_ADD_WRITE = f"{_PUT_WRITE.partition('DO UPDATE')[0]} DO NOTHING"
_FOUND = f"SELECT {', '.join(CHECKPOINT_COLUMNS['checkpoints'])} FROM checkpoints"
_WRITES = f"SELECT task_path, task_id, idx, channel, type, value FROM writes WHERE {_AT}"
_WRITTEN = f"SELECT DISTINCT checkpoint_ns, checkpoint_id FROM writes WHERE {_THREAD}"
_VALUES = f"""SELECT type, checkpoint FROM checkpoints WHERE {_THREAD}
    UNION ALL SELECT type, value FROM writes WHERE {_THREAD}"""
_ITEMS = f"SELECT channel, value FROM items WHERE {_THREAD} AND type LIKE ? ORDER BY channel, number"
_CUT_PARENTS = f"""UPDATE checkpoints SET parent_checkpoint_id = NULL WHERE {_THREAD}
    AND parent_checkpoint_id NOT IN (SELECT checkpoint_id FROM checkpoints WHERE {_THREAD})"""


class Checkpoints(BaseCheckpointSaver[str]):
    """Checkpoints in a database that several processes may use at once.

    `run` is an SQL expression of the dialect for a checkpoint's run id; the last `turns` of each thread are
    kept, or all if it is 0; in a file rows are counted (`files.py`). Deleting erases: in Postgres the server
    overwrites the bytes later (VACUUM, recycling of its write-ahead log). Each async method runs its
    synchronous method in a thread; a write is completed even if the caller is cancelled.
    """

    def __init__(self, database: Database, run: str, turns: int = 0) -> None:
        super().__init__(serde=JsonPlusSerializer(pickle_fallback=False, allowed_msgpack_modules=None))
        self.database, self.place, self.turns = database, database.place, turns
        self._run, self._worker = run, Worker(database, database.writers)

    def close(self) -> None:
        """Wait for pending writes, and close the database."""
        self._worker.close()

    def get_next_version(self, current: str | int | None, channel: None) -> str:
        # Versions are compared as texts: digits of one width, then a random part, so that two writers differ.
        number = current if isinstance(current, int) else int((current or "0").partition(".")[0])
        return f"{number + 1:032}.{random.random():016}"  # noqa: S311  (no secret)

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        return await self._worker.thread(partial(self.get_tuple, config))

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Return a checkpoint, the latest where none is named. Raises Damaged."""
        given = RunnableConfig(configurable={"checkpoint_ns": "", **config["configurable"]})
        found = next(self.list(given, limit=1), None)
        if found:  # what goes on from it must have a later id, also after the clock was set back
            follow_id(ticks(found.checkpoint["id"]))
        return found

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        listed = self.list(config, filter=filter, before=before, limit=limit)
        for each in await self._worker.thread(partial(builtins.list[CheckpointTuple], listed)):
            yield each

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """List checkpoints, newest first; all are read before the first is yielded. Raises Damaged."""
        given = config["configurable"] if config else {}
        tests = {f"{name} = ?": str(given[name]) for name in Place._fields if given.get(name) is not None}
        tests |= {"checkpoint_id < ?": before["configurable"]["checkpoint_id"]} if before else {}
        where = f" WHERE {' AND '.join(tests)}" if tests else ""
        # A filter tests metadata, which SQL does not read: then all rows are needed.
        cut = f" LIMIT {int(limit)}" if limit is not None and not filter else ""
        asked, wanted = f"{_FOUND}{where} ORDER BY checkpoint_id DESC{cut}", (filter or {}).items()
        try:
            with self.database.reading(snapshot=True) as cursor:
                rows = cursor.execute(asked, [*tests.values()]).fetchall()
                described = ((row, json.loads(row[-1] or "{}")) for row in rows)
                fitting = [(row, metadata) for row, metadata in described if wanted <= metadata.items()]
                found = [self._restored(cursor, *each) for each in fitting[:limit]]
        except ValueError as failure:  # broken msgpack, JSON or UTF-8
            raise Damaged(
                f"A checkpoint at {self.place} is damaged: {failure}",
                "`mneme verify` names the threads that are damaged. Restore a backup, or delete them.",
            ) from failure
        yield from found

    def _restored(self, cursor: Cursor, row: Sequence[Any], metadata: CheckpointMetadata) -> CheckpointTuple:
        """Return the checkpoint in a row, with its lists and its tasks' writes."""
        *at, parent, kind, data, _ = row
        place, checkpoint = Place(*at), self._loaded((kind, data))
        put_back(cursor, place, checkpoint.get("channel_values", {}), self._loaded)
        writes = cursor.execute(_WRITES, place).fetchall()
        # The order in which the tasks' writes were applied: a reducer may depend on it.
        writes.sort(key=lambda row: writes_sort_key(*row[:3]))
        written = [
            (task, channel, self._loaded((kind, value))) for _, task, _, channel, kind, value in writes
        ]
        begun_from = place._replace(checkpoint_id=parent)._asdict()
        then = RunnableConfig(configurable=begun_from) if parent else None
        here = RunnableConfig(configurable=place._asdict())
        return CheckpointTuple(here, checkpoint, metadata, then, written)

    def _loaded(self, stored: Value) -> Any:
        return self.serde.loads_typed(intact(stored))

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        return await self._worker.to_the_end(partial(self.put, config, checkpoint, metadata, new_versions))

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Save a checkpoint and its lists; if it begins a turn, delete the turns that are too old."""
        given = config["configurable"]
        place = Place(str(given["thread_id"]), given.get("checkpoint_ns", ""), checkpoint["id"])
        # LangGraph's config names the checkpoint that this one follows; the config returned names this one.
        parent, whole = given.get("checkpoint_id"), get_checkpoint_metadata(config, metadata)
        # UTF-8 cannot encode lone surrogates.
        described = json.dumps(whole, ensure_ascii=False).encode("utf-8", "ignore").decode()
        values = checkpoint["channel_values"]
        lists = {
            channel: value
            for channel, value in values.items()
            if isinstance(value, builtins.list) and value
            if all(isinstance(each, BaseMessage | dict) for each in value)
        }
        sizes = {channel: {COUNT: len(value)} for channel, value in lists.items()}
        stored = self.serde.dumps_typed(plain({**checkpoint, "channel_values": values | sizes}))
        with self._writing(place.thread_id) as cursor:
            cursor.execute(_PUT, (*place, parent, *summed(*stored), described))
            cursor.execute(f"DELETE FROM spans WHERE {_AT}", place)  # of the same checkpoint, put again
            for channel, value in lists.items():
                packed = (self.serde.dumps_typed(plain(each)) for each in value)
                # A channel without a new version has the same list as in the parent.
                put_list(cursor, place, channel, packed, None if channel in new_versions else parent)
            if self.turns and not place.checkpoint_ns and metadata.get("source") == "input":  # a turn begins
                known = known_in(cursor, place.thread_id)
                if past := before_turns(known, self.turns):
                    self._prune(cursor, place.thread_id, known, past)
        return {"configurable": place._asdict()}

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        await self._worker.to_the_end(partial(self.put_writes, config, writes, task_id, task_path))

    def put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Save the writes of a task, which become part of the next checkpoint."""
        given = config["configurable"]
        place = Place(str(given["thread_id"]), given.get("checkpoint_ns", ""), given["checkpoint_id"])
        # By the contract an error, an interrupt or an answer replaces an earlier one; output stays as it is.
        statement = _PUT_WRITE if all(channel in WRITES_IDX_MAP for channel, _ in writes) else _ADD_WRITE
        # Output before an error is left out: LangGraph takes a task with output for finished, so a later run
        # would end where that output does not route further.
        failed_at = next((number for number, (channel, _) in enumerate(writes) if channel == ERROR), 0)
        stored = (
            (WRITES_IDX_MAP.get(channel, number), channel, self.serde.dumps_typed(plain(value)))
            for number, (channel, value) in enumerate(writes)
            if number >= failed_at or channel in WRITES_IDX_MAP
        )
        rows = [
            (*place, task_id, number, task_path, channel, *summed(*kept)) for number, channel, kept in stored
        ]
        with self._writing(place.thread_id) as cursor:
            cursor.executemany(statement, rows)

    async def adelete_thread(self, thread_id: str) -> None:
        await self._worker.to_the_end(partial(self.delete_thread, thread_id))

    def delete_thread(self, thread_id: str) -> None:
        """Erase a thread: its bytes are gone from a file and from its write-ahead log."""
        with self._writing(str(thread_id), erases=True) as cursor:
            for table in PRIMARY_KEYS:
                self._delete(cursor, table, _THREAD, [(str(thread_id),)])

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        await self._worker.to_the_end(partial(self.delete_for_runs, run_ids))

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Delete what the runs saved, in every thread and namespace."""
        of_runs = f"SELECT {', '.join(Place._fields)} FROM checkpoints WHERE {self._run} IN ({{}})"
        found = defaultdict[str, set[At]](set)
        # Found without a lock, then deleted thread by thread, so that no other writer waits for all of them.
        with self.database.reading(snapshot=True) as cursor:
            for thread, *at in each_value(cursor, of_runs, [str(each) for each in run_ids]):
                found[thread].add((at[0], at[1]))
        for thread, gone in found.items():
            with self._writing(thread) as cursor:
                self._drop(cursor, thread, gone, gone)

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        await self._worker.to_the_end(partial(self.copy_thread, source_thread_id, target_thread_id))

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy a whole thread, unless the target exists: its items have numbers of their own."""
        source, target = str(source_thread_id), str(target_thread_id)
        with self._writing(source, target) as cursor:
            if known_in(cursor, target):
                return
            for table, (_, *names) in CHECKPOINT_COLUMNS.items():
                columns = ", ".join(names)
                rows = f"SELECT ?, {columns} FROM {table} WHERE {_THREAD}"
                cursor.execute(f"INSERT INTO {table} (thread_id, {columns}) {rows}", (target, source))
            named = [
                (json.dumps({**each.metadata, "thread_id": target}, ensure_ascii=False), target, *each.at)
                for each in known_in(cursor, target)
                if "thread_id" in each.metadata
            ]
            cursor.executemany(f"UPDATE checkpoints SET metadata = ? WHERE {_AT}", named)

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = KEEP_LATEST) -> None:
        check_strategy(strategy)
        for thread in thread_ids:  # one transaction each, so that other writers wait briefly
            await self._worker.to_the_end(partial(self.prune, [thread], strategy=strategy))

    def prune(self, thread_ids: Sequence[str], *, strategy: str = KEEP_LATEST) -> None:
        """Keep only the latest checkpoint of every namespace, or, with `delete`, nothing at all."""
        check_strategy(strategy)
        for thread in map(str, thread_ids):
            if strategy in DELETE:
                self.delete_thread(thread)
                continue
            with self._writing(thread, erases=True) as cursor:
                known = known_in(cursor, thread)
                if uses_deltas(known):
                    raise BadInput(
                        f"{thread} keeps state as differences: its latest checkpoint needs the older ones.",
                        "Prune with `delete`, or leave the thread as it is.",
                    )
                self._prune(cursor, thread, known, before_latest(known))

    async def keep_turns(self, thread_id: str, turns: int) -> int:
        """Delete what a thread's last turns (at least 1) do not need; return the number of checkpoints.

        A thread that keeps state as differences stays as it is.
        """

        def keep() -> int:
            with self._writing(thread_id) as cursor:
                known = known_in(cursor, thread_id)
                past = before_turns(known, turns)
                return self._prune(cursor, thread_id, known, past) if past else 0

        return await self._worker.to_the_end(keep)

    def _prune(self, cursor: Cursor, thread: str, known: Sequence[CheckpointHead], past: Prunable) -> int:
        """Delete the `past` of a thread; return the number of deleted checkpoints."""
        kept = {each.at for each in known} - past.old
        written = cursor.execute(_WRITTEN, (thread,)).fetchall()
        # writes can be saved before their checkpoint, so only those of older checkpoints are deleted
        writes = {(at[0], at[1]) for at in written if (at[0], at[1]) not in kept and past.is_before(*at)}
        self._drop(cursor, thread, past.old, writes)
        cursor.execute(_CUT_PARENTS, (thread, thread))
        return len(past.old)

    def _drop(self, cursor: Cursor, thread: str, checkpoints: set[At], writes: set[At]) -> None:
        for table, gone in (("checkpoints", checkpoints), ("writes", writes)):
            self._delete(cursor, table, _AT, [(thread, *at) for at in gone])
        within = f"{_THREAD} AND channel = ? AND number BETWEEN ? AND ?"
        self._delete(cursor, "items", within, unused(cursor, thread))

    def _delete(self, cursor: Cursor, table: str, where: str, rows: Sequence[Sequence[Any]]) -> None:
        if rows:
            cursor.executemany(f"DELETE FROM {table} WHERE {where}", rows)
            if self.database.kept:  # a file's rows are counted, so that others' deletions are noticed
                cursor.execute(UNCOUNT, (cursor.rowcount, table))

    async def read(self, work: Callable[[Cursor], T]) -> T:
        """Run a query of the database; all its statements see one state."""
        return await self._worker.read(work)

    async def threads(self) -> Sequence[ThreadSummary]:
        """Return all threads, the latest written last."""
        return await self.read(threads_of)

    async def values(self, thread_id: str) -> Sequence[Value]:
        """Return all values; the items of a channel as one list, with each reply after its message."""
        return await self._worker.read(_values, thread_id)

    async def rewrite(self, thread_id: str, change: Change) -> int:
        """Pass all values of a thread through `change` in one transaction; return how many changed."""

        def rewrite() -> int:
            with self._writing(thread_id) as cursor:
                return sum(_rewrite(cursor, thread_id, table, change) for table in VALUE_COLUMNS)

        return await self._worker.to_the_end(rewrite)

    async def finish(self) -> None:
        """Erase the remains of replaced values from the database, as far as it can."""
        await self._worker.thread(self.database.erased)

    async def give_back(self) -> None:
        """Return freed space to the disk, if the database does not do so itself."""
        if self.database.kept:
            await self.vacuum()

    async def vacuum(self) -> None:
        """Rewrite the database without deleted data; other processes wait meanwhile."""
        await self._worker.thread(self.database.vacuum)

    @contextmanager
    def _writing(self, *threads: str, erases: bool = False) -> Iterator[Cursor]:
        """Yield a cursor for one transaction of threads; `erases` makes deleted bytes unreadable."""
        with self.database.writing() as cursor:
            for thread in sorted(threads) if self.database.taken else ():  # in one order, against deadlocks
                cursor.execute(self.database.taken, (thread,))
            yield cursor
        if erases:
            self.database.erased()


def check_strategy(strategy: str) -> None:
    """Refuse an unknown way to prune. Raises BadInput."""
    if strategy not in (KEEP_LATEST, *DELETE):
        hint = f"One of {KEEP_LATEST}, {', '.join(DELETE)}."
        raise BadInput(f"{strategy} is not a way to prune.", hint)


def plain(value: Any) -> Any:
    """Return a value with plain JSON in place of Mneme's models, which no reader would restore."""
    if type(value) is dict:  # exactly: a subclass may be made in another way
        return {key: plain(each) for key, each in value.items()}
    if type(value) in (list, tuple):
        return type(value)(map(plain, value))
    if isinstance(value, Send):
        return Send(value.node, plain(value.arg), timeout=value.timeout)
    if isinstance(value, Overwrite):
        return Overwrite(plain(value.value))
    is_ours = isinstance(value, BaseModel) and type(value).__module__.startswith("mneme.")
    return value.model_dump(mode="json") if is_ours else value


def _values(cursor: Cursor, thread: str) -> list[Value]:
    whole = cursor.execute(_VALUES, (thread, thread)).fetchall()
    items = cursor.execute(_ITEMS, (thread, f"{MSGPACK}%")).fetchall()
    # Fragments are packed already: a list of them needs no unpacking.
    lists = ([ormsgpack.Fragment(row[1]) for row in rows] for _, rows in groupby(items, itemgetter(0)))
    packed = [(MSGPACK, ormsgpack.packb(each)) for each in lists]
    return [*((kind, data) for kind, data in whole if data), *packed]


def _rewrite(cursor: Cursor, thread: str, table: str, change: Change) -> int:
    """Replace a thread's values in one table by `change`; return the number of changed values."""
    column, keys = VALUE_COLUMNS[table], PRIMARY_KEYS[table]
    asked = f"SELECT type, {column}, {', '.join(keys)} FROM {table} WHERE {_THREAD}"
    stored = (row for row in cursor.execute(asked, (thread,)).fetchall() if row[1])
    pairs = ((kind.partition(SUM)[0], data, change(kind, bytes(data)), key) for kind, data, *key in stored)
    new = [(*summed(kind, after), *key) for kind, before, after, key in pairs if after != before]
    same = " AND ".join(f"{key} = ?" for key in keys)
    cursor.executemany(f"UPDATE {table} SET type = ?, {column} = ? WHERE {same}", new)
    return len(new)
