"""Routes and store that `langgraph dev` serves with the graphs.

Every operation on memories, cards, discussions, pools and threads is a typed route: other programs use it,
and so does the command line while the server has the embedded ledger open. It acts for the authenticated
user; without users it acts for the user that the request names.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from mneme.api.cards import Cards
from mneme.api.copies import note_server
from mneme.api.discussions import TeamDiscussions
from mneme.api.inbox import Messages
from mneme.api.memories import Memories
from mneme.api.operation import PROBLEM, Operations, problem_of
from mneme.api.pools import Pools
from mneme.api.threads import Threads
from mneme.client.announcement import announced
from mneme.core.errors import BadInput, Conflict, Forbidden, MnemeError, NotFound, TooMany
from mneme.core.settings import settings
from mneme.nodes.chat.waking import agenda, remember_later
from mneme.nodes.context import own_team
from mneme.server.entrance import Entrance
from mneme.server.opened import store
from mneme.server.page import Console
from mneme.server.rest import Opened, offer
from mneme.server.rows import ServerRows

STATUS: dict[type[MnemeError], int] = {
    BadInput: 400,
    Forbidden: 403,
    NotFound: 404,
    Conflict: 409,
    TooMany: 429,
}


def _opened(kind: type[Operations], **more: Any) -> Opened:
    """Return how the data that a request names is opened, for its caller only."""

    async def opened(request: Request, owner: str, caller: str) -> Operations:
        identity = None if settings().auth is None else str(request.user.identity)
        ledger = (await store()).ledger
        if kind.OWNER == "user":
            return kind(ledger, owner if identity is None else identity, caller, **more)
        return kind(ledger, own_team(identity, owner), caller, **more)

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
}
"""The operations that the server offers, and what they need of the server."""


def _refusal(error: MnemeError) -> Response:
    status = next((code for kind, code in STATUS.items() if isinstance(error, kind)), 500)
    return JSONResponse(problem_of(error, status), status, media_type=PROBLEM)


async def refused(_: Request, error: MnemeError) -> Response:
    """Answer an error of ours that a route ran into."""
    return _refusal(error)


async def not_valid(_: Request, error: RequestValidationError) -> Response:
    """Answer a request that its route's description does not allow."""
    wrong = [f"{'.'.join(map(str, each['loc'][1:]))}: {each['msg']}" for each in error.errors()]
    return _refusal(BadInput(f"The request is not valid: {'; '.join(wrong)}.", "See /docs."))


async def not_supported(_: Request, error: NotImplementedError) -> Response:
    """Answer what our store does not do."""
    return _refusal(BadInput(str(error)))


@asynccontextmanager
async def lifespan(_: FastAPI) -> AsyncIterator[None]:
    """Announce the server, remember what waits, and close the ledger at the end."""
    ledger = (await store()).ledger
    await asyncio.to_thread(note_server)
    remembering = asyncio.create_task(agenda.serve(ledger))
    try:
        async with announced(os.environ["LANGGRAPH_API_URL"]):
            yield
    finally:
        remembering.cancel()
        await asyncio.gather(remembering, return_exceptions=True)
        await ledger.close()


# The server's own routes raise what the store raises, such as for a filter that it cannot test.
HANDLERS: Any = {
    MnemeError: refused,
    NotImplementedError: not_supported,
    RequestValidationError: not_valid,
}
app = FastAPI(
    title="Mneme",
    lifespan=lifespan,
    middleware=[Middleware(Console), Middleware(Entrance)],
    exception_handlers=HANDLERS,
    openapi_url=None,  # the LangGraph server has the description of all routes
)
for _kind, _more in OFFERED.items():
    offer(app, _kind, _opened(_kind, **_more))
