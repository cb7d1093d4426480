"""Checks of every request before the routes: the limit on wrong keys, and one guard for all routes.

The LangGraph server authenticates most of its routes, but serves `/info` and `/metrics` to everybody, and
`langgraph dev` has development routes without authentication: one shows any thread, one deletes everything,
one builds and deploys the project. Here all routes but a few authenticate the caller, and the development
routes are closed.
"""

import asyncio
import time
from collections import defaultdict, deque
from collections.abc import Callable
from contextlib import suppress
from math import ceil
from types import SimpleNamespace

from langgraph_sdk import Auth
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from mneme.api.operation import PROBLEM_TYPE, problem_of
from mneme.core.errors import BadInput, Forbidden, MnemeError, TooMany
from mneme.core.settings import read_settings
from mneme.models.asking.gate import asking_for
from mneme.server.auth import Headers, identify, key_of
from mneme.server.problems import is_ours, problem
from mneme.server.users import number_of

OPEN_PATHS = {"", "/ok", "/docs", "/openapi.json"}
"""Routes without authentication: that the server is up, and its list of routes."""
CLOSED_PATHS = {"internal", "deploy", "ui"}
"""First parts of the paths that are closed to every caller."""
MAX_WRONG_KEYS = 10
"""Maximum wrong keys that are answered in a window, for one address and one user's key."""
WRONG_KEY_SECONDS = 60.0
"""Seconds for which a wrong key counts."""
MAX_REMEMBERED = 1000
MAX_BODY = 16 << 20
"""Maximum bytes of a request: the server holds several copies of one while it reads it."""
MAX_IMPORT = 64 << 20
"""Maximum bytes of an import, which sends a whole export at once."""
MAX_MCP = 1 << 20
"""Maximum bytes of a request for a tool of the MCP server."""

Guess = tuple[str, str]
"""An address, and the public part of a key: "" if no user has such a key."""


class WrongKeys:
    """Wrong keys within the last window, with their times."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._times: defaultdict[Guess, deque[float]] = defaultdict(deque)

    def seconds_to_wait(self, guess: Guess) -> int:
        """Return the seconds until another key is checked; 0: now."""
        times = self._recent(guess)
        return (
            0 if len(times) < MAX_WRONG_KEYS else max(1, ceil(times[0] + WRONG_KEY_SECONDS - self._clock()))
        )

    def count(self, guess: Guess) -> None:
        """Count a wrong key."""
        if len(self._times) >= MAX_REMEMBERED:  # expired ones go, else the table grows for ever
            for each in list(self._times):
                self._recent(each)
        self._times[guess].append(self._clock())

    def _recent(self, guess: Guess) -> deque[float]:
        times = self._times.get(guess, deque())
        while times and times[0] <= self._clock() - WRONG_KEY_SECONDS:
            times.popleft()
        if not times:
            self._times.pop(guess, None)
        return times


class Entrance:
    """Middleware for the whole server. A right key is never kept out by wrong keys for another user."""

    def __init__(self, app: ASGIApp, wrong_keys: WrongKeys | None = None) -> None:
        self._app, self._wrong = app, wrong_keys or WrongKeys()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request that is refused; pass on every other."""
        # the server calls itself below a path that no request from outside can set
        is_own = str(scope.get("root_path", "")).split("/")[:2] == ["", "noauth"]
        from_outside = scope["type"] in ("http", "websocket") and not is_own
        refusal = await self._refusal(scope) if from_outside else None
        if refusal is None and from_outside and scope["type"] == "http":
            await self._bounded(scope, receive, send)
        else:
            await (refusal or self._app)(scope, receive, send)

    async def _bounded(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, unless its body, as announced or else as it comes, is too large."""
        headers = dict(scope["headers"])
        path = scope["path"].rstrip("/")
        room = MAX_IMPORT if path.endswith("/import") else MAX_MCP if path.endswith("/mcp") else MAX_BODY
        came, read = int(headers.get(b"content-length", b"0") or 0), list[Message]()
        more = came > room or b"transfer-encoding" in headers
        while more:  # one that is too large is dropped, but read: many clients read the answer only then
            message = await receive()
            came += len(message.get("body", b""))
            more = message.get("more_body", False)
            read = [*read, message] if came <= room else []

        async def again() -> Message:
            return read.pop(0) if read else await receive()

        error = BadInput(f"A request may have {room >> 20} MB here.", "Send it in parts.")
        large = _answer(413, error, path)
        await (large if came > room else self._app)(scope, again, send)

    async def _refusal(self, scope: Scope) -> Response | None:
        """Refuse a caller without a valid key or, without users, of another machine; else note the caller."""
        path = scope["path"].rstrip("/")
        if path.lstrip("/").split("/")[0] in CLOSED_PATHS:
            return _answer(404, Forbidden("Not Found"), path)
        if path in OPEN_PATHS or scope.get("method") == "OPTIONS":  # a browser's preflight has no key
            return None
        headers: Headers = dict(scope["headers"])
        users, key = (await read_settings()).auth, key_of(headers)
        guess: Guess | None = None
        if users is not None and key:
            number = ""
            with suppress(MnemeError):  # the users file is broken: `identify` says so
                number = await asyncio.to_thread(number_of, users, key)
            guess = (scope.get("client") or ("", 0))[0], number
            if seconds := self._wrong.seconds_to_wait(guess):
                hint = f"Try again in {seconds} seconds."
                error = TooMany("Too many wrong keys came from your address.", hint)
                return JSONResponse(problem_of(error, 429), 429, {"retry-after": str(seconds)}, PROBLEM_TYPE)
        try:
            scope["user"] = user = SimpleNamespace(**await identify(headers, dict(scope)))  # `request.user`
            asking_for.set(user.identity)  # users take turns at a model by this name
        except Auth.exceptions.HTTPException as refused:
            if guess and refused.status_code == 401:
                self._wrong.count(guess)
            return _answer(refused.status_code, Forbidden(refused.detail), path)
        return None


def _answer(status: int, error: MnemeError, path: str) -> Response:
    """Return a refusal, in the form of the route that was asked for."""
    told = JSONResponse({"detail": f"{error} {error.hint}".strip()}, status)
    answer = problem(error, status) if is_ours(path) else told
    answer.headers["access-control-allow-origin"] = "*"  # so Studio can show it: nobody's data is in it
    return answer
