"""A collection of Qdrant, embedded or on a server: how it is searched and read.

Requests have the form of Qdrant's REST interface: a server is sent them as they are, and `edge_engine` builds
the embedded engine's types from them.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal

from mneme.stores.ledger.index import STAMP_ID, Point
from mneme.stores.ledger.query import (
    DENSE,
    HALF_ALIKE,
    RRF_K,
    SPARSE,
    Condition,
    Found,
    Payload,
    Query,
    Where,
    json_path,
)
from mneme.stores.ledger.words import Words

Request = dict[str, Any]
Scores = dict[str, dict[str, float]]
"""The scores that the parts of a query give to records, by their ids."""
Answer = tuple[str, float]
"""A record's id, and its score."""


class Engine(ABC):
    """An open collection; its methods block."""

    def __init__(self) -> None:
        self._indexed: set[str] = set()

    @abstractmethod
    def ask(self, requests: Sequence[Request]) -> list[list[Answer]]:
        """Return the records that each request finds, best first."""

    @abstractmethod
    def index_field(self, path: str, schema: Literal["keyword", "float"]) -> None:
        """Index a field of the payload."""

    @abstractmethod
    def payload(self, point: str) -> Payload | None:
        """Return the payload of a point; None where there is no such point."""

    @abstractmethod
    def page(self, after: Any, name: str = "") -> tuple[list[Point], Any]:
        """Return some points of this collection, or of that of a name, and where the next ones begin."""

    def search(self, query: Query) -> list[Found]:
        """Return records, best first, each with the scores that are known of the parts of the query."""
        legs = legs_of(query)
        if not legs:  # a query of stop words only
            return []
        if query.ranking is not None:
            self._index(query)
        [found] = self.ask([request_of(query, legs)])
        parts: Scores = {record: {query.mode: score} for record, score in found}
        if found and query.mode == "hybrid":
            parts = self._parts(legs, {"must": [{"has_id": [*parts]}]}, len(found))
        return [Found(record, score, parts.get(record, {})) for record, score in found]

    def pool(self, query: Query) -> Scores:
        """Return the records that each part of a query proposes, by their ids, with those parts' scores."""
        legs = legs_of(query)
        return self._parts(legs, filter_of(query.where), query.candidates) if legs else {}

    def _parts(self, legs: Mapping[str, Request], wanted: Request | None, limit: int) -> Scores:
        found: Scores = {}
        answers = self.ask([leg | {"filter": wanted, "limit": limit} for leg in legs.values()])
        for name, answer in zip(legs, answers, strict=True):
            for record, score in answer:
                found.setdefault(record, {})[name] = score
        return found

    def _index(self, query: Query) -> None:
        """Index what a ranking and its filter read: else every payload is read; a strict server refuses."""
        assert query.ranking is not None
        texts = [
            json_path(path)
            for path, _, value in query.where.conditions
            if all(isinstance(each, str) for each in (value if isinstance(value, list) else [value]))
        ]
        schemas: dict[str, Any] = dict.fromkeys(texts, "keyword")
        schemas |= dict.fromkeys(query.ranking.paths.values(), "float")
        for path in schemas.keys() - self._indexed:
            self.index_field(path, schemas[path])
            self._indexed.add(path)

    def points(self, name: str = "") -> Iterator[Point]:
        """Yield all points that stand for records."""
        following: Any = None
        while True:
            found, following = self.page(following, name)
            yield from (each for each in found if each.id != STAMP_ID)
            if following is None:
                return

    def read_stamp(self) -> Payload:
        """Return up to which entry the collection has followed which log; nothing where it is not whole."""
        payload = self.payload(STAMP_ID) or {}
        return dict(json.loads(payload["stamp"])) if "stamp" in payload else {}


def legs_of(query: Query) -> dict[str, Request]:
    """Return the parts of a query, by the name of the vectors that each compares with."""
    legs: dict[str, Request] = {}
    if query.mode != "bm25" and query.dense is not None:
        legs[DENSE] = {"query": [*query.dense], "using": DENSE}
    if query.mode != "dense" and query.words is not None and query.words.indices:
        legs[SPARSE] = {"query": query.words._asdict(), "using": SPARSE}
        if corpus := filter_of(query.where._replace(conditions=())):
            legs[SPARSE]["params"] = {"idf": {"corpus": corpus}}
    return legs


def request_of(query: Query, legs: Mapping[str, Request]) -> Request:
    """Return the request for the whole query: one part of it, or several that are fused or ranked."""
    wanted = filter_of(query.where)
    common = {"limit": query.limit, "offset": query.offset, "score_threshold": query.min_score}
    if query.is_plain:
        [leg] = legs.values()
        return leg | common | {"filter": wanted}
    prefetch = [leg | {"filter": wanted, "limit": query.candidates} for leg in legs.values()]
    fused = {"rrf": {"k": RRF_K}} if query.ranking is None else _formula(query)
    return {"prefetch": prefetch, "query": fused} | common


def _formula(query: Query) -> Request:
    """Return a ranking as a formula; a record that lacks a field has its default, and no age."""
    ranking = query.ranking
    assert ranking is not None
    paths = ranking.paths
    defaults: dict[str, float] = {paths[name]: ranking.default for name in ranking.fields}
    defaults |= {paths[ranking.aged_from]: query.now} if ranking.aged_from else {}
    defaults |= {paths[ranking.ageless]: 0.0} if ranking.ageless else {}
    age = {"x": paths.get(ranking.aged_from, "updated"), "target": query.now}
    fresh: Any = {"exp_decay": age | {"midpoint": 0.5, "scale": ranking.half_life_days}}
    if ranking.ageless:
        ageless = paths[ranking.ageless]
        fresh = {"sum": [ageless, {"mult": [{"sum": [1.0, {"neg": ageless}]}, fresh]}]}
    similarity: Any = "$score"
    if query.mode == "bm25":
        similarity = {"div": {"left": "$score", "right": {"sum": ["$score", HALF_ALIKE]}}}
    weighted = [
        (ranking.similarity, similarity),
        *((weight, paths[name]) for name, weight in ranking.fields.items()),
        (ranking.recency, fresh),
    ]
    return {"formula": {"sum": [{"mult": [*each]} for each in weighted]}, "defaults": defaults}


def filter_of(where: Where) -> Request | None:
    """Return a filter; None where everything is selected, since an empty filter costs a full pass."""
    below: list[Request] = [{"key": "scope", "match": {"prefix": scope}} for scope in where.scopes]
    below += [{"key": "scope", "match": {"value": scope}} for scope in where.whole]
    if not where.conditions:  # within a `must` each point would be tested once more
        return {"should" if len(below) > 1 else "must": below} if below else None
    negative = [condition for condition in where.conditions if condition.operator == "ne"]
    positive = [condition for condition in where.conditions if condition.operator != "ne"]
    return {
        "must": [*(below if len(below) < 2 else [{"should": below}]), *map(_condition, positive)],
        "must_not": [_condition(condition._replace(operator="eq")) for condition in negative],
    }


def _condition(condition: Condition) -> Request:
    path, operator, value = json_path(condition.path), condition.operator, condition.value
    if value is None:
        return {"is_empty": {"key": path}}
    if operator == "in":
        return {"key": path, "match": {"any": value}}
    if isinstance(value, datetime):
        return {"key": path, "range": {operator: value.isoformat()}}
    if operator != "eq":
        return {"key": path, "range": {operator: value}}
    if isinstance(value, str):
        return {"key": path, "match": {"value": value}}
    return {"key": path, "range": {"gte": value, "lte": value}}


def words_in(vectors: Mapping[str, Any]) -> Words:
    """Return the words in a point's vectors, as either engine gives them."""
    sparse = vectors.get(SPARSE)
    if sparse is None:
        return Words([], [])
    return Words(**sparse) if isinstance(sparse, dict) else Words(sparse.indices, sparse.values)
