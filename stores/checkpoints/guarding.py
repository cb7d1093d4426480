"""What checkpoints in SQLite and in Postgres have in common: errors with hints, whole writes, pruning.

What is read is restored through a list of plain types (no pickle, no class of ours), so that whoever can
write to the database cannot make a reader run code.
"""

import asyncio
from collections.abc import AsyncIterator, Coroutine, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
)
from langgraph.checkpoint.base import id as ids
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.types import Overwrite, Send
from pydantic import BaseModel

from mneme.core.errors import BadInput, Damaged, StorageFailure
from mneme.stores.checkpoints.rows import Change, Kept, Value
from mneme.stores.checkpoints.turns import begins_turn

Result = TypeVar("Result")
UUID_VERSION = 6
LAST_TIME = "_last_v6_timestamp"
"""Where LangGraph notes the time in the last id that it made, which the next one follows."""
KEEP_LATEST = "keep_latest"
DELETE = ("delete", "delete_all")  # LangGraph's base class uses the first word, its server the second.


class PlainSerializer(JsonPlusSerializer):
    """Write models of our own as plain JSON values; restore LangGraph's safe types and no other."""

    def __init__(self) -> None:
        super().__init__(pickle_fallback=False, allowed_msgpack_modules=None)

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        return super().dumps_typed(_plain(obj))


def _plain(value: Any) -> Any:
    if type(value) is dict:
        return {key: _plain(each) for key, each in value.items()}
    if type(value) in (list, tuple):
        return type(value)(map(_plain, value))
    if isinstance(value, Send):
        return Send(value.node, _plain(value.arg), timeout=value.timeout)
    if isinstance(value, Overwrite):
        return Overwrite(_plain(value.value))
    is_ours = isinstance(value, BaseModel) and type(value).__module__.startswith("mneme.")
    return value.model_dump(mode="json") if is_ours else value


class Guarded(BaseCheckpointSaver[str]):
    """Raise a database's failures as `StorageFailure`, and never leave a write half done.

    `failures` are the driver's exceptions; `place` names the database, without a password; of each thread
    the last `turns` are kept, or all where it is 0.
    """

    place: str
    turns: int
    failures: tuple[type[Exception], ...]

    @contextmanager
    def storage_failures(self) -> Iterator[None]:
        """Raise `StorageFailure` where the database raises an exception of its own."""
        try:
            yield
        except self.failures as failure:
            raise StorageFailure(
                f"The checkpoints at {self.place} cannot be used: {first_line(failure)}",
                "`mneme doctor` checks the disk and the database.",
            ) from failure

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Raise `Damaged` where what was read is not what a checkpoint is written as."""
        try:
            with self.storage_failures():
                yield
        except ValueError as failure:  # broken msgpack, JSON or UTF-8
            raise Damaged(
                f"A checkpoint at {self.place} is damaged: {failure}",
                "`mneme verify` names the threads that are damaged. Restore a backup, or delete them.",
            ) from failure

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        with self.reading():
            found = await super().aget_tuple(config)
        if found is not None:
            _go_on_after(found.checkpoint["id"])
        return found

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
        with self.reading():
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
        with self.storage_failures():
            saved = await to_the_end(super().aput(config, checkpoint, metadata, new_versions))
            if self.turns and begins_turn(config, metadata):
                await to_the_end(self.keep_turns(str(config["configurable"]["thread_id"]), self.turns))
        return saved

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        with self.storage_failures():
            await to_the_end(super().aput_writes(config, writes, task_id, task_path))

    async def adelete_thread(self, thread_id: str) -> None:
        with self.storage_failures():
            await to_the_end(super().adelete_thread(thread_id))

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = KEEP_LATEST) -> None:
        """Keep only the latest checkpoint of every namespace, or, with `delete`, nothing at all."""
        if strategy in DELETE:
            for thread_id in thread_ids:
                await self.adelete_thread(thread_id)
            return
        if strategy != KEEP_LATEST:
            raise BadInput(
                f"{strategy} is not a way to prune.", f"One of {KEEP_LATEST}, {', '.join(DELETE)}."
            )
        with self.storage_failures():
            await to_the_end(self.keep_latest([str(thread_id) for thread_id in thread_ids]))

    async def keep_latest(self, thread_ids: Sequence[str]) -> None:
        """Drop every checkpoint that is not its namespace's latest."""
        raise NotImplementedError

    async def keep_turns(self, thread_id: str, turns: int) -> int:
        """Drop what the last turns of a thread, at least 1, do not need; return how many checkpoints went.

        A thread that keeps state as differences stays as it is.
        """
        raise NotImplementedError

    async def threads(self) -> list[Kept]:
        """Return all threads, those written last at the end."""
        raise NotImplementedError

    async def values(self, thread_id: str) -> list[Value]:
        """Return all values of a thread; a list whose items are stored one by one, as a list."""
        raise NotImplementedError

    async def rewrite(self, thread_id: str, change: Change) -> int:
        """Put all values of a thread through `change` in one transaction; return how many became others."""
        raise NotImplementedError

    async def finish(self) -> None:
        """Erase what the database still holds of values that were replaced, as far as it can.

        Postgres overwrites the old rows later, when it vacuums and recycles its log.
        """

    async def give_back(self) -> None:
        """Give the space of what was deleted back to the disk, where the database does not do so itself."""


def _go_on_after(checkpoint: str) -> None:
    """Let the ids that this process makes follow a checkpoint's, also where the clock was set back since.

    Of a thread's checkpoints the one with the highest id is the latest; an id begins with the time.
    """
    with suppress(ValueError):  # not an id of LangGraph's
        known = ids.UUID(checkpoint)
        if known.version == UUID_VERSION:
            vars(ids)[LAST_TIME] = max(vars(ids)[LAST_TIME] or 0, known.time)


def first_line(failure: Exception) -> str:
    """Return the first line of what a driver says, which may be several."""
    return (str(failure).strip().splitlines() or [type(failure).__name__])[0]


async def to_the_end(work: Coroutine[Any, Any, Result]) -> Result:
    """Await a write to its end, also when the caller is cancelled meanwhile.

    Stopped between a statement and its commit, a connection would keep the database locked
    against every other process.
    """
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        raise


def deltas_in_the_way(threads: str) -> BadInput:
    """Return the refusal to prune a thread whose latest checkpoint cannot do without the older ones."""
    return BadInput(
        f"{threads} keeps state as differences: its latest checkpoint needs the older ones.",
        "Prune with `delete`, or leave the thread as it is.",
    )
