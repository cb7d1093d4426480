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
from langgraph_sdk.errors import APIError, NotFoundError, UnprocessableEntityError
from tenacity import retry, retry_if_exception_type, stop_after_attempt

from mneme.api import server_tables
from mneme.api.inert_pickle import PROTOCOL
from mneme.api.server_files import FILE, replace
from mneme.core.errors import Conflict
from mneme.nodes.chat.waking import remember_later
from mneme.server.opened import store
from mneme.stores.checkpoints.erasing import Eraser
from mneme.stores.users.inbox import Inbox

TABLES_OF_DEV = "langgraph_runtime_inmem.database"
STREAMS_OF_DEV = "langgraph_runtime_inmem.inmem_stream"
PATIENCE = 20.0
"""Seconds to wait for the end of a reply."""
LAST_WORDS = 5.0
"""Seconds that a run may go on after it was stopped."""
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
        try:
            await _until_quiet({*threads, *background})
            yield
        finally:
            if stopped:
                await _go_on(stopped[-1]["kwargs"]["context"])

    async def delete(self, threads: Collection[str]) -> list[str]:
        client = get_client(api_key=None)
        for thread in threads:
            with suppress(NotFoundError, UnprocessableEntityError):  # it knows no such id, or takes none such
                await client.threads.delete(thread)
        return await _write() if _tables() else []

    async def erase(self, threads: Collection[str], eraser: Eraser) -> list[str]:
        if not _tables():
            return [ELSEWHERE]
        return await _write() if server_tables.erase(_tables(), threads, eraser) else []


async def _go_on(context: dict[str, Any]) -> None:
    """Let what was stopped go on, if anything still waits to be remembered."""
    ledger = (await store()).ledger
    if await Inbox(ledger).pending(context["user"]):
        await remember_later(ledger, context)


def _tables() -> Mapping[str, Any]:
    dev = sys.modules.get(TABLES_OF_DEV)
    return dev.GLOBAL_STORE if dev else {}


async def _until_quiet(threads: Collection[str]) -> None:
    end = time.monotonic() + PATIENCE
    while server_tables.active(_tables(), threads):
        if time.monotonic() > end:
            raise Conflict("A reply is still being written.", "Wait for its end, then forget again.")
        await asyncio.sleep(POLL)
    end = time.monotonic() + LAST_WORDS
    while _is_listening(threads) and time.monotonic() < end:
        await asyncio.sleep(POLL)


def _is_listening(threads: Collection[str]) -> bool:
    """Tell whether a run that was stopped still works for a moment, and so listens to its thread.

    One that was stopped at its very beginning is begun once more by the server, and leaves a listener behind
    for ever.
    """
    streams = sys.modules.get(STREAMS_OF_DEV)
    working = streams.get_stream_manager().control_queues if streams else {}
    return any(queue for thread, runs in working.items() if str(thread) in threads for queue in runs.values())


# A run on another thread can add to a table while it is read.
@retry(retry=retry_if_exception_type(RuntimeError), stop=stop_after_attempt(5), reraise=True)
async def _write() -> list[str]:
    """Write the tables to their file now, as the server does every ten seconds."""
    if os.environ.get("LANGGRAPH_DISABLE_FILE_PERSISTENCE", "").lower() != "true":
        data = pickle.dumps(dict(_tables()), PROTOCOL)
        await asyncio.to_thread(replace, Path(FILE), data)
    return []
