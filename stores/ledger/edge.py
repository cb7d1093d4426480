"""The ledger's engine in the process: Qdrant Edge on a folder that one process owns.

One update operation is one entry of the write-ahead log: a batch of steps is stored as a whole or
not at all, also when the process is killed. Writes run on one thread of their own, which makes
read-check-write atomic without a lock; reads run beside them on a few more. The event loop never waits.
The engine's files are mapped and not synced, the journal is, before a write is acknowledged: writes that
come at the same time share one sync.

Search is exact within its scope, so recall is 1 by construction and no HNSW graph is ever built: a
user's records are reached through the scope index and compared in well under a millisecond per
thousand. For many millions of records in one scope, use a server.
"""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, Self, TypeVar

import qdrant_edge as edge

from mneme.core.errors import LedgerMismatch
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
from mneme.stores.ledger.fingerprints import FIELDS, of_dense
from mneme.stores.ledger.folder import Folder
from mneme.stores.ledger.journal import JOURNAL, Journal, write
from mneme.stores.ledger.manifest import MANIFEST, Manifest
from mneme.stores.ledger.reconciling import points_of, reconcile
from mneme.stores.ledger.records import Version
from mneme.stores.ledger.scopes import Scopes
from mneme.stores.ledger.sealing import open_sealed, seal
from mneme.stores.ledger.shards import COPIED_AT_ONCE, completed, copy, doubled, guarded, load, make, to_point

T = TypeVar("T")
READERS = 4
EVENT = ["event"]
_OPEN: dict[Path, "EdgeEngine"] = {}
_OPENING = threading.Lock()
EXACT = edge.SearchParams(exact=True)
NOTHING = Erasure((), ())
WORDS_ALONE = edge.Filter(must=[edge.HasVectorCondition(SPARSE)], must_not=[edge.HasVectorCondition(DENSE)])


class EdgeEngine:
    """A folder's ledger; make one with `open`."""

    def __init__(self, folder: Folder, shard: edge.EdgeShard, manifest: Manifest) -> None:
        self._folder, self._shard, self._manifest = folder, shard, manifest
        self._journal = Journal(folder.shard / JOURNAL)
        self._users = 0
        self._known = Scopes(guarded(self._scopes, Where(())))
        self._indexed: set[str] = set()
        self._writer = ThreadPoolExecutor(1, "ledger-write")
        self._syncer = ThreadPoolExecutor(1, "ledger-sync")
        self._readers = ThreadPoolExecutor(READERS, "ledger-read")

    @classmethod
    def open(cls, path: Path, embedder: str, dimension: int) -> Self:
        """Own the folder and open its ledger, or make one where there is nothing yet.

        Within one process a folder has one engine, no matter how often it is opened. Raises LedgerInUse,
        LedgerMismatch or StorageFailure; then nothing has been touched.
        """
        path = path.expanduser().resolve()
        with _OPENING:
            found = _OPEN.get(path)
            engine = found if isinstance(found, cls) else cls._open(path, embedder, dimension)
            _check_embedder(path, engine._manifest, embedder, dimension)
            _OPEN[path] = engine
            engine._users += 1
            return engine

    @classmethod
    def _open(cls, path: Path, embedder: str, dimension: int) -> Self:
        folder = Folder(path)
        try:
            folder.check_space()
            manifest = folder.manifest or guarded(_create, folder, embedder, dimension)
            _check_embedder(path, manifest, embedder, dimension)
            sealed = open_sealed(folder.shard)
            shard = load(folder.shard)
            try:
                guarded(partial(reconcile, folder.shard, shard, sealed=sealed))
                if guarded(doubled, shard):
                    old, (shard, manifest) = shard, guarded(_renewed, folder, shard, manifest)
                    guarded(old.close)
                folder.clear_leftovers()
            except BaseException:
                guarded(shard.close)  # else nobody could open it while this process lives
                raise
            return cls(folder, shard, manifest)
        except BaseException:
            folder.release()
            raise

    async def append(self, steps: Sequence[Step]) -> list[Version]:
        """Store all of the steps, or none when one of them refuses; they survive a power cut."""
        versions = await self._run(self._writer, self._append, steps)
        await self._run(self._syncer, self._sync)
        return versions

    async def read(self, ids: Sequence[str]) -> dict[str, Payload]:
        return await self._run(self._readers, self._read, ids)

    async def search(self, query: Query) -> list[Scored]:
        if query.ranking is not None and not self._indexed.issuperset(query.ranking.paths.values()):
            await self._run(self._writer, self._index, query.ranking)
        return await self._run(self._readers, self._search, self._narrowed(query))

    async def pool(self, query: Query) -> dict[str, dict[str, float]]:
        query = self._narrowed(query)
        legs = _legs(query)
        found = await asyncio.gather(*(self._run(self._readers, self._leg, query, leg) for leg in legs))
        pool: dict[str, dict[str, float]] = {}
        for (name, _, _), points in zip(legs, found, strict=True):
            for point in points:
                pool.setdefault(str(point.id), {})[name] = point.score
        return pool

    def _narrowed(self, query: Query) -> Query:
        return query._replace(where=self._known.narrowed(query.where))

    async def weigh(self, query: Query, ids: Sequence[str]) -> dict[str, Weighed]:
        return await self._run(self._readers, self._weigh, query, ids) if ids else {}

    async def around(
        self, query: Query, heads: Sequence[Payload], reach: int
    ) -> tuple[list[Sides], dict[str, Weighed]]:
        return await self._run(self._readers, self._around, query, heads, reach) if heads else ([], {})

    async def scan(
        self, where: Where, limit: int, offset: int = 0, *, newest_first: bool = False
    ) -> list[Payload]:
        return await self._run(self._readers, self._scan, where, limit, offset, newest_first)

    async def count(self, where: Where) -> int:
        return await self._run(self._readers, self._count, where)

    async def scopes(self, where: Where) -> list[str]:
        return await self._run(self._readers, self._scopes, where)

    async def erase(self, plan: Callable[[], Erasing]) -> Erasure:
        """Copy everything else into a new generation, switch to it, and delete the old files.

        Deleting inside the engine leaves the bytes in its payload pages and its write-ahead log.
        """
        return await self._run(self._writer, self._erase, plan)

    async def vectors(self, where: Where) -> dict[str, Sequence[float]]:
        return await self._run(self._readers, self._vectors, where)

    async def vectors_by_ids(self, ids: Sequence[str]) -> dict[str, Sequence[float]]:
        return await self._run(self._readers, self._vectors_by_ids, ids)

    async def unembedded(self, limit: int) -> dict[str, Payload]:
        return await self._run(self._readers, self._unembedded, limit)

    async def embed(self, heads: Sequence[Embedded]) -> None:
        await self._run(self._writer, self._embed, heads)

    async def place(self, shelf: str, groups: Mapping[str, Sequence[str]]) -> None:
        await self._run(self._writer, self._place, shelf, groups)
        await self._run(self._syncer, self._sync)

    async def info(self) -> EngineInfo:
        return EngineInfo(
            kind="edge",
            location=str(self._folder.path),
            points=await self._run(self._readers, lambda: self._shard.info().points_count),
            embedder=self._manifest.embedder,
            dimension=self._manifest.dimension,
            format=self._manifest.format,
        )

    async def mark_current(self) -> None:
        await self._run(self._writer, self._mark_current)

    async def close(self) -> None:
        await asyncio.to_thread(self._close)

    async def _run(self, pool: ThreadPoolExecutor, work: Callable[..., T], *given: Any) -> T:
        return await asyncio.get_running_loop().run_in_executor(pool, lambda: guarded(work, *given))

    def _append(self, steps: Sequence[Step]) -> list[Version]:
        seen = self._read([point_id for step in steps for point_id in step.reads])
        points: dict[str, Point] = {}
        outcomes: list[Entry | str] = []
        for step in steps:
            outcome = step.decide(seen)
            outcomes.append(outcome)
            if isinstance(outcome, Entry):
                points |= {point.id: point for point in outcome.points}
                seen |= {point.id: point.payload for point in outcome.points}
        self._mend_journal()
        for point in points.values():
            if scope := point.payload.get("scope"):
                self._known.add(scope)
        if points:
            self._folder.check_space(_weight(points.values(), self._manifest.dimension))
            self._upsert(list(points.values()))
            self._journal.add({point.id: point.payload for point in points.values()})
        return self._versions(outcomes)

    def _mend_journal(self) -> None:
        """Write the journal anew from the index where a write or a sync of it has failed."""
        if not self._journal.is_whole:
            write(self._journal.path, points_of(self._shard))
            self._renew_journal()

    def _renew_journal(self) -> None:
        self._journal.close()
        self._journal = Journal(self._folder.shard / JOURNAL)

    def _sync(self) -> None:
        self._journal.flush()

    def _versions(self, outcomes: Sequence[Entry | str]) -> list[Version]:
        """Return what the steps stored, and what replays had stored before."""
        before = self._read([outcome for outcome in outcomes if isinstance(outcome, str)])
        return [
            Version.model_validate_json(before[outcome]["event"])
            if isinstance(outcome, str)
            else outcome.version
            for outcome in outcomes
        ]

    def _upsert(self, points: list[Point]) -> None:
        self._shard.update(edge.UpdateOperation.upsert_points([to_point(each) for each in points]))

    def _read(self, ids: Sequence[str]) -> dict[str, Payload]:
        found = self._shard.retrieve(list(dict.fromkeys(ids)), True, False)
        return {str(record.id): record.payload or {} for record in found}

    def _search(self, query: Query) -> list[Scored]:
        if not _legs(query):  # a query of stop words only
            return []
        found = self._shard.query(_request(query))
        several = query.mode == "hybrid" or query.ranking is not None
        parts = self._parts(query, [point.id for point in found]) if several and found else {}
        return [_scored(point, query, parts) for point in found]

    def _index(self, ranking: Ranking) -> None:
        """Index the fields that a ranking reads, once: else every candidate's whole payload would be read."""
        for path in ranking.paths.values():
            self._shard.update(edge.UpdateOperation.create_field_index(path, edge.FloatIndexParams()))
            self._indexed.add(path)

    def _parts(self, query: Query, ids: list[Any]) -> dict[str, dict[str, float]]:
        only = edge.Filter(must=[edge.HasIdCondition(set(ids))])
        parts: dict[str, dict[str, float]] = {}
        for name, vector, params in _legs(query):
            request = edge.QueryRequest(
                len(ids), query=edge.Query.Nearest(vector, name), filter=only, params=params
            )
            for point in self._shard.query(request):
                parts.setdefault(str(point.id), {})[name] = point.score
        return parts

    def _leg(self, query: Query, leg: tuple[str, Any, edge.SearchParams]) -> Sequence[edge.ScoredPoint]:
        name, vector, params = leg
        nearest = edge.Query.Nearest(vector, name)
        wanted = _filter(query.where) if any(query.where) else None
        return self._shard.query(
            edge.QueryRequest(query.candidates, query=nearest, filter=wanted, params=params)
        )

    def _weigh(self, query: Query, ids: Sequence[str]) -> dict[str, Weighed]:
        wanted = edge.Filter(must=[edge.HasIdCondition(set(ids)), _filter(query.where)])
        if query.dense is None:
            scroll = edge.ScrollRequest(limit=len(ids), filter=wanted, with_payload=FACETS)
            return {str(r.id): Weighed(None, r.payload or {}) for r in self._shard.scroll(scroll)[0]}
        nearest = edge.Query.Nearest(list(query.dense), DENSE)
        request = edge.QueryRequest(len(ids), query=nearest, filter=wanted, params=EXACT, with_payload=FACETS)
        return {str(p.id): Weighed(p.score, p.payload or {}) for p in self._shard.query(request)}

    def _around(
        self, query: Query, heads: Sequence[Payload], reach: int
    ) -> tuple[list[Sides], dict[str, Weighed]]:
        around = [self._sides(head, reach) for head in heads]
        near = {point for sides in around for side in sides for point in side}
        return around, self._weigh(query, list(near)) if near else {}

    def _sides(self, head: Payload, reach: int) -> Sides:
        same = edge.Filter(must=[edge.FieldCondition("scope", match=edge.MatchValue(head["scope"]))])
        before, after = (
            edge.QueryRequest(
                reach, query=edge.OrderBy("created", direction, head["created"] + step), filter=same
            )
            for direction, step in ((edge.Direction.Desc, -1), (edge.Direction.Asc, 1))
        )
        return [str(p.id) for p in self._shard.query(before)], [str(p.id) for p in self._shard.query(after)]

    def _scan(self, where: Where, limit: int, offset: int, newest_first: bool) -> list[Payload]:
        direction = edge.Direction.Desc if newest_first else edge.Direction.Asc
        request = edge.QueryRequest(
            limit,
            offset=offset,
            query=edge.OrderBy("created", direction),
            filter=_filter(where),
            with_payload=True,
        )
        return [point.payload or {} for point in self._shard.query(request)]

    def _count(self, where: Where) -> int:
        return self._shard.count(edge.CountRequest(exact=True, filter=_filter(where)))

    def _scopes(self, where: Where) -> list[str]:
        request = edge.FacetRequest("scope", limit=2**31, exact=True, filter=_filter(where))
        return [str(hit.value) for hit in self._shard.facet(request)]

    def _vectors(self, where: Where) -> dict[str, Sequence[float]]:
        found: dict[str, Sequence[float]] = {}
        following: Any = None
        while True:
            request = edge.ScrollRequest(
                offset=following, limit=COPIED_AT_ONCE, filter=_filter(where), with_vector=True
            )
            records, following = self._shard.scroll(request)
            named: list[tuple[str, Any]] = [(str(record.id), record.vector) for record in records]
            found |= {point: vector[DENSE] for point, vector in named if DENSE in vector}
            if following is None:
                return found

    def _vectors_by_ids(self, ids: Sequence[str]) -> dict[str, Sequence[float]]:
        found = self._shard.retrieve(list(dict.fromkeys(ids)), False, True)
        named: list[tuple[str, Any]] = [(str(record.id), record.vector) for record in found]
        return {point: vector[DENSE] for point, vector in named if DENSE in vector}

    def _unembedded(self, limit: int) -> dict[str, Payload]:
        request = edge.ScrollRequest(limit=limit, filter=WORDS_ALONE, with_payload=True)
        return {str(record.id): record.payload or {} for record in self._shard.scroll(request)[0]}

    def _embed(self, heads: Sequence[Embedded]) -> None:
        now = self._read([head.id for head in heads])
        same = [head for head in heads if now.get(head.id, {}).get("n") == head.n]
        vectors = [edge.PointVectors(head.id, {DENSE: list(head.dense)}) for head in same]
        self._shard.update(edge.UpdateOperation.update_vectors(vectors))
        for head in same:  # afterwards: between the two a kill may come
            noted = {FIELDS[DENSE]: of_dense(head.dense)}
            self._shard.update(edge.UpdateOperation.set_payload([head.id], noted))

    def _place(self, shelf: str, groups: Mapping[str, Sequence[str]]) -> None:
        for scope, ids in groups.items():
            still = self._read(ids)
            placed: list[Any] = [
                point for point, payload in still.items() if payload["scope"].startswith(shelf)
            ]
            self._known.add(scope)
            self._shard.update(edge.UpdateOperation.set_payload(placed, {"scope": scope}))
            self._journal.add({point: {"scope": scope} for point in placed})

    def _erase(self, plan: Callable[[], Erasing]) -> Erasure:
        erasure = self._drive(plan())
        if not erasure.erased:
            return erasure
        new = _renewed(self._folder, self._shard, self._manifest, erasure)
        self._renew_journal()
        self._indexed = set()
        self._shard, self._manifest = new  # a search under way keeps the old shard alive
        self._folder.clear_leftovers()
        self._folder.warn_of_aside()
        return erasure

    def _drive(self, erasing: Erasing) -> Erasure:
        try:
            wanted = next(erasing)
            while True:
                wanted = erasing.send(self._read(wanted))
        except StopIteration as done:
            erasure: Erasure = done.value
            return erasure

    def _mark_current(self) -> None:
        self._shard.flush()
        self._manifest = self._manifest.model_copy(update={"format": FORMAT})
        self._folder.switch(self._manifest)

    def _close(self) -> None:
        """Release the folder once its last user in this process has closed it."""
        with _OPENING:
            self._users -= 1
            if self._users:
                return
            del _OPEN[self._folder.path]
            self._shut()

    def _shut(self) -> None:
        self._readers.shutdown()
        try:
            self._writer.submit(guarded, self._close_shard).result()
            self._syncer.shutdown()
            self._journal.close()
            if self._journal.is_whole:
                seal(self._folder.shard)
        finally:
            self._writer.shutdown()
            self._folder.release()

    def _close_shard(self) -> None:
        self._shard.close()  # the one that is there now: an erasure that was cancelled has just replaced it


class EdgeRebuild:
    """The building of a new generation of an embedded ledger; start it with `begin`."""

    def __init__(self, folder: Folder, old: edge.EdgeShard, manifest: Manifest) -> None:
        self._folder, self._old, self._manifest = folder, old, manifest
        self._new = guarded(make, folder.fresh(manifest.generation), manifest.dimension)

    @classmethod
    def begin(cls, location: str, embedder: str, dimension: int) -> "EdgeRebuild":
        """Own the folder of a ledger, whatever its embedder. Raises LedgerInUse, LedgerMismatch."""
        path = Path(location).expanduser().resolve()
        if not (path / MANIFEST).is_file():
            raise LedgerMismatch(f"There is no ledger at {path}.")
        folder = Folder(path)
        try:
            assert folder.manifest is not None
            folder.check_space(2 * folder.size())
            update = {
                "embedder": embedder,
                "dimension": dimension,
                "generation": folder.manifest.generation + 1,
            }
            open_sealed(folder.shard)
            return cls(folder, load(folder.shard), folder.manifest.model_copy(update=update))
        except BaseException:
            folder.release()
            raise

    async def pages(self) -> AsyncIterator[dict[str, Payload]]:
        following: Any = None
        while True:
            request = edge.ScrollRequest(offset=following, limit=COPIED_AT_ONCE, with_payload=True)
            records, following = await asyncio.to_thread(guarded, self._old.scroll, request)
            yield {str(record.id): record.payload or {} for record in records}
            if following is None:
                return

    async def add(self, points: Sequence[Point]) -> None:
        operation = edge.UpdateOperation.upsert_points([to_point(each) for each in points])
        await asyncio.to_thread(guarded, self._new.update, operation)

    async def switch(self) -> None:
        await asyncio.to_thread(guarded, self._switch)

    async def close(self) -> None:
        await asyncio.to_thread(guarded, self._close)

    def _switch(self) -> None:
        write(self._folder.making(self._manifest.generation) / JOURNAL, points_of(self._new))
        self._new.close()
        completed(self._folder, self._manifest).close()  # the old generation is cleared on closing

    def _close(self) -> None:
        self._new.close()
        self._old.close()
        self._folder.clear_leftovers()
        if (self._folder.shard / JOURNAL).exists():
            seal(self._folder.shard)
        self._folder.release()


def _create(folder: Folder, embedder: str, dimension: int) -> Manifest:
    manifest = Manifest(format=FORMAT, embedder=embedder, dimension=dimension, generation=1)
    making = folder.fresh(1)
    make(making, dimension).close()
    write(making / JOURNAL, [])
    completed(folder, manifest).close()
    return manifest


def _renewed(
    folder: Folder, old: edge.EdgeShard, manifest: Manifest, erasure: Erasure = NOTHING
) -> tuple[edge.EdgeShard, Manifest]:
    """Copy a generation into the next one, but what is to be erased, and switch to it."""
    folder.check_space(folder.size())
    erased = frozenset(erasure.erased)
    manifest = manifest.model_copy(update={"generation": manifest.generation + 1})
    making = folder.fresh(manifest.generation)
    new = make(making, manifest.dimension)
    copy(old, new, lambda points: [p for p in points if str(p.id) not in erased])
    if erasure.left:
        new.update(edge.UpdateOperation.upsert_points([to_point(each) for each in erasure.left]))
    write(making / JOURNAL, points_of(new))
    new.close()
    return completed(folder, manifest), manifest


def _check_embedder(path: Path, manifest: Manifest, embedder: str, dimension: int) -> None:
    if (manifest.embedder, manifest.dimension) != (embedder, dimension):
        raise LedgerMismatch(
            f"The ledger at {path} was made with the embedder {manifest.embedder} "
            f"({manifest.dimension} dimensions), not {embedder} ({dimension}).",
            REEMBED,
        )


def _weight(points: Any, dimension: int) -> int:
    """Estimate, generously, the bytes that points take in the log and in the mapped files."""
    return sum(8 * dimension + 8 * len(point.payload.get("event", "")) + 4096 for point in points)


def _legs(query: Query) -> list[tuple[str, Any, edge.SearchParams]]:
    """Return the vector, its name and its parameters for each part of the query."""
    legs: list[tuple[str, Any, edge.SearchParams]] = []
    if query.mode != "bm25" and query.dense is not None:
        legs.append((DENSE, list(query.dense), EXACT))
    if query.mode != "dense" and query.words is not None and query.words.indices:
        everywhere = query.where._replace(conditions=())
        corpus = edge.IdfParams(_filter(everywhere) if any(everywhere) else None)
        vector = edge.SparseVector(query.words.indices, query.words.values)
        legs.append((SPARSE, vector, edge.SearchParams(exact=True, idf=corpus)))
    return legs


def _request(query: Query) -> edge.QueryRequest:
    wanted = _filter(query.where) if any(query.where) else None  # an empty filter costs a full pass
    common: dict[str, Any] = {
        "offset": query.offset,
        "with_payload": EVENT,
        "score_threshold": query.min_score,
    }
    legs = _legs(query)
    if query.mode != "hybrid" and query.ranking is None:
        [(name, vector, params)] = legs
        return edge.QueryRequest(
            query.limit, query=edge.Query.Nearest(vector, name), filter=wanted, params=params, **common
        )
    prefetches = [
        edge.Prefetch(query.candidates, edge.Query.Nearest(vector, name), filter=wanted, params=params)
        for name, vector, params in legs
    ]
    fused: Any = edge.Fusion.Rrf(k=RRF_K) if query.ranking is None else _formula(query)
    return edge.QueryRequest(query.limit, query=fused, prefetches=prefetches, **common)


def _formula(query: Query) -> edge.Formula:
    """Return a ranking as the engine's formula; missing fields count as the ranking's default."""
    ranking, e = query.ranking, edge.Expression
    assert ranking is not None
    paths = ranking.paths
    fresh = e.Decay(
        edge.DecayKind.Exp,
        x=e.Variable(paths.get(ranking.aged_from, "updated")),
        target=e.Constant(query.now),
        midpoint=0.5,
        scale=ranking.half_life_days,
    )
    if ranking.ageless:
        ageless = e.Variable(paths[ranking.ageless])
        fresh = e.Sum([ageless, e.Mult([e.Sum([e.Constant(1.0), e.Neg(ageless)]), fresh])])
    similarity = e.Variable("$score")
    if query.mode == "bm25":
        similarity = e.Div(similarity, e.Sum([similarity, e.Constant(HALF_ALIKE)]), None)
    terms = [
        e.Mult([e.Constant(ranking.similarity), similarity]),
        *(e.Mult([e.Constant(weight), e.Variable(paths[name])]) for name, weight in ranking.fields.items()),
        e.Mult([e.Constant(ranking.recency), fresh]),
    ]
    return edge.Formula(e.Sum(terms), defaults(query))


def _scored(point: edge.ScoredPoint, query: Query, parts: Mapping[str, dict[str, float]]) -> Scored:
    payload = point.payload or {}
    single: dict[str, float] = (
        {} if query.mode == "hybrid" or query.ranking is not None else {query.mode: point.score}
    )
    return Scored(payload["event"], point.score, parts.get(str(point.id), single))


def _filter(where: Where) -> edge.Filter:
    below = [edge.FieldCondition("scope", match=edge.MatchPrefix(scope)) for scope in where.scopes]
    below += [edge.FieldCondition("scope", match=edge.MatchValue(scope)) for scope in where.whole]
    scopes = below if len(below) < 2 else [edge.Filter(should=[*below])]
    negative = [condition for condition in where.conditions if condition.operator == "ne"]
    positive = [condition for condition in where.conditions if condition.operator != "ne"]
    return edge.Filter(
        must=[*scopes, *map(_condition, positive)],
        must_not=[_condition(condition._replace(operator="eq")) for condition in negative] or None,
    )


def _condition(condition: Condition) -> Any:
    path, operator, value = condition
    if value is None:
        return edge.IsEmptyCondition(path)
    if operator == "in":
        return edge.FieldCondition(path, match=edge.MatchAny(value))
    if isinstance(value, datetime):
        return edge.FieldCondition(path, range=edge.RangeDateTime(**{operator: value.isoformat()}))
    if operator != "eq":
        return edge.FieldCondition(path, range=edge.RangeFloat(**{operator: value}))
    if isinstance(value, str):
        return edge.FieldCondition(path, match=edge.MatchValue(value))
    return edge.FieldCondition(path, range=edge.RangeFloat(gte=value, lte=value))
