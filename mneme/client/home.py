"""Open the ledger of the settings, or the way to the running server that has it open."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Union, cast

from mneme.api.operation import USER, Kind
from mneme.client.announcement import running_server
from mneme.core.settings import settings
from mneme.models.embedding.embedders import open_embedder
from mneme.stores.ledger.ledger import Ledger, open_ledger

if TYPE_CHECKING:  # slow to import
    import httpx

Place = Union[Ledger, "httpx.AsyncClient"]
"""An open ledger, or a client of the server that has it open."""


async def open_own_ledger(*, reading: bool = False, embedding: bool = True) -> Ledger:
    """Open the ledger with the embedder of the settings, loaded for `embedding`."""
    embedder = await open_embedder(settings().embedder, loaded=embedding)
    key = settings().ledger_api_key.get_secret_value()
    return await open_ledger(settings().ledger_location, embedder, api_key=key, reading=reading)


@asynccontextmanager
async def opened(*, reading: bool = False, searching: bool = False) -> AsyncIterator[Place]:
    """Open the ledger here, or a client of the server that has it open.

    Whoever is only `reading` can do so on a full or read-only disk, too, and loads no embedder, unless it is
    `searching`.
    """
    if url := await asyncio.to_thread(running_server):
        from mneme.client.remote import client_of  # noqa: PLC0415  (an HTTP client is slow to import)

        async with client_of(url) as client:
            yield client
        return
    ledger = await open_own_ledger(reading=reading, embedding=searching or not reading)
    try:
        yield ledger
    finally:
        await ledger.close()


def operations_at(place: Place, kind: type[Kind], owner: str, caller: str = USER, **more: Any) -> Kind:
    """Return operations on an owner's data, in an open ledger (given `more`), or on its server."""
    if isinstance(place, Ledger):
        return kind(place, owner, caller, **more)
    from mneme.client.remote import Remote  # noqa: PLC0415  (an HTTP client is slow to import)

    return cast(Kind, Remote(place, kind, owner, caller))


@asynccontextmanager
async def open_operations(
    kind: type[Kind], owner: str, *, reading: bool = False, searching: bool = False
) -> AsyncIterator[Kind]:
    """Open operations on an owner's data, as `opened` does."""
    async with opened(reading=reading, searching=searching) as place:
        yield operations_at(place, kind, owner)
