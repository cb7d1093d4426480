"""Open the ledger of the settings, or find the running server that has it open."""

import asyncio
import os
import urllib.request
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from pydantic import BaseModel
from tenacity import AsyncRetrying, retry_if_exception_type, stop_after_delay, wait_fixed

from mneme.api.memories import Kind
from mneme.core.errors import LedgerInUse
from mneme.core.settings import settings
from mneme.models.embedding.embedders import open_embedder
from mneme.stores.ledger.folder import OWNER
from mneme.stores.ledger.ledger import Ledger, open_ledger

ANNOUNCEMENT = "mneme.server"
MOMENT = 3
"""Seconds to wait for another command that has the ledger open."""


class Announcement(BaseModel):
    """A file in the ledger's folder that names the running server which has the ledger open."""

    url: str
    pid: int


async def open_own_ledger(*, reading: bool = False) -> Ledger:
    """Open the ledger with the embedder of the settings. Raises LedgerInUse."""
    embedder = await open_embedder(settings().embedder)
    key = settings().ledger_api_key.get_secret_value()
    return await open_ledger(settings().ledger_location, embedder, api_key=key, reading=reading)


@asynccontextmanager
async def announced(url: str) -> AsyncIterator[None]:
    """Write the server's address into the ledger's folder while the server runs."""
    file = _announcement()
    if file is None:
        yield
        return
    text = Announcement(url=url, pid=os.getpid()).model_dump_json()
    await asyncio.to_thread(file.write_text, text)
    try:
        yield
    finally:
        await asyncio.to_thread(file.unlink, missing_ok=True)


@asynccontextmanager
async def open_operations(kind: type[Kind], owner: str, *, reading: bool = False) -> AsyncIterator[Kind]:
    """Open operations on an owner's data: in this process, or on the server that has the ledger open.

    Whoever is only `reading` can do so on a full or read-only disk, too.
    """
    found = await open_or_find_server(reading=reading)
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


async def open_or_find_server(*, reading: bool = False) -> Ledger | str:
    """Open the ledger, or return the address of the server that has it open.

    Raises LedgerInUse where a process that is no server has it open.
    """
    patience = AsyncRetrying(
        retry=retry_if_exception_type(LedgerInUse),
        stop=stop_after_delay(MOMENT),
        wait=wait_fixed(0.1),
        reraise=True,
    )
    async for attempt in patience:
        with attempt:
            try:
                return await open_own_ledger(reading=reading)
            except LedgerInUse:
                if url := await asyncio.to_thread(running_server):
                    return url
                raise
    raise AssertionError("unreachable: the last attempt returns or raises")


def running_server() -> str | None:
    """Return the address of the server that has the ledger open, if it answers."""
    file = _announcement()
    if file is None:
        return None
    try:
        found = Announcement.model_validate_json(file.read_bytes())
        if str(found.pid) != (file.parent / OWNER).read_text():
            return None  # left by a server that was killed; another process has the ledger open now
        url = found.url
        with urllib.request.urlopen(f"{url}/ok", timeout=5) as answer:  # noqa: S310  (our own address)
            return url if answer.status == 200 else None
    except (OSError, ValueError):  # no such file, nobody there, or not an announcement
        return None


def _announcement() -> Path | None:
    location = settings().ledger_location
    return None if location.startswith(("http://", "https://")) else Path(location) / ANNOUNCEMENT
