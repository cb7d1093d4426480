"""What an index holds of a log, and how it follows it: live records with a text, and nothing else.

An index has the vectors of a record, its scope, its last change, and the fields that filters and formulas
read. It has no text: texts in fields are replaced by keyed hashes, and so are those that a filter compares
with; what was found is joined with the log. It holds up to which entry it has followed the log (its *stamp*).
So it can be built anew at any time, and a search that finds an old state of a record is noticed.

An `Engine` takes requests in the form of Qdrant's REST interface: a server is sent them as they are,
and `edge_index` builds the embedded engine's types from them.
"""

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from datetime import datetime
from functools import lru_cache
from hashlib import blake2b
from typing import Any, Literal, NamedTuple

from mneme.stores.database import Cursor, Database
from mneme.stores.ledger.query import (
    CHANGED,
    DENSE,
    HALF_ALIKE,
    RRF_K,
    SPARSE,
    Condition,
    Found,
    Payload,
    Query,
    Where,
    filterable,
    json_path,
    scope_of,
)
from mneme.stores.ledger.reading import SUM, State, entries_after, heads_of, kept, state_of, vectors_by_ids
from mneme.stores.ledger.records import LEDGER
from mneme.stores.ledger.words import Words, words_of

BATCH_SIZE = 500
STAMP_ID = str(LEDGER)
"""The id of the point that holds the stamp."""
DATED = re.compile(r"\d{4}-\d\d-\d\d([T ][\d:.,]+)?(Z|[+-][\d:]+)?")
"""Texts that are compared as times, and so stay as they are."""


class Point(NamedTuple):
    """A record as an index has it; or the stamp, which has no words."""

    id: str
    payload: Payload
    dense: list[float] | None = None
    words: Words | None = None


def stamp_of(state: State) -> Point:
    """Return the point that says up to which entry of which log an index has followed it."""
    return Point(STAMP_ID, {"stamp": json.dumps(state._asdict() | {"chain": state.chain.hex()})})


class Changes(NamedTuple):
    """What an index has to do to follow a log from one entry to another."""

    state: State
    points: Sequence[Point] = ()
    gone: Sequence[str] = ()
    erases: bool = False


def changes(cursor: Cursor, after: int) -> Changes:
    """Return what an index that has followed the log up to an entry must change."""
    state = state_of(cursor)
    entries = entries_after(cursor, after)
    touched = dict.fromkeys(record for _, record in entries if record)
    points = points_of(cursor, touched, state)
    gone = touched.keys() - {point.id for point in points}
    if erases := any(kind in ("forget", "drop") for kind, _ in entries):
        kept.clear()
    return Changes(state, points, [*gone], erases)


def build(database: Database, upsert: Callable[[list[Point]], object]) -> State:
    """Give an index all that it has, some at a time; return the state of the log from which it follows.

    No reading is long: whoever erases waits for those who read. So a point may be newer than that state.
    """
    with database.reading(snapshot=True) as cursor:
        state, some = state_of(cursor), _searched(cursor)
    for records in some:
        with database.reading(snapshot=True) as cursor:
            points = points_of(cursor, records, state)
        upsert(points)
    return state


def _searched(cursor: Cursor) -> list[list[str]]:
    """Return the ids of all that an index has, some at a time, those of one namespace side by side."""
    rows = cursor.execute("SELECT record FROM ledger_heads WHERE searched = 1 ORDER BY scope, created")
    records = [row[0] for row in rows.fetchall()]
    return [records[start : start + BATCH_SIZE] for start in range(0, len(records), BATCH_SIZE)]


def points_of(cursor: Cursor, records: Iterable[str], state: State) -> list[Point]:
    """Return those of the records that an index has, as they are now."""
    heads = {record: head for record, head in heads_of(cursor, records).items() if head.is_searched}
    vectors, points = vectors_by_ids(cursor, heads), list[Point]()
    for record, version in heads.items():
        fields = {name: _concealed(filterable(each), state.ledger) for name, each in version.value.items()}
        changed = version.at.timestamp() / 86_400
        payload = {"scope": scope_of(version), "n": version.version, CHANGED: changed, "value": fields}
        dense = vectors[record].tolist() if record in vectors else None
        points.append(Point(record, payload, dense, words_of(version.text)))
    return points


def concealed(query: Query, key: str) -> Query:
    """Return a query that compares with what an index has in place of texts."""
    conditions = tuple(
        Condition((first, *(_concealed(name, key) for name in below)), operator, _concealed(value, key))
        for (first, *below), operator, value in query.where.conditions
    )
    return query._replace(where=query.where._replace(conditions=conditions)) if conditions else query


def _concealed(value: Any, key: str) -> Any:
    """Return a value with hashes in place of its texts, and of the names of fields in it."""
    if isinstance(value, str) and not DATED.fullmatch(value):
        return (_hash if len(value) < 64 else _hash.__wrapped__)(value, key)
    if isinstance(value, dict):
        return {_concealed(name, key): _concealed(each, key) for name, each in value.items()}
    return [_concealed(each, key) for each in value] if isinstance(value, list) else value


@lru_cache(maxsize=4096)  # the same kinds, names and threads are on many records
def _hash(text: str, key: str) -> str:
    return blake2b(text.encode(), key=key.encode(), digest_size=9).hexdigest()


def stamp_in(payload: Payload) -> Payload:
    """Return what the payload of a stamp says; nothing of one that is not there."""
    return dict(json.loads(payload["stamp"])) if "stamp" in payload else {}


def agrees(cursor: Cursor, stamp: Payload) -> str:
    """Return why an index cannot go on from its stamp; an empty text where it can."""
    state = state_of(cursor)
    if not stamp:
        return "it is not whole"
    if any(stamp[name] != getattr(state, name) for name in ("ledger", "embedder", "dimension")):
        return "it is of another ledger, or has the vectors of another embedder"
    row = cursor.execute("SELECT chain FROM ledger_entries WHERE seq = ?", (stamp["seq"],)).fetchone()
    chain = row[0] if row else b"" if stamp["seq"] else bytes(SUM)
    if bytes(chain).hex() != stamp["chain"]:
        return (
            f"it has followed the log to entry {stamp['seq']}, and the log, which ends at {state.seq} now, "
            "is another: the end of the log was lost, or an older copy was put in its place"
        )
    return ""


def differences(cursor: Cursor, points: Iterable[Point]) -> list[str]:
    """Return in words how what an index has differs from what it must have."""
    found, state = {point.id: point for point in points}, state_of(cursor)
    expected = {point.id: point for some in _searched(cursor) for point in points_of(cursor, some, state)}
    missing, more = expected.keys() - found.keys(), found.keys() - expected.keys()
    wrong = [record for record in expected.keys() & found.keys() if _differs(expected[record], found[record])]
    counted = (("lacks", missing), ("has too many:", more), ("has wrong:", wrong))
    return [f"the index {what} {len(ids)} records" for what, ids in counted if ids]


def _differs(point: Point, found: Point) -> bool:
    """Compare what must be with what is, as far as an engine keeps numbers: not to the last of 17 digits."""

    def digits(number: str) -> str:
        return f"{float(number):.14g}"

    payloads = (json.dumps(each.payload) for each in (point, found))
    expected, there = (json.loads(each, parse_float=digits, parse_int=digits) for each in payloads)
    words, theirs = (set(each.words.indices if each.words else ()) for each in (point, found))
    if expected != there or words != theirs:
        return True
    if point.dense is None or found.dense is None:
        return point.dense is not found.dense
    length = sum(x * x for x in point.dense) ** 0.5 or 1.0
    return any(abs(a / length - b) > 1e-4 for a, b in zip(point.dense, found.dense, strict=True))


Request = dict[str, Any]
Scores = dict[str, float]
"""The scores of records by their ids, the best first."""


class Engine(ABC):
    """An open collection; its methods block."""

    followed: int
    """The last entry up to which it is known to have followed the log."""
    indexed: Set[str] = frozenset()
    """The fields of the payload that are known to be indexed."""

    @abstractmethod
    def ask(self, requests: Sequence[Request]) -> list[Scores]:
        """Return the records that each request finds."""

    @abstractmethod
    def index_field(self, path: str, schema: Literal["keyword", "float"]) -> None:
        """Index a field of the payload."""

    @abstractmethod
    def read_stamp(self) -> Payload:
        """Return up to which entry the collection has followed which log; nothing where it is not whole."""

    def named(self, where: Where) -> Where:
        """Return what selects the same, and is found sooner."""
        return where

    @abstractmethod
    def page(self, after: Any, name: str = "") -> tuple[list[Point], Any]:
        """Return some points of this collection, or of that of a name, and where the next ones begin."""

    def search(self, query: Query) -> list[Found]:
        """Return records, best first, each with the scores that are known of the parts of the query."""
        query = query._replace(where=self.named(query.where))
        if not (legs := legs_of(query)):  # a query of stop words only
            return []
        if query.ranking is not None:
            self._index(query)
        [found] = self.ask([request_of(query, legs)])
        parts: dict[str, Scores] = {query.mode: found}
        if query.mode == "hybrid" and found:
            parts = self._parts(legs, {"must": [{"has_id": [*found]}]}, len(found))
        return [
            Found(record, score, {name: scores[record] for name, scores in parts.items() if record in scores})
            for record, score in found.items()
        ]

    def pool(self, query: Query) -> dict[str, Scores]:
        """Return the records that each part of a query proposes; what names its sections is left aside."""
        query = query._replace(where=self.named(query.where._replace(sections=())))
        return self._parts(legs_of(query), filter_of(query.where), query.candidates)

    def _parts(self, legs: Mapping[str, Request], wanted: Request | None, limit: int) -> dict[str, Scores]:
        answers = self.ask([leg | {"filter": wanted, "limit": limit} for leg in legs.values()])
        return dict(zip(legs, answers, strict=True))

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
        for path in schemas.keys() - self.indexed:
            self.index_field(path, schemas[path])
            self.indexed = {*self.indexed, path}

    def points(self, name: str = "") -> Iterator[Point]:
        """Yield all points that stand for records."""
        following: Any = None
        while True:
            found, following = self.page(following, name)
            yield from (each for each in found if each.id != STAMP_ID)
            if following is None:
                return


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
    if query.mode != "hybrid" and query.ranking is None:
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
