"""The files that servers left behind: `langgraph dev` writes its threads and runs to `.langgraph_api`.

It does so every ten seconds, in its working directory. A server that still runs would write the old text
again.
"""

import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from mneme.api import inert_pickle, server_tables
from mneme.api.copies import noted
from mneme.core.private import make_private_file
from mneme.stores.checkpoints.erasing import Eraser

FOLDER = ".langgraph_api"
FILE = Path(FOLDER, ".langgraph_ops.pckl")
CONFIG = "langgraph.json"
FRESH = 15
"""Seconds after which a server that runs would have written its file again."""


class ServerFiles:
    """The files of servers that do not run any more."""

    async def owners(self) -> Mapping[str, str]:
        found: dict[str, str] = {}
        for _, tables in await asyncio.to_thread(_readable):
            found |= server_tables.owners(tables)
        return found

    @asynccontextmanager
    async def quiet(self, threads: Collection[str], background: Collection[str]) -> AsyncIterator[None]:
        """Do nothing: whoever has the ledger open without a server starts no run meanwhile."""
        yield

    async def delete(self, threads: Collection[str]) -> list[str]:
        return await asyncio.to_thread(_change, lambda tables: server_tables.delete(tables, threads))

    async def erase(self, threads: Collection[str], eraser: Eraser) -> list[str]:
        return await asyncio.to_thread(_change, lambda tables: server_tables.erase(tables, threads, eraser))


def _files() -> dict[Path, int]:
    """Return the files of all servers that are known, with their last process; 0 where that is not known.

    A server of an earlier version was not noted. It was most likely started beside `langgraph.json`.
    """
    root = Path(__file__).parents[2]
    places = {folder: 0 for folder in (Path.cwd(), root) if (folder / CONFIG).exists()}
    places |= {Path(each.folder): each.pid for each in noted().servers}
    return {folder / FILE: pid for folder, pid in places.items() if (folder / FILE).exists()}


def _readable() -> list[tuple[Path, dict[str, Any]]]:
    found = []
    for file in _files():
        try:
            found.append((file, inert_pickle.load(file.read_bytes())))
        except (OSError, ValueError):  # it is named when something is to be erased from it
            continue
    return found


def _change(change: Callable[[dict[str, Any]], bool]) -> list[str]:
    """Change the tables in each file; return which could not be changed, and why."""
    left = []
    for file, pid in _files().items():
        try:
            tables = inert_pickle.load(file.read_bytes())
            if not change(tables):
                continue
            if _runs(file, pid):
                left.append(f"{file}: a server may be running there; stop it, then do this again")
            else:
                replace(file, inert_pickle.dump(tables))
        except (OSError, ValueError) as error:
            left.append(f"{file}: {error}; delete it while no server runs there")
    return left


def _runs(file: Path, pid: int) -> bool:
    """Tell whether a server may be running there; of a process that is not known it is assumed."""
    if time.time() - file.stat().st_mtime > FRESH:
        return False
    try:
        os.kill(pid, 0)  # 0, for one that is not known, is this process
    except OSError:
        return False
    return True


def replace(file: Path, data: bytes) -> None:
    """Put a new file in the place of the old one, whole or not at all."""
    draft = file.with_name(f"{file.name}.{os.getpid()}")
    make_private_file(draft)
    with draft.open("wb") as opened:
        opened.write(data)
        opened.flush()
        os.fsync(opened.fileno())
    draft.replace(file)
