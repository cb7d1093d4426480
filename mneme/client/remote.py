"""Operations on the data of a user or a team, sent to a running server."""

import asyncio
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from time import monotonic
from typing import Any
from urllib.parse import quote
from uuid import uuid4

import httpx
from pydantic import TypeAdapter

from mneme.api.operation import API_PATH, BY_USER, CALLER_HEADER, ONCE, Operation, Operations
from mneme.core import errors
from mneme.core.errors import BadInput, Forbidden, MnemeError, ServerGone, StillRunning
from mneme.core.settings import settings
from mneme.stores.users.memory import RULES

REQUEST_SECONDS, CONNECT_TIMEOUT = 60.0, 5.0
"""Seconds that an answer may take beyond a requested wait, and that connecting may take."""
WITH_A_MODEL = 3600.0
"""Seconds that an answer may take for which a model is asked; its verdicts are stored at once."""
MODEL_ARGUMENTS = ("agents", "comparer")
"""Arguments that name a model."""
BROKEN_CONNECTION = (httpx.ReadError, httpx.WriteError, httpx.RemoteProtocolError)
"""Errors of a connection that ended before the answer: the request may have been executed."""
RUN_POLL_SECONDS = 0.5
"""Seconds between two checks whether a request is still being executed."""
DOT_NAMES = {".": "%2E", "..": "%2E%2E"}
"""Names that HTTP clients would resolve as path steps, and their encoded forms."""
ANY_JSON = TypeAdapter[Any](Any)


def api_key() -> str | None:
    """Return the user's key for a server that authenticates. Raises BadInput for an impossible key."""
    key = settings().key.get_secret_value()
    if not (key.isascii() and key.isprintable()):  # no header takes it; a shortened key ends with "…"
        raise BadInput(
            "MNEME_KEY is no key.", "Set it to the whole key that `mneme users add` printed for you."
        )
    return key or None


async def workers_of(client: httpx.AsyncClient) -> int:
    """Return how many runs a server executes at once. Raises MnemeError if the server does not say."""
    try:
        answer = await client.get("/metrics", params={"format": "json"})
        _raise_for(answer)
        return int(answer.json()["workers"]["max"])
    except (httpx.TransportError, ValueError, KeyError, TypeError) as error:
        hidden = f"{client.base_url} does not say how many runs it serves at once."
        raise MnemeError(hidden, "With one, replies wait for background work.") from error


def client_of(url: str) -> httpx.AsyncClient:
    """Return a client of the server at this address, with the user's key."""
    headers = {"x-api-key": key} if (key := api_key()) else {}
    return httpx.AsyncClient(
        base_url=url, headers=headers, timeout=httpx.Timeout(REQUEST_SECONDS, connect=CONNECT_TIMEOUT)
    )


class Remote:
    """Send every call to the server; signatures and results are those of the class `kind`."""

    def __init__(
        self, client: httpx.AsyncClient, kind: type[Operations], owner: str, caller: str = BY_USER
    ) -> None:
        self._client, self._kind, self._owner, self._caller = client, kind, owner, caller

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        operation = self._kind.OFFERED.get(name)
        if operation is None:
            raise AttributeError(f"{self._kind.__name__} has no operation {name!r}")

        async def call(*args: Any, **kwargs: Any) -> Any:
            arguments = operation.checked(*args, **kwargs)
            try:
                request = self._request(operation, arguments)
            except UnicodeError as broken:
                raise BadInput(f"The request contains broken Unicode: {broken}.") from broken
            answer = await self._sent(request)
            return operation.returns.validate_json(answer.content)

        return call

    async def _sent(self, request: httpx.Request) -> httpx.Response:
        """Send a request, once more if its connection broke, and return its answer."""
        # However often the connection breaks, a call waits as long as for one answer.
        until, is_sent = monotonic() + request.extensions["timeout"]["read"], False
        while True:
            try:
                answer = await self._client.send(request)
                _raise_for(answer)
            except BROKEN_CONNECTION as error:  # its key makes it safe to send the request again
                if is_sent:
                    raise gone(error) from error
            except httpx.TransportError as error:
                raise gone(error) from error
            except StillRunning:  # the server goes on with what it got before the connection broke
                if monotonic() > until:
                    raise
                await asyncio.sleep(RUN_POLL_SECONDS)
            else:
                return answer
            is_sent = True

    def _request(self, operation: Operation, arguments: dict[str, Any]) -> httpx.Request:
        """Return the request of a call."""
        plain: dict[str, Any] = ANY_JSON.dump_python(arguments, mode="json")
        path = operation.route.path.format(
            **{name: _segment(str(plain[name]), name) for name in operation.in_path}
        )
        beside = {name: value for name, value in plain.items() if name not in operation.in_path}
        reads = operation.is_reading
        # A query cannot say null, which a body can.
        asked = {name: value for name, value in beside.items() if value is not None} if reads else {}
        has_model = any(plain.get(each, RULES) != RULES for each in MODEL_ARGUMENTS)
        patience = WITH_A_MODEL if has_model else REQUEST_SECONDS
        return self._client.build_request(
            operation.route.method,
            f"{API_PATH}/{path}",
            params={**asked, self._kind.OWNER: self._owner},
            json=None if reads else beside,
            headers={CALLER_HEADER: self._caller} | ({} if reads else {ONCE: uuid4().hex}),
            timeout=httpx.Timeout(patience + float(plain.get("seconds", 0)), connect=CONNECT_TIMEOUT),
        )


def gone(error: httpx.TransportError) -> MnemeError:
    """Return the error for a server that cannot be reached, or is too slow."""
    if isinstance(error, httpx.ReadTimeout | httpx.PoolTimeout):
        return MnemeError("The server does not answer in time.", "Read its log; it may have too much to do.")
    return ServerGone(
        "The server has ended, or cannot be reached.",
        "Run the command again: it goes on without a server. Or start the server again first.",
    )


def _segment(value: str, name: str) -> str:
    """Return a parameter as a part of a path. Raises BadInput."""
    if not value:
        raise BadInput(f"The {name.replace('_', ' ')} is empty.", "Give it, or its first letters.")
    return DOT_NAMES.get(value) or quote(value, safe="")


def _raise_for(answer: httpx.Response) -> None:
    """Raise the server's error as the same class here."""
    if answer.is_success:
        return
    if answer.status_code == HTTPStatus.UNAUTHORIZED:
        said = "The server refused your key." if api_key() else "The server has users, and no key is set."
        raise Forbidden(said, "Set MNEME_KEY to the key that `mneme users add` printed for you.")
    try:
        body = answer.json()
        kind, message, hint = str(body["type"]).rpartition(":")[2], body["detail"], body["hint"]
    except (ValueError, KeyError, TypeError) as error:
        raise MnemeError(
            f"The server answered {answer.status_code}.",
            "Read the server's log; it may run another version of Mneme.",
        ) from error
    raise getattr(errors, kind, MnemeError)(message, hint)  # a later version may have another error
