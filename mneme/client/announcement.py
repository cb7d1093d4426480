"""The announcement of a running server in the ledger's folder, by which commands find it."""

import asyncio
import os
import urllib.request
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from pydantic import BaseModel

from mneme.core.settings import settings
from mneme.stores.ledger.addresses import place_of

ANNOUNCEMENT = "mneme.server"
ANSWER_SECONDS = 5.0
"""The longest that a server may take to say that it is there."""


class Announcement(BaseModel):
    """A file in the ledger's folder that names the running server which has the ledger open."""

    url: str
    pid: int


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


def running_server(seconds: float = ANSWER_SECONDS) -> str | None:
    """Return the address of the server that has the ledger open, if it answers within so many seconds."""
    file = _announcement()
    if file is None:
        return None
    try:
        found = Announcement.model_validate_json(file.read_bytes())
        os.kill(found.pid, 0)  # left by a server that was killed, where there is no such process
        url = found.url
        with urllib.request.urlopen(f"{url}/ok", timeout=seconds) as answer:  # noqa: S310  (our own address)
            return url if answer.status == 200 else None
    except (OSError, ValueError):  # no such file, nobody there, or not an announcement
        return None


def _announcement() -> Path | None:
    folder = place_of(settings().ledger_location).folder
    return folder and folder / ANNOUNCEMENT
