"""A ledger's collection on a Qdrant server: made, found behind its alias, its points read by their ids."""

from collections.abc import Sequence
from operator import methodcaller
from typing import Any, TypeVar
from uuid import uuid5

from pydantic import ValidationError
from qdrant_client import models

from mneme.core.errors import LedgerMismatch, StorageFailure
from mneme.stores.ledger.addresses import Address
from mneme.stores.ledger.engine import DENSE, SPARSE, Layout, Payload
from mneme.stores.ledger.manifest import Manifest
from mneme.stores.ledger.nodes import Nodes, Request
from mneme.stores.ledger.records import LEDGER

T = TypeVar("T")
OLDEST = (1, 19)  # conditional upserts and IDF over a part of the collection
READ_AT_ONCE = 1000
INDEXES: dict[str, Any] = {
    "scope": models.KeywordIndexParams(type=models.KeywordIndexType.KEYWORD, is_tenant=True, prefix=True),
    "created": models.PayloadSchemaType.INTEGER,
    "pending": models.PayloadSchemaType.BOOL,
}
MANIFEST_ID = str(uuid5(LEDGER, "manifest"))
ORDERED: Any = {"ordering": models.WriteOrdering.MEDIUM}


class Collection:
    """The collection that an alias on a server stands for, whatever its generation."""

    def __init__(self, address: Address, api_key: str) -> None:
        self.address, self.nodes = address, Nodes(address, api_key)

    @property
    def name(self) -> str:
        """The alias under which the ledger's collection is found."""
        return self.address.collection

    async def call(self, request: Request[T]) -> T:
        """Return the answer to a request. Raises StorageFailure."""
        return await self.nodes.call(request)

    async def read(self, ids: Sequence[str]) -> dict[str, Payload]:
        """Return the payloads of the points that are there, by their ids."""
        name, found = self.name, dict[str, Payload]()
        distinct = list(dict.fromkeys(ids))
        for start in range(0, len(distinct), READ_AT_ONCE):
            retrieve = methodcaller("retrieve", name, distinct[start : start + READ_AT_ONCE])
            records: list[models.Record] = await self.call(retrieve)
            found |= {str(record.id): record.payload or {} for record in records}
        return found

    async def resolve(self) -> str | None:
        """Return the collection behind our alias; None where there is no such alias."""
        aliases = (await self.call(lambda client: client.get_aliases())).aliases
        return {alias.alias_name: alias.collection_name for alias in aliases}.get(self.name)

    async def read_manifest(self) -> Manifest:
        """Return what the ledger was made with. Raises LedgerMismatch where there is none."""
        seen = (await self.read([MANIFEST_ID])).get(MANIFEST_ID)
        try:
            return Manifest.model_validate_json(seen["manifest"] if seen else "")
        except (ValidationError, KeyError) as broken:
            raise LedgerMismatch(
                f"The collection {self.name} holds no ledger.", "Name another one."
            ) from broken

    async def layout(self) -> Layout | None:
        """Return how the collection lies on the cluster, and what is not in use; None in memory."""
        if self.nodes.in_memory:
            return None
        name = self.name
        params = (await self.call(lambda client: client.get_collection(name))).config.params
        state = await self.call(lambda client: client.collection_cluster_info(name))
        here = [(each.shard_id, state.peer_id, each.state) for each in state.local_shards]
        there = [(each.shard_id, each.peer_id, each.state) for each in state.remote_shards]
        return Layout(
            shards=params.shard_number or 1,
            replicas=params.replication_factor or 1,
            writes=params.write_consistency_factor or 1,
            not_in_use=[
                f"shard {shard} on node {peer}: {found.value}"
                for shard, peer, found in here + there
                if found is not models.ReplicaState.ACTIVE
            ],
        )

    async def check_version(self) -> None:
        """Refuse a server that would ignore the conditions of our writes, and so lose updates."""
        version = (await self.call(lambda client: client.info())).version
        numbers = tuple(int(number) for number in version.split("-")[0].split(".")[:2])
        if numbers < OLDEST:
            raise StorageFailure(
                f"The Qdrant server has version {version}.",
                f"Mneme needs {'.'.join(map(str, OLDEST))} or newer: conditional writes.",
            )

    async def make(self, wanted: Manifest) -> None:
        """Make a ledger. Raises LedgerMismatch where something else has its name."""
        name = self.name
        if await self._exists(name) and await self.resolve() is None:  # or another process just made it
            raise LedgerMismatch(
                f"The server has a collection {name} that is not a ledger; nothing was touched.",
                "Name another one: add ?collection=NAME to the address.",
            )
        collection = f"{name}-{wanted.generation:06d}"
        await self.make_generation(collection, wanted)
        alias = models.CreateAlias(collection_name=collection, alias_name=name)
        await self.call(
            lambda client: client.update_collection_aliases([models.CreateAliasOperation(create_alias=alias)])
        )

    async def make_generation(self, collection: str, manifest: Manifest) -> None:
        """Make a collection with its indexes and its manifest, or finish what another process began."""
        if not await self._exists(collection):
            await self._create(collection, manifest.dimension)
        if not self.nodes.in_memory:  # the client's own engine has no indexes, and warns
            for field, index in INDEXES.items():
                await self.call(methodcaller("create_payload_index", collection, field, field_schema=index))
        point = models.PointStruct(
            id=MANIFEST_ID, vector={}, payload={"manifest": manifest.model_dump_json()}
        )
        mode = models.UpdateMode.INSERT_ONLY
        await self.call(lambda client: client.upsert(collection, [point], update_mode=mode, **ORDERED))

    async def _exists(self, collection: str) -> bool:
        return await self.call(lambda client: client.collection_exists(collection))

    async def _create(self, collection: str, dimension: int) -> None:
        dense = models.VectorParams(size=dimension, distance=models.Distance.COSINE)
        sparse = models.SparseVectorParams(modifier=models.Modifier.IDF)
        try:
            await self.call(
                lambda client: client.create_collection(
                    collection,
                    vectors_config={DENSE: dense},
                    sparse_vectors_config={SPARSE: sparse},
                    shard_number=self.address.shards,
                    replication_factor=self.address.replicas,
                    write_consistency_factor=self.address.majority,
                    hnsw_config=models.HnswConfigDiff(payload_m=16),  # a graph for each namespace
                )
            )
        except StorageFailure:
            if not await self._exists(collection):  # or another process was first
                raise
