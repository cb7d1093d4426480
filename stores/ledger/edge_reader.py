"""What is read from a shard of the embedded engine; it blocks, so the engine calls it on its threads."""

from collections.abc import Sequence
from typing import Any

import qdrant_edge as edge

from mneme.stores.ledger.edge_queries import EXACT, filter_of, legs_of, request_of, scored_of
from mneme.stores.ledger.engine import (
    CHANGED,
    DENSE,
    FACETS,
    SPARSE,
    Payload,
    Query,
    Scored,
    Sides,
    Weighed,
    Where,
)
from mneme.stores.ledger.shards import COPIED_AT_ONCE

WORDS_ALONE = edge.Filter(must=[edge.HasVectorCondition(SPARSE)], must_not=[edge.HasVectorCondition(DENSE)])


class ShardReader:
    """Reads from `shard`, in whose place an erasure puts another."""

    def __init__(self, shard: edge.EdgeShard) -> None:
        self.shard = shard

    def read(self, ids: Sequence[str]) -> dict[str, Payload]:
        found = self.shard.retrieve(list(dict.fromkeys(ids)), True, False)
        return {str(record.id): record.payload or {} for record in found}

    def search(self, query: Query) -> list[Scored]:
        if not legs_of(query):  # a query of stop words only
            return []
        found = self.shard.query(request_of(query))
        several = query.mode == "hybrid" or query.ranking is not None
        parts = self._parts(query, [point.id for point in found]) if several and found else {}
        return [scored_of(point, query, parts) for point in found]

    def _parts(self, query: Query, ids: list[Any]) -> dict[str, dict[str, float]]:
        only = edge.Filter(must=[edge.HasIdCondition(set(ids))])
        parts: dict[str, dict[str, float]] = {}
        for name, vector, params in legs_of(query):
            request = edge.QueryRequest(
                len(ids), query=edge.Query.Nearest(vector, name), filter=only, params=params
            )
            for point in self.shard.query(request):
                parts.setdefault(str(point.id), {})[name] = point.score
        return parts

    def leg(self, query: Query, leg: tuple[str, Any, edge.SearchParams]) -> Sequence[edge.ScoredPoint]:
        name, vector, params = leg
        nearest = edge.Query.Nearest(vector, name)
        wanted = filter_of(query.where) if any(query.where) else None
        return self.shard.query(
            edge.QueryRequest(query.candidates, query=nearest, filter=wanted, params=params)
        )

    def weigh(self, query: Query, ids: Sequence[str]) -> dict[str, Weighed]:
        wanted = edge.Filter(must=[edge.HasIdCondition(set(ids)), filter_of(query.where)])
        if query.dense is None:
            scroll = edge.ScrollRequest(limit=len(ids), filter=wanted, with_payload=FACETS)
            return {str(r.id): Weighed(None, r.payload or {}) for r in self.shard.scroll(scroll)[0]}
        nearest = edge.Query.Nearest(list(query.dense), DENSE)
        request = edge.QueryRequest(len(ids), query=nearest, filter=wanted, params=EXACT, with_payload=FACETS)
        return {str(p.id): Weighed(p.score, p.payload or {}) for p in self.shard.query(request)}

    def around(
        self, query: Query, heads: Sequence[Payload], reach: int
    ) -> tuple[list[Sides], dict[str, Weighed]]:
        around = [self._sides(head, reach) for head in heads]
        near = {point for sides in around for side in sides for point in side}
        return around, self.weigh(query, list(near)) if near else {}

    def _sides(self, head: Payload, reach: int) -> Sides:
        same = edge.Filter(must=[edge.FieldCondition("scope", match=edge.MatchValue(head["scope"]))])
        before, after = (
            edge.QueryRequest(
                reach, query=edge.OrderBy("created", direction, head["created"] + step), filter=same
            )
            for direction, step in ((edge.Direction.Desc, -1), (edge.Direction.Asc, 1))
        )
        return [str(p.id) for p in self.shard.query(before)], [str(p.id) for p in self.shard.query(after)]

    def scan(self, where: Where, limit: int, offset: int, newest_first: bool) -> list[Payload]:
        direction = edge.Direction.Desc if newest_first else edge.Direction.Asc
        return self._ordered(edge.OrderBy("created", direction), where, limit, offset)

    def latest(self, where: Where, limit: int) -> list[Payload]:
        return self._ordered(edge.OrderBy(CHANGED, edge.Direction.Desc), where, limit)

    def _ordered(self, by: edge.OrderBy, where: Where, limit: int, offset: int = 0) -> list[Payload]:
        request = edge.QueryRequest(
            limit,
            offset=offset,
            query=by,
            filter=filter_of(where),
            with_payload=True,
        )
        return [point.payload or {} for point in self.shard.query(request)]

    def count(self, where: Where) -> int:
        return self.shard.count(edge.CountRequest(exact=True, filter=filter_of(where)))

    def scopes(self, where: Where) -> list[str]:
        request = edge.FacetRequest("scope", limit=2**31, exact=True, filter=filter_of(where))
        return [str(hit.value) for hit in self.shard.facet(request)]

    def vectors(self, where: Where) -> dict[str, Sequence[float]]:
        found: dict[str, Sequence[float]] = {}
        following: Any = None
        while True:
            request = edge.ScrollRequest(
                offset=following, limit=COPIED_AT_ONCE, filter=filter_of(where), with_vector=True
            )
            records, following = self.shard.scroll(request)
            named: list[tuple[str, Any]] = [(str(record.id), record.vector) for record in records]
            found |= {point: vector[DENSE] for point, vector in named if DENSE in vector}
            if following is None:
                return found

    def vectors_by_ids(self, ids: Sequence[str]) -> dict[str, Sequence[float]]:
        found = self.shard.retrieve(list(dict.fromkeys(ids)), False, True)
        named: list[tuple[str, Any]] = [(str(record.id), record.vector) for record in found]
        return {point: vector[DENSE] for point, vector in named if DENSE in vector}

    def unembedded(self, limit: int) -> dict[str, Payload]:
        request = edge.ScrollRequest(limit=limit, filter=WORDS_ALONE, with_payload=True)
        return {str(record.id): record.payload or {} for record in self.shard.scroll(request)[0]}
