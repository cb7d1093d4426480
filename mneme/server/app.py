"""Routes and store that `langgraph dev` serves with the graphs.

The routes let the command line work while the server has the embedded ledger open. A request names one
operation on memories, cards, discussions or pools. It acts for the authenticated user; without users it acts
for the user that the request names.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from pydantic import BaseModel, ValidationError
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from mneme.api.cards import CardOperations
from mneme.api.copies import note_server
from mneme.api.discussions import DiscussionOperations
from mneme.api.memories import MemoryOperations, Remote, error_as_json, operate
from mneme.api.sharing import SharingOperations
from mneme.api.threads import ThreadOperations
from mneme.client.announcement import announced
from mneme.core.errors import BadInput, Conflict, Forbidden, MnemeError, NotFound, TooMany
from mneme.core.settings import settings
from mneme.nodes.chat.waking import agenda
from mneme.nodes.context import LOCAL, own_team
from mneme.server.entrance import Entrance
from mneme.server.new_runs import begun_at_once
from mneme.server.opened import store
from mneme.server.rows import ServerRows
from mneme.stores.ledger.ledger import Ledger

STATUS: dict[type[MnemeError], int] = {
    BadInput: 400,
    Forbidden: 403,
    NotFound: 404,
    Conflict: 409,
    TooMany: 429,
}


class Asked(BaseModel):
    """The body of a request: the owner of the data (a user without keys, or a team), and the arguments."""

    owner: str = LOCAL
    arguments: dict[str, Any] = {}


async def operation(request: Request) -> Response:
    """Run one operation on the data of the caller or of one of the caller's teams."""
    try:
        asked = Asked.model_validate_json(await request.body())
        operations = _open(request, asked.owner, (await store()).ledger)
        result = await operate(operations, request.path_params["operation"], asked.arguments)
    except ValidationError as error:
        return _refusal(BadInput(f"The request is not valid: {error}"))
    except MnemeError as error:
        return _refusal(error)
    return Response(result, media_type="application/json")


def _open(request: Request, owner: str, ledger: Ledger) -> Remote:
    """Open the data that the request names, for its caller only."""
    identity = None if settings().auth is None else str(request.user.identity)
    kind = request.path_params["kind"]
    if kind in OF_USERS:
        return OF_USERS[kind](ledger, owner if identity is None else identity)
    if kind not in OF_TEAMS:
        raise NotFound(
            f"There is no route for {kind!r}.",
            "Use the same version of Mneme for the server and the command line.",
        )
    return OF_TEAMS[kind](ledger, own_team(identity, owner))


OF_USERS: dict[str, Callable[[Ledger, str], Remote]] = {
    MemoryOperations.ROUTE: partial(MemoryOperations, state=ServerRows()),
    ThreadOperations.ROUTE: partial(ThreadOperations, state=ServerRows()),
}
"""Operations on the data of users, by route."""
OF_TEAMS: dict[str, Callable[[Ledger, str], Remote]] = {
    CardOperations.ROUTE: CardOperations,
    DiscussionOperations.ROUTE: DiscussionOperations,
    SharingOperations.ROUTE: SharingOperations,
}
"""Operations on the data of teams, by route."""


def _refusal(error: MnemeError) -> Response:
    return JSONResponse(error_as_json(error), STATUS.get(type(error), 500))


async def refused(_: Request, error: MnemeError) -> Response:
    """Answer an error of ours that a route of the LangGraph server ran into."""
    return _refusal(error)


async def not_supported(_: Request, error: NotImplementedError) -> Response:
    """Answer what our store does not do."""
    return _refusal(BadInput(str(error)))


@asynccontextmanager
async def lifespan(_: Starlette) -> AsyncIterator[None]:
    """Announce the server, remember what waits, and close the ledger at the end."""
    ledger = (await store()).ledger
    await asyncio.to_thread(note_server)
    remembering = asyncio.create_task(agenda.serve(ledger))
    try:
        async with announced(os.environ["LANGGRAPH_API_URL"]):
            with begun_at_once():
                yield
    finally:
        remembering.cancel()
        await asyncio.gather(remembering, return_exceptions=True)
        await ledger.close()


ROUTES = [
    Route("/mneme/{kind}/{operation}", operation, methods=["POST"]),
]
# The server's own routes raise what the store raises, such as for a filter that it cannot test.
HANDLERS: Any = {MnemeError: refused, NotImplementedError: not_supported}
app = Starlette(
    routes=ROUTES, lifespan=lifespan, middleware=[Middleware(Entrance)], exception_handlers=HANDLERS
)
