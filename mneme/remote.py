"""The operations on a user's memories and on a team's cards, done by a running server."""

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, cast

import httpx
from pydantic import TypeAdapter

import mneme.errors
from mneme.errors import Forbidden, MnemeError
from mneme.operations import Operations, Remote, returns_of
from mneme.settings import settings

if TYPE_CHECKING:
    from mneme.team_operations import TeamOperations

PATIENCE = httpx.Timeout(60, connect=5)


def api_key() -> str | None:
    """Return the user's key for a server that authenticates."""
    return settings().key.get_secret_value() or None


@asynccontextmanager
async def open_remote(url: str, user: str) -> AsyncIterator[Operations]:
    """Yield the operations of a user, sent to the server at that address."""
    async with _client(url) as client:
        yield cast(Operations, _Remote(client, Operations, "memories", user=user))


@asynccontextmanager
async def open_remote_team(url: str, team: str) -> AsyncIterator["TeamOperations"]:
    """Yield the operations of a team, sent to the server at that address."""
    from mneme.team_operations import TeamOperations  # noqa: PLC0415  (memories need none of it)

    async with _client(url) as client:
        yield cast(TeamOperations, _Remote(client, TeamOperations, "teams", team=team))


def _client(url: str) -> httpx.AsyncClient:
    headers = {"x-api-key": key} if (key := api_key()) else {}
    return httpx.AsyncClient(base_url=url, headers=headers, timeout=PATIENCE)


class _Remote:
    """Send whatever operation is called; its signature and its result are those of its kind."""

    def __init__(
        self, client: httpx.AsyncClient, kind: type[Remote], route: str, *, user: str = "", team: str = ""
    ) -> None:
        self._client, self._kind, self._route = client, kind, route
        self.user, self.team = user, team

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        signature = inspect.signature(getattr(self._kind, name))

        async def call(*args: Any, **kwargs: Any) -> Any:
            arguments = dict(signature.bind(self, *args, **kwargs).arguments)
            del arguments["self"]
            asked = {"user": self.user, "team": self.team, "arguments": arguments}
            body = TypeAdapter(dict[str, Any]).dump_json({each: asked[each] for each in asked if asked[each]})
            answer = await self._client.post(f"/mneme/{self._route}/{name}", content=body)
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
