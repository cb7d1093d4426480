"""Open the ledger of the settings, or the way to the running server that has it open.

A server announces itself in the ledger's folder, where commands find it.
"""

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Union, cast

from pydantic import BaseModel

from mneme.api.operation import BY_USER, Kind
from mneme.core.errors import Forbidden
from mneme.core.settings import settings
from mneme.models.embedding.embedders import open_embedder
from mneme.stores.ledger.addresses import place_of
from mneme.stores.ledger.ledger import Ledger, open_ledger
from mneme.stores.ledger.records import LOCAL

if TYPE_CHECKING:  # slow to import
    import httpx

log = logging.getLogger(__name__)
LANGGRAPH_SERVER, OWN_SERVER = "mneme.server", "mneme.serve"
"""The files in the ledger's folder by which a running `langgraph dev` and `mneme serve` are found."""
ANSWER_SECONDS = 5.0
"""Seconds that a server may take to answer that it is running."""
Place = Union[Ledger, "httpx.AsyncClient"]
"""An open ledger, or a client of the server that has it open."""


async def open_own_ledger(*, reading: bool = False, embedding: bool = True) -> Ledger:
    """Open the ledger with the embedder of the settings, loaded for `embedding`."""
    embedder = await open_embedder(settings().embedder, loaded=embedding)
    key = settings().ledger_api_key.get_secret_value()
    return await open_ledger(settings().ledger_location, embedder, api_key=key, reading=reading)


@asynccontextmanager
async def opened(*, reading: bool = False, searching: bool = False) -> AsyncIterator[Place]:
    """Open the ledger here, or a client of the server that commands ask.

    Whoever is only `reading` can do so on a full or read-only disk, too, and loads no embedder, unless it is
    `searching`.
    """
    server = await asyncio.to_thread(asked_server)
    async with opened_at(server, reading=reading, searching=searching) as place:
        yield place


@asynccontextmanager
async def opened_at(
    server: str | None, *, reading: bool = False, searching: bool = False
) -> AsyncIterator[Place]:
    """Open a client of the server at this address; without one the ledger here, as `opened` says."""
    if server:
        from mneme.client.remote import client_of  # noqa: PLC0415  (an HTTP client is slow to import)

        async with client_of(server) as client:
            yield client
        return
    ledger = await open_own_ledger(reading=reading, embedding=searching or not reading)
    try:
        yield ledger
    finally:
        await ledger.close()


def operations_at(place: Place, kind: type[Kind], owner: str, caller: str = BY_USER, **more: Any) -> Kind:
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


async def absent_teams(place: Place, asked: Mapping[str, Any], *, reads: bool = False) -> Sequence[str]:
    """Return the requested `team` or `teams` that have no data, and the teams that have some."""
    names = {asked.get("team"), *asked.get("teams", ())} - {None, "", LOCAL}
    if not names:
        return ()
    from mneme.api.cards import Cards  # noqa: PLC0415  (slow to import)

    known = await operations_at(place, Cards, LOCAL).teams()
    others = f" There are: {', '.join(known)}." if known else ""
    becomes = "." if reads else " yet: what is written for it makes it one of your own."
    return [f"There is no team {name}{becomes}{others}" for name in sorted(names.difference(known))]


def warn(lines: Sequence[str]) -> None:
    """Write warnings to the log, which the command line prints."""
    for line in lines:
        log.warning("%s", line)


class Announcement(BaseModel):
    """A file in the ledger's folder that names the running server which has the ledger open."""

    url: str
    pid: int
    has_keys: bool = False


@asynccontextmanager
async def announced(url: str, name: str = LANGGRAPH_SERVER) -> AsyncIterator[None]:
    """Write the server's address into the ledger's folder while the server runs."""
    file = _announcement(name)
    if file is None:
        yield
        return
    has_keys = settings().auth is not None
    text = Announcement(url=url, pid=os.getpid(), has_keys=has_keys).model_dump_json()
    await asyncio.to_thread(file.write_text, text)
    try:
        yield
    finally:
        await asyncio.to_thread(_withdraw, file, text)


def _withdraw(file: Path, text: str) -> None:
    """Remove an announcement, unless another server has replaced it."""
    with suppress(OSError):  # a file that stays does no harm: commands ask whether the server answers
        if file.read_text() == text:
            file.unlink()


def asked_server(*, for_workflows: bool = False) -> str | None:
    """Return the address of the server that commands ask: `langgraph dev`, or `mneme serve` if it has keys.

    Raises Forbidden if a key is set and no running server knows its user, or if `for_workflows` is set and
    the server runs no workflows.
    """
    if url := running_server():
        return url
    # `mneme serve` without keys is not asked: any number of processes may have a ledger open.
    url = running_server(name=OWN_SERVER, with_keys=True)
    if url and for_workflows:
        raise Forbidden(
            f"The server at {url} has keys, and runs no workflows for commands.",
            "Use its chat, REST or MCP; or start `langgraph dev` with the same MNEME_AUTH in its place.",
        )
    if url is None and settings().key.get_secret_value():
        raise Forbidden(
            "MNEME_KEY is set, and no server runs that knows whose key it is.",
            "Start the server, or unset MNEME_KEY to work on the files of this machine.",
        )
    return url


def running_server(
    seconds: float = ANSWER_SECONDS, name: str = LANGGRAPH_SERVER, with_keys: bool = False
) -> str | None:
    """Return the address of the server that has the ledger open, if it answers within `seconds`.

    With `with_keys`, only a server with keys counts.
    """
    file = _announcement(name)
    if file is None:
        return None
    try:
        found = Announcement.model_validate_json(file.read_bytes())
        if with_keys and not found.has_keys:
            return None
        os.kill(found.pid, 0)  # OSError if its process has ended, as after a kill
        url = found.url
        import urllib.request  # noqa: PLC0415  (slow to import, and seldom is there a server)

        with urllib.request.urlopen(f"{url}/ok", timeout=seconds) as answer:  # noqa: S310  (our own address)
            return url if answer.status == 200 else None
    except (OSError, ValueError):  # no such file, nobody there, or not an announcement
        return None


def _announcement(name: str) -> Path | None:
    folder = place_of(settings().ledger_location).folder
    return folder and folder / name
