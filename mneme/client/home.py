"""Open the ledger of the settings, or find the running server that has it open."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from mneme.api.operation import Kind
from mneme.client.announcement import running_server
from mneme.core.settings import settings
from mneme.models.embedding.embedders import open_embedder
from mneme.stores.ledger.ledger import Ledger, open_ledger


async def open_own_ledger(*, reading: bool = False, embedding: bool = True) -> Ledger:
    """Open the ledger with the embedder of the settings, loaded for `embedding`."""
    embedder = await open_embedder(settings().embedder, loaded=embedding)
    key = settings().ledger_api_key.get_secret_value()
    return await open_ledger(settings().ledger_location, embedder, api_key=key, reading=reading)


@asynccontextmanager
async def open_operations(
    kind: type[Kind], owner: str, *, reading: bool = False, searching: bool = False
) -> AsyncIterator[Kind]:
    """Open operations on an owner's data: in this process, or on the server that has the ledger open.

    Whoever is only `reading` can do so on a full or read-only disk, too, and loads no embedder, unless it is
    `searching`.
    """
    found = await open_or_find_server(reading=reading, searching=searching)
    try:
        async with operations_at(found, kind, owner) as operations:
            yield operations
    finally:
        if isinstance(found, Ledger):
            await found.close()


@asynccontextmanager
async def operations_at(place: Ledger | str, kind: type[Kind], owner: str) -> AsyncIterator[Kind]:
    """Open operations on an owner's data: in an open ledger, or on the server at an address."""
    if isinstance(place, Ledger):
        yield kind(place, owner)
        return
    from mneme.client.remote import open_remote  # noqa: PLC0415  (an HTTP client is slow to import)

    async with open_remote(place, kind, owner) as operations:
        yield operations


async def open_or_find_server(*, reading: bool = False, searching: bool = False) -> Ledger | str:
    """Return the address of the server that has the ledger open, or open it; see `open_operations`."""
    if url := await asyncio.to_thread(running_server):
        return url
    return await open_own_ledger(reading=reading, embedding=searching or not reading)
