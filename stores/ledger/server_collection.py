"""A ledger's collection on a Qdrant server: made, found behind its alias, its points read by their ids."""

from collections.abc import Awaitable, Callable, Sequence
from operator import methodcaller
from typing import Any, TypeVar
from uuid import uuid5

from pydantic import ValidationError
from qdrant_client import AsyncQdrantClient, models

from mneme.core.errors import LedgerMismatch, StorageFailure
from mneme.stores.ledger.engine import DENSE, SPARSE, Payload
from mneme.stores.ledger.manifest import Manifest
from mneme.stores.ledger.records import LEDGER
from mneme.stores.ledger.server_connection import Connection

T = TypeVar("T")
OLDEST = (1, 19)  # conditional upserts and IDF over a part of the collection
READ_AT_ONCE = 1000
INDEXES: dict[str, Any] = {
    "scope": models.KeywordIndexParams(type=models.KeywordIndexType.KEYWORD, is_tenant=True, prefix=True),
    "created": models.PayloadSchemaType.INTEGER,
    "pending": models.PayloadSchemaType.BOOL,
}
MANIFEST_ID = str(uuid5(LEDGER, "manifest"))
STRONG: Any = {"ordering": models.WriteOrdering.STRONG}
LATEST: Any = {"consistency": models.ReadConsistencyType.MAJORITY}


class Collection:
    """The collection that an alias on a server stands for, whatever its generation."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection

    @property
    def name(self) -> str:
        """The alias under which the ledger's collection is found."""
        return self.connection.address.collection

    async def call(self, operation: Callable[[AsyncQdrantClient], Awaitable[T]]) -> T:
        """Do an operation of the client. Raises StorageFailure."""
        return await self.connection.call(operation)

    async def read(self, ids: Sequence[str]) -> dict[str, Payload]:
        """Return the payloads of the points that are there, by their ids."""
        name, found = self.name, dict[str, Payload]()
        distinct = list(dict.fromkeys(ids))
        for start in range(0, len(distinct), READ_AT_ONCE):
            retrieve = methodcaller("retrieve", name, distinct[start : start + READ_AT_ONCE], **LATEST)
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
        if not self.connection.is_memory:  # the client's own engine has no indexes, and warns
            for field, index in INDEXES.items():
                await self.call(methodcaller("create_payload_index", collection, field, field_schema=index))
        point = models.PointStruct(
            id=MANIFEST_ID, vector={}, payload={"manifest": manifest.model_dump_json()}
        )
        mode = models.UpdateMode.INSERT_ONLY
        await self.call(lambda client: client.upsert(collection, [point], update_mode=mode, **STRONG))

    async def _exists(self, collection: str) -> bool:
        return await self.call(lambda client: client.collection_exists(collection))

    async def _create(self, collection: str, dimension: int) -> None:
        replicas = self.connection.address.replicas
        dense = models.VectorParams(size=dimension, distance=models.Distance.COSINE)
        sparse = models.SparseVectorParams(modifier=models.Modifier.IDF)
        try:
            await self.call(
                lambda client: client.create_collection(
                    collection,
                    vectors_config={DENSE: dense},
                    sparse_vectors_config={SPARSE: sparse},
                    shard_number=self.connection.address.shards,
                    replication_factor=replicas,
                    write_consistency_factor=replicas and replicas // 2 + 1,
                    hnsw_config=models.HnswConfigDiff(payload_m=16),  # a graph for each namespace
                )
            )
        except StorageFailure:
            if not await self._exists(collection):  # or another process was first
                raise
