"""`mneme serve`: a server of our own, with REST, MCP, the console and chat completions, but no graphs' API.

It needs no LangGraph server. Messages are remembered in its own process, in the background; other processes
may have the same ledger open.
"""

import asyncio
import logging
import os
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

import uvicorn
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from mneme.api.server_state import ServerState
from mneme.client.home import OWN_SERVER, Place, announced
from mneme.client.workflows import MemoryAgents
from mneme.core.errors import MnemeError
from mneme.core.settings import settings
from mneme.server.auth import is_loopback
from mneme.server.opened import store
from mneme.server.routes import api_of
from mneme.stores.access import roles
from mneme.stores.ledger.ledger import Ledger
from mneme.stores.users.inbox import Inbox

Ready = Callable[[str], Awaitable[None]]
START_POLL_SECONDS = 0.05
FOR_STRANGERS = (
    "Other machines get 403, but for /docs and /openapi.json, the list of routes: without users the server "
    "answers this machine alone. To let others in, set MNEME_AUTH to a file, and add each with `mneme users "
    "add NAME`."
)
log = logging.getLogger(__name__)
LOOK_SECONDS = 5.0
"""Seconds between two checks whether the server is idle."""


async def serve(host: str, port: int, idle_minutes: float, ready: Ready) -> None:
    """Serve until a signal, or until no request has come for `idle_minutes`; 0: without that limit.

    `ready` receives the address once the server answers. Raises MnemeError if it cannot listen there, or
    cannot open its data.
    """
    listening = _listening(host, port)  # our own socket: of port 0 the number must be known before
    await store()  # before uvicorn, which would print a traceback of what is wrong
    await asyncio.to_thread(roles)  # likewise
    if settings().auth is None and not is_loopback(listening.getsockname()[0]):
        log.warning(FOR_STRANGERS)
    # A server that listens at every address is reached here by this one.
    here = "127.0.0.1" if host in ("", "0.0.0.0", "::") else host  # noqa: S104  (it is compared, not bound)
    url = f"http://{here}:{listening.getsockname()[1]}"
    used = _Used()
    app = api_of(ServerState(), _agents.remember, lambda ledger: _serving(ledger, url))
    for path in ("/ok", "/info"):  # before the route that refuses all else
        app.router.routes.insert(0, Route(path, _is_there))
    server = uvicorn.Server(uvicorn.Config(used.around(app), log_level="warning", access_log=False))

    async def tell() -> None:
        while not server.started:  # uvicorn has no event for it
            await asyncio.sleep(START_POLL_SECONDS)
        await ready(url)

    beside = [used.stop_when_idle(server, idle_minutes), tell()]
    tasks = [asyncio.create_task(each) for each in beside]
    try:
        await server.serve([listening])
    finally:
        for each in tasks:
            each.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    if not server.started:
        raise MnemeError("The server could not start.", "The lines above say why.")


async def _is_there(_: Request) -> Response:
    """Answer the LangGraph server's health check; it says that there are no graphs here."""
    return JSONResponse({"ok": True, "flags": {"assistants": False}})


def _listening(host: str, port: int) -> socket.socket:
    try:
        socket.getaddrinfo(host or None, port)  # `create_server` gives an unknown host no error of its own
        return socket.create_server((host, port))
    except socket.gaierror as error:
        hint = "Give an address of this machine: --host 127.0.0.1"
        raise MnemeError(f"This machine has no address {host}.", hint) from error
    except OSError as error:
        hint = f"Choose another: --port {port % 65535 + 1}"
        raise MnemeError(f"Port {port} cannot be used: {os.strerror(error.errno or 0)}.", hint) from error


@asynccontextmanager
async def _ledger() -> AsyncIterator[Place]:
    yield (await store()).ledger


_agents = MemoryAgents(_ledger)


@asynccontextmanager
async def _serving(ledger: Ledger, url: str) -> AsyncIterator[None]:
    """Announce the server, and remember what an earlier process left; a stop leaves the rest to the next."""

    async def remember(user: str) -> None:
        with suppress(MnemeError):  # the inbox says why
            await _agents.remember(user, "auto", 0)

    await asyncio.gather(*(remember(user) for user in await Inbox(ledger).users()))
    try:
        async with announced(url, OWN_SERVER):
            yield
    finally:
        await _agents.stop()


class _Used:
    """Time of the last request, and the number of requests in progress."""

    def __init__(self) -> None:
        self._last, self._open = time.monotonic(), 0

    def around(self, app: ASGIApp) -> ASGIApp:
        async def noted(scope: Scope, receive: Receive, send: Send) -> None:
            self._open += scope["type"] == "http"  # the lifespan is open as long as the server
            try:
                await app(scope, receive, send)
            finally:
                self._open -= scope["type"] == "http"
                self._last = time.monotonic()

        return noted

    async def stop_when_idle(self, server: uvicorn.Server, minutes: float) -> None:
        while minutes:
            await asyncio.sleep(min(LOOK_SECONDS, minutes * 60))
            if not self._open and time.monotonic() - self._last > minutes * 60:
                server.should_exit = True
