"""Holding an index against its journal, after a process was killed or on demand."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from math import isclose
from pathlib import Path
from typing import Any

import qdrant_edge as edge

from mneme.stores.ledger import journal
from mneme.stores.ledger.engine import SPARSE, Payload
from mneme.stores.ledger.fingerprints import FIELDS, differs
from mneme.stores.ledger.journal import JOURNAL
from mneme.stores.ledger.sealing import damaged

AT_ONCE = 1000
ROUNDED = 1e-15
Numbers = defaultdict[str, list[float]]


def points_of(shard: edge.EdgeShard) -> Iterator[tuple[str, Payload]]:
    """Yield every point of an index with its payload."""
    return ((str(record.id), record.payload or {}) for record in _records(shard, with_payload=True))


def _records(shard: edge.EdgeShard, **asked: Any) -> Iterator[edge.Record]:
    following: Any = None
    while True:
        records, following = shard.scroll(edge.ScrollRequest(offset=following, limit=AT_ONCE, **asked))
        yield from records
        if following is None:
            return


def reconcile(generation: Path, shard: edge.EdgeShard, *, sealed: bool) -> None:
    """Make the journal and the index agree; the index gets a write first, so a kill leaves it ahead.

    A ledger of an older version has no journal, and gets one. Raises Damaged where the index lacks what the
    journal has.
    """
    path = generation / JOURNAL
    if sealed and path.exists():
        return
    content = journal.read(path) if path.exists() else journal.Content([], [])
    history, present = journal.histories(content.entries), dict(points_of(shard))
    expected = content.ids | history.versions.keys()
    if missing := expected - present.keys():
        raise damaged(generation, f"{len(missing)} of {len(expected)} entries are missing from the index")
    if content.damaged or not path.exists() or journal.kept(present).keys() - expected:
        journal.write(path, present.items())
        found = disagreements(generation, shard)
    else:
        found = _differences(content, history, shard, present)
    if found:
        raise damaged(generation, found[0])


def disagreements(generation: Path, shard: edge.EdgeShard) -> list[str]:
    """Compare every version in the index with the journal; return what differs, in words."""
    content = journal.read(generation / JOURNAL)
    return _differences(content, journal.histories(content.entries), shard, dict(points_of(shard)))


def _differences(
    content: journal.Content, history: journal.Histories, shard: edge.EdgeShard, present: dict[str, Payload]
) -> list[str]:
    found = [f"line {number} of {JOURNAL} is damaged" for number in content.damaged]
    found += [f"{gap} is missing" for gap in history.gaps]
    for point, payload in content.entries:
        if "event" in payload and present.get(point, {}).get("event") != payload["event"]:
            found.append(f"entry {point} differs from the journal, or is missing")
    for root, versions in history.versions.items():
        if present.get(root, {}).get("event") != versions[max(versions)]:
            found.append(f"the current version of record {root} differs from the journal, or is missing")
    return [*found, *_misplaced(shard, present), *_misnumbered(shard, present), *_changed_vectors(shard)]


def _misplaced(shard: edge.EdgeShard, present: Mapping[str, Payload]) -> list[str]:
    """Compare the index of places with the scopes of all points."""
    scopes = Counter(payload["scope"] for payload in present.values() if "scope" in payload)
    hits = shard.facet(edge.FacetRequest("scope", limit=2**31, exact=True))
    places = {str(hit.value): hit.count for hit in hits}
    # A point that a killed process was moving is in two segments: a facet counts both, a filter does not.
    doubtful = [each for each in {*scopes, *places} if scopes.get(each, 0) != places.get(each, 0)]
    wrong = [each for each in doubtful if _count(shard, edge.MatchValue(each)) != scopes.get(each, 0)]
    below = sum(_count(shard, edge.MatchPrefix(mark)) for mark in ("+", "-", "x"))
    if not wrong and below == scopes.total():
        return []
    return [f"the index finds {below} of {scopes.total()} records by their place, or in other places"]


def _count(shard: edge.EdgeShard, match: Any) -> int:
    where = edge.Filter(must=[edge.FieldCondition("scope", match=match)])
    return int(shard.count(edge.CountRequest(exact=True, filter=where)))


def _misnumbered(shard: edge.EdgeShard, present: Mapping[str, Payload]) -> list[str]:
    """Compare the indexes of numbers (the time, and what rankings read) with the numbers in all points.

    A point that a killed process was moving is in two segments, whose indexes may have two numbers of it.
    """
    found, info = [], shard.info()
    for path, index in info.payload_schema.items():
        if index.data_type == edge.PayloadSchemaType.Keyword:
            continue
        asked, ordered = edge.QueryRequest(2 * info.points_count, query=edge.OrderBy(path)), Numbers(list)
        for each in shard.query(asked) if present else ():
            ordered[str(each.id)].append(float(each.order_value or 0))
        moved = info.points_count > len(present)
        values = ((point, _value(payload, path)) for point, payload in present.items())
        if wrong := sum(_differs(value, ordered.get(point, []), moved) for point, value in values):
            found.append(f"the index has {path} of {wrong} records wrong")
    return found


def _value(payload: Payload, path: str) -> Any:
    """Return what is at a path like `created` or `value."importance"`."""
    first, _, name = path.partition(".")
    found = payload.get(first)
    if not name:
        return found
    return found.get(name.strip('"')) if isinstance(found, dict) else None


def _differs(value: Any, indexed: Sequence[float], moved: bool) -> bool:
    """Say whether an index has not the number that a point has; of a list it has several.

    The engine reads a number of 16 or 17 digits from a payload with an error in the last place. Where points
    were `moved`, one that has no number now may have had one.
    """
    if isinstance(value, int | float):
        return not any(isclose(value, each, rel_tol=ROUNDED) for each in indexed)
    return bool(indexed) and not isinstance(value, list) and not moved


def _changed_vectors(shard: edge.EdgeShard) -> list[str]:
    """Compare the vectors with their fingerprints; words must be where they belong."""
    records = _records(shard, with_payload=[*FIELDS.values()], with_vector=True)
    changed = sum(differs(each.payload or {}, each.vector or {}) for each in records)
    worded = edge.Filter(
        must=[edge.HasVectorCondition(SPARSE)],
        must_not=[edge.FieldCondition("scope", match=edge.MatchPrefix("+"))],
    )
    found = [f"the vectors of {changed} records are damaged"] if changed else []
    if shard.count(edge.CountRequest(exact=True, filter=worded)):
        found.append("the index finds words where there are none")
    return found
