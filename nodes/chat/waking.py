"""Start the memory agent on the server, without waiting for it."""

import asyncio
import logging
import os
from collections import Counter
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from time import monotonic
from typing import Any

from langgraph_sdk import get_client
from langgraph_sdk.errors import APIError

from mneme.core.errors import MnemeError
from mneme.nodes.background import (
    MEMORY_THREAD,
    RECURSION_LIMIT,
    THREAD_NAME,
    named_thread,
    owner_of_runs,
    warn_of_a_single_worker,
)
from mneme.stores.ledger.ledger import Ledger
from mneme.stores.users.inbox import Inbox

log = logging.getLogger(__name__)

TICK = 0.5
"""Seconds between two checks which users are due."""
START_POLL = 0.05
"""Seconds between two checks whether a run has been started."""
MAX_THREADS = 1000
"""Maximum threads in one request; there are never as many workers."""
RESTART_SECONDS = 5.0
"""Seconds after which a run that the server refused is started again."""


class Agenda:
    """The schedule of users whose messages the server's process remembers.

    Only half of the workers remember, each for another user; the others' runs are created in their turn.
    Nothing is lost with the process: what waits is in the inbox.
    """

    def __init__(self) -> None:
        self.is_served = False
        self._due: dict[str, tuple[float, dict[str, Any]]] = {}
        self._held = Counter[str]()
        self._starting = ""

    @asynccontextmanager
    async def held(self, threads: Collection[str]) -> AsyncIterator[None]:
        """Start no run on these threads meanwhile; users who are due on them are remembered afterwards."""
        # A run that begins while its thread is erased would be erased, too, and its message wait for ever.
        self._held.update(threads)
        try:
            while self._starting in threads:  # noqa: ASYNC110  (whoever looks from here on sees that run)
                await asyncio.sleep(START_POLL)
            yield
        finally:
            self._held.subtract(threads)

    def note(self, context: dict[str, Any], after_seconds: float = 0) -> None:
        """Schedule a user's messages to be remembered after so many seconds of silence."""
        self._due[context["user"]] = (monotonic() + after_seconds, context)  # anew with each message

    async def serve(self, ledger: Ledger) -> None:
        """Start the runs as they become due, for ever; begin with messages left by the last server."""
        self.is_served = True
        try:
            for user in await Inbox(ledger).users():
                self.note({"user": user})
            while True:
                try:
                    await self._start_some(ledger)
                except (APIError, MnemeError) as error:
                    log.warning("What waits is not remembered yet: %s", error)
                await asyncio.sleep(TICK)
        finally:
            self.is_served = False

    async def _start_some(self, ledger: Ledger) -> None:
        """Start the runs of users who are due, longest first, as long as there is room."""
        due = [user for user, (at, _) in self._due.items() if at <= monotonic()]
        if not due:
            return
        found = await get_client(api_key=None).threads.search(
            metadata={"graph_id": "remember"}, status="busy", limit=MAX_THREADS
        )
        busy = {thread["thread_id"] for thread in found}
        # The server takes runs in the order of their creation: all users' at once would stand before the next
        # reply, and a second run on a busy thread would stop the queue.
        room = min(4, max(1, int(os.environ.get("N_JOBS_PER_WORKER", "1")) // 2))
        for user in due:
            if len(busy) >= room:
                return
            thread = await named_thread(ledger, MEMORY_THREAD.format(user=user), user)
            if thread in busy or self._held[thread]:
                continue
            busy.add(thread)
            # Before the request, so that a user whose run the server refuses is due again.
            later = self._due[user] = (monotonic() + RESTART_SECONDS, self._due[user][1])
            self._starting = thread
            try:
                await start_remembering(ledger, later[1])
            finally:
                self._starting = ""
            if self._due[user] is later:  # else the user has said more meanwhile
                del self._due[user]


agenda = Agenda()
"""The agenda of this process."""


async def remember_later(ledger: Ledger, context: dict[str, Any], after_seconds: int = 0) -> None:
    """Remember a user's messages after these seconds of silence, in turn if this process serves an agenda."""
    if agenda.is_served:
        agenda.note(context, after_seconds)
    else:
        await start_remembering(ledger, context, after_seconds)


async def start_remembering(ledger: Ledger, context: dict[str, Any], after_seconds: int = 0) -> None:
    """Start a background run for a user, debounced, on the user's one memory thread."""
    warn_of_a_single_worker()
    client, user = get_client(api_key=None), context["user"]
    name = MEMORY_THREAD.format(user=user)
    thread, owner = await named_thread(ledger, name, user), {"owner": await owner_of_runs(user)}
    await client.threads.create(thread_id=thread, graph_id="remember", metadata=owner, if_exists="do_nothing")
    works = await client.runs.list(thread, status="running", limit=1)
    await client.runs.create(
        thread,
        "remember",
        input={},  # it reads the inbox: the input of a debounced run is lost when the next one replaces it
        context=context,
        metadata=owner | {THREAD_NAME: name},
        config={"recursion_limit": RECURSION_LIMIT},
        after_seconds=after_seconds,
        # "interrupt" drops a run that still waits out its silence, which "enqueue" would not. A run at work
        # goes on: else the messages of a user who writes faster than the model reads would never be read.
        multitask_strategy="enqueue" if works else "interrupt",
    )
