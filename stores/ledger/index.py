"""Contents of an index, and how it follows the log: live records with a text, and nothing else.

An index has the vectors of a record, its scope, its last change, and the fields that filters and formulas
read. It has no text: texts in fields are replaced by keyed hashes, and so are the operands of filters; hits
are joined with the log. Its *stamp* says which log entry it has followed last. So it can be rebuilt at any
time, and a search that finds an old state of a record is noticed.

Requests to an `Engine` are built from the embedded engine's types; `server_index` has functions of the same
names that build requests of Qdrant's REST interface.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from datetime import datetime
from typing import Any, Literal, NamedTuple

from mneme.stores.database import Cursor, Database
from mneme.stores.ledger.query import (
    DENSE,
    HALF_ALIKE,
    RANGES,
    RRF_K,
    SPARSE,
    UPDATED_FIELD,
    Payload,
    Query,
    Ranking,
    Where,
    filterable,
    json_path,
    scope_of,
)
from mneme.stores.ledger.reading import (
    DIGEST_BYTES,
    Read,
    State,
    entries_after,
    heads_of,
    state_of,
    vectors_by_ids,
    version_in,
)
from mneme.stores.ledger.records import LEDGER
from mneme.stores.ledger.words import Words, words_of

BATCH_SIZE = 500
STAMP_ID = str(LEDGER)
"""The id of the point that holds the stamp."""


class Point(NamedTuple):
    """A record in an index; or the stamp, which has no words."""

    id: str
    payload: Payload
    dense: list[float] | None = None
    words: Words | None = None


def stamp_of(state: State) -> Point:
    """Return the stamp: the point that says which log an index has followed, and its last entry."""
    return Point(STAMP_ID, {"stamp": json.dumps(state._asdict() | {"chain": state.chain.hex()})})


class LogChanges(NamedTuple):
    """The changes by which an index follows a log from one entry to another; the log then has the `state`."""

    points: Sequence[Point]
    state: State
    gone: Sequence[str]
    erases: bool


def changes(cursor: Cursor, after: int, read: Read = version_in) -> LogChanges:
    """Return the changes that bring an index from a log entry to the end of the log."""
    state = state_of(cursor)
    entries = entries_after(cursor, after)
    touched = dict.fromkeys(record for _, record in entries if record)
    points = points_of(cursor, touched, state, read)
    gone = touched.keys() - {point.id for point in points}
    return LogChanges(points, state, [*gone], any(kind in ("forget", "drop") for kind, _ in entries))


def build(database: Database, upsert: Callable[[list[Point]], object]) -> State:
    """Fill an index in batches; return the state of the log from which it follows on."""
    with database.reading(snapshot=True) as cursor:
        state, some = state_of(cursor), _searched(cursor)
    for records in some:
        # A read for each batch, since erasures wait for readers: a point can be newer than the state, and
        # following from it writes that point again.
        upsert(database.read(points_of, records, state))
    return state


def _searched(cursor: Cursor) -> list[list[str]]:
    """Return the ids of all searched records in batches, ordered by scope and creation."""
    rows = cursor.execute("SELECT record FROM ledger_heads WHERE searched = 1 ORDER BY scope, created")
    records = [row[0] for row in rows.fetchall()]
    return [records[start : start + BATCH_SIZE] for start in range(0, len(records), BATCH_SIZE)]


def points_of(cursor: Cursor, records: Iterable[str], state: State, read: Read = version_in) -> list[Point]:
    """Return the current points of the searched ones among these records."""
    heads = heads_of(cursor, records, read, searched=True)
    vectors, points = vectors_by_ids(cursor, heads), list[Point]()
    for record, version in heads.items():
        fields = {name: filterable(each, state.ledger) for name, each in version.value.items()}
        changed = version.at.timestamp() / 86_400
        payload = {"scope": scope_of(version), "n": version.version, UPDATED_FIELD: changed, "value": fields}
        dense = vectors[record].tolist() if record in vectors else None
        points.append(Point(record, payload, dense, words_of(version.text)))
    return points


def stamp_in(payload: Payload) -> State | None:
    """Return the state in the payload of a stamp; None if it is not a stamp."""
    if "stamp" not in payload:
        return None
    said = json.loads(payload["stamp"])
    return State(**said | {"chain": bytes.fromhex(said["chain"])})


def agrees(cursor: Cursor, stamp: State | None) -> str:
    """Return the reason why an index cannot continue from its stamp; empty if it can."""
    state = state_of(cursor)
    if stamp is None:
        return "it is not whole"
    if stamp.ledger != state.ledger:
        return "it is of another ledger"
    if (stamp.embedder, stamp.dimension) != (state.embedder, state.dimension):
        return f"it has vectors of {stamp.embedder}, and the ledger has those of {state.embedder} now"
    row = cursor.execute("SELECT chain FROM ledger_entries WHERE seq = ?", (stamp.seq,)).fetchone()
    chain = row[0] if row else b"" if stamp.seq else bytes(DIGEST_BYTES)  # with which a log begins
    if bytes(chain) != stamp.chain:
        return (
            f"it has followed the log to entry {stamp.seq}, and the log, which ends at {state.seq} now, "
            "is another: the end of the log was lost, or an older copy was put in its place"
        )
    return ""


def differences(cursor: Cursor, points: Iterable[Point]) -> list[str]:
    """Return the differences, in words, between an index and the log."""
    found, state = {point.id: point for point in points}, state_of(cursor)
    expected = {point.id: point for some in _searched(cursor) for point in points_of(cursor, some, state)}
    missing, more = expected.keys() - found.keys(), found.keys() - expected.keys()
    wrong = [record for record in expected.keys() & found.keys() if _differs(expected[record], found[record])]
    counted = (("lacks", missing), ("has too many:", more), ("has wrong:", wrong))
    return [f"the index {what} {len(ids)} record{'s' * (len(ids) > 1)}" for what, ids in counted if ids]


def _differs(point: Point, found: Point) -> bool:
    """Return whether a point differs from the expected one, to 14 digits: engines do not keep all 17."""

    def digits(number: str) -> str:
        return f"{float(number):.14g}"

    payloads = (json.dumps(each.payload) for each in (point, found))
    expected, there = (json.loads(each, parse_float=digits, parse_int=digits) for each in payloads)
    words, theirs = (set(each.words.indices if each.words else ()) for each in (point, found))
    if expected != there or words != theirs:
        return True
    if point.dense is None or found.dense is None:
        return point.dense is not found.dense
    length = sum(x * x for x in point.dense) ** 0.5 or 1.0  # engines keep vectors at length 1 for the cosine
    return any(abs(a / length - b) > 1e-4 for a, b in zip(point.dense, found.dense, strict=True))


Leg = dict[str, Any]
"""The arguments of one part of a query."""
Scores = dict[str, float]
"""Scores by record id, best first."""


class Engine(ABC):
    """An open collection; its methods block."""

    types: Any
    """The types of requests: `qdrant_edge`, or functions under the same names for a server."""
    state: State
    """The state of the log at the last entry that the collection is known to have followed."""
    indexed: Set[str] = frozenset()
    """The payload fields that are known to be indexed."""
    read: Read = staticmethod(version_in)
    """Reads a version from its log entry; the result may be shared and must not be changed."""

    @abstractmethod
    def ask(self, requests: Sequence[Any]) -> list[Scores]:
        """Return the hits of each request."""

    @abstractmethod
    def index_field(self, path: str, schema: Literal["keyword", "float"]) -> None:
        """Index a field of the payload."""

    @abstractmethod
    def read_stamp(self) -> State | None:
        """Return the state of the log that the collection has followed; None if it is incomplete."""

    def named(self, where: Where) -> Where:
        """Return an equivalent selection that is found faster."""
        return where

    @abstractmethod
    def page(self, after: Any, name: str = "") -> tuple[list[Point], Any]:
        """Return a page of points of this collection, or of the named one, and the start of the next page."""

    def search(self, query: Query) -> tuple[Scores, dict[str, Scores]]:
        """Return the scores of the hits, and their scores in the parts of the query, where known.

        In the mode `blend` only the proposals of each part are returned, which `blending` ranks; the query's
        sections are ignored.
        """
        where = query.where._replace(sections=()) if query.mode == "blend" else query.where
        query, types = query._replace(where=self.named(where)), self.types
        legs, wanted = self._legs(query), self._filter(query.where)
        if query.mode == "blend":
            return {}, self._parts(legs, wanted, query.candidates)
        if not legs:  # the query has only stop words
            return {}, {}
        common = {"limit": query.limit, "offset": query.offset, "score_threshold": query.min_score}
        if query.mode != "hybrid" and query.ranking is None:
            [leg] = legs.values()
            [found] = self.ask([types.QueryRequest(filter=wanted, **leg, **common)])
            return found, {query.mode: found}
        if query.ranking is not None:
            self._index(query, query.ranking)
        proposed = [types.Prefetch(limit=query.candidates, filter=wanted, **leg) for leg in legs.values()]
        fused = self._formula(query, query.ranking) if query.ranking else types.Fusion.Rrf(k=RRF_K)
        [found] = self.ask([types.QueryRequest(query=fused, prefetches=proposed, **common)])
        if query.ranking is not None or not found:
            return found, {}
        # Fusion knows only ranks: the hits' cosines and BM25 sums are asked for in a second request.
        return found, self._parts(legs, types.Filter(must=[types.HasIdCondition({*found})]), len(found))

    def _parts(self, legs: Mapping[str, Leg], wanted: Any, limit: int) -> dict[str, Scores]:
        requests = [self.types.QueryRequest(limit=limit, filter=wanted, **leg) for leg in legs.values()]
        return dict(zip(legs, self.ask(requests), strict=True))

    def _legs(self, query: Query) -> dict[str, Leg]:
        """Return the parts of a query, by the name of the vectors that each searches."""
        types, legs = self.types, dict[str, Leg]()
        if query.mode != "bm25" and query.dense is not None:
            nearest = types.Query.Nearest(query=[*query.dense], using=DENSE)
            legs[DENSE] = {"query": nearest, "params": types.SearchParams(exact=True)}  # a server drops it
        if query.mode != "dense" and query.words is not None and query.words.indices:
            words = types.SparseVector(**query.words._asdict())
            # Words are counted in the whole scope: a filter changes no word's weight.
            counted = self._filter(query.where._replace(conditions=()))
            corpus = types.IdfParams(corpus=counted) if counted else None
            params = types.SearchParams(exact=True, idf=corpus)
            legs[SPARSE] = {"query": types.Query.Nearest(query=words, using=SPARSE), "params": params}
        return legs

    def _filter(self, where: Where) -> Any:
        """Return a filter; None if everything is selected, since an empty filter costs a full pass."""
        types = self.types
        below = [types.MatchPrefix(prefix=scope) for scope in where.scopes]
        below += [types.MatchValue(value=scope) for scope in where.whole]
        below = [types.FieldCondition(key="scope", match=match) for match in below]
        if not where.conditions:  # a nested `must` would test each point twice
            return types.Filter(**{"should" if len(below) > 1 else "must": below}) if below else None
        must, must_not = below if len(below) < 2 else [types.Filter(should=below)], list[Any]()
        for path, operator, wanted in where.conditions:
            value, test = filterable(wanted, self.state.ledger), dict[str, Any]()
            if value is None:
                test["is_empty"] = True
            elif operator == "in":
                test["match"] = types.MatchAny(any=value)
            elif isinstance(value, str):
                test["match"] = types.MatchValue(value=value)
            elif isinstance(value, datetime):
                test["range"] = types.RangeDateTime(**{operator: value.isoformat()})
            else:
                bounds: Any = {operator: value} if operator in RANGES else {"gte": value, "lte": value}
                test["range"] = types.RangeFloat(**bounds)
            field = types.FieldCondition(key=json_path(path, self.state.ledger), **test)
            (must_not if operator == "ne" else must).append(field)
        return types.Filter(must=must, must_not=must_not)

    def _formula(self, query: Query, ranking: Ranking) -> Any:
        """Return a ranking as a formula; a missing field has the default value, a missing time no age."""
        of, paths = self.types.Expression, ranking.paths
        defaults: dict[str, float] = {paths[name]: ranking.default for name in ranking.fields}
        defaults |= {paths[ranking.aged_from]: query.now} if ranking.aged_from else {}
        defaults |= {paths[ranking.ageless]: 0.0} if ranking.ageless else {}
        fresh = of.Decay(
            self.types.DecayKind.Exp,
            x=of.Variable(paths.get(ranking.aged_from, UPDATED_FIELD)),
            target=of.Constant(query.now),
            midpoint=0.5,
            scale=ranking.half_life_days,
        )
        if ranking.ageless:
            ageless = of.Variable(paths[ranking.ageless])
            aging = of.Sum([of.Constant(1.0), of.Mult([of.Constant(-1.0), ageless])])
            fresh = of.Sum([ageless, of.Mult([aging, fresh])])  # ageless + (1 - ageless) · fresh
        similarity = of.Variable("$score")
        if query.mode == "bm25":  # `likeness`, in the engine
            whole = of.Sum([similarity, of.Constant(HALF_ALIKE)])
            similarity = of.Div(left=similarity, right=whole, by_zero_default=None)
        weighted = [
            (ranking.similarity, similarity),
            *((weight, of.Variable(paths[name])) for name, weight in ranking.fields.items()),
            (ranking.recency, fresh),
        ]
        terms = [of.Mult([of.Constant(weight), term]) for weight, term in weighted]
        return self.types.Formula(formula=of.Sum(terms), defaults=defaults)

    def _index(self, query: Query, ranking: Ranking) -> None:
        """Index the fields of a ranking and its filter: else payloads are read, or a server refuses."""
        texts = [
            json_path(condition.path, self.state.ledger)
            for condition in query.where.conditions
            if isinstance(condition.value[0] if isinstance(condition.value, list) else condition.value, str)
        ]
        schemas: dict[str, Any] = dict.fromkeys(texts, "keyword")
        schemas |= dict.fromkeys(ranking.paths.values(), "float")
        for path in schemas.keys() - self.indexed:
            self.index_field(path, schemas[path])
            self.indexed = {*self.indexed, path}

    def points(self, name: str = "") -> Iterator[Point]:
        """Yield all points except the stamp."""
        following: Any = None
        while True:
            found, following = self.page(following, name)
            yield from (each for each in found if each.id != STAMP_ID)
            if following is None:
                return


def point_in(record: object, payload: Payload | None, vectors: Any) -> Point:
    """Return a point from either engine's record; only the server's has a `seq`, which is dropped."""
    fields = {name: value for name, value in (payload or {}).items() if name != "seq"}
    dense, sparse = (vectors or {}).get(DENSE), (vectors or {}).get(SPARSE)
    words = Words(**sparse) if isinstance(sparse, dict) else sparse and Words(sparse.indices, sparse.values)
    return Point(str(record), fields, dense, words)
