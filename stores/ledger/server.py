"""The ledger's engine on a Qdrant server or cluster, for many processes at once.

A server cannot store two points in one atomic operation, so a write goes in this order:

1. *Claim*: insert the version point only if there is none of its id, and read back whose it is. That
   is the compare-and-set; a version point is never overwritten. The claim carries, as its intent, the
   head and the receipts that follow from it.
2. *Settle* (`settling`): write the receipts and the head unless it is newer already; look whether the head
   is there, and remove the intent.

A record that is forgotten meanwhile has no head that could be updated, and none is made for a version that
follows from what was forgotten: the claim is erased, and its writer is told.

Whoever finds a claim that is not settled (its writer was killed) settles it: the next writer of the
record, a reader of the record by its key, and the next process that opens the ledger. Settling twice
changes nothing.

The address may carry `collection`, `shards` and `replicas`: `https://host:6333?replicas=2`. `https`
means TLS. `:memory:` is the client's own in-memory engine, for tests and experiments.
"""

import asyncio
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence, Set
from datetime import datetime
from operator import methodcaller
from typing import Any, NamedTuple, TypeVar
from urllib.parse import parse_qs, urlsplit
from uuid import uuid5

from httpx import HTTPError
from pydantic import ValidationError
from qdrant_client import AsyncQdrantClient, models
from qdrant_client.common.client_exceptions import ResourceExhaustedResponse
from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse

from mneme.core.errors import BadInput, LedgerMismatch, MnemeError, NotFound, StorageFailure
from mneme.stores.ledger.engine import (
    DENSE,
    FACETS,
    FORMAT,
    HALF_ALIKE,
    REEMBED,
    RRF_K,
    SPARSE,
    Condition,
    Embedded,
    EngineInfo,
    Entry,
    Erasing,
    Erasure,
    Payload,
    Point,
    Query,
    Ranking,
    Scored,
    Sides,
    Step,
    Weighed,
    Where,
    defaults,
)
from mneme.stores.ledger.manifest import Manifest, check_format
from mneme.stores.ledger.records import LEDGER, Version, version_id
from mneme.stores.ledger.settling import (
    claim_struct,
    concluding,
    heads_of,
    lone_heads,
    settled,
    struct,
    writing,
)

T = TypeVar("T")
MEMORY = ":memory:"
OLDEST = (1, 19)  # conditional upserts and IDF over a part of the collection
TIMEOUT = 30
MOST_SCOPES = 1_000_000
SETTLED_AT_ONCE = 256
READ_AT_ONCE = 1000
FLOAT = models.PayloadSchemaType.FLOAT
INDEXES: dict[str, Any] = {
    "scope": models.KeywordIndexParams(type=models.KeywordIndexType.KEYWORD, is_tenant=True, prefix=True),
    "created": models.PayloadSchemaType.INTEGER,
    "pending": models.PayloadSchemaType.BOOL,
}
WORDS_ALONE = models.Filter(
    must=[models.HasVectorCondition(has_vector=SPARSE)],
    must_not=[models.HasVectorCondition(has_vector=DENSE)],
)
MANIFEST_ID = str(uuid5(LEDGER, "manifest"))
STRONG: Any = {"ordering": models.WriteOrdering.STRONG}
LATEST: Any = {"consistency": models.ReadConsistencyType.MAJORITY}


class Address(NamedTuple):
    """Where a server is, and how a new collection is laid out on it."""

    url: str
    prefix: str | None
    collection: str
    shards: int | None
    replicas: int | None


class ServerEngine:
    """A server's ledger; make one with `open`."""

    def __init__(self, address: Address, api_key: str) -> None:
        self._address, self._api_key = address, api_key
        self._clients: weakref.WeakKeyDictionary[Any, AsyncQdrantClient] = weakref.WeakKeyDictionary()
        self._memory = AsyncQdrantClient(MEMORY) if address.url == MEMORY else None
        self._manifest = Manifest(format=FORMAT, embedder="", dimension=0, generation=0)
        self._indexed: set[str] = set()

    @classmethod
    async def open(cls, location: str, embedder: str, dimension: int, *, api_key: str = "") -> "ServerEngine":
        """Open the server's ledger, or make one, and settle what killed writers left.

        Raises LedgerMismatch or StorageFailure.
        """
        engine = cls(address_of(location), api_key)
        await engine._check_version()
        wanted = Manifest(format=FORMAT, embedder=embedder, dimension=dimension, generation=1)
        if await engine.resolve() is None:
            await engine._make(wanted)
        engine._manifest = await engine.read_manifest()
        _check_manifest(location, engine._manifest, wanted)
        await engine.settle_all()
        return engine

    async def append(self, steps: Sequence[Step]) -> list[Version]:
        """Store the steps, each by itself; when one refuses, the others are stored all the same."""
        kept: dict[int, Version | str] = {}
        refused: dict[int, MnemeError] = {}
        while len(kept) + len(refused) < len(steps):
            waiting = {n: step for n, step in enumerate(steps) if n not in kept and n not in refused}
            entries = await self._decide(_first_of_each_record(waiting), kept, refused)
            for number in await self._claim(entries, refused):
                kept[number] = entries[number].version
        if refused:
            raise refused[min(refused)]
        before = await self._read([version for version in kept.values() if isinstance(version, str)])
        if len(before) < len({version for version in kept.values() if isinstance(version, str)}):
            raise NotFound("What a replayed write made before was forgotten just now.")
        return [
            Version.model_validate_json(before[version]["event"]) if isinstance(version, str) else version
            for _, version in sorted(kept.items())
        ]

    async def read(self, ids: Sequence[str]) -> dict[str, Payload]:
        """Return the points' payloads, after settling any claim that is ahead of its head."""
        found = await self._read(ids)
        heads = {point: found.get(point, {"n": 0}) for point in ids}
        following = [version_id(point, head["n"] + 1) for point, head in heads.items() if "n" in head]
        ahead = await self._read(following)
        if not ahead:
            return found
        await self._settle(ahead)
        return await self._read(ids)

    async def search(self, query: Query) -> list[Scored]:
        legs = _legs(query)
        if not legs:  # a query of stop words only
            return []
        if query.ranking is not None:
            await self._index(query.ranking)
        found = await self._ask([_request(query, legs)])
        ids = [str(point.id) for point in found[0]]
        several = query.mode == "hybrid" or query.ranking is not None
        parts = await self._parts(legs, ids) if several and ids else {}
        return [_scored(point, query, parts) for point in found[0]]

    async def pool(self, query: Query) -> dict[str, dict[str, float]]:
        legs, wanted = _legs(query), _filter(query.where)
        requests = [
            models.QueryRequest(
                query=leg.query, using=leg.name, params=leg.params, filter=wanted, limit=query.candidates
            )
            for leg in legs
        ]
        pool: dict[str, dict[str, float]] = {}
        for leg, points in zip(legs, await self._ask(requests) if legs else [], strict=True):
            for point in points:
                pool.setdefault(str(point.id), {})[leg.name] = point.score
        return pool

    async def weigh(self, query: Query, ids: Sequence[str]) -> dict[str, Weighed]:
        if not ids:
            return {}
        wanted = models.Filter(must=[models.HasIdCondition(has_id=list(ids)), _filter(query.where)])
        if query.dense is None:
            scroll = methodcaller("scroll", self.collection, wanted, limit=len(ids), with_payload=FACETS)
            return {str(r.id): Weighed(None, r.payload or {}) for r in (await self.call(scroll))[0]}
        request = models.QueryRequest(
            query=list(query.dense), using=DENSE, filter=wanted, limit=len(ids), with_payload=FACETS
        )
        return {str(p.id): Weighed(p.score, p.payload or {}) for p in (await self._ask([request]))[0]}

    async def around(
        self, query: Query, heads: Sequence[Payload], reach: int
    ) -> tuple[list[Sides], dict[str, Weighed]]:
        if not heads:
            return [], {}
        asked = [_beside(head, reach, forwards) for head in heads for forwards in (False, True)]
        found = [[str(point.id) for point in points] for points in await self._ask(asked)]
        near = {point for side in found for point in side}
        return list(zip(found[::2], found[1::2], strict=True)), await self.weigh(query, list(near))

    async def scan(
        self, where: Where, limit: int, offset: int = 0, *, newest_first: bool = False
    ) -> list[Payload]:
        direction = models.Direction.DESC if newest_first else models.Direction.ASC
        order = models.OrderByQuery(order_by=models.OrderBy(key="created", direction=direction))
        request = models.QueryRequest(
            query=order, filter=_filter(where), limit=limit, offset=offset, with_payload=True
        )
        return [point.payload or {} for point in (await self._ask([request]))[0]]

    async def count(self, where: Where) -> int:
        name = self.collection
        counted = await self.call(lambda client: client.count(name, count_filter=_filter(where)))
        return counted.count

    async def scopes(self, where: Where) -> list[str]:
        name = self.collection
        facet = await self.call(
            lambda client: client.facet(
                name, "scope", facet_filter=_filter(where), limit=MOST_SCOPES, exact=True
            )
        )
        return [str(hit.value) for hit in facet.hits]

    async def vectors(self, where: Where) -> dict[str, Sequence[float]]:
        name, found, following = self.collection, dict[str, Sequence[float]](), None
        while True:
            scroll = methodcaller(
                "scroll", name, _filter(where), limit=READ_AT_ONCE, offset=following, with_vectors=[DENSE]
            )
            records, following = await self.call(scroll)
            found |= _dense_of(records)
            if following is None:
                return found

    async def vectors_by_ids(self, ids: Sequence[str]) -> dict[str, Sequence[float]]:
        found, wanted = dict[str, Sequence[float]](), list(dict.fromkeys(ids))
        for start in range(0, len(wanted), READ_AT_ONCE):
            some = wanted[start : start + READ_AT_ONCE]
            asked = methodcaller("retrieve", self.collection, some, with_payload=False, with_vectors=[DENSE])
            found |= _dense_of(await self.call(asked))
        return found

    async def unembedded(self, limit: int) -> dict[str, Payload]:
        asked = methodcaller("scroll", self.collection, WORDS_ALONE, limit=limit, with_payload=True)
        records, _ = await self.call(asked)
        return {str(record.id): record.payload or {} for record in records}

    async def embed(self, heads: Sequence[Embedded]) -> None:
        operations = [_embedding(head) for head in heads]
        await self.call(methodcaller("batch_update_points", self.collection, operations, **STRONG))

    async def place(self, shelf: str, groups: Mapping[str, Sequence[str]]) -> None:
        on_shelf = models.FieldCondition(key="scope", match=models.MatchPrefix(prefix=shelf))
        for scope, ids in groups.items():
            still = models.Filter(must=[on_shelf, models.HasIdCondition(has_id=list(ids))])
            await self.call(methodcaller("set_payload", self.collection, {"scope": scope}, still, **STRONG))

    async def erase(self, plan: Callable[[], Erasing]) -> Erasure:
        """Delete the points; their bytes stay in the server's files until it writes these anew.

        A writer may add a version before the deletion; then another round erases that one.
        """
        name, total = self.collection, Erasure((), ())
        while (erasure := await self._drive(plan())).erased:
            left = models.PointsList(points=[struct(point) for point in erasure.left])
            doomed = models.PointIdsList(points=list(erasure.erased))
            steps = [models.DeleteOperation(delete=doomed), models.UpsertOperation(upsert=left)]
            wanted = steps if left.points else steps[:1]
            await self.call(methodcaller("batch_update_points", name, wanted, **STRONG))
            total = Erasure(total.erased + erasure.erased, total.left + erasure.left)
        return total

    async def info(self) -> EngineInfo:
        name = self.collection
        return EngineInfo(
            kind="server",
            location=self._address.url,
            points=(await self.call(lambda client: client.count(name))).count,
            embedder=self._manifest.embedder,
            dimension=self._manifest.dimension,
            format=self._manifest.format,
        )

    async def mark_current(self) -> None:
        self._manifest = self._manifest.model_copy(update={"format": FORMAT})
        payload = {"manifest": self._manifest.model_dump_json()}
        await self.call(methodcaller("set_payload", self.collection, payload, [MANIFEST_ID], **STRONG))

    async def close(self) -> None:
        """Close this loop's connections; those of other loops end with them."""
        client = self._memory or self._clients.pop(asyncio.get_running_loop(), None)
        if client is not None:
            await client.close()

    async def _drive(self, erasing: Erasing) -> Erasure:
        try:
            wanted = next(erasing)
            while True:
                wanted = erasing.send(await self._read(wanted))
        except StopIteration as done:
            erasure: Erasure = done.value
            return erasure

    async def _decide(
        self, turn: Mapping[int, Step], kept: dict[int, Version | str], refused: dict[int, MnemeError]
    ) -> dict[int, Entry]:
        seen = await self._read([point for step in turn.values() for point in step.reads])
        entries: dict[int, Entry] = {}
        for number, step in turn.items():
            try:
                outcome = step.decide(seen)
            except MnemeError as refusal:
                refused[number] = refusal
                continue
            if isinstance(outcome, Entry):
                entries[number] = outcome._replace(fresh=outcome.head.id not in seen)
            else:
                kept[number] = outcome
        return entries

    async def _claim(self, entries: Mapping[int, Entry], refused: dict[int, MnemeError]) -> list[int]:
        """Insert the version points, settle those that are there now, and return which of them are ours.

        One that is gone already was forgotten; it is not written again.
        """
        claims = [claim_struct(claim, entry) for entry in entries.values() for claim in entry.claims]
        if not claims:
            return []
        name, mode = self.collection, models.UpdateMode.INSERT_ONLY
        await self.call(lambda client: client.upsert(name, claims, update_mode=mode, **STRONG))
        seen = await self._read([str(claim.id) for claim in claims])
        void = await self._settle(seen)
        ours: list[int] = []
        for number, entry in entries.items():
            there = [seen[claim.id]["event"] for claim in entry.claims if claim.id in seen]
            mine = there == [claim.payload["event"] for claim in entry.claims]
            if len(there) < len(entry.claims) or (mine and entry.claims[-1].id in void):
                refused[number] = _forgotten(entry.version)
            elif mine:
                ours.append(number)
        return ours

    async def _settle(self, claims: Mapping[str, Payload]) -> Set[str]:
        """Carry out the intents of claims; a head that is newer already stays.

        Return those of them that follow from a version that was forgotten meanwhile: they are erased.
        """
        while open_ := {point: payload for point, payload in claims.items() if "intent" in payload}:
            try:
                await self._batch(writing(open_))
            except Gone:  # one of them; then nothing was written
                claims = await self._read(list(open_))
                continue
            found = settled(open_, await self._read([*open_, *heads_of(open_)]))
            await self._batch(concluding(open_, found))
            return found.void
        return set()

    async def _batch(self, operations: Sequence[Any]) -> None:
        if operations:
            await self.call(methodcaller("batch_update_points", self.collection, operations, **STRONG))

    async def settle_all(self) -> None:
        name = self.collection
        open_ = models.Filter(
            must=[models.FieldCondition(key="pending", match=models.MatchValue(value=True))]
        )
        while True:
            found, _ = await self.call(
                lambda client: client.scroll(name, open_, limit=SETTLED_AT_ONCE, with_payload=True)
            )
            if not found:
                return
            pending = {str(record.id): record.payload or {} for record in found}
            heads = {point: payload for point, payload in pending.items() if "n" in payload}
            versions = await self._read([version_id(head, payload["n"]) for head, payload in heads.items()])
            await self._settle(pending | versions)
            await self._batch(lone_heads(heads, versions))

    async def _read(self, ids: Sequence[str]) -> dict[str, Payload]:
        name, found = self.collection, dict[str, Payload]()
        distinct = list(dict.fromkeys(ids))
        for start in range(0, len(distinct), READ_AT_ONCE):
            retrieve = methodcaller("retrieve", name, distinct[start : start + READ_AT_ONCE], **LATEST)
            records: list[models.Record] = await self.call(retrieve)
            found |= {str(record.id): record.payload or {} for record in records}
        return found

    async def _ask(self, requests: list[models.QueryRequest]) -> list[list[models.ScoredPoint]]:
        name = self.collection
        answers = await self.call(lambda client: client.query_batch_points(name, requests))
        return [answer.points for answer in answers]

    async def _index(self, ranking: Ranking) -> None:
        """Index the fields that a ranking reads, once: a strict server scores by indexed fields only."""
        if self._memory is not None:
            return
        for path in set(ranking.paths.values()) - self._indexed:
            index = methodcaller("create_payload_index", self.collection, path, field_schema=FLOAT)
            await self.call(index)
            self._indexed.add(path)

    async def _parts(self, legs: Sequence["Leg"], ids: list[str]) -> dict[str, dict[str, float]]:
        only = models.Filter(must=[models.HasIdCondition(has_id=list(ids))])
        requests = [
            models.QueryRequest(
                query=leg.query, using=leg.name, params=leg.params, filter=only, limit=len(ids)
            )
            for leg in legs
        ]
        parts: dict[str, dict[str, float]] = {}
        for leg, points in zip(legs, await self._ask(requests), strict=True):
            for point in points:
                parts.setdefault(str(point.id), {})[leg.name] = point.score
        return parts

    async def _check_version(self) -> None:
        """Refuse a server that would ignore the conditions of our writes, and so lose updates."""
        version = (await self.call(lambda client: client.info())).version
        numbers = tuple(int(number) for number in version.split("-")[0].split(".")[:2])
        if numbers < OLDEST:
            raise StorageFailure(
                f"The Qdrant server has version {version}.",
                f"Mneme needs {'.'.join(map(str, OLDEST))} or newer: conditional writes.",
            )

    @property
    def collection(self) -> str:
        """The alias under which the ledger's collection is found."""
        return self._address.collection

    async def resolve(self) -> str | None:
        """Return the collection behind our alias; None where there is no such alias."""
        aliases = (await self.call(lambda client: client.get_aliases())).aliases
        return {alias.alias_name: alias.collection_name for alias in aliases}.get(self.collection)

    async def read_manifest(self) -> Manifest:
        """Return what the ledger was made with. Raises LedgerMismatch where there is none."""
        seen = (await self._read([MANIFEST_ID])).get(MANIFEST_ID)
        try:
            return Manifest.model_validate_json(seen["manifest"] if seen else "")
        except (ValidationError, KeyError) as broken:
            raise LedgerMismatch(
                f"The collection {self.collection} holds no ledger.", "Name another one."
            ) from broken

    async def _make(self, wanted: Manifest) -> None:
        name = self.collection
        if await self._exists(name) and await self.resolve() is None:  # or another process just made it
            raise LedgerMismatch(
                f"The server has a collection {name} that is not a ledger; nothing was touched.",
                "Name another one: add ?collection=NAME to the address.",
            )
        collection = f"{name}-{wanted.generation:06d}"
        await self.make_collection(collection, wanted)
        alias = models.CreateAlias(collection_name=collection, alias_name=name)
        await self.call(
            lambda client: client.update_collection_aliases([models.CreateAliasOperation(create_alias=alias)])
        )

    async def make_collection(self, collection: str, manifest: Manifest) -> None:
        """Make a collection with its indexes and its manifest, or finish what another process began."""
        if not await self._exists(collection):
            await self._create(collection, manifest.dimension)
        if self._memory is None:  # the client's own engine has no indexes, and warns
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
        replicas = self._address.replicas
        dense = models.VectorParams(size=dimension, distance=models.Distance.COSINE)
        sparse = models.SparseVectorParams(modifier=models.Modifier.IDF)
        try:
            await self.call(
                lambda client: client.create_collection(
                    collection,
                    vectors_config={DENSE: dense},
                    sparse_vectors_config={SPARSE: sparse},
                    shard_number=self._address.shards,
                    replication_factor=replicas,
                    write_consistency_factor=replicas and replicas // 2 + 1,
                    hnsw_config=models.HnswConfigDiff(payload_m=16),  # a graph for each namespace
                )
            )
        except StorageFailure:
            if not await self._exists(collection):  # or another process was first
                raise

    def _client(self) -> AsyncQdrantClient:
        """Return this event loop's client: connections belong to the loop that made them."""
        if self._memory is not None:
            return self._memory
        loop = asyncio.get_running_loop()
        if loop not in self._clients:
            self._clients[loop] = AsyncQdrantClient(
                url=self._address.url,
                prefix=self._address.prefix,
                api_key=self._api_key or None,
                timeout=TIMEOUT,
                check_compatibility=False,  # `_check_version` does, with an error
            )
        return self._clients[loop]

    async def call(self, operation: Callable[[AsyncQdrantClient], Awaitable[T]]) -> T:
        try:
            return await operation(self._client())
        except UnexpectedResponse as refusal:
            kind = Gone if "No point with id" in _reason(refusal) else StorageFailure
            raise kind(
                f"The Qdrant server at {self._address.url} refused: {refusal.status_code} "
                f"{_reason(refusal)}.",
                "Check MNEME_LEDGER_API_KEY." if refusal.status_code in (401, 403) else "See its log.",
            ) from refusal
        except ResourceExhaustedResponse as busy:
            raise StorageFailure(
                f"The Qdrant server at {self._address.url} takes no more requests now: {busy}.",
                f"Try again in {busy.retry_after_s} s, or raise its limits.",
            ) from busy
        except (ResponseHandlingException, HTTPError, OSError) as failure:
            raise StorageFailure(
                f"The Qdrant server at {self._address.url} does not answer: {failure}.",
                "Start it, or check MNEME_LEDGER.",
            ) from failure


class Gone(StorageFailure):
    """The server misses a point that a request names."""


class ServerRebuild:
    """The building of a new generation of a server's ledger; start it with `begin`."""

    def __init__(self, engine: ServerEngine, old: str, manifest: Manifest) -> None:
        self._engine, self._old, self._manifest = engine, old, manifest
        self._new = f"{engine.collection}-{manifest.generation:06d}"

    @classmethod
    async def begin(
        cls, location: str, embedder: str, dimension: int, *, api_key: str = ""
    ) -> "ServerRebuild":
        """Find the ledger, whatever its embedder. Raises LedgerMismatch, StorageFailure."""
        engine = ServerEngine(address_of(location), api_key)
        old = await engine.resolve()
        if old is None:
            raise LedgerMismatch(f"There is no ledger at {location}.")
        manifest = await engine.read_manifest()
        await engine.settle_all()
        update = {"embedder": embedder, "dimension": dimension, "generation": manifest.generation + 1}
        rebuild = cls(engine, old, manifest.model_copy(update=update))
        await engine.call(methodcaller("delete_collection", rebuild._new))  # left by a crash
        await engine.make_collection(rebuild._new, rebuild._manifest)
        return rebuild

    async def pages(self) -> AsyncIterator[dict[str, Payload]]:
        following: Any = None
        while True:
            scroll = methodcaller(
                "scroll", self._old, limit=READ_AT_ONCE, offset=following, with_payload=True
            )
            records, following = await self._engine.call(scroll)
            yield {str(record.id): record.payload or {} for record in records if record.id != MANIFEST_ID}
            if following is None:
                return

    async def add(self, points: Sequence[Point]) -> None:
        if points:
            new = [struct(point) for point in points]
            await self._engine.call(methodcaller("upsert", self._new, new, **STRONG))

    async def switch(self) -> None:
        name = self._engine.collection
        swap = [
            models.DeleteAliasOperation(delete_alias=models.DeleteAlias(alias_name=name)),
            models.CreateAliasOperation(
                create_alias=models.CreateAlias(collection_name=self._new, alias_name=name)
            ),
        ]
        await self._engine.call(methodcaller("update_collection_aliases", swap))
        await self._engine.call(methodcaller("delete_collection", self._old))

    async def close(self) -> None:
        await self._engine.close()


class Leg(NamedTuple):
    """One part of a query: which vector is compared with what."""

    name: str
    query: Any
    params: models.SearchParams | None


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


def _reason(refusal: UnexpectedResponse) -> str:
    """Return what the server, or a proxy before it, says of a refusal."""
    try:
        return str(refusal.structured()["status"]["error"])
    except (ValueError, LookupError, TypeError):
        return refusal.reason_phrase


def _forgotten(version: Version) -> NotFound:
    return NotFound(
        f"Record {version.key} of {'/'.join(version.namespace)} was forgotten while it was being written."
    )


def _check_manifest(location: str, found: Manifest, wanted: Manifest) -> None:
    check_format(location, found.format)
    if (found.embedder, found.dimension) != (wanted.embedder, wanted.dimension):
        raise LedgerMismatch(
            f"The ledger at {location} was made with the embedder {found.embedder} "
            f"({found.dimension} dimensions), not {wanted.embedder} ({wanted.dimension}).",
            REEMBED,
        )


def _first_of_each_record(waiting: Mapping[int, Step]) -> dict[int, Step]:
    first = {waiting[number].record: number for number in sorted(waiting, reverse=True)}
    return {number: waiting[number] for number in sorted(first.values())}


def _dense_of(records: Sequence[Any]) -> dict[str, Sequence[float]]:
    """Return the dense vectors of those records that have one."""
    return {str(record.id): record.vector[DENSE] for record in records if DENSE in (record.vector or ())}


def _embedding(head: Embedded) -> models.UpdateVectorsOperation:
    same = models.FieldCondition(key="n", range=models.Range(gte=head.n, lte=head.n))
    points = [models.PointVectors(id=head.id, vector={DENSE: list(head.dense)})]
    update = models.UpdateVectors(points=points, update_filter=models.Filter(must=[same]))
    return models.UpdateVectorsOperation(update_vectors=update)


def _legs(query: Query) -> list[Leg]:
    legs: list[Leg] = []
    if query.mode != "bm25" and query.dense is not None:
        legs.append(Leg(DENSE, list(query.dense), None))
    if query.mode != "dense" and query.words is not None and query.words.indices:
        vector = models.SparseVector(indices=query.words.indices, values=query.words.values)
        corpus = models.IdfCorpusParams(corpus=_filter(Where(query.where.scopes)))
        params = models.SearchParams(idf=corpus) if query.where.scopes else None
        legs.append(Leg(SPARSE, vector, params))
    return legs


def _request(query: Query, legs: Sequence[Leg]) -> models.QueryRequest:
    common: dict[str, Any] = {
        "limit": query.limit,
        "offset": query.offset,
        "score_threshold": query.min_score,
        "with_payload": ["event"],
    }
    wanted = _filter(query.where)
    if query.mode != "hybrid" and query.ranking is None:
        [leg] = legs
        return models.QueryRequest(
            query=leg.query, using=leg.name, params=leg.params, filter=wanted, **common
        )
    prefetch = [
        models.Prefetch(
            query=leg.query, using=leg.name, params=leg.params, filter=wanted, limit=query.candidates
        )
        for leg in legs
    ]
    fused: Any = models.RrfQuery(rrf=models.Rrf(k=RRF_K)) if query.ranking is None else _formula(query)
    return models.QueryRequest(query=fused, prefetch=prefetch, **common)


def _beside(head: Payload, reach: int, forwards: bool) -> models.QueryRequest:
    """Ask for the heads just before or after a head in its scope."""
    order = models.OrderBy(
        key="created",
        direction=models.Direction.ASC if forwards else models.Direction.DESC,
        start_from=head["created"] + (1 if forwards else -1),
    )
    same = models.FieldCondition(key="scope", match=models.MatchValue(value=head["scope"]))
    return models.QueryRequest(
        query=models.OrderByQuery(order_by=order),
        filter=models.Filter(must=[same]),
        limit=reach,
    )


def _formula(query: Query) -> models.FormulaQuery:
    """Return a ranking as the server's formula; missing fields count as the ranking's default."""
    ranking = query.ranking
    assert ranking is not None
    paths = ranking.paths
    age = models.DecayParamsExpression(
        x=paths.get(ranking.aged_from, "updated"),
        target=query.now,
        midpoint=0.5,
        scale=ranking.half_life_days,
    )
    fresh: Any = models.ExpDecayExpression(exp_decay=age)
    if ranking.ageless:
        ageless = paths[ranking.ageless]
        ageing = models.SumExpression(sum=[1.0, models.NegExpression(neg=ageless)])
        fresh = models.SumExpression(sum=[ageless, models.MultExpression(mult=[ageing, fresh])])
    similarity: Any = "$score"
    if query.mode == "bm25":
        halved = models.SumExpression(sum=["$score", HALF_ALIKE])
        similarity = models.DivExpression(div=models.DivParams(left="$score", right=halved))
    terms = [
        models.MultExpression(mult=[ranking.similarity, similarity]),
        *(models.MultExpression(mult=[weight, paths[name]]) for name, weight in ranking.fields.items()),
        models.MultExpression(mult=[ranking.recency, fresh]),
    ]
    return models.FormulaQuery(formula=models.SumExpression(sum=[*terms]), defaults=defaults(query))


def _scored(point: models.ScoredPoint, query: Query, parts: Mapping[str, dict[str, float]]) -> Scored:
    payload = point.payload or {}
    plain = query.mode != "hybrid" and query.ranking is None
    single: dict[str, float] = {query.mode: point.score} if plain else {}
    return Scored(payload["event"], point.score, parts.get(str(point.id), single))


def _filter(where: Where) -> models.Filter:
    below = [
        models.FieldCondition(key="scope", match=models.MatchPrefix(prefix=scope)) for scope in where.scopes
    ]
    scopes = below if len(below) < 2 else [models.Filter(should=[*below])]
    negative = [condition for condition in where.conditions if condition.operator == "ne"]
    positive = [condition for condition in where.conditions if condition.operator != "ne"]
    return models.Filter(
        must=[*scopes, *map(_condition, positive)],
        must_not=[_condition(condition._replace(operator="eq")) for condition in negative] or None,
    )


def _condition(condition: Condition) -> Any:
    path, operator, value = condition
    if value is None:
        return models.IsEmptyCondition(is_empty=models.PayloadField(key=path))
    if operator == "in":
        return models.FieldCondition(key=path, match=models.MatchAny(any=value))
    if isinstance(value, datetime):
        return models.FieldCondition(key=path, range=models.DatetimeRange(**{operator: value}))
    if operator != "eq":
        return models.FieldCondition(key=path, range=models.Range(**{operator: value}))
    if isinstance(value, str):
        return models.FieldCondition(key=path, match=models.MatchValue(value=value))
    return models.FieldCondition(key=path, range=models.Range(gte=value, lte=value))
