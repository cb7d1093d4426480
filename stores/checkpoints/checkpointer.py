"""Where graphs keep their checkpoints: an SQLite file by default, Postgres by URL.

Both do all that the LangGraph server asks for: deletion by thread and by run, copying a thread, pruning.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from threading import local
from typing import Any, cast

from mneme.core.errors import BadInput, needs
from mneme.core.settings import read_settings
from mneme.stores.checkpoints.files import open_file, readable
from mneme.stores.checkpoints.saver import Checkpoints
from mneme.stores.ledger.addresses import POSTGRES

_here = local()  # `saver`: the checkpoints that `checkpointer` has opened on this thread.


@asynccontextmanager
async def open_checkpointer(location: str, turns: int = 0) -> AsyncIterator[Checkpoints]:
    """Open the checkpoints at an SQLite file's path or a Postgres URL.

    Of each thread the last `turns` can be gone back to: when one begins, older checkpoints go. 0 keeps all.

    Raises `BadInput` for a location that holds something else, `StorageFailure` for one that
    cannot be read and written; each with a hint.
    """
    saver = await asyncio.to_thread(_opened, location, turns)
    try:
        yield saver
    finally:
        await asyncio.to_thread(saver.close)


def _opened(location: str, turns: int) -> Checkpoints:
    if location.startswith(POSTGRES):
        with needs("A Postgres database for checkpoints", "postgres"):
            from mneme.stores.checkpoints.postgres import open_postgres  # noqa: PLC0415  (an extra)
        return open_postgres(location, turns)
    if "://" in location:
        raise BadInput(
            f"{location.partition('://')[0]}:// cannot hold checkpoints.",
            "Set MNEME_CHECKPOINTS to a file's path or to a postgresql:// URL.",
        )
    return open_file(_path(location), turns)


def _path(location: str) -> Path:
    return Path(location).expanduser().absolute()


@asynccontextmanager
async def checkpointer() -> AsyncIterator[Checkpoints]:
    """Open the checkpoints that the settings name: `checkpointer.path` in `langgraph.json`.

    The server enters it once on each thread that has an event loop, and keeps it open.
    """
    given = await read_settings()
    async with open_checkpointer(given.checkpoints_location, given.checkpoint_turns) as saver:
        _here.saver = saver
        try:
            yield saver
        finally:
            del _here.saver


@asynccontextmanager
async def opened_checkpointer(*, to_read: bool = False) -> AsyncIterator[Checkpoints]:
    """Give the checkpoints that this process has open as a server; open them where there are none.

    To read them a copy will do, where the file cannot be written.
    """
    if hasattr(_here, "saver"):
        yield _here.saver
        return
    location = (await read_settings()).checkpoints_location
    with ExitStack() as copied:
        if to_read and "://" not in location:
            location = str(await asyncio.to_thread(copied.enter_context, readable(_path(location))))
        async with open_checkpointer(location) as saver:
            yield saver


async def thread_owner(thread_id: str) -> str | None:
    """Return who owns a thread's checkpoints in this server: "" for nobody, None without checkpoints."""
    async with opened_checkpointer() as saver:
        found = await saver.aget_tuple({"configurable": {"thread_id": thread_id, "checkpoint_ns": ""}})
    return None if found is None else str(cast(dict[str, Any], found.metadata).get("owner", ""))
