"""Threads and runs in the tables of this process's LangGraph server, to be listed and erased.

All changes go through the server's own API. It deletes a thread with its checkpoints, so those of a thread
that stays are copied away before, and back afterwards.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any
from uuid import uuid4

from langgraph_sdk import get_client
from langgraph_sdk.client import LangGraphClient
from langgraph_sdk.errors import APIError, NotFoundError, UnprocessableEntityError

from mneme.api.server_state import ServerState
from mneme.core.errors import Conflict
from mneme.nodes.background import MEMORY_THREAD, THREAD_NAME
from mneme.nodes.chat.waking import agenda, remember_later
from mneme.server.opened import store
from mneme.stores.checkpoints.checkpointer import opened_checkpointer
from mneme.stores.ledger.records import LOCAL
from mneme.stores.users.inbox import Inbox

REPLY_SECONDS = 20.0
"""Seconds to wait for the end of a reply."""
BUSY_POLL_SECONDS = 0.1
THREADS_PER_PAGE = 1000
REPLIES = "chatbot"
"""The graph whose runs a person waits for; other runs are continued by the command that began them."""
UNKNOWN_ID = (NotFoundError, UnprocessableEntityError)
"""Errors for an id that the server does not know or accept."""


class ServerRows(ServerState):
    """The threads and runs of the server that runs in this process."""

    async def owners(self) -> Mapping[str, str]:
        client, found = _client(), dict[str, str]()
        while page := await client.threads.search(
            limit=THREADS_PER_PAGE, offset=len(found), select=["thread_id", "metadata"]
        ):
            found |= {each["thread_id"]: str((each["metadata"] or {}).get("owner") or LOCAL) for each in page}
            if len(page) < THREADS_PER_PAGE:
                break
        return found

    @asynccontextmanager
    async def quiet(
        self, threads: Collection[str], background: Collection[str]
    ) -> AsyncIterator[Collection[str]]:
        async with agenda.held(background), self._stopped(threads, background) as works:
            yield works

    @asynccontextmanager
    async def _stopped(
        self, threads: Collection[str], background: Collection[str]
    ) -> AsyncIterator[Collection[str]]:
        client, stopped = _client(), list[dict[str, Any]]()
        found = await _busy(client)
        works = {each for each in {*threads, *background} & found.keys() if found[each] != REPLIES}
        for thread in works:
            runs: list[Any] = await client.runs.list(thread, limit=THREADS_PER_PAGE)
            for run in runs:
                if run["status"] in ("pending", "running"):
                    given = (run.get("kwargs") or {}).get("context") or {}
                    # A run's context may name no user; the memory agent's thread is named after its user.
                    name = str(run["metadata"].get(THREAD_NAME, ""))
                    user = name.removeprefix(MEMORY_THREAD.format(user="")) or LOCAL
                    stopped += [{"user": user, **given}] if thread in background else []
                    with suppress(APIError):  # it has ended meanwhile
                        await client.runs.cancel(thread, run["run_id"], wait=True)
        try:
            end = time.monotonic() + REPLY_SECONDS
            while {*threads, *background} & (await _busy(client)).keys():
                if time.monotonic() > end:
                    raise Conflict("A reply is still being written.", "Wait for its end, then forget again.")
                await asyncio.sleep(BUSY_POLL_SECONDS)
            yield works - {*background}
        finally:
            if stopped:
                ledger = (await store()).ledger
                if await Inbox(ledger).pending(stopped[-1]["user"]):
                    await remember_later(ledger, stopped[-1])

    async def delete(self, threads: Collection[str]) -> list[str]:
        for thread in threads:
            with suppress(*UNKNOWN_ID):  # a thread may have checkpoints alone
                await _client().threads.delete(thread)
        return []

    async def renew(self, threads: Collection[str]) -> list[str]:
        for thread in threads:
            with suppress(*UNKNOWN_ID):  # a thread may have checkpoints alone
                await _renew(_client(), thread)
        return []


def _client() -> LangGraphClient:
    return get_client(api_key=None)  # without a URL it calls this process; None: no key of LangSmith's


async def _renew(client: LangGraphClient, thread: str) -> None:
    """Delete a thread and its runs from the server, and create it again with the same id."""
    known = await client.threads.get(thread)
    async with opened_checkpointer() as saver:
        copy = str(uuid4())
        await saver.acopy_thread(thread, copy)
        await client.threads.delete(thread)
        await saver.acopy_thread(copy, thread)
        await saver.adelete_thread(copy)
    await client.threads.create(thread_id=thread, metadata=known["metadata"], if_exists="do_nothing")


async def _busy(client: LangGraphClient) -> Mapping[str, str]:
    """Return the threads on which something runs, with the graph of each."""
    found = await client.threads.search(
        status="busy", limit=THREADS_PER_PAGE, select=["thread_id", "metadata"]
    )
    return {each["thread_id"]: str((each["metadata"] or {}).get("graph_id")) for each in found}
