"""The operations on what a user or a team has stored, done by a running server."""

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, cast

import httpx
from pydantic import TypeAdapter

import mneme.errors
from mneme.errors import Forbidden, MnemeError
from mneme.operations import Kind, Remote, returns_of
from mneme.settings import settings

PATIENCE = httpx.Timeout(60, connect=5)


def api_key() -> str | None:
    """Return the user's key for a server that authenticates."""
    return settings().key.get_secret_value() or None


@asynccontextmanager
async def open_remote(url: str, kind: type[Kind], owner: str) -> AsyncIterator[Kind]:
    """Yield the operations on what an owner has, sent to the server at that address."""
    headers = {"x-api-key": key} if (key := api_key()) else {}
    async with httpx.AsyncClient(base_url=url, headers=headers, timeout=PATIENCE) as client:
        yield cast(Kind, _Remote(client, kind, owner))


class _Remote:
    """Send whatever operation is called; its signature and its result are those of its kind."""

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
        raise Forbidden("The server does not let you in.", "Set MNEME_KEY to your key.")
    try:
        told = answer.json()
        kind, message, hint = told["error"], told["message"], told["hint"]
    except (ValueError, KeyError, TypeError) as error:
        raise MnemeError(
            f"The server answered {answer.status_code}.", "See its log; is it another version of Mneme?"
        ) from error
    raise getattr(mneme.errors, kind, MnemeError)(message, hint)
