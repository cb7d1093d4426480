"""What `langgraph dev` serves beside the graphs: the store, each user's memories and each team's cards.

The routes let the command line work while this process owns the embedded ledger. A request names one
operation on memories or cards; it is done for the authenticated user, or for the user whom the request names
where nobody authenticates.
"""

import asyncio
import logging
import os
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from langgraph_sdk.errors import APIError
from pydantic import BaseModel, ValidationError
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from mneme.discussion_operations import DiscussionOperations
from mneme.errors import BadInput, Conflict, Forbidden, MnemeError, NotFound
from mneme.home import announced, open_own_ledger
from mneme.operations import Operations, Remote, error_as_json, operate
from mneme.settings import settings
from mneme.sharing_operations import SharingOperations
from mneme.team_operations import TeamOperations
from nodes.background import start_remembering
from nodes.context import own_team
from stores.base_store import LedgerStore
from stores.inbox import Inbox
from stores.ledger import Ledger

log = logging.getLogger(__name__)

_opening = threading.Lock()
_opened: list[LedgerStore] = []


async def store() -> LedgerStore:
    """Return the process's one store; the server asks for it once per thread."""
    await asyncio.to_thread(_opening.acquire)
    try:
        if not _opened:
            _opened.append(LedgerStore(await open_own_ledger()))
        return _opened[0]
    finally:
        _opening.release()


STATUS: dict[type[MnemeError], int] = {BadInput: 400, Forbidden: 403, NotFound: 404, Conflict: 409}


class Asked(BaseModel):
    """The body of a request: whose things, where nobody authenticates, or which team's; the arguments."""

    owner: str = "local"
    arguments: dict[str, Any] = {}


async def operation(request: Request) -> Response:
    """Do one operation on what the caller, or one of the caller's teams, has."""
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
    """Open what the request names, for nobody but its caller."""
    identity = None if settings().auth is None else str(request.user.identity)
    kind = request.path_params["kind"]
    if kind == Operations.ROUTE:
        return Operations(ledger, owner if identity is None else identity)
    if kind not in OF_TEAMS:
        raise NotFound(f"There is nothing called {kind!r} here.", "Is the command line of this version?")
    return OF_TEAMS[kind](ledger, own_team(identity, owner))


OF_TEAMS: dict[str, Callable[[Ledger, str], Remote]] = {
    TeamOperations.ROUTE: TeamOperations,
    DiscussionOperations.ROUTE: DiscussionOperations,
    SharingOperations.ROUTE: SharingOperations,
}
"""What teams have, by its route."""


def _refusal(error: MnemeError) -> Response:
    return JSONResponse(error_as_json(error), STATUS.get(type(error), 500))


@asynccontextmanager
async def lifespan(_: Starlette) -> AsyncIterator[None]:
    """Announce the server, remember what the last one left over, close the ledger at the end."""
    ledger = (await store()).ledger
    left_over = asyncio.create_task(remember_left_over(ledger))
    try:
        async with announced(os.environ["LANGGRAPH_API_URL"]):
            yield
    finally:
        left_over.cancel()
        await asyncio.gather(left_over, return_exceptions=True)
        await ledger.close()


async def remember_left_over(ledger: Ledger) -> None:
    """Start to remember, user by user, the messages that wait since before this process started."""
    for user in await Inbox(ledger).users():
        try:
            await start_remembering({"user": user})
        except APIError as error:
            log.warning("What %s said before is not remembered yet: %s", user, error)


ROUTES = [
    Route("/mneme/{kind}/{operation}", operation, methods=["POST"]),
]
app = Starlette(routes=ROUTES, lifespan=lifespan)
