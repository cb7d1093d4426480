"""Requests to the nodes of a Qdrant server: to one of them, and to the next where that one is gone.

Every request of the ledger can be sent twice: claims are inserted only where there is nothing, heads written
only where they are older, all else ends in the same state.
"""

import asyncio
import weakref
from collections.abc import Awaitable, Callable
from typing import TypeVar

from httpx import AsyncClient, HTTPError
from qdrant_client import AsyncQdrantClient
from qdrant_client.common.client_exceptions import ResourceExhaustedResponse
from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse

from mneme.core.errors import StorageFailure
from mneme.stores.ledger.addresses import MEMORY, Address

T = TypeVar("T")
Request = Callable[[AsyncQdrantClient], Awaitable[T]]
TIMEOUT = 30
PAUSE = 0.3
"""Seconds before another node is asked: meanwhile the nodes notice that one of them is gone."""
READY_SECONDS = 3
"""The longest that a node may take to say that it is ready."""
ROUNDS = 4
"""How often each node of several is asked."""
SILENT = (ResponseHandlingException, HTTPError, OSError)


class Gone(StorageFailure):
    """The server misses a point that a request names."""


class Nodes:
    """The clients of a server's nodes; safe from any event loop and thread."""

    def __init__(self, address: Address, api_key: str) -> None:
        self._address, self._api_key = address, api_key
        self._clients: weakref.WeakKeyDictionary[object, dict[int, AsyncQdrantClient]]
        self._clients = weakref.WeakKeyDictionary()
        self._memory = AsyncQdrantClient(MEMORY) if address.urls == (MEMORY,) else None
        self._current = 0

    @property
    def in_memory(self) -> bool:
        """Tell whether this is the client's own engine, without a server."""
        return self._memory is not None

    @property
    def url(self) -> str:
        """Return the address of the node that is asked now."""
        return self._address.urls[self._current]

    async def choose(self) -> None:
        """Begin with the first node that is ready: one that came back just now has not caught up yet."""
        if len(self._address.urls) > 1 and not await self._is_ready(self._current):
            await self._go_on(self._current)

    async def call(self, request: Request[T]) -> T:
        """Return the answer to a request, of the first node that gives one. Raises StorageFailure."""
        several = len(self._address.urls) > 1
        for left in reversed(range(ROUNDS * len(self._address.urls) if several else 1)):
            asked = self._current
            try:
                return await request(self._client(asked))
            except UnexpectedResponse as refusal:
                if not left or (refusal.status_code or 0) < 500:
                    raise self._refused(refusal) from refusal
            except ResourceExhaustedResponse as busy:
                raise StorageFailure(
                    f"The Qdrant server at {self.url} takes no more requests now: {busy}.",
                    f"Try again in {busy.retry_after_s} s, or raise its limits.",
                ) from busy
            except SILENT as failure:
                if not left:
                    raise self._silent(failure) from failure
            await asyncio.sleep(PAUSE)
            await self._go_on(asked)
        raise AssertionError("the last attempt returns or raises")

    async def close(self) -> None:
        """Close this loop's connections; those of other loops end with them."""
        here = self._clients.pop(asyncio.get_running_loop(), {})
        for client in [self._memory] if self._memory else here.values():
            await client.close()

    async def _go_on(self, asked: int) -> None:
        """Ask the next node that is ready from now on, unless another request has moved on already."""
        count = len(self._address.urls)
        for number in [(asked + step) % count for step in range(1, count + 1)]:
            if self._current != asked:
                return
            if await self._is_ready(number):
                self._current = number
                return

    async def _is_ready(self, number: int) -> bool:
        """Ask whether a node is up and knows what was written while it was not; this needs no key."""
        url = "/".join(filter(None, (self._address.urls[number], self._address.prefix, "readyz")))
        try:
            async with AsyncClient(timeout=READY_SECONDS) as client:
                return (await client.get(url)).is_success
        except HTTPError:
            return False

    def _client(self, number: int) -> AsyncQdrantClient:
        """Return this event loop's client of a node: connections belong to the loop that made them."""
        if self._memory is not None:
            return self._memory
        here = self._clients.setdefault(asyncio.get_running_loop(), {})
        if number not in here:
            here[number] = AsyncQdrantClient(
                url=self._address.urls[number],
                prefix=self._address.prefix,
                api_key=self._api_key or None,
                timeout=TIMEOUT,
                check_compatibility=False,  # the engine does, with an error
            )
        return here[number]

    def _refused(self, refusal: UnexpectedResponse) -> StorageFailure:
        reason = _reason(refusal)
        kind = Gone if "No point with id" in reason else StorageFailure
        return kind(
            f"The Qdrant server at {self.url} refused: {refusal.status_code} {reason}.",
            "Check MNEME_LEDGER_API_KEY." if refusal.status_code in (401, 403) else "See its log.",
        )

    def _silent(self, failure: Exception) -> StorageFailure:
        where = ", ".join(self._address.urls)
        return StorageFailure(
            f"The Qdrant server at {where} does not answer: {failure}.", "Start it, or check MNEME_LEDGER."
        )


def _reason(refusal: UnexpectedResponse) -> str:
    """Return what the server, or a proxy before it, says of a refusal."""
    try:
        return str(refusal.structured()["status"]["error"])
    except (ValueError, LookupError, TypeError):
        return refusal.reason_phrase
