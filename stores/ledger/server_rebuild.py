"""A server's ledger built anew, with another embedder."""

from collections.abc import AsyncIterator, Sequence
from operator import methodcaller
from typing import Any

from qdrant_client import models

from mneme.core.errors import LedgerMismatch
from mneme.stores.ledger.addresses import address_of
from mneme.stores.ledger.engine import Payload, Point
from mneme.stores.ledger.manifest import Manifest
from mneme.stores.ledger.server_claims import Claims
from mneme.stores.ledger.server_collection import MANIFEST_ID, ORDERED, READ_AT_ONCE, Collection
from mneme.stores.ledger.settling import struct


class ServerRebuild:
    """The building of a new generation of a server's ledger; start it with `begin`."""

    def __init__(self, collection: Collection, old: str, manifest: Manifest) -> None:
        self._collection, self._old, self._manifest = collection, old, manifest
        self._new = f"{collection.name}-{manifest.generation:06d}"

    @classmethod
    async def begin(
        cls, location: str, embedder: str, dimension: int, *, api_key: str = ""
    ) -> "ServerRebuild":
        """Find the ledger, whatever its embedder. Raises LedgerMismatch, StorageFailure."""
        collection = Collection(address_of(location), api_key)
        old = await collection.resolve()
        if old is None:
            raise LedgerMismatch(f"There is no ledger at {location}.")
        manifest = await collection.read_manifest()
        await Claims(collection).settle_all()
        update = {"embedder": embedder, "dimension": dimension, "generation": manifest.generation + 1}
        rebuild = cls(collection, old, manifest.model_copy(update=update))
        await collection.call(methodcaller("delete_collection", rebuild._new))  # left by a crash
        await collection.make_generation(rebuild._new, rebuild._manifest)
        return rebuild

    async def pages(self) -> AsyncIterator[dict[str, Payload]]:
        following: Any = None
        while True:
            scroll = methodcaller(
                "scroll", self._old, limit=READ_AT_ONCE, offset=following, with_payload=True
            )
            records, following = await self._collection.call(scroll)
            yield {str(record.id): record.payload or {} for record in records if record.id != MANIFEST_ID}
            if following is None:
                return

    async def add(self, points: Sequence[Point]) -> None:
        if points:
            new = [struct(point) for point in points]
            await self._collection.call(methodcaller("upsert", self._new, new, **ORDERED))

    async def switch(self) -> None:
        name = self._collection.name
        swap = [
            models.DeleteAliasOperation(delete_alias=models.DeleteAlias(alias_name=name)),
            models.CreateAliasOperation(
                create_alias=models.CreateAlias(collection_name=self._new, alias_name=name)
            ),
        ]
        await self._collection.call(methodcaller("update_collection_aliases", swap))
        await self._collection.call(methodcaller("delete_collection", self._old))

    async def close(self) -> None:
        await self._collection.nodes.close()
