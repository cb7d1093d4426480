"""Queries in the words of a Qdrant server: filters, parts of a search, formulas of a ranking."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from qdrant_client import models

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


class Leg(NamedTuple):
    """One part of a query: which vector is compared with what."""

    name: str
    query: Any
    params: models.SearchParams | None


def legs_of(query: Query) -> list[Leg]:
    legs: list[Leg] = []
    if query.mode != "bm25" and query.dense is not None:
        legs.append(Leg(DENSE, list(query.dense), None))
    if query.mode != "dense" and query.words is not None and query.words.indices:
        vector = models.SparseVector(indices=query.words.indices, values=query.words.values)
        corpus = models.IdfCorpusParams(corpus=filter_of(Where(query.where.scopes)))
        params = models.SearchParams(idf=corpus) if query.where.scopes else None
        legs.append(Leg(SPARSE, vector, params))
    return legs


def request_of(query: Query, legs: Sequence[Leg]) -> models.QueryRequest:
    common: dict[str, Any] = {
        "limit": query.limit,
        "offset": query.offset,
        "score_threshold": query.min_score,
        "with_payload": ["n"],
    }
    wanted = filter_of(query.where)
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


def found_of(point: models.ScoredPoint, query: Query, parts: Mapping[str, dict[str, float]]) -> Found:
    plain = query.mode != "hybrid" and query.ranking is None
    single: dict[str, float] = {query.mode: point.score} if plain else {}
    number = (point.payload or {})["n"]
    return Found(str(point.id), number, point.score, parts.get(str(point.id), single))


def filter_of(where: Where) -> models.Filter:
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
