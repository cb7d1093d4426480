"""Connections to a Qdrant server: its address, a client for each event loop, its failures as errors."""

import asyncio
import weakref
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple, TypeVar
from urllib.parse import parse_qs, urlsplit

from httpx import HTTPError
from qdrant_client import AsyncQdrantClient
from qdrant_client.common.client_exceptions import ResourceExhaustedResponse
from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse

from mneme.core.errors import BadInput, StorageFailure

T = TypeVar("T")
MEMORY = ":memory:"
TIMEOUT = 30


class Address(NamedTuple):
    """Where a server is, and how a new collection is laid out on it."""

    url: str
    prefix: str | None
    collection: str
    shards: int | None
    replicas: int | None


def address_of(location: str) -> Address:
    """Read the address of a ledger on a server."""
    parts = urlsplit(location)
    options = {name: values[-1] for name, values in parse_qs(parts.query).items()}
    unknown = options.keys() - {"collection", "shards", "replicas"}
    counts = {name: options.get(name) for name in ("shards", "replicas")}
    if unknown or not all(count is None or (count.isdigit() and int(count)) for count in counts.values()):
        raise BadInput(
            f"The ledger's address {location!r} has unknown or invalid options.",
            "There are collection=NAME, shards=N and replicas=N.",
        )
    if location == MEMORY:
        return Address(MEMORY, None, "mneme", None, None)
    url = f"{parts.scheme}://{parts.netloc}"
    shards, replicas = (int(count) if count else None for count in counts.values())
    return Address(url, parts.path.strip("/") or None, options.get("collection", "mneme"), shards, replicas)


class Gone(StorageFailure):
    """The server misses a point that a request names."""


class Connection:
    """A server, asked from any event loop."""

    def __init__(self, address: Address, api_key: str) -> None:
        self.address, self._api_key = address, api_key
        self._clients: weakref.WeakKeyDictionary[Any, AsyncQdrantClient] = weakref.WeakKeyDictionary()
        self._memory = AsyncQdrantClient(MEMORY) if address.url == MEMORY else None

    @property
    def is_memory(self) -> bool:
        """Whether it is the client's own in-memory engine, which has no indexes."""
        return self._memory is not None

    async def call(self, operation: Callable[[AsyncQdrantClient], Awaitable[T]]) -> T:
        """Do an operation of the client. Raises StorageFailure."""
        try:
            return await operation(self._client())
        except UnexpectedResponse as refusal:
            kind = Gone if "No point with id" in _reason(refusal) else StorageFailure
            raise kind(
                f"The Qdrant server at {self.address.url} refused: {refusal.status_code} {_reason(refusal)}.",
                "Check MNEME_LEDGER_API_KEY." if refusal.status_code in (401, 403) else "See its log.",
            ) from refusal
        except ResourceExhaustedResponse as busy:
            raise StorageFailure(
                f"The Qdrant server at {self.address.url} takes no more requests now: {busy}.",
                f"Try again in {busy.retry_after_s} s, or raise its limits.",
            ) from busy
        except (ResponseHandlingException, HTTPError, OSError) as failure:
            raise StorageFailure(
                f"The Qdrant server at {self.address.url} does not answer: {failure}.",
                "Start it, or check MNEME_LEDGER.",
            ) from failure

    async def close(self) -> None:
        """Close this loop's connections; those of other loops end with them."""
        client = self._memory or self._clients.pop(asyncio.get_running_loop(), None)
        if client is not None:
            await client.close()

    def _client(self) -> AsyncQdrantClient:
        """Return this event loop's client: connections belong to the loop that made them."""
        if self._memory is not None:
            return self._memory
        loop = asyncio.get_running_loop()
        if loop not in self._clients:
            self._clients[loop] = AsyncQdrantClient(
                url=self.address.url,
                prefix=self.address.prefix,
                api_key=self._api_key or None,
                timeout=TIMEOUT,
                check_compatibility=False,  # `Collection.check_version` does, with an error
            )
        return self._clients[loop]


def _reason(refusal: UnexpectedResponse) -> str:
    """Return what the server, or a proxy before it, says of a refusal."""
    try:
        return str(refusal.structured()["status"]["error"])
    except (ValueError, LookupError, TypeError):
        return refusal.reason_phrase
