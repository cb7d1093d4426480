"""The two steps of a write on a server: a claim, and its settling; `server.py` says why there are two."""

from collections.abc import Mapping
from typing import Any

from qdrant_client import models

from mneme.stores.ledger.engine import Entry, Payload
from mneme.stores.ledger.server_collection import STRONG, Collection
from mneme.stores.ledger.server_connection import Gone
from mneme.stores.ledger.server_points import claim_point, head_operation

SETTLED_AT_ONCE = 256


class Claims:
    """The claims of a collection, one's own and those that others left."""

    def __init__(self, collection: Collection) -> None:
        self._collection = collection

    async def claim(self, entries: Mapping[int, Entry]) -> list[int]:
        """Insert the version points, settle those that are there now, and return which of them are ours."""
        claims = [claim_point(claim, entry) for entry in entries.values() for claim in entry.claims]
        if not claims:
            return []
        name, mode = self._collection.name, models.UpdateMode.INSERT_ONLY
        await self._collection.call(lambda client: client.upsert(name, claims, update_mode=mode, **STRONG))
        seen = await self._collection.read([str(claim.id) for claim in claims])
        await self.settle(seen)
        return [
            number
            for number, entry in entries.items()
            if all(seen.get(c.id, {}).get("event") == c.payload["event"] for c in entry.claims)
        ]

    async def settle_all(self) -> None:
        """Settle whatever claims are open, those of writers that were killed."""
        name = self._collection.name
        pending = models.Filter(
            must=[models.FieldCondition(key="pending", match=models.MatchValue(value=True))]
        )
        while True:
            found, _ = await self._collection.call(
                lambda client: client.scroll(name, pending, limit=SETTLED_AT_ONCE, with_payload=True)
            )
            if not found:
                return
            await self.settle({str(record.id): record.payload or {} for record in found})

    async def settle(self, claims: Mapping[str, Payload]) -> None:
        """Carry out the intents of claims; a head that is newer already stays.

        A claim that is forgotten meanwhile has none: it is looked for before its head is written.
        """
        while open_ := {point: payload for point, payload in claims.items() if "intent" in payload}:
            try:
                await self._carry_out(open_)
            except Gone:
                claims = await self._collection.read(list(open_))
            else:
                return

    async def _carry_out(self, open_: Mapping[str, Payload]) -> None:
        there = models.SetPayload(payload={}, points=list(open_))
        operations: list[Any] = [models.SetPayloadOperation(set_payload=there)]
        operations += [head_operation(payload) for payload in open_.values()]
        receipts = [
            models.PointStruct(id=receipt, vector={}, payload={"version": version})
            for payload in open_.values()
            for receipt, version in payload["intent"]["receipts"]
        ]
        if receipts:
            operations.append(models.UpsertOperation(upsert=models.PointsList(points=receipts)))
        done = models.DeletePayload(keys=["intent", "pending"], points=list(open_))
        name, settled = self._collection.name, models.DeletePayloadOperation(delete_payload=done)
        await self._collection.call(
            lambda client: client.batch_update_points(name, [*operations, settled], **STRONG)
        )
