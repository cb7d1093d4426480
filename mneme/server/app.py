"""Routes and store that `langgraph dev` serves with the graphs.

Every operation on memories, cards, discussions, pools and threads is a typed route: other programs use it,
and so does the command line while the server has the embedded ledger open. It acts for the authenticated
user; without users it acts for the user that the request names.
"""

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, nullcontext
from importlib.util import find_spec
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.routing import BaseRoute

from mneme.api.cards import Cards
from mneme.api.copies import note_server
from mneme.api.discussions import TeamDiscussions
from mneme.api.household import Household
from mneme.api.inbox import Messages
from mneme.api.memories import Memories
from mneme.api.operation import Operations
from mneme.api.pools import Pools
from mneme.api.server_state import FOLDER
from mneme.api.shared_memory import SharedMemory
from mneme.api.threads import Threads
from mneme.client.home import announced
from mneme.core.errors import MnemeError
from mneme.core.private import close_to_others, make_private_folder
from mneme.core.settings import settings
from mneme.nodes.chat.waking import agenda, remember_later
from mneme.nodes.context import own_team, own_user
from mneme.server.entrance import Entrance
from mneme.server.new_runs import begun_at_once
from mneme.server.opened import store
from mneme.server.page import Console
from mneme.server.problems import not_taken, not_understood, not_valid, refused
from mneme.server.rest import Api, Opened, Segments, offer, refuse_all_else
from mneme.server.rows import ServerRows
from mneme.stores.access import audit, roles
from mneme.stores.ledger.answers import KEPT_FOR, drop_old_answers
from mneme.stores.ledger.ledger import Ledger

log = logging.getLogger(__name__)


def opens(kind: type[Operations], **more: Any) -> Opened:
    """Return how the data that a request names is opened, for its caller only."""

    async def opened(request: Request, owner: str, caller: str) -> Operations:
        identity = None if settings().auth is None else str(request.user.identity)
        ledger = (await store()).ledger
        if kind.OWNER == "user":
            return kind(ledger, own_user(identity, owner), caller, **more)
        is_reading = request.method == "GET"
        team = own_team(identity, owner, "read" if is_reading else "write")
        if is_reading:
            await audit(ledger, identity, team, request.url.path)
        return kind(ledger, team, caller, **more)

    return opened


async def _remember(user: str, memory_agent: str, _: float) -> None:
    """Let the server's memory agent read what waits, as soon as it is its turn, without waiting for it."""
    await remember_later((await store()).ledger, {"user": user, "memory_agent": memory_agent})


OFFERED: Mapping[type[Operations], dict[str, Any]] = {
    Memories: {"state": ServerRows(), "remembering": _remember},
    Messages: {},
    Threads: {"state": ServerRows()},
    Cards: {},
    TeamDiscussions: {},
    Pools: {},
    Household: {},
    SharedMemory: {},
}
"""The operations that the server offers, and what they need of the server."""


async def _dropping(ledger: Ledger) -> None:
    """Erase kept answers that are too old, once a day: on the embedded engine that rewrites the ledger."""
    while True:
        try:
            await drop_old_answers(ledger)
        except MnemeError as error:
            log.warning("Answers that are too old are still kept: %s", error)
        await asyncio.sleep(KEPT_FOR.total_seconds())


def _keep_private() -> None:
    """Let nobody else into the folder in which the server keeps its threads and runs, nor into new files."""
    os.umask(0o077)
    make_private_folder(FOLDER)
    for each in (FOLDER, *FOLDER.iterdir()):
        close_to_others(each)


@asynccontextmanager
async def lifespan(_: FastAPI) -> AsyncIterator[None]:
    """Announce the server, remember what waits, and close the ledger at the end."""
    ledger = (await store()).ledger
    for prepare in (_keep_private, roles):  # the roles are read once: no request waits for a file
        await asyncio.to_thread(prepare)
    await asyncio.to_thread(note_server)
    always = [asyncio.create_task(each) for each in (agenda.serve(ledger), _dropping(ledger))]
    try:
        async with announced(os.environ["LANGGRAPH_API_URL"]), MCP.run() if MCP else nullcontext():
            with begun_at_once():
                yield
    finally:
        for each in always:
            each.cancel()
        await asyncio.gather(*always, return_exceptions=True)
        await ledger.close()


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
OPENED = {kind: opens(kind, **more) for kind, more in OFFERED.items()}


def api_of(opened: Mapping[type[Operations], Opened], *others: BaseRoute, **more: Any) -> Api:
    """Return an application with a route for each operation, and these others; `more` is for FastAPI."""
    api = Api(
        title="Mneme",
        middleware=[Middleware(Console), Middleware(Entrance), Middleware(Segments)],
        exception_handlers=HANDLERS,
        openapi_url=None,  # the LangGraph server has the description of all routes
        **more,
    )
    for kind, opened_for in opened.items():
        offer(api, kind, opened_for)
    api.router.routes += others
    refuse_all_else(api)
    return api


MCP, _others = None, []
if find_spec("mcp"):  # an extra
    from mneme.server.mcp_route import mcp_route

    MCP, _route = mcp_route(OPENED)
    _others = [_route]
app = api_of(OPENED, *_others, lifespan=lifespan)
