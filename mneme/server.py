"""What `langgraph dev` serves beside the graphs: the store, and each user's memories over HTTP.

The route lets the command line work while this process owns the embedded ledger. A request names one
operation on memories; it is done for the authenticated user, or for the user whom the request names
where nobody authenticates.
"""

import asyncio
import logging
import os
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from langgraph_sdk.errors import APIError
from pydantic import BaseModel, ValidationError
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from mneme.errors import BadInput, Conflict, Forbidden, MnemeError, NotFound
from mneme.home import announced, open_own_ledger
from mneme.operations import Operations, error_as_json, operate
from mneme.settings import settings
from nodes.background import start_remembering
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
    """The body of a request: for whom, where nobody authenticates, and the operation's arguments."""

    user: str = "local"
    arguments: dict[str, Any] = {}


async def memories(request: Request) -> Response:
    """Do one operation on the caller's memories."""
    try:
        asked = Asked.model_validate_json(await request.body())
        operations = Operations((await store()).ledger, _caller(request, asked))
        result = await operate(operations, request.path_params["operation"], asked.arguments)
    except ValidationError as error:
        return _refusal(BadInput(f"The request is not valid: {error}"))
    except MnemeError as error:
        return _refusal(error)
    return Response(result, media_type="application/json")


def _refusal(error: MnemeError) -> Response:
    return JSONResponse(error_as_json(error), STATUS.get(type(error), 500))


def _caller(request: Request, asked: Asked) -> str:
    return asked.user if settings().auth is None else str(request.user.identity)


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


app = Starlette(routes=[Route("/mneme/memories/{operation}", memories, methods=["POST"])], lifespan=lifespan)
