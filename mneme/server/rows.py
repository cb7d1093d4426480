"""The server's own rows of threads and runs, in this process: `langgraph dev` keeps them in its memory.

Another LangGraph server keeps them in a database of its own, where only its API reaches them.
"""

import asyncio
import os
import pickle
import sys
import time
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from langgraph_sdk import get_client
from langgraph_sdk.errors import APIError, NotFoundError

from mneme.api import server_tables
from mneme.api.inert_pickle import PROTOCOL
from mneme.api.server_files import FILE, replace
from mneme.core.errors import Conflict
from mneme.nodes.chat.waking import start_remembering
from mneme.server.opened import store
from mneme.stores.checkpoints.erasing import Eraser

MEMORY_OF_DEV = "langgraph_runtime_inmem.database"
PATIENCE = 20.0
"""Seconds to wait for the end of a reply."""
POLL = 0.1
ELSEWHERE = "the server's own database of threads and runs (it is not `langgraph dev`): delete the threads"


class ServerRows:
    """The rows of the server that runs in this process."""

    async def owners(self) -> Mapping[str, str]:
        return server_tables.owners(_tables())

    @asynccontextmanager
    async def quiet(self, threads: Collection[str], background: Collection[str]) -> AsyncIterator[None]:
        stopped = server_tables.active(_tables(), background)
        for run in stopped:
            with suppress(APIError):  # it has ended meanwhile
                await get_client(api_key=None).runs.cancel(str(run["thread_id"]), str(run["run_id"]))
        await _until_quiet({*threads, *background})
        try:
            yield
        finally:
            if stopped:
                await start_remembering((await store()).ledger, stopped[-1]["kwargs"]["context"])

    async def delete(self, threads: Collection[str]) -> list[str]:
        client = get_client(api_key=None)
        for thread in threads:
            with suppress(NotFoundError):
                await client.threads.delete(thread)
        return await _write() if _tables() else []

    async def erase(self, threads: Collection[str], eraser: Eraser) -> list[str]:
        if not _tables():
            return [ELSEWHERE]
        return await _write() if server_tables.erase(_tables(), threads, eraser) else []


def _tables() -> Mapping[str, Any]:
    dev = sys.modules.get(MEMORY_OF_DEV)
    return dev.GLOBAL_STORE if dev else {}


async def _until_quiet(threads: Collection[str]) -> None:
    end = time.monotonic() + PATIENCE
    while server_tables.active(_tables(), threads):
        if time.monotonic() > end:
            raise Conflict("A reply is still being written.", "Wait for its end, then forget again.")
        await asyncio.sleep(POLL)


async def _write() -> list[str]:
    """Write the tables to their file now, as the server does every ten seconds.

    They are pickled here, where nothing changes them meanwhile.
    """
    if os.environ.get("LANGGRAPH_DISABLE_FILE_PERSISTENCE", "").lower() == "true":
        return []
    data = pickle.dumps(dict(_tables()), PROTOCOL)
    await asyncio.to_thread(replace, Path(FILE), data)
    return []
