"""A LangGraph server's data of threads, apart from their checkpoints, as an erasure needs it."""

from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from uuid import UUID

from mneme.api.copies import noted

SERVER_FOLDER = Path(".langgraph_api")
"""Folder of `langgraph dev`'s threads and runs, in its working directory."""


class ServerState:
    """The threads and runs of a LangGraph server; this class stands for one that does not run."""

    async def owners(self) -> Mapping[str, str]:
        """Return the owner of each thread by its id."""
        return {}

    @asynccontextmanager
    async def quiet(
        self, threads: Collection[str], background: Collection[str]
    ) -> AsyncIterator[Collection[str]]:
        """Keep these threads free of runs inside the context; yield those whose runs were stopped for it.

        Background runs continue afterwards. Processes that have the ledger open without a server start no
        run. Raises Conflict if a reply does not end.
        """
        yield ()

    async def delete(self, threads: Collection[str]) -> list[str]:
        """Delete all server data of these threads; return the files where that is impossible, and why."""
        return _files_with(threads)  # their format is LangGraph's own: they are named, not changed

    async def renew(self, threads: Collection[str]) -> list[str]:
        """Delete these threads' server data but not their checkpoints; return the same as `delete`."""
        return _files_with(threads)


def _files_with(threads: Collection[str]) -> list[str]:
    """Return the files that may contain one of these threads, and what to do. Blocks for a moment."""
    ids = [each.encode() for each in threads]
    for each in threads:
        with suppress(ValueError):  # no UUID
            # pickle writes one as a number: the lowest byte first, and no more bytes than it needs
            ids.append(UUID(each).int.to_bytes(16, "little").rstrip(b"\0"))
    folders = {Path.cwd(), *(Path(each.folder) for each in noted().servers)}
    files = [each for folder in sorted(folders) for each in sorted((folder / SERVER_FOLDER).glob("*.pckl"))]
    advice = "start the server there and do this again, or delete it"
    return [f"{file}: {advice}" for file in files if _may_hold(file, ids)]


def _may_hold(file: Path, ids: Collection[bytes]) -> bool:
    try:
        data = file.read_bytes()
    except OSError:  # not readable here: better named than missed
        return True
    return any(each in data for each in ids)
