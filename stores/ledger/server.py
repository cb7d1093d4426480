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

On a cluster a write is acknowledged when every replica that is in use has it, and a replica that missed one
is in use no longer: so one replica is enough to read from, and a returned node is used once it is ready. To
read from more would be worse: Qdrant leaves out each point in which they differ for a moment, and with
`majority` needs all of them. Writes of a shard go through a leader that can change (`medium`): `strong` has
one for ever, and stops with its node.

`https` means TLS. `:memory:` is the client's own in-memory engine, for tests and experiments.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import methodcaller

from qdrant_client import models

from mneme.core.errors import LedgerMismatch, MnemeError, NotFound
from mneme.stores.ledger.addresses import Address, address_of
from mneme.stores.ledger.deciding import last_number
from mneme.stores.ledger.engine import (
    CHANGED,
    DENSE,
    FACETS,
    FORMAT,
    REEMBED,
    SPARSE,
    Embedded,
    EngineInfo,
    Entry,
    Erasing,
    Erasure,
    Payload,
    Query,
    Scored,
    Sides,
    Step,
    Weighed,
    Where,
    compared_texts,
    found_by,
)
from mneme.stores.ledger.manifest import Manifest, check_format
from mneme.stores.ledger.records import Version, tombstone_id, version_id
from mneme.stores.ledger.server_claims import Claims
from mneme.stores.ledger.server_collection import MANIFEST_ID, ORDERED, READ_AT_ONCE, Collection
from mneme.stores.ledger.server_points import (
    dense_of,
    embedding_operation,
)
from mneme.stores.ledger.server_queries import Leg, beside, filter_of, legs_of, request_of, scored_of
from mneme.stores.ledger.settling import erased, struct

MOST_SCOPES = 1_000_000
FLOAT, KEYWORD = models.PayloadSchemaType.FLOAT, models.PayloadSchemaType.KEYWORD
WORDS_ALONE = models.Filter(
    must=[models.HasVectorCondition(has_vector=SPARSE)],
    must_not=[models.HasVectorCondition(has_vector=DENSE)],
)


class ServerEngine:
    """A server's ledger; make one with `open`."""

    def __init__(self, address: Address, api_key: str) -> None:
        self._collection = Collection(address, api_key)
        self._claims = Claims(self._collection)
        self._manifest = Manifest(format=FORMAT, embedder="", dimension=0, generation=0)
        self._indexed: set[str] = set()

    @classmethod
    async def open(cls, location: str, embedder: str, dimension: int, *, api_key: str = "") -> "ServerEngine":
        """Open the server's ledger, or make one, and settle what killed writers left.

        Raises LedgerMismatch or StorageFailure.
        """
        engine = cls(address_of(location), api_key)
        await engine._collection.nodes.choose()
        await engine._collection.check_version()
        wanted = Manifest(format=FORMAT, embedder=embedder, dimension=dimension, generation=1)
        if await engine._collection.resolve() is None:
            await engine._collection.make(wanted)
        engine._manifest = await engine._collection.read_manifest()
        _check_manifest(location, engine._manifest, wanted)
        await engine._claims.settle_all()
        return engine

    async def append(self, steps: Sequence[Step]) -> list[Version]:
        """Store the steps, each by itself; when one refuses, the others are stored all the same."""
        kept: dict[int, Version | str] = {}
        refused: dict[int, MnemeError] = {}
        while len(kept) + len(refused) < len(steps):
            waiting = {n: step for n, step in enumerate(steps) if n not in kept and n not in refused}
            entries = await self._decide(_first_of_each_record(waiting), kept, refused)
            for number in await self._claims.claim(entries, refused):
                kept[number] = entries[number].version
        if refused:
            raise refused[min(refused)]
        before = await self._collection.read(
            [version for version in kept.values() if isinstance(version, str)]
        )
        if len(before) < len({version for version in kept.values() if isinstance(version, str)}):
            raise NotFound("What a replayed write made before was forgotten just now.")
        return [
            Version.model_validate_json(before[version]["event"]) if isinstance(version, str) else version
            for _, version in sorted(kept.items())
        ]

    async def read(self, ids: Sequence[str]) -> dict[str, Payload]:
        """Return the points' payloads, after settling any claim that is ahead of its head."""
        found = await self._collection.read(ids)
        heads = {point: found.get(point, {"n": 0}) for point in ids}
        following = {point: version_id(point, head["n"] + 1) for point, head in heads.items() if "n" in head}
        gone = {tombstone_id(point): point for point in following if point not in found}
        ahead = await self._collection.read([*following.values(), *gone])
        marks = {gone[mark]: ahead.pop(mark) for mark in gone if mark in ahead}
        anew = [version_id(point, last_number(mark) + 1) for point, mark in marks.items()]
        ahead |= await self._collection.read(anew)
        if not ahead:
            return found
        await self._claims.settle(ahead)
        return await self._collection.read(ids)

    async def search(self, query: Query) -> list[Scored]:
        legs = legs_of(query)
        if not legs:  # a query of stop words only
            return []
        if query.ranking is not None:
            await self._index(query.ranking.paths.values(), compared_texts(query.where))
        found = await self._ask([request_of(query, legs)])
        ids = [str(point.id) for point in found[0]]
        several = query.mode == "hybrid" or query.ranking is not None
        parts = await self._parts(legs, ids) if several and ids else {}
        return [scored_of(point, query, parts) for point in found[0]]

    async def pool(self, query: Query) -> dict[str, dict[str, float]]:
        legs, wanted = legs_of(query), filter_of(query.where)
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
        wanted = models.Filter(must=[models.HasIdCondition(has_id=list(ids)), filter_of(query.where)])
        if query.dense is None:
            scroll = methodcaller(
                "scroll", self._collection.name, wanted, limit=len(ids), with_payload=FACETS
            )
            return {
                str(r.id): Weighed(None, r.payload or {}) for r in (await self._collection.call(scroll))[0]
            }
        request = models.QueryRequest(
            query=list(query.dense), using=DENSE, filter=wanted, limit=len(ids), with_payload=FACETS
        )
        return {str(p.id): Weighed(p.score, p.payload or {}) for p in (await self._ask([request]))[0]}

    async def around(
        self, query: Query, heads: Sequence[Payload], reach: int
    ) -> tuple[list[Sides], dict[str, Weighed]]:
        if not heads:
            return [], {}
        asked = [beside(head, reach, forwards) for head in heads for forwards in (False, True)]
        found = [[str(point.id) for point in points] for points in await self._ask(asked)]
        near = {point for side in found for point in side}
        return list(zip(found[::2], found[1::2], strict=True)), await self.weigh(query, list(near))

    async def scan(
        self, where: Where, limit: int, offset: int = 0, *, newest_first: bool = False
    ) -> list[Payload]:
        direction = models.Direction.DESC if newest_first else models.Direction.ASC
        await self._index(*found_by(where))
        return await self._ordered(models.OrderBy(key="created", direction=direction), where, limit, offset)

    async def latest(self, where: Where, limit: int) -> list[Payload]:
        await self._index([CHANGED])
        by_change = models.OrderBy(key=CHANGED, direction=models.Direction.DESC)
        return await self._ordered(by_change, where, limit)

    async def _ordered(self, by: models.OrderBy, where: Where, limit: int, offset: int = 0) -> list[Payload]:
        order = models.OrderByQuery(order_by=by)
        request = models.QueryRequest(
            query=order, filter=filter_of(where), limit=limit, offset=offset, with_payload=True
        )
        return [point.payload or {} for point in (await self._ask([request]))[0]]

    async def count(self, where: Where) -> int:
        name = self._collection.name
        counted = await self._collection.call(
            lambda client: client.count(name, count_filter=filter_of(where))
        )
        return counted.count

    async def scopes(self, where: Where) -> list[str]:
        name = self._collection.name
        facet = await self._collection.call(
            lambda client: client.facet(
                name, "scope", facet_filter=filter_of(where), limit=MOST_SCOPES, exact=True
            )
        )
        return [str(hit.value) for hit in facet.hits]

    async def compact(self) -> bool:
        """Do nothing: the server sees to that itself."""
        return False

    async def vectors(self, where: Where) -> dict[str, Sequence[float]]:
        name, found, following = self._collection.name, dict[str, Sequence[float]](), None
        while True:
            scroll = methodcaller(
                "scroll", name, filter_of(where), limit=READ_AT_ONCE, offset=following, with_vectors=[DENSE]
            )
            records, following = await self._collection.call(scroll)
            found |= dense_of(records)
            if following is None:
                return found

    async def vectors_by_ids(self, ids: Sequence[str]) -> dict[str, Sequence[float]]:
        found, wanted = dict[str, Sequence[float]](), list(dict.fromkeys(ids))
        for start in range(0, len(wanted), READ_AT_ONCE):
            some = wanted[start : start + READ_AT_ONCE]
            asked = methodcaller(
                "retrieve", self._collection.name, some, with_payload=False, with_vectors=[DENSE]
            )
            found |= dense_of(await self._collection.call(asked))
        return found

    async def unembedded(self, limit: int) -> dict[str, Payload]:
        asked = methodcaller("scroll", self._collection.name, WORDS_ALONE, limit=limit, with_payload=True)
        records, _ = await self._collection.call(asked)
        return {str(record.id): record.payload or {} for record in records}

    async def embed(self, heads: Sequence[Embedded]) -> None:
        operations = [embedding_operation(head) for head in heads]
        await self._collection.call(
            methodcaller("batch_update_points", self._collection.name, operations, **ORDERED)
        )

    async def place(self, shelf: str, groups: Mapping[str, Sequence[str]]) -> None:
        on_shelf = models.FieldCondition(key="scope", match=models.MatchPrefix(prefix=shelf))
        for scope, ids in groups.items():
            still = models.Filter(must=[on_shelf, models.HasIdCondition(has_id=list(ids))])
            await self._collection.call(
                methodcaller("set_payload", self._collection.name, {"scope": scope}, still, **ORDERED)
            )

    async def erase(self, plan: Callable[[], Erasing]) -> Erasure:
        """Delete the points; their bytes stay in the server's files until it writes these anew.

        A writer may add a version before the deletion; then another round erases that one. What is left comes
        first, so that whoever takes a number that was erased finds that it is used up; but records that
        begin anew come after what they were.
        """
        name, total = self._collection.name, Erasure((), ())
        while (erasure := await self._drive(plan())).erased:
            notes = [struct(point) for point in erasure.left if "event" not in point.payload]
            anew = [struct(point) for point in erasure.left if "event" in point.payload]
            doomed = erased(erasure.erased, erasure.created)
            steps = [*_upserted(notes), doomed, *_upserted(anew)]
            await self._collection.call(methodcaller("batch_update_points", name, steps, **ORDERED))
            total = Erasure(total.erased + erasure.erased, total.left + erasure.left)
        return total

    async def info(self) -> EngineInfo:
        name = self._collection.name
        return EngineInfo(
            kind="server",
            location=", ".join(self._collection.address.urls),
            points=(await self._collection.call(lambda client: client.count(name))).count,
            embedder=self._manifest.embedder,
            dimension=self._manifest.dimension,
            format=self._manifest.format,
            layout=await self._collection.layout(),
        )

    async def mark_current(self) -> None:
        self._manifest = self._manifest.model_copy(update={"format": FORMAT})
        payload = {"manifest": self._manifest.model_dump_json()}
        await self._collection.call(
            methodcaller("set_payload", self._collection.name, payload, [MANIFEST_ID], **ORDERED)
        )

    async def close(self) -> None:
        """Close this loop's connections; those of other loops end with them."""
        await self._collection.nodes.close()

    async def _drive(self, erasing: Erasing) -> Erasure:
        try:
            wanted = next(erasing)
            while True:
                wanted = erasing.send(await self._collection.read(wanted))
        except StopIteration as done:
            erasure: Erasure = done.value
            return erasure

    async def _decide(
        self, turn: Mapping[int, Step], kept: dict[int, Version | str], refused: dict[int, MnemeError]
    ) -> dict[int, Entry]:
        seen = await self._collection.read([point for step in turn.values() for point in step.reads])
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

    async def _ask(self, requests: list[models.QueryRequest]) -> list[list[models.ScoredPoint]]:
        name = self._collection.name
        answers = await self._collection.call(lambda client: client.query_batch_points(name, requests))
        return [answer.points for answer in answers]

    async def _index(self, numbers: Iterable[str], texts: Iterable[str] = ()) -> None:
        """Index what a ranking, its filter or an order reads, once: a strict server takes no others."""
        if self._collection.nodes.in_memory:
            return
        kinds = dict.fromkeys(texts, KEYWORD) | dict.fromkeys(numbers, FLOAT)
        for path in kinds.keys() - self._indexed:
            index = methodcaller(
                "create_payload_index", self._collection.name, path, field_schema=kinds[path]
            )
            await self._collection.call(index)
            self._indexed.add(path)

    async def _parts(self, legs: Sequence[Leg], ids: list[str]) -> dict[str, dict[str, float]]:
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


def _check_manifest(location: str, found: Manifest, wanted: Manifest) -> None:
    check_format(location, found.format)
    if (found.embedder, found.dimension) != (wanted.embedder, wanted.dimension):
        raise LedgerMismatch(
            f"The ledger at {location} was made with the embedder {found.embedder} "
            f"({found.dimension} dimensions), not {wanted.embedder} ({wanted.dimension}).",
            REEMBED,
        )


def _upserted(points: list[models.PointStruct]) -> list[models.UpsertOperation]:
    return [models.UpsertOperation(upsert=models.PointsList(points=points))] if points else []


def _first_of_each_record(waiting: Mapping[int, Step]) -> dict[int, Step]:
    first = {waiting[number].record: number for number in sorted(waiting, reverse=True)}
    return {number: waiting[number] for number in sorted(first.values())}
