"""Rebuilding a ledger's vectors with another embedder; a crash at any moment leaves the old ledger.

Everything is copied into a new generation (a folder, or a collection), which takes the old one's place
in one step at the end.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from importlib import import_module
from typing import Any, Protocol

from mneme.core.errors import MnemeError, needs
from mneme.models.embedding.absent import Absent
from mneme.models.embedding.embedders import Embedder, vectors_of
from mneme.stores.ledger.edge_rebuild import EdgeRebuild
from mneme.stores.ledger.engine import Payload, Point
from mneme.stores.ledger.ledger import is_server
from mneme.stores.ledger.records import Version
from mneme.stores.ledger.words import words_of

Progress = Callable[[int], None]


class Rebuild(Protocol):
    """The building of a new generation."""

    def pages(self) -> AsyncIterator[Mapping[str, Payload]]:
        """Go through every point of the old generation."""
        ...

    async def add(self, points: Sequence[Point]) -> None: ...

    async def switch(self) -> None:
        """Put the new generation in the old one's place."""
        ...

    async def close(self) -> None: ...


async def reembed(location: str, embedder: Embedder, *, api_key: str = "", progress: Progress) -> int:
    """Rebuild a ledger for this embedder; return the number of texts that were embedded.

    The embedded ledger must not be open anywhere; on a server, stop the writers first. `progress`
    is called with the number of points copied so far. Raises LedgerInUse, LedgerMismatch, StorageFailure, and
    MnemeError where the embedder is absent.
    """
    if isinstance(embedder, Absent):
        raise MnemeError(*embedder.missing)
    rebuild = await _begin(location, embedder, api_key)
    copied = embedded = 0
    try:
        async for page in rebuild.pages():
            points = await _with_vectors(page, embedder)
            await rebuild.add(points)
            copied += len(points)
            embedded += sum(point.dense is not None for point in points)
            progress(copied)
        await rebuild.switch()
    finally:
        await rebuild.close()
    return embedded


async def _begin(location: str, embedder: Embedder, api_key: str) -> Rebuild:
    if not is_server(location):
        return await asyncio.to_thread(EdgeRebuild.begin, location, embedder.name, embedder.dimension)
    with needs("A Qdrant server", "qdrant"):
        module: Any = await asyncio.to_thread(import_module, "mneme.stores.ledger.server_rebuild")
    rebuild: Rebuild = await module.ServerRebuild.begin(
        location, embedder.name, embedder.dimension, api_key=api_key
    )
    return rebuild


async def _with_vectors(page: Mapping[str, Payload], embedder: Embedder) -> list[Point]:
    texts = {point: text for point, payload in page.items() if (text := _searched(payload))}
    vectors = await vectors_of(embedder, texts.values())
    return [
        Point(point, payload, vectors[texts[point]], words_of(texts[point]))
        if point in texts
        else Point(point, payload)
        for point, payload in page.items()
    ]


def _searched(payload: Payload) -> str:
    """Return the text of a live head; empty for every other point."""
    if "n" not in payload:
        return ""
    head = Version.model_validate_json(payload["event"])
    return head.text if head.live and head.text.strip() else ""
