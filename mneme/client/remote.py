"""Operations on the data of a user or a team, sent to a running server."""

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, cast

import httpx
from pydantic import TypeAdapter

from mneme.api.memories import Kind, Remote, returns_of
from mneme.core import errors
from mneme.core.errors import Forbidden, MnemeError
from mneme.core.settings import settings

PATIENCE = httpx.Timeout(60, connect=5)


def api_key() -> str | None:
    """Return the user's key for a server that authenticates."""
    return settings().key.get_secret_value() or None


@asynccontextmanager
async def open_remote(url: str, kind: type[Kind], owner: str) -> AsyncIterator[Kind]:
    """Yield operations on an owner's data that are sent to the server at this address."""
    async with _client(url) as client:
        yield cast(Kind, _Remote(client, kind, owner))


async def workers_of(url: str) -> int:
    """Return how many runs the server at this address serves at once. Raises MnemeError where it hides it."""
    try:
        async with _client(url) as client:
            answer = await client.get("/metrics", params={"format": "json"})
        _raise_for(answer)
        return int(answer.json()["workers"]["max"])
    except (httpx.TransportError, ValueError, KeyError, TypeError) as error:
        hidden = f"{url} does not say how many runs it serves at once."
        raise MnemeError(hidden, "With one, replies wait for background work.") from error


def _client(url: str) -> httpx.AsyncClient:
    headers = {"x-api-key": key} if (key := api_key()) else {}
    return httpx.AsyncClient(base_url=url, headers=headers, timeout=PATIENCE)


class _Remote:
    """Send every call to the server; signatures and results are those of the class `kind`."""

    def __init__(self, client: httpx.AsyncClient, kind: type[Remote], owner: str) -> None:
        self._client, self._kind, self._owner = client, kind, owner

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        signature = inspect.signature(getattr(self._kind, name))

        async def call(*args: Any, **kwargs: Any) -> Any:
            arguments = dict(signature.bind(self, *args, **kwargs).arguments)
            del arguments["self"]
            body = TypeAdapter(dict[str, Any]).dump_json({"owner": self._owner, "arguments": arguments})
            answer = await self._client.post(f"/mneme/{self._kind.ROUTE}/{name}", content=body)
            _raise_for(answer)
            return returns_of(self._kind, name).validate_json(answer.content)

        return call


def _raise_for(answer: httpx.Response) -> None:
    """Raise the server's error as the same class here."""
    if answer.is_success:
        return
    if answer.status_code in {401, 403}:
        raise Forbidden(
            "The server refused your key.", "Set MNEME_KEY to the key that `mneme users add` printed for you."
        )
    try:
        body = answer.json()
        kind, message, hint = body["error"], body["message"], body["hint"]
    except (ValueError, KeyError, TypeError) as error:
        raise MnemeError(
            f"The server answered {answer.status_code}.",
            "Read the server's log; it may run another version of Mneme.",
        ) from error
    raise getattr(errors, kind, MnemeError)(message, hint)
