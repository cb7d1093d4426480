"""The index in the home: Qdrant Edge, one copy for each process that searches.

The engine lets one process into a folder. So each process that searches owns a copy of its own
(`index-1`, `index-2`, …): the first that nobody has, brought to the end of the log. A copy is made where all
are taken, and stays for the next one; a process that only reads, lists or writes needs none. The alternative,
one owner whom the others ask, has them wait for it, and depends on its being alive. A copy and its first
search took 0.25 s of processor time to build for 1,000 records, 4.6 s for 20,000; 0.06 and 0.19 s when it was
opened again (two busy cores).

A copy is trusted where it was closed and its files are as they were then; after a kill, a power cut or damage
it is built anew from the log. Search is exact within its scope, so recall is 1 by construction and no HNSW
graph is built: a user's records are reached through the scope index and compared in well under a
millisecond per thousand. For many millions of records in one scope, use a Qdrant server.
"""

import fcntl
import logging
import os
import shutil
import threading
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any, TypeVar

import qdrant_edge as edge
from pydantic import ValidationError

from mneme.core.errors import Damaged, MnemeError
from mneme.core.private import make_private_file, make_private_folder
from mneme.stores.ledger.database import REPAIR, Database
from mneme.stores.ledger.edge_queries import filter_of, found_of, legs_of, request_of
from mneme.stores.ledger.index import (
    STAMP_ID,
    Changes,
    Point,
    Stamp,
    agrees,
    changes,
    differences,
    points_of,
    searched,
)
from mneme.stores.ledger.log import State, check_embedder, state_of
from mneme.stores.ledger.query import DENSE, SPARSE, Found, LedgerInfo, Query, compared_texts
from mneme.stores.ledger.scopes import Scopes
from mneme.stores.ledger.sealing import is_sealed, seal, unseal
from mneme.stores.ledger.words import Words

T = TypeVar("T")
COPY = "index-"
AT_ONCE = 1000
SCATTERED = 5_000
"""Records among which it hardly matters where they lie."""
LOOK = 0.5
"""Seconds between two looks whether another process has written."""

log = logging.getLogger(__name__)


def guarded(work: Callable[..., T], *given: Any) -> T:
    """Do work of the engine; whatever it raises becomes Damaged, which says what to do."""
    try:
        return work(*given)
    except MnemeError:
        raise
    except BaseException as failure:
        if not (isinstance(failure, Exception) or type(failure).__name__ == "PanicException"):
            raise  # the engine raises bare Exception, and in a panic, something that is none
        raise Damaged(f"The index of the embedded ledger failed: {failure}.", REPAIR) from failure


class EdgeIndex:
    """This process's copy; opened with the first search."""

    def __init__(self, folder: Path, database: Database, check_space: Callable[[], None]) -> None:
        self._folder, self._database, self._check_space = folder, database, check_space
        self._following, self._renewing = threading.RLock(), threading.Lock()
        self._ended = threading.Event()
        self._watch: threading.Thread | None = None
        self._copy: Copy | None = None
        self._has_remains = False

    @property
    def is_open(self) -> bool:
        """Say whether this process has a copy."""
        return self._copy is not None

    def follow(self) -> None:
        copy = self._opened()
        with self._database.reading() as cursor:
            state = state_of(cursor)
        if state.seq == copy.seq:
            return
        check_embedder(str(self._folder), state, *copy.made_with)
        with self._following:
            copy = self._opened()
            self._check_space()
            with self._database.reading(snapshot=True) as cursor:
                found = changes(cursor, copy.seq)
            guarded(copy.apply, found)
            self._has_remains |= found.erases

    def written(self) -> None:
        """Follow at once where this process has a copy."""
        if self.is_open:
            self.follow()

    def search(self, query: Query) -> list[Found]:
        copy = self._opened()
        query = copy.narrowed(query)
        if not copy.known.meets(query.where) or not legs_of(query):
            return []
        return guarded(copy.search, query)

    def pool(self, query: Query) -> dict[str, dict[str, float]]:
        copy = self._opened()
        return guarded(copy.pool, copy.narrowed(query))

    def compact(self) -> bool:
        copy = self._opened()
        is_due = copy.moved >= max(SCATTERED, copy.count())
        if is_due:
            self.rebuild()
        return is_due

    def erased(self) -> None:
        """Build this copy anew without what was erased, and remove those that nobody has open."""
        self.written()
        self._remove_remains()
        for path in copies_in(self._folder):
            if (lock := _lock(path)) is not None:
                shutil.rmtree(path, ignore_errors=True)
                os.close(lock)

    def rebuild(self) -> None:
        """Build the copy anew; searches go on in the former one meanwhile, and other changes too."""
        self._has_remains = True
        self._opened()
        self._remove_remains()

    def _remove_remains(self) -> None:
        """Put a copy that is built anew in the place of one whose files may hold what was erased."""
        with self._renewing:
            if not self._has_remains:
                return
            self._has_remains = False
            former = self._opened()
            new = self._built(former.folder, former.lock)
            with self._following:
                with self._database.reading(snapshot=True) as cursor:
                    found = changes(cursor, new.seq)
                guarded(new.apply, found)
                self._has_remains |= found.erases
                self._copy = new
            former.discard()

    def verify(self) -> list[str]:
        """Compare the copies that nobody has open, and that of this process, with the log."""
        wrong: list[str] = []
        for path in copies_in(self._folder):
            if (lock := _lock(path)) is not None:
                wrong += [f"{path.name}: its files are damaged"] if is_sealed(path) is False else []
                os.close(lock)
        if copies_in(self._folder):
            wrong += self._compared(self._opened())
        return wrong

    def _compared(self, copy: "Copy") -> list[str]:
        with self._following, self._database.reading(snapshot=True) as cursor:
            guarded(copy.apply, changes(cursor, copy.seq))
            expected = points_of(cursor, searched(cursor), state_of(cursor))
            return differences(expected, guarded(copy.points))

    def info(self, info: LedgerInfo) -> LedgerInfo:
        return info

    def close(self) -> None:
        """Close the copy, and note what its files are."""
        self._ended.set()
        if self._watch is not None and self._watch is not threading.current_thread():
            self._watch.join()
        with self._renewing, self._following:
            copy, self._copy = self._copy, None
            if copy is not None:
                copy.close()
                if self._has_remains:
                    shutil.rmtree(copy.folder, ignore_errors=True)

    def _opened(self) -> "Copy":
        if self._copy is None:
            with self._following:
                if self._copy is None:
                    self._copy = self._open()
                    self._watch = threading.Thread(target=self._look, name="ledger-follow", daemon=True)
                    self._watch.start()
        return self._copy

    def _look(self) -> None:
        """Follow what other processes write, and erase, so that searches need not."""
        while not self._ended.wait(LOOK):
            try:
                self.follow()
                self._remove_remains()
            except MnemeError as failure:
                log.debug("The index could not follow the log, and does so with the next search: %s", failure)

    def _open(self) -> "Copy":
        folder, lock = _first_free(self._folder)
        try:
            return self._loaded(folder, lock) or self._emptied(folder, lock)
        except BaseException:
            os.close(lock)
            raise

    def _emptied(self, folder: Path, lock: int) -> "Copy":
        for shard in shards_in(folder):
            shutil.rmtree(shard, ignore_errors=True)
        return self._built(folder, lock)

    def _loaded(self, folder: Path, lock: int) -> "Copy | None":
        """Open a copy that was closed as it is now; None where it must be built anew."""
        sealed = is_sealed(folder)
        unseal(folder)
        shards = shards_in(folder)
        if sealed is False:
            log.warning("The index in %s was damaged; it is built anew from the log.", folder)
        if not sealed or len(shards) != 1:
            return None
        copy = Copy(shards[0], guarded(edge.EdgeShard.load, str(shards[0])), lock)
        with self._database.reading(snapshot=True) as cursor:
            why = agrees(cursor, copy.read_stamp())
        if not why:
            return copy
        log.warning("The index in %s is built anew from the log: %s.", folder, why)
        copy.shard.close()
        return None

    def _built(self, folder: Path, lock: int) -> "Copy":
        """Build a copy from the log."""
        self._check_space()
        number = 1 + max((int(each.name) for each in shards_in(folder)), default=0)
        shard = folder / f"{number:06d}"
        make_private_folder(shard)
        with self._database.reading(snapshot=True) as cursor:
            state, records = state_of(cursor), searched(cursor)
            copy = Copy(shard, guarded(make, shard, state.dimension), lock)
            for start in range(0, len(records), AT_ONCE):
                guarded(copy.upsert, points_of(cursor, records[start : start + AT_ONCE], state))
            guarded(copy.stamp, state)
        return copy


class Copy:
    """An open shard, up to which entry it has followed the log, and how much has moved in it since."""

    def __init__(self, path: Path, shard: edge.EdgeShard, lock: int) -> None:
        self.path, self.shard, self.lock = path, shard, lock
        self.seq = self.moved = 0
        self.made_with = ("", 0)
        self.known = Scopes(())
        self._indexed: set[str] = set()

    @property
    def folder(self) -> Path:
        return self.path.parent

    def read_stamp(self) -> Stamp | None:
        """Read the stamp, and which scopes there are."""
        try:
            [found] = self.shard.retrieve([STAMP_ID], True, False)
            stamp = Stamp.model_validate_json((found.payload or {})["stamp"])
        except (ValueError, LookupError, ValidationError):
            return None
        hits = self.shard.facet(edge.FacetRequest("scope", limit=2**31, exact=True))
        self.known, self.seq = Scopes(str(hit.value) for hit in hits), stamp.seq
        self.made_with = (stamp.embedder, stamp.dimension)
        return stamp

    def stamp(self, state: State) -> None:
        payload = {"stamp": Stamp.of(state).model_dump_json()}
        self.shard.update(edge.UpdateOperation.upsert_points([edge.Point(STAMP_ID, {}, payload)]))
        self.seq, self.made_with = state.seq, (state.embedder, state.dimension)

    def apply(self, found: Changes) -> None:
        """Do what follows the log to another entry."""
        if found.gone:
            self.shard.update(edge.UpdateOperation.delete_points([*found.gone]))
        self.upsert(found.points)
        self.moved += len(found.points) + len(found.gone)
        self.stamp(found.state)

    def upsert(self, points: list[Point]) -> None:
        for point in points:
            self.known.add(point.payload["scope"])
        if points:
            self.shard.update(edge.UpdateOperation.upsert_points([_to_edge(each) for each in points]))

    def count(self) -> int:
        return int(self.shard.info().points_count)

    def narrowed(self, query: Query) -> Query:
        return query._replace(where=self.known.narrowed(query.where))

    def search(self, query: Query) -> list[Found]:
        if query.ranking is not None:
            self._index(query)
        found = self.shard.query(request_of(query))
        several = query.mode == "hybrid" or query.ranking is not None
        parts = self._parts(query, [point.id for point in found]) if several and found else {}
        return [found_of(point, query, parts) for point in found]

    def pool(self, query: Query) -> dict[str, dict[str, float]]:
        wanted = filter_of(query.where) if any(query.where) else None
        return self._legs(query, query.candidates, wanted)

    def _parts(self, query: Query, ids: list[Any]) -> dict[str, dict[str, float]]:
        return self._legs(query, len(ids), edge.Filter(must=[edge.HasIdCondition(set(ids))]))

    def _legs(self, query: Query, limit: int, wanted: edge.Filter | None) -> dict[str, dict[str, float]]:
        found: dict[str, dict[str, float]] = {}
        for name, vector, params in legs_of(query):
            nearest = edge.Query.Nearest(vector, name)
            request = edge.QueryRequest(limit, query=nearest, filter=wanted, params=params)
            for point in self.shard.query(request):
                found.setdefault(str(point.id), {})[name] = point.score
        return found

    def _index(self, query: Query) -> None:
        """Index what a ranking and its filter read: else every payload would be read."""
        assert query.ranking is not None
        kinds: dict[str, Any] = dict.fromkeys(compared_texts(query.where), edge.KeywordIndexParams())
        kinds |= dict.fromkeys(query.ranking.paths.values(), edge.FloatIndexParams())
        for path in kinds.keys() - self._indexed:
            self.shard.update(edge.UpdateOperation.create_field_index(path, kinds[path]))
            self._indexed.add(path)

    def points(self) -> dict[str, Point]:
        """Return all that the shard has."""
        found: dict[str, Point] = {}
        following: Any = None
        while True:
            request = edge.ScrollRequest(offset=following, limit=AT_ONCE, with_payload=True, with_vector=True)
            records, following = self.shard.scroll(request)
            for each in records:
                if str(each.id) != STAMP_ID:
                    found[str(each.id)] = _from_edge(each)
            if following is None:
                return found

    def discard(self) -> None:
        """Remove the files of a shard that another has replaced; a search under way has them open still."""
        shutil.rmtree(self.path, ignore_errors=True)

    def close(self) -> None:
        guarded(self.shard.close)
        with suppress(OSError):
            seal(self.folder)
        os.close(self.lock)


def make(path: Path, dimension: int) -> edge.EdgeShard:
    """Make an empty shard in an empty folder."""
    config = edge.EdgeConfig(
        vectors={DENSE: edge.EdgeVectorParams(size=dimension, distance=edge.Distance.Cosine)},
        sparse_vectors={SPARSE: edge.EdgeSparseVectorParams(modifier=edge.Modifier.Idf)},
    )
    shard = edge.EdgeShard.create(str(path), config)
    by_place = edge.KeywordIndexParams(is_tenant=True, prefix=True)
    shard.update(edge.UpdateOperation.create_field_index("scope", by_place))
    return shard


def _to_edge(point: Point) -> edge.Point:
    vectors: dict[str, Any] = {SPARSE: edge.SparseVector(point.words.indices, point.words.values)}
    if point.dense is not None:
        vectors[DENSE] = point.dense
    return edge.Point(point.id, vectors, point.payload)


def _from_edge(record: edge.Record) -> Point:
    vectors: Any = record.vector or {}
    sparse = vectors.get(SPARSE)
    words = Words(sparse.indices, sparse.values) if sparse is not None else Words([], [])
    return Point(str(record.id), record.payload or {}, vectors.get(DENSE), words)


def _first_free(folder: Path) -> tuple[Path, int]:
    """Own the first copy that nobody has, or a new one."""
    for number in count(1):
        copy = folder / f"{COPY}{number}"
        if (lock := _lock(copy)) is not None:
            make_private_folder(copy)
            return copy, lock
    raise AssertionError("there is always another number")


def _lock(copy: Path) -> int | None:
    """Own a copy until the lock is closed; None where a process has it."""
    path = copy.with_name(f"{copy.name}.lock")
    make_private_file(path)
    lock = os.open(path, os.O_RDWR)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        return None
    return lock


def copies_in(folder: Path) -> list[Path]:
    """Return the copies in a ledger's folder."""
    return sorted(path for path in folder.glob(f"{COPY}*") if path.is_dir())


def shards_in(copy: Path) -> list[Path]:
    """Return the engine's folders in a copy: one, but for a moment while it is built anew."""
    return sorted(path for path in copy.glob("[0-9]*") if path.is_dir())
