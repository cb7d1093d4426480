"""Checkpoints of graphs: in an SQLite file by default, in Postgres by URL.

Both do all that the LangGraph server asks for: deletion by thread and by run, copying a thread, pruning.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import ExitStack, asynccontextmanager, closing
from pathlib import Path
from threading import local
from typing import TYPE_CHECKING, Any, TypeVar, cast

from mneme.core.errors import BadInput, needs
from mneme.core.settings import read_settings
from mneme.stores.checkpoints.erasing import unpack
from mneme.stores.checkpoints.files import RUN, open_file, readable_path
from mneme.stores.checkpoints.threads import Place, ThreadSummary, put_back, threads_of
from mneme.stores.database import Cursor, Database
from mneme.stores.ledger.addresses import POSTGRES_SCHEMES

if TYPE_CHECKING:  # slow to import
    from mneme.stores.checkpoints.saver import Checkpoints

T = TypeVar("T")
_LATEST = """SELECT checkpoint_id, type, checkpoint FROM checkpoints
    WHERE thread_id = ? AND checkpoint_ns = '' ORDER BY checkpoint_id DESC LIMIT 1"""
_here = local()  # `saver`: the checkpoints that `checkpointer` has opened on this thread.


@asynccontextmanager
async def open_checkpointer(location: str = "", turns: int = 0) -> AsyncIterator["Checkpoints"]:
    """Open the checkpoints at an SQLite file's path or a Postgres URL, by default those of the settings.

    Of each thread the last `turns` can be gone back to: when one begins, older checkpoints go. 0 keeps all.
    A LangGraph checkpointer: it keeps the conversations of an agent of yours.

    Raises `BadInput` for a location that holds something else, `StorageFailure` for one that
    cannot be read and written; each with a hint.

    >>> import asyncio, mneme
    >>> from langchain.agents import create_agent
    >>> from langchain_core.language_models import FakeListChatModel  # a model of yours
    >>> thread = {"configurable": {"thread_id": "tea"}, "metadata": {"owner": "ann"}}
    >>> async def said(words: str) -> int:
    ...     async with mneme.open_checkpointer() as checkpointer:
    ...         model = FakeListChatModel(responses=["Nice."])
    ...         agent = create_agent(model, checkpointer=checkpointer)
    ...         done = await agent.ainvoke({"messages": [("user", words)]}, thread)
    ...         return len(done["messages"])
    >>> asyncio.run(said("I like tea.")), asyncio.run(said("Green tea."))
    (2, 4)
    """
    if not location:
        given = await read_settings()
        location, turns = given.checkpoints_location, given.checkpoint_turns
    saver = await asyncio.to_thread(_opened, location, turns)
    try:
        yield saver
    finally:
        await asyncio.to_thread(saver.close)


def _opened(location: str, turns: int) -> "Checkpoints":
    from mneme.stores.checkpoints.saver import Checkpoints  # noqa: PLC0415  (LangGraph is slow to import)

    return Checkpoints(*_database(location), turns)


def _database(location: str) -> tuple[Database, str]:
    """Open the database with its tables; return it, and the run that a checkpoint is of as SQL."""
    if location.startswith(POSTGRES_SCHEMES):
        with needs("A Postgres database for checkpoints", "postgres"):
            from mneme.stores.checkpoints import postgres  # noqa: PLC0415  (an extra)
        return postgres.open_postgres(location), postgres.RUN
    if "://" in location:
        raise BadInput(
            f"{location.partition('://')[0]}:// cannot hold checkpoints.",
            "Set MNEME_CHECKPOINTS to a file's path or to a postgresql:// URL.",
        )
    return open_file(_path(location)), RUN


def _path(location: str) -> Path:
    return Path(location).expanduser().absolute()


@asynccontextmanager
async def checkpointer() -> AsyncIterator["Checkpoints"]:
    """Open the checkpoints that the settings name: `checkpointer.path` in `langgraph.json`.

    The server enters it once on each thread that has an event loop, and keeps it open.
    """
    async with open_checkpointer() as saver:
        _here.saver = saver
        try:
            yield saver
        finally:
            del _here.saver


@asynccontextmanager
async def opened_checkpointer(*, to_read: bool = False) -> AsyncIterator["Checkpoints"]:
    """Yield the checkpoints that this process has open as a server; else open them.

    With `to_read`, a copy is opened where the file's folder cannot be written.
    """
    if hasattr(_here, "saver"):
        yield _here.saver
        return
    location = (await read_settings()).checkpoints_location
    with ExitStack() as copied:
        if to_read and "://" not in location:
            location = str(await asyncio.to_thread(copied.enter_context, readable_path(_path(location))))
        async with open_checkpointer(location) as saver:
            yield saver


async def kept_threads() -> Sequence[ThreadSummary]:
    """Return all threads with checkpoints, the latest written last."""
    return await read_checkpoints(threads_of)


async def read_checkpoints(work: Callable[[Cursor], T]) -> T:
    """Run a query on the checkpoints that this process has open as a server, or on those of the settings."""
    if hasattr(_here, "saver"):
        return cast(T, await _here.saver.read(work))
    return await asyncio.to_thread(_read, (await read_settings()).checkpoints_location, work)


def _read(location: str, work: Callable[[Cursor], T]) -> T:
    """Run a query without LangGraph, which is slow to import."""
    with ExitStack() as opened:
        if "://" not in location:
            location = str(opened.enter_context(readable_path(_path(location))))
        database = opened.enter_context(closing(_database(location)[0]))
        return work(opened.enter_context(database.reading(snapshot=True)))


def latest_values(cursor: Cursor, thread: str) -> dict[str, Any]:
    """Return the values of a thread's latest checkpoint as plain types, without LangGraph.

    Raises ValueError for a damaged one.
    """
    id, kind, data = cursor.execute(_LATEST, (thread,)).fetchone()  # the newest: ids grow with time
    values: dict[str, Any] = unpack(kind, data)["channel_values"]
    put_back(cursor, Place(thread, "", id), values, lambda stored: unpack(*stored))
    return values


async def thread_owner(thread_id: str) -> str | None:
    """Return who owns a thread's checkpoints in this server: "" for nobody, None without checkpoints."""
    async with opened_checkpointer() as saver:
        found = await saver.aget_tuple({"configurable": {"thread_id": thread_id, "checkpoint_ns": ""}})
    return None if found is None else str(cast(dict[str, Any], found.metadata).get("owner", ""))
