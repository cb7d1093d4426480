"""The two steps of a write on a server, as `server.py` explains them: a claim, and its settling."""

from collections.abc import Mapping, Sequence, Set
from operator import methodcaller
from typing import Any

from qdrant_client import models

from mneme.core.errors import MnemeError, NotFound
from mneme.stores.ledger.engine import Entry, Payload
from mneme.stores.ledger.nodes import Gone
from mneme.stores.ledger.records import Version, tombstone_id, version_id
from mneme.stores.ledger.server_collection import ORDERED, Collection
from mneme.stores.ledger.settling import claim_struct, concluding, heads_of, lone_heads, settled, writing

SETTLED_AT_ONCE = 256


class Claims:
    """The claims of a collection, one's own and those that others left."""

    def __init__(self, collection: Collection) -> None:
        self._collection = collection

    async def claim(self, entries: Mapping[int, Entry], refused: dict[int, MnemeError]) -> list[int]:
        """Insert the version points, settle those that are there now, and return which of them are ours.

        One that is gone already was forgotten; it is not written again.
        """
        claims = [claim_struct(claim, entry) for entry in entries.values() for claim in entry.claims]
        if not claims:
            return []
        name, mode = self._collection.name, models.UpdateMode.INSERT_ONLY
        await self._collection.call(lambda client: client.upsert(name, claims, update_mode=mode, **ORDERED))
        seen = await self._collection.read([str(claim.id) for claim in claims])
        void = await self.settle(seen)
        ours: list[int] = []
        for number, entry in entries.items():
            there = [seen[claim.id]["event"] for claim in entry.claims if claim.id in seen]
            mine = there == [claim.payload["event"] for claim in entry.claims]
            if len(there) < len(entry.claims) or (mine and entry.claims[-1].id in void):
                refused[number] = _forgotten(entry.version)
            elif mine:
                ours.append(number)
        return ours

    async def settle_all(self) -> None:
        """Settle whatever claims are open, those of writers that were killed."""
        name = self._collection.name
        open_ = models.Filter(
            must=[models.FieldCondition(key="pending", match=models.MatchValue(value=True))]
        )
        while True:
            found, _ = await self._collection.call(
                lambda client: client.scroll(name, open_, limit=SETTLED_AT_ONCE, with_payload=True)
            )
            if not found:
                return
            pending = {str(record.id): record.payload or {} for record in found}
            heads = {point: payload for point, payload in pending.items() if "n" in payload}
            versions = await self._collection.read(
                [version_id(head, payload["n"]) for head, payload in heads.items()]
            )
            await self.settle(pending | versions)
            await self._batch(lone_heads(heads, versions))

    async def settle(self, claims: Mapping[str, Payload]) -> Set[str]:
        """Carry out the intents of claims; a head that is newer already stays.

        Return those of them that follow from a version that was forgotten meanwhile: they are erased.
        """
        while open_ := {point: payload for point, payload in claims.items() if "intent" in payload}:
            try:
                await self._batch(writing(open_))
            except Gone:  # one of them; then nothing was written
                claims = await self._collection.read(list(open_))
                continue
            heads = heads_of(open_)
            asked = [*open_, *heads, *map(tombstone_id, heads)]
            found = settled(open_, await self._collection.read(asked))
            await self._batch(concluding(open_, found))
            return found.void
        return set()

    async def _batch(self, operations: Sequence[Any]) -> None:
        if operations:
            await self._collection.call(
                methodcaller("batch_update_points", self._collection.name, operations, **ORDERED)
            )


def _forgotten(version: Version) -> NotFound:
    return NotFound(
        f"Record {version.key} of {'/'.join(version.namespace)} was forgotten while it was being written."
    )
