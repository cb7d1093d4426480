"""Requests to the nodes of a Qdrant server: to one of them, and to the next where that one is gone.

Every request of an index can be sent twice: what is older never replaces what is newer, all else ends in the
same state.
"""

import time
from typing import Any

import httpx

from mneme.core.errors import StorageFailure
from mneme.stores.ledger.addresses import Address

TIMEOUT = 30
PAUSE = 0.3
"""Seconds before another node is asked: meanwhile the nodes notice that one of them is gone."""
READY_SECONDS = 3
"""The longest that a node may take to say that it is ready."""
ROUNDS = 4
"""How often each node of several is asked."""


class Nodes:
    """A client of a server's nodes; it blocks, and is safe from any thread."""

    def __init__(self, address: Address, api_key: str) -> None:
        self._urls = address.urls
        self._client = httpx.Client(
            headers={"api-key": api_key} if api_key else {},
            timeout=TIMEOUT,
            verify=any(url.startswith("https:") for url in address.urls),  # certificates take 20 ms to load
        )
        self._current = 0

    def choose(self) -> None:
        """Begin with the first node that is ready: one that came back just now has not caught up yet."""
        if len(self._urls) > 1 and not self._is_ready(self._current):
            self._go_on(self._current)

    def call(self, method: str, path: str, body: Any = None, **params: str) -> Any:
        """Return the answer to a request, of the first node that gives one. Raises StorageFailure."""
        for left in reversed(range(ROUNDS * len(self._urls) if len(self._urls) > 1 else 1)):
            asked = self._current
            try:
                answer = self._client.request(method, self._urls[asked] + path, json=body, params=params)
                if answer.is_success:
                    return answer.json()
                if not left or answer.status_code < 500:
                    raise _refused(self._urls[asked], answer)
            except (httpx.HTTPError, OSError, ValueError) as failure:
                if not left:
                    raise StorageFailure(
                        f"The Qdrant server at {', '.join(self._urls)} does not answer: {failure}.",
                        "Start it, or check MNEME_INDEX.",
                    ) from failure
            time.sleep(PAUSE)
            self._go_on(asked)
        raise AssertionError("the last attempt returns or raises")

    def close(self) -> None:
        self._client.close()

    def _go_on(self, asked: int) -> None:
        """Ask the next node that is ready from now on, unless another request has moved on already."""
        count = len(self._urls)
        for number in [(asked + step) % count for step in range(1, count + 1)]:
            if self._current != asked:
                return
            if self._is_ready(number):
                self._current = number
                return

    def _is_ready(self, number: int) -> bool:
        """Ask whether a node is up and knows what was written while it was not; this needs no key."""
        try:
            return self._client.get(f"{self._urls[number]}/readyz", timeout=READY_SECONDS).is_success
        except httpx.HTTPError:
            return False


def _refused(url: str, answer: httpx.Response) -> StorageFailure:
    """Return the error for what the server, or a proxy before it, says of a refusal."""
    try:
        reason = str(answer.json()["status"]["error"])
    except (ValueError, LookupError, TypeError):
        reason = answer.reason_phrase
    if answer.status_code == httpx.codes.TOO_MANY_REQUESTS:
        wait = answer.headers.get("retry-after", "some")
        return StorageFailure(
            f"The Qdrant server at {url} takes no more requests now: {reason}.",
            f"Try again in {wait} s, or raise its limits.",
        )
    return StorageFailure(
        f"The Qdrant server at {url} refused: {answer.status_code} {reason}.",
        "Check MNEME_LEDGER_API_KEY." if answer.status_code in (401, 403) else "See its log.",
    )
