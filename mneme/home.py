"""Open the ledger that the settings name, and find the server that owns it where one does."""

import asyncio
import os
import urllib.request
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from pydantic import BaseModel
from tenacity import AsyncRetrying, retry_if_exception_type, stop_after_delay, wait_fixed

from mneme.errors import LedgerInUse
from mneme.operations import Kind
from mneme.settings import settings
from models.embedders import open_embedder
from stores.folder import OWNER
from stores.ledger import Ledger, open_ledger

ANNOUNCEMENT = "mneme.server"
MOMENT = 3
"""Seconds to wait for another command that has the ledger for a moment."""


class Announcement(BaseModel):
    """The server that owns an embedded ledger, written into the ledger's folder while it runs."""

    url: str
    pid: int


async def open_own_ledger() -> Ledger:
    """Open the ledger with the embedder of the settings. Raises LedgerInUse where another process has it."""
    embedder = await open_embedder(settings().embedder)
    key = settings().ledger_api_key.get_secret_value()
    return await open_ledger(settings().ledger_location, embedder, api_key=key)


@asynccontextmanager
async def announced(url: str) -> AsyncIterator[None]:
    """Tell other processes where the owner of the embedded ledger can be reached."""
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
async def open_operations(kind: type[Kind], owner: str) -> AsyncIterator[Kind]:
    """Open what may be done with an owner's stored things: here, or through the server with the ledger."""
    found = await open_or_find_server()
    try:
        async with operations_at(found, kind, owner) as operations:
            yield operations
    finally:
        if isinstance(found, Ledger):
            await found.close()


@asynccontextmanager
async def operations_at(place: Ledger | str, kind: type[Kind], owner: str) -> AsyncIterator[Kind]:
    """Open what may be done with an owner's stored things in a ledger, or by the server at an address."""
    if isinstance(place, Ledger):
        yield kind(place, owner)
        return
    from mneme.remote import open_remote  # noqa: PLC0415  (an HTTP client is slow to import)

    async with open_remote(place, kind, owner) as operations:
        yield operations


async def open_or_find_server() -> Ledger | str:
    """Open the ledger, or return the address of the server that owns it.

    Raises LedgerInUse where another process that serves nobody keeps it.
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
                return await open_own_ledger()
            except LedgerInUse:
                if url := await asyncio.to_thread(running_server):
                    return url
                raise
    raise AssertionError("unreachable: the last attempt returns or raises")


def running_server() -> str | None:
    """Return the address of the server that has announced itself as the ledger's owner, where it answers."""
    file = _announcement()
    if file is None:
        return None
    try:
        told = Announcement.model_validate_json(file.read_bytes())
        if str(told.pid) != (file.parent / OWNER).read_text():
            return None  # left behind by a server that was killed; another process owns the ledger now
        url = told.url
        with urllib.request.urlopen(f"{url}/ok", timeout=5) as answer:  # noqa: S310  (our own address)
            return url if answer.status == 200 else None
    except (OSError, ValueError):  # no such file, nobody there, or not an announcement
        return None


def _announcement() -> Path | None:
    location = settings().ledger_location
    return None if location.startswith(("http://", "https://")) else Path(location) / ANNOUNCEMENT
