"""The index of teams: a collection on a Qdrant server or cluster that all processes share.

Whoever writes brings the index to the end of the log before the write is acknowledged, and notes in the log
up to where it has come. A search does the same where another writer has not done so yet. So a point may be
written twice, or late: each carries the entry up to which the log was read for it, and an older one never
replaces a newer one; a point that came back after its record was forgotten is removed by whoever wrote it.

On a cluster a write counts when every replica that is in use has it, and a replica that missed one is in use
no longer: so one replica is enough to read from. Writes of a shard go through a leader that can change
(`medium`): `strong` has one for ever, and stops with its node.
"""

import logging
import threading
from collections.abc import Iterator, Sequence
from operator import methodcaller
from typing import Any
from uuid import uuid4

from pydantic import ValidationError
from qdrant_client import models

from mneme.core.errors import LedgerMismatch, StorageFailure
from mneme.stores.ledger.addresses import address_of
from mneme.stores.ledger.index import (
    STAMP_ID,
    Point,
    Stamp,
    agrees,
    changes,
    differences,
    is_searched,
    points_of,
    searched,
)
from mneme.stores.ledger.log import Log, State, check_embedder, heads_of, state_of
from mneme.stores.ledger.nodes import Nodes
from mneme.stores.ledger.query import (
    DENSE,
    SPARSE,
    Found,
    Layout,
    LedgerInfo,
    Query,
    compared_texts,
)
from mneme.stores.ledger.server_queries import Leg, filter_of, found_of, legs_of, request_of
from mneme.stores.ledger.upgrading import Contents, Manifest, Piece, bring_in
from mneme.stores.ledger.words import Words

OLDEST = (1, 19)  # conditional upserts and IDF over a part of the collection
AT_ONCE = 500
TRIES = 5
ORDERED: Any = {"ordering": models.WriteOrdering.MEDIUM}
INDEXES: dict[str, Any] = {
    "scope": models.KeywordIndexParams(type=models.KeywordIndexType.KEYWORD, is_tenant=True, prefix=True),
}
FLOAT, KEYWORD = models.PayloadSchemaType.FLOAT, models.PayloadSchemaType.KEYWORD

log = logging.getLogger(__name__)


class ServerIndex:
    """The collection behind an alias; make one with `open`. Its methods block."""

    def __init__(self, address: str, of: Log, api_key: str) -> None:
        self._address, self._log = address_of(address), of
        self._nodes = Nodes(self._address, api_key)
        self.name = f"{self._address.collection}-index"
        self._following = threading.Lock()
        self._indexed: set[str] = set()
        with of.database.reading() as cursor:
            state = state_of(cursor)
        self._made_with = (state.embedder, state.dimension)

    @classmethod
    def open(cls, address: str, of: Log, api_key: str = "") -> "ServerIndex":
        """Open the index of a log, or make one. Raises LedgerMismatch, StorageFailure."""
        index = cls(address, of, api_key)
        try:
            index._nodes.choose()
            index._check_version()
            index._take_over()
            if why := index._unusable():
                if why != "it is not whole":
                    log.warning("The index %s is built anew from the log: %s.", index.name, why)
                index.rebuild(only_where_unusable=True)
            index.follow()
        except BaseException:
            index.close()
            raise
        return index

    def follow(self) -> None:
        with self._log.database.reading() as cursor:
            state = state_of(cursor)
        check_embedder(self.name, state, *self._made_with)
        if state.indexed < state.seq:
            with self._following:
                self._catch_up()

    def written(self) -> None:
        """Follow what was written; where the server is away, the next search does so: the write is safe."""
        try:
            self.follow()
        except StorageFailure as failure:
            log.warning("%s What was written is safe, and is found once the server is back.", failure)

    def erased(self) -> None:
        self.written()

    def _catch_up(self) -> None:
        with self._log.database.reading(snapshot=True) as cursor:
            after = state_of(cursor).indexed
            found = changes(cursor, after)
        self._upsert(self.name, found.points, found.state)
        self._delete(found.gone)
        with self._log.database.reading() as cursor:
            heads = heads_of(cursor, [point.id for point in found.points])
        self._delete([p.id for p in found.points if p.id not in heads or not is_searched(heads[p.id])])
        self._stamp(self.name, found.state)
        with self._log.database.writing() as cursor:
            cursor.execute(
                "UPDATE ledger_state SET indexed = ? WHERE indexed >= ? AND indexed < ?",
                (found.state.seq, after, found.state.seq),
            )

    def _upsert(self, name: str, points: Sequence[Point], state: State) -> None:
        older = models.FieldCondition(key="seq", range=models.Range(lte=state.seq))
        condition = models.Filter(must=[older])
        for start in range(0, len(points), AT_ONCE):
            structs = [_struct(each, state.seq) for each in points[start : start + AT_ONCE]]
            self._nodes.call(methodcaller("upsert", name, structs, update_filter=condition, **ORDERED))

    def _delete(self, ids: Sequence[str]) -> None:
        for start in range(0, len(ids), AT_ONCE):
            some = models.PointIdsList(points=[*ids[start : start + AT_ONCE]])
            self._nodes.call(methodcaller("delete", self.name, some, **ORDERED))

    def _stamp(self, name: str, state: State) -> None:
        payload = {"stamp": Stamp.of(state).model_dump_json(), "seq": state.seq}
        point = models.PointStruct(id=STAMP_ID, vector={}, payload=payload)
        older = models.Filter(must=[models.FieldCondition(key="seq", range=models.Range(lte=state.seq))])
        self._nodes.call(lambda client: client.upsert(name, [point], update_filter=older, **ORDERED))

    def search(self, query: Query) -> list[Found]:
        legs = legs_of(query)
        if not legs:  # a query of stop words only
            return []
        if query.ranking is not None:
            self._index([*query.ranking.paths.values()], compared_texts(query.where))
        [found] = self._ask([request_of(query, legs)])
        several = query.mode == "hybrid" or query.ranking is not None
        only = models.Filter(must=[models.HasIdCondition(has_id=[point.id for point in found])])
        parts = self._parts(legs, only, len(found)) if several and found else {}
        return [found_of(point, query, parts) for point in found]

    def pool(self, query: Query) -> dict[str, dict[str, float]]:
        legs = legs_of(query)
        return self._parts(legs, filter_of(query.where), query.candidates) if legs else {}

    def compact(self) -> bool:
        """Do nothing: the server sees to that itself."""
        return False

    def verify(self) -> list[str]:
        if why := self._unusable():
            return [f"the index {self.name} must be built anew: {why}"]
        wrong: list[str] = []
        for _ in range(TRIES):  # others write meanwhile
            self.follow()
            with self._log.database.reading(snapshot=True) as cursor:
                expected = points_of(cursor, searched(cursor), state_of(cursor))
            found = {point.id: point for point in self._points()}
            if not (wrong := differences(expected, found)):
                break
        return wrong

    def rebuild(self, *, only_where_unusable: bool = False) -> None:
        """Build a new collection, and let the alias mean it; writers wait meanwhile, searches do not."""
        with self._following, self._log.database.writing() as cursor:
            state = state_of(cursor, self._log.database.locked)
            if only_where_unusable and not self._unusable(state):  # another process was first
                return
            old, new = self._resolve(), f"{self.name}-{uuid4().hex[:8]}"
            self._make(new, state.dimension)
            records = searched(cursor)
            for start in range(0, len(records), AT_ONCE):
                self._upsert(new, points_of(cursor, records[start : start + AT_ONCE], state), state)
            self._stamp(new, state)
            cursor.execute("UPDATE ledger_state SET indexed = ?", (state.seq,))
            self._switch(old, new)
        self._indexed = set()

    def info(self, info: LedgerInfo) -> LedgerInfo:
        return info.model_copy(update={"layout": self._layout()})

    def close(self) -> None:
        self._nodes.close()

    def _unusable(self, state: State | None = None) -> str:
        """Return why the index cannot be used as it is; an empty text where it can."""
        stamp = None if self._resolve() is None else self._read_stamp()
        with self._log.database.reading() as cursor:
            state = state or state_of(cursor)
            why = agrees(cursor, stamp)
        if not why and stamp is not None and stamp.seq < state.indexed:
            return f"it ends at entry {stamp.seq}, and had followed the log to {state.indexed}"
        return why

    def _read_stamp(self) -> Stamp | None:
        found = self._nodes.call(lambda client: client.retrieve(self.name, [STAMP_ID]))
        try:
            return Stamp.model_validate_json((found[0].payload or {})["stamp"])
        except (ValidationError, LookupError):
            return None

    def _resolve(self, name: str = "") -> str | None:
        """Return the collection behind an alias; None where there is no such alias."""
        aliases = self._nodes.call(lambda client: client.get_aliases()).aliases
        return {alias.alias_name: alias.collection_name for alias in aliases}.get(name or self.name)

    def _make(self, name: str, dimension: int) -> None:
        taken = self._nodes.call(lambda client: client.collection_exists(self.name))
        if taken and self._resolve() is None:
            raise LedgerMismatch(
                f"The server has a collection {self.name} that is not an index; nothing was touched.",
                "Name another one: add ?collection=NAME to the address.",
            )
        dense = models.VectorParams(size=dimension, distance=models.Distance.COSINE)
        sparse = models.SparseVectorParams(modifier=models.Modifier.IDF)
        self._nodes.call(
            lambda client: client.create_collection(
                name,
                vectors_config={DENSE: dense},
                sparse_vectors_config={SPARSE: sparse},
                shard_number=self._address.shards,
                replication_factor=self._address.replicas,
                write_consistency_factor=self._address.majority,
                hnsw_config=models.HnswConfigDiff(payload_m=16),  # a graph for each namespace
            )
        )
        for field, kind in INDEXES.items():
            self._nodes.call(methodcaller("create_payload_index", name, field, field_schema=kind))

    def _switch(self, old: str | None, new: str) -> None:
        remove = models.DeleteAliasOperation(delete_alias=models.DeleteAlias(alias_name=self.name))
        create = models.CreateAliasOperation(
            create_alias=models.CreateAlias(collection_name=new, alias_name=self.name)
        )
        actions: list[Any] = [*([remove] if old else []), create]
        self._nodes.call(lambda client: client.update_collection_aliases(actions))
        if old:
            self._nodes.call(lambda client: client.delete_collection(old))

    def _check_version(self) -> None:
        """Refuse a server that would ignore the conditions of our writes."""
        version = self._nodes.call(lambda client: client.info()).version
        numbers = tuple(int(number) for number in version.split("-")[0].split(".")[:2])
        if numbers < OLDEST:
            raise StorageFailure(
                f"The Qdrant server has version {version}.",
                f"Mneme needs {'.'.join(map(str, OLDEST))} or newer: conditional writes.",
            )

    def _layout(self) -> Layout:
        params = self._nodes.call(lambda client: client.get_collection(self.name)).config.params
        state = self._nodes.call(lambda client: client.collection_cluster_info(self.name))
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

    def _ask(self, requests: list[models.QueryRequest]) -> list[list[models.ScoredPoint]]:
        answers = self._nodes.call(lambda client: client.query_batch_points(self.name, requests))
        return [answer.points for answer in answers]

    def _parts(self, legs: Sequence[Leg], wanted: models.Filter, limit: int) -> dict[str, dict[str, float]]:
        common: dict[str, Any] = {"filter": wanted, "limit": limit}
        requests = [
            models.QueryRequest(query=leg.query, using=leg.name, params=leg.params, **common) for leg in legs
        ]
        found: dict[str, dict[str, float]] = {}
        for leg, points in zip(legs, self._ask(requests), strict=True):
            for point in points:
                found.setdefault(str(point.id), {})[leg.name] = point.score
        return found

    def _index(self, numbers: Sequence[str], texts: Sequence[str]) -> None:
        """Index what a ranking and its filter read, once: a strict server takes no others."""
        kinds = dict.fromkeys(texts, KEYWORD) | dict.fromkeys(numbers, FLOAT)
        for path in kinds.keys() - self._indexed:
            index = methodcaller("create_payload_index", self.name, path, field_schema=kinds[path])
            self._nodes.call(index)
            self._indexed.add(path)

    def _scrolled(self, name: str) -> Iterator[models.Record]:
        following: Any = None
        while True:
            asked: dict[str, Any] = {"limit": AT_ONCE, "offset": following}
            scroll = methodcaller("scroll", name, **asked, with_payload=True, with_vectors=True)
            records, following = self._nodes.call(scroll)
            yield from records
            if following is None:
                return

    def _points(self) -> Iterator[Point]:
        """Yield all that the index has."""
        for record in self._scrolled(self.name):
            payload, vectors = dict(record.payload or {}), record.vector
            if str(record.id) == STAMP_ID or not isinstance(vectors, dict):
                continue
            payload.pop("seq", None)
            sparse: Any = vectors.get(SPARSE)
            words = Words(sparse.indices, sparse.values) if sparse else Words([], [])
            dense: Any = vectors.get(DENSE)
            yield Point(str(record.id), payload, dense, words)

    def _take_over(self) -> None:
        """Bring what a server held as a ledger of an older version into a log that is new."""
        with self._log.database.reading() as cursor:
            state = state_of(cursor)
        older = self._resolve(self._address.collection)
        if state.seq or older is None:
            return
        pieces = [_piece(record) for record in self._scrolled(older)]
        manifests = [each.payload["manifest"] for each in pieces if "manifest" in each.payload]
        if not manifests:
            return
        manifest = Manifest.model_validate_json(manifests[0])
        if (manifest.embedder, manifest.dimension) != (state.embedder, state.dimension):
            raise LedgerMismatch(
                f"The collection {older} was made with {manifest.embedder}, not {state.embedder}.",
                "Open it once with that embedder; then `mneme memories reembed` rebuilds it for another.",
            )
        contents = Contents(pieces)
        self._log.write_now(lambda transaction: bring_in(transaction, contents, manifest.format))
        count = len({record for record, _ in contents.versions})
        log.warning("Took over %s records of the collection %s, which can be deleted now.", count, older)


def _struct(point: Point, seq: int) -> models.PointStruct:
    """Return a point as the server takes it, with the entry up to which the log was read for it."""
    vectors: dict[str, Any] = {
        SPARSE: models.SparseVector(indices=point.words.indices, values=point.words.values)
    }
    if point.dense is not None:
        vectors[DENSE] = point.dense
    return models.PointStruct(id=point.id, vector=vectors, payload={**point.payload, "seq": seq})


def _piece(record: models.Record) -> Piece:
    vectors: Any = record.vector or {}
    return Piece(str(record.id), record.payload or {}, vectors.get(DENSE))
