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
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, Self, TypeVar

import qdrant_edge as edge

from mneme.core.errors import LedgerMismatch
from mneme.stores.ledger.edge_queries import legs_of
from mneme.stores.ledger.edge_reader import ShardReader
from mneme.stores.ledger.engine import (
    CHANGED,
    DENSE,
    FORMAT,
    REEMBED,
    Embedded,
    EngineInfo,
    Entry,
    Erasing,
    Erasure,
    Payload,
    Point,
    Query,
    Scored,
    Sides,
    Step,
    Weighed,
    Where,
    compared_texts,
    found_by,
)
from mneme.stores.ledger.fingerprints import FIELDS, of_dense
from mneme.stores.ledger.folder import Folder
from mneme.stores.ledger.journal import JOURNAL, Journal, write
from mneme.stores.ledger.manifest import Manifest
from mneme.stores.ledger.reconciling import points_of, reconcile
from mneme.stores.ledger.records import Version
from mneme.stores.ledger.scopes import Scopes
from mneme.stores.ledger.sealing import open_sealed, seal
from mneme.stores.ledger.shards import completed, copy, doubled, guarded, load, make, to_point

T = TypeVar("T")
READERS = 4
SCATTERED = 5_000
"""Points among which it hardly matters where they lie."""
_OPEN: dict[Path, "EdgeEngine"] = {}
_OPENING = threading.Lock()
NOTHING = Erasure((), ())


class EdgeEngine:
    """A folder's ledger; make one with `open`."""

    def __init__(self, folder: Folder, shard: edge.EdgeShard, manifest: Manifest) -> None:
        self._folder, self._asked, self._manifest = folder, ShardReader(shard), manifest
        self._journal = Journal(folder.shard / JOURNAL)
        self._users = 0
        self._known = Scopes(guarded(self._asked.scopes, Where(())))
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
        return await self._run(self._readers, self._asked.read, ids)

    async def search(self, query: Query) -> list[Scored]:
        if not self._known.meets(query.where):  # such as clusters, where there are none
            return []
        if query.ranking is not None:
            numbers, texts = query.ranking.paths.values(), compared_texts(query.where)
            if not self._indexed.issuperset([*numbers, *texts]):
                await self._run(self._writer, self._index, numbers, texts)
        return await self._run(self._readers, self._asked.search, self._narrowed(query))

    async def pool(self, query: Query) -> dict[str, dict[str, float]]:
        query = self._narrowed(query)
        legs = legs_of(query)
        found = await asyncio.gather(*(self._run(self._readers, self._asked.leg, query, leg) for leg in legs))
        pool: dict[str, dict[str, float]] = {}
        for (name, _, _), points in zip(legs, found, strict=True):
            for point in points:
                pool.setdefault(str(point.id), {})[name] = point.score
        return pool

    def _narrowed(self, query: Query) -> Query:
        return query._replace(where=self._known.narrowed(query.where))

    async def weigh(self, query: Query, ids: Sequence[str]) -> dict[str, Weighed]:
        return await self._run(self._readers, self._asked.weigh, query, ids) if ids else {}

    async def around(
        self, query: Query, heads: Sequence[Payload], reach: int
    ) -> tuple[list[Sides], dict[str, Weighed]]:
        return await self._run(self._readers, self._asked.around, query, heads, reach) if heads else ([], {})

    async def scan(
        self, where: Where, limit: int, offset: int = 0, *, newest_first: bool = False
    ) -> list[Payload]:
        numbers, texts = found_by(where)
        if not self._indexed.issuperset([*numbers, *texts]):
            await self._run(self._writer, self._index, numbers, texts)
        return await self._run(self._readers, self._asked.scan, where, limit, offset, newest_first)

    async def latest(self, where: Where, limit: int) -> list[Payload]:
        if CHANGED not in self._indexed:
            await self._run(self._writer, self._index, [CHANGED])
        return await self._run(self._readers, self._asked.latest, where, limit)

    async def count(self, where: Where) -> int:
        return await self._run(self._readers, self._asked.count, where)

    async def scopes(self, where: Where) -> list[str]:
        return await self._run(self._readers, self._asked.scopes, where)

    async def erase(self, plan: Callable[[], Erasing]) -> Erasure:
        """Copy everything else into a new generation, switch to it, and delete the old files.

        Deleting inside the engine leaves the bytes in its payload pages and its write-ahead log.
        """
        return await self._run(self._writer, self._erase, plan)

    async def compact(self) -> bool:
        return await self._run(self._writer, self._compact)

    async def vectors(self, where: Where) -> dict[str, Sequence[float]]:
        return await self._run(self._readers, self._asked.vectors, where)

    async def vectors_by_ids(self, ids: Sequence[str]) -> dict[str, Sequence[float]]:
        return await self._run(self._readers, self._asked.vectors_by_ids, ids)

    async def unembedded(self, limit: int) -> dict[str, Payload]:
        return await self._run(self._readers, self._asked.unembedded, limit)

    async def embed(self, heads: Sequence[Embedded]) -> None:
        await self._run(self._writer, self._embed, heads)

    async def place(self, shelf: str, groups: Mapping[str, Sequence[str]]) -> None:
        await self._run(self._writer, self._place, shelf, groups)
        await self._run(self._syncer, self._sync)

    async def info(self) -> EngineInfo:
        return EngineInfo(
            kind="edge",
            location=str(self._folder.path),
            points=await self._run(self._readers, lambda: self._asked.shard.info().points_count),
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
        seen = self._asked.read([point_id for step in steps for point_id in step.reads])
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
            write(self._journal.path, points_of(self._asked.shard))
            self._renew_journal()

    def _renew_journal(self) -> None:
        self._journal.close()
        self._journal = Journal(self._folder.shard / JOURNAL)

    def _sync(self) -> None:
        self._journal.flush()

    def _versions(self, outcomes: Sequence[Entry | str]) -> list[Version]:
        """Return what the steps stored, and what replays had stored before."""
        before = self._asked.read([outcome for outcome in outcomes if isinstance(outcome, str)])
        return [
            Version.model_validate_json(before[outcome]["event"])
            if isinstance(outcome, str)
            else outcome.version
            for outcome in outcomes
        ]

    def _upsert(self, points: list[Point]) -> None:
        self._asked.shard.update(edge.UpdateOperation.upsert_points([to_point(each) for each in points]))

    def _index(self, numbers: Iterable[str], texts: Iterable[str] = ()) -> None:
        """Index what a ranking, its filter or an order reads: else every payload would be read."""
        kinds: dict[str, Any] = dict.fromkeys(texts, edge.KeywordIndexParams())
        kinds |= dict.fromkeys(numbers, edge.FloatIndexParams())
        for path, kind in kinds.items():
            self._asked.shard.update(edge.UpdateOperation.create_field_index(path, kind))
            self._indexed.add(path)

    def _embed(self, heads: Sequence[Embedded]) -> None:
        now = self._asked.read([head.id for head in heads])
        same = [head for head in heads if now.get(head.id, {}).get("n") == head.n]
        vectors = [edge.PointVectors(head.id, {DENSE: list(head.dense)}) for head in same]
        self._asked.shard.update(edge.UpdateOperation.update_vectors(vectors))
        for head in same:  # afterwards: between the two a kill may come
            noted = {FIELDS[DENSE]: of_dense(head.dense)}
            self._asked.shard.update(edge.UpdateOperation.set_payload([head.id], noted))

    def _place(self, shelf: str, groups: Mapping[str, Sequence[str]]) -> None:
        for scope, ids in groups.items():
            still = self._asked.read(ids)
            placed: list[Any] = [
                point for point, payload in still.items() if payload["scope"].startswith(shelf)
            ]
            self._known.add(scope)
            self._asked.shard.update(edge.UpdateOperation.set_payload(placed, {"scope": scope}))
            self._journal.add({point: {"scope": scope} for point in placed})

    def _erase(self, plan: Callable[[], Erasing]) -> Erasure:
        erasure = self._drive(plan())
        if not erasure.erased:
            return erasure
        self._renew(erasure)
        self._folder.warn_of_aside()
        return erasure

    def _compact(self) -> bool:
        """Rewrite the store where it has doubled since it was last written in order."""
        is_due = self._asked.shard.info().points_count >= max(SCATTERED, 2 * self._manifest.ordered)
        if is_due:
            self._renew()
        return is_due

    def _renew(self, erasure: Erasure = NOTHING) -> None:
        """Go on in a new generation, which has all but what is to be erased."""
        new = _renewed(self._folder, self._asked.shard, self._manifest, erasure)
        self._renew_journal()
        self._indexed = set()
        self._asked.shard, self._manifest = new  # a search under way keeps the old shard alive
        self._folder.clear_leftovers()

    def _drive(self, erasing: Erasing) -> Erasure:
        try:
            wanted = next(erasing)
            while True:
                wanted = erasing.send(self._asked.read(wanted))
        except StopIteration as done:
            erasure: Erasure = done.value
            return erasure

    def _mark_current(self) -> None:
        self._asked.shard.flush()
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
        # The one that is there now: an erasure that was cancelled has just replaced it.
        self._asked.shard.close()


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
    following = {"generation": manifest.generation + 1, "ordered": old.info().points_count}
    manifest = manifest.model_copy(update=following)
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
