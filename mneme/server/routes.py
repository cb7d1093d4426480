"""The routes of every server: the operations, the console, MCP, and chat completions with a memory.

Every operation on memories, cards, discussions, pools and threads is a typed route. It acts for the
authenticated user; without users it acts for the user that the request names.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from importlib.util import find_spec
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request

from mneme.api.cards import Cards
from mneme.api.discussions import TeamDiscussions
from mneme.api.household import Household
from mneme.api.inbox import Messages, Remembering
from mneme.api.memories import Memories
from mneme.api.operation import BY_USER, Operations
from mneme.api.pools import Pools
from mneme.api.server_state import ServerState
from mneme.api.shared_memory import SharedMemory
from mneme.api.threads import Threads
from mneme.core.errors import MnemeError
from mneme.core.settings import settings
from mneme.models.asking.gate import asking_for
from mneme.server.auth import identity_of
from mneme.server.completions import completions
from mneme.server.entrance import Entrance
from mneme.server.opened import store
from mneme.server.page import Console
from mneme.server.problems import not_taken, not_understood, not_valid, refused
from mneme.server.rest import Api, Opened, Segments, offer, refuse_all_else
from mneme.server.users import warn_of_no_users
from mneme.stores.access import own_team, own_user, roles
from mneme.stores.answers import ANSWER_LIFETIME, drop_old_answers
from mneme.stores.audit import audit, drop_old_readings
from mneme.stores.ledger.ledger import Ledger
from mneme.stores.users.promotion import end_sharing

log = logging.getLogger(__name__)

SERVED_OPERATIONS: tuple[type[Operations], ...] = (
    Memories, Messages, Threads, Cards, TeamDiscussions, Pools, Household, SharedMemory,
)  # fmt: skip
"""The operations that a server offers."""
# The server's own routes raise what the store raises, such as for a filter that it cannot test.
HANDLERS: Any = {
    MnemeError: refused,
    NotImplementedError: refused,
    AttributeError: not_understood,
    KeyError: not_understood,
    TypeError: not_understood,
    RequestValidationError: not_valid,
    HTTPException: not_taken,
}
Serving = Callable[[Ledger], AbstractAsyncContextManager[object]]
"""Background work of a server while it runs."""


def opens(kind: type[Operations], **more: Any) -> Opened:
    """Return the function that opens the data of a request, for its caller only."""

    async def opened(request: Request, owner: str, caller: str, reads: str) -> Operations:
        identity = identity_of(request)
        if identity is None:  # with keys the entrance has set it
            asking_for.set(owner)
        else:
            # A client names itself in a header; the history has the person of the key before it.
            caller = identity if caller == BY_USER else f"{identity}, {caller}"
        ledger = (await store()).ledger
        if kind.OWNER == "user":
            return kind(ledger, own_user(identity, owner), caller, **more)
        team = own_team(identity, owner, "read" if reads else "write")
        await audit(ledger, identity, team, reads or request.url.path)  # a change shows what it changed
        return kind(ledger, team, caller, **more)

    return opened


def api_of(state: ServerState, remembering: Remembering | None, serving: Serving, **more: Any) -> Api:
    """Return the application of a server; `more` is for FastAPI.

    Without `remembering`, messages wait in the inbox.
    """
    rows: Mapping[type[Operations], dict[str, Any]] = {
        Memories: {"state": state, "remembering": remembering},
        Threads: {"state": state},
        Household: {"state": state},
    }
    opened = {kind: opens(kind, **rows.get(kind, {})) for kind in SERVED_OPERATIONS}
    running: Callable[[], AbstractAsyncContextManager[object]] = nullcontext
    others = completions(opened[SharedMemory], remembering)
    if find_spec("mcp"):
        from mneme.server.mcp_route import mcp_route  # noqa: PLC0415  (an extra)

        manager, route = mcp_route(opened)
        running, others = manager.run, [*others, route]

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        ledger = (await store()).ledger
        await asyncio.to_thread(roles)  # read once: no request waits for a file
        if (users := settings().auth) is not None:
            await asyncio.to_thread(warn_of_no_users, users)
            if ended := await end_sharing(ledger):
                log.warning("Nothing is shared any more with teams without roles: %s.", ", ".join(ended))
        dropping = asyncio.create_task(_dropping(ledger))  # not awaited: it must not delay the start
        try:
            async with serving(ledger), running():
                yield
        finally:
            dropping.cancel()
            await asyncio.gather(dropping, return_exceptions=True)
            await ledger.close()  # last: until here memory agents and MCP calls may write

    api = Api(
        title="Mneme",
        # Outermost first: the page's files need no key.
        middleware=[Middleware(Console), Middleware(Entrance), Middleware(Segments)],
        exception_handlers=HANDLERS,
        lifespan=lifespan,
        **more,
    )
    for kind, opened_for in opened.items():
        offer(api, kind, opened_for)
    api.router.routes += others
    refuse_all_else(api)
    return api


async def _dropping(ledger: Ledger) -> None:
    """Erase answers and readings that are too old, once a day: on the embedded engine that is slow."""
    while True:
        try:
            await drop_old_answers(ledger)
            await drop_old_readings(ledger)
        except MnemeError as error:
            log.warning("What is too old is still kept: %s", error)
        await asyncio.sleep(ANSWER_LIFETIME.total_seconds())
