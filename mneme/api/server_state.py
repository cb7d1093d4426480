"""What a LangGraph server keeps of threads beside their checkpoints, seen by whoever erases."""

from collections.abc import Collection, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from mneme.stores.checkpoints.erasing import Eraser


class ServerState(Protocol):
    """Rows of threads and runs: in this process, which is the server, or in files that servers left."""

    async def owners(self) -> Mapping[str, str]:
        """Return whose each thread is, by its id."""

    def quiet(
        self, threads: Collection[str], background: Collection[str]
    ) -> AbstractAsyncContextManager[None]:
        """See that nothing runs on these threads meanwhile; what runs in the background goes on afterwards.

        Raises Conflict where a reply does not end.
        """

    async def delete(self, threads: Collection[str]) -> list[str]:
        """Delete all that is kept of these threads; return the files where that cannot be done, and why."""

    async def erase(self, threads: Collection[str], eraser: Eraser) -> list[str]:
        """Take what is erased out of all that is kept of these threads; return as `delete` does."""
