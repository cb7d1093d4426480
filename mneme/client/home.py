"""Open the ledger of the settings, or find the running server that has it open."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

from mneme.api.operation import Kind
from mneme.client.announcement import running_server
from mneme.client.waiting import in_turn
from mneme.core.settings import settings
from mneme.models.embedding.embedders import open_embedder
from mneme.stores.ledger.beside import open_beside
from mneme.stores.ledger.ledger import Ledger, open_ledger


async def open_own_ledger(*, reading: bool = False, embedding: bool = True) -> Ledger:
    """Open the ledger with the embedder of the settings, loaded for `embedding`. Raises LedgerInUse."""
    embedder = await open_embedder(settings().embedder, loaded=embedding)
    key = settings().ledger_api_key.get_secret_value()
    return await open_ledger(settings().ledger_location, embedder, api_key=key, reading=reading)


@asynccontextmanager
async def open_operations(
    kind: type[Kind], owner: str, *, reading: bool = False, searching: bool = False
) -> AsyncIterator[Kind]:
    """Open operations on an owner's data: in this process, or on the server that has the ledger open.

    Whoever is only `reading` can do so on a full or read-only disk, too, and beside another process, unless
    it is `searching` by vectors.
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
    """Open the ledger, or return the address of the server that has it open; see `open_operations`.

    Raises LedgerInUse where a process that is no server has it open for longer than the settings say to wait.
    """
    embedding = searching or not reading
    if embedding and await asyncio.to_thread(running_server) is None:  # loaded before its turn: others wait
        await open_embedder(settings().embedder)
    beside = None if embedding else partial(open_beside, Path(settings().ledger_location).expanduser())
    return await in_turn(partial(open_own_ledger, reading=reading, embedding=embedding), beside)
