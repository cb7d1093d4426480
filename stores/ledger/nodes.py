"""Requests to the nodes of a Qdrant server: to one of them, and to the next where that one is gone.

Every request of an index can be sent twice: what is older never replaces what is newer, all else ends in the
same state.
"""

import time
from collections.abc import Callable
from typing import TypeVar

import httpx
from qdrant_client import QdrantClient
from qdrant_client.common.client_exceptions import ResourceExhaustedResponse
from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse

from mneme.core.errors import StorageFailure
from mneme.stores.ledger.addresses import Address

T = TypeVar("T")
Request = Callable[[QdrantClient], T]
TIMEOUT = 30
PAUSE = 0.3
"""Seconds before another node is asked: meanwhile the nodes notice that one of them is gone."""
READY_SECONDS = 3
"""The longest that a node may take to say that it is ready."""
ROUNDS = 4
"""How often each node of several is asked."""
SILENT = (ResponseHandlingException, httpx.HTTPError, OSError)


class Nodes:
    """The clients of a server's nodes; they block, and are safe from any thread."""

    def __init__(self, address: Address, api_key: str) -> None:
        self._address, self._api_key = address, api_key
        self._clients: dict[int, QdrantClient] = {}
        self._current = 0

    @property
    def url(self) -> str:
        """Return the address of the node that is asked now."""
        return self._address.urls[self._current]

    def choose(self) -> None:
        """Begin with the first node that is ready: one that came back just now has not caught up yet."""
        if len(self._address.urls) > 1 and not self._is_ready(self._current):
            self._go_on(self._current)

    def call(self, request: Request[T]) -> T:
        """Return the answer to a request, of the first node that gives one. Raises StorageFailure."""
        several = len(self._address.urls) > 1
        for left in reversed(range(ROUNDS * len(self._address.urls) if several else 1)):
            asked = self._current
            try:
                return request(self._client(asked))
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
            time.sleep(PAUSE)
            self._go_on(asked)
        raise AssertionError("the last attempt returns or raises")

    def close(self) -> None:
        while self._clients:
            self._clients.popitem()[1].close()

    def _go_on(self, asked: int) -> None:
        """Ask the next node that is ready from now on, unless another request has moved on already."""
        count = len(self._address.urls)
        for number in [(asked + step) % count for step in range(1, count + 1)]:
            if self._current != asked:
                return
            if self._is_ready(number):
                self._current = number
                return

    def _is_ready(self, number: int) -> bool:
        """Ask whether a node is up and knows what was written while it was not; this needs no key."""
        url = "/".join(filter(None, (self._address.urls[number], self._address.prefix, "readyz")))
        try:
            return httpx.get(url, timeout=READY_SECONDS).is_success
        except httpx.HTTPError:
            return False

    def _client(self, number: int) -> QdrantClient:
        if number not in self._clients:
            self._clients[number] = QdrantClient(
                url=self._address.urls[number],
                prefix=self._address.prefix,
                api_key=self._api_key or None,
                timeout=TIMEOUT,
                check_compatibility=False,  # the index does, with an error
            )
        return self._clients[number]

    def _refused(self, refusal: UnexpectedResponse) -> StorageFailure:
        return StorageFailure(
            f"The Qdrant server at {self.url} refused: {refusal.status_code} {_reason(refusal)}.",
            "Check MNEME_LEDGER_API_KEY." if refusal.status_code in (401, 403) else "See its log.",
        )

    def _silent(self, failure: Exception) -> StorageFailure:
        where = ", ".join(self._address.urls)
        return StorageFailure(
            f"The Qdrant server at {where} does not answer: {failure}.", "Start it, or check MNEME_INDEX."
        )


def _reason(refusal: UnexpectedResponse) -> str:
    """Return what the server, or a proxy before it, says of a refusal."""
    try:
        return str(refusal.structured()["status"]["error"])
    except (ValueError, LookupError, TypeError):
        return refusal.reason_phrase
