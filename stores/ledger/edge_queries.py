"""Queries in the words of the embedded engine: filters, parts of a search, formulas of a ranking."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import qdrant_edge as edge

from mneme.stores.ledger.query import (
    DENSE,
    HALF_ALIKE,
    RRF_K,
    SPARSE,
    Condition,
    Found,
    Query,
    Where,
    defaults,
)

EXACT = edge.SearchParams(exact=True)


def legs_of(query: Query) -> list[tuple[str, Any, edge.SearchParams]]:
    """Return the vector, its name and its parameters for each part of the query."""
    legs: list[tuple[str, Any, edge.SearchParams]] = []
    if query.mode != "bm25" and query.dense is not None:
        legs.append((DENSE, list(query.dense), EXACT))
    if query.mode != "dense" and query.words is not None and query.words.indices:
        everywhere = query.where._replace(conditions=())
        corpus = edge.IdfParams(filter_of(everywhere) if any(everywhere) else None)
        vector = edge.SparseVector(query.words.indices, query.words.values)
        legs.append((SPARSE, vector, edge.SearchParams(exact=True, idf=corpus)))
    return legs


def request_of(query: Query) -> edge.QueryRequest:
    wanted = filter_of(query.where) if any(query.where) else None  # an empty filter costs a full pass
    common: dict[str, Any] = {
        "offset": query.offset,
        "with_payload": ["n"],
        "score_threshold": query.min_score,
    }
    legs = legs_of(query)
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


def found_of(point: edge.ScoredPoint, query: Query, parts: Mapping[str, dict[str, float]]) -> Found:
    single: dict[str, float] = (
        {} if query.mode == "hybrid" or query.ranking is not None else {query.mode: point.score}
    )
    number = (point.payload or {})["n"]
    return Found(str(point.id), number, point.score, parts.get(str(point.id), single))


def filter_of(where: Where) -> edge.Filter:
    below = [edge.FieldCondition("scope", match=edge.MatchPrefix(scope)) for scope in where.scopes]
    below += [edge.FieldCondition("scope", match=edge.MatchValue(scope)) for scope in where.whole]
    if len(below) > 1 and not where.conditions:
        return edge.Filter(should=[*below])  # within a `must` each point would be tested once more
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
