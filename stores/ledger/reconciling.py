"""Holding an index against its journal, after a process was killed or on demand."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import qdrant_edge as edge

from mneme.stores.ledger import journal
from mneme.stores.ledger.engine import SPARSE, Payload
from mneme.stores.ledger.journal import JOURNAL
from mneme.stores.ledger.sealing import damaged

AT_ONCE = 1000


def points_of(shard: edge.EdgeShard) -> Iterator[tuple[str, Payload]]:
    """Yield every point of an index with its payload."""
    following: Any = None
    while True:
        records, following = shard.scroll(
            edge.ScrollRequest(offset=following, limit=AT_ONCE, with_payload=True)
        )
        yield from ((str(record.id), record.payload or {}) for record in records)
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
    present = dict(points_of(shard))
    expected = content.ids | journal.histories(content.entries).versions.keys()
    if missing := expected - present.keys():
        raise damaged(generation, f"{len(missing)} of {len(expected)} entries are missing from the index")
    if content.damaged or not path.exists() or journal.kept(present).keys() - expected:
        journal.write(path, present.items())
    if found := disagreements(generation, shard):
        raise damaged(generation, found[0])


def disagreements(generation: Path, shard: edge.EdgeShard) -> list[str]:
    """Compare every version in the index with the journal; return what differs, in words."""
    content = journal.read(generation / JOURNAL)
    found = [f"line {number} of {JOURNAL} is damaged" for number in content.damaged]
    history, present = journal.histories(content.entries), dict(points_of(shard))
    found += [f"{gap} is missing" for gap in history.gaps]
    for point, payload in content.entries:
        if "event" in payload and present.get(point, {}).get("event") != payload["event"]:
            found.append(f"entry {point} differs from the journal, or is missing")
    for root, versions in history.versions.items():
        if present.get(root, {}).get("event") != versions[max(versions)]:
            found.append(f"the current version of record {root} differs from the journal, or is missing")
    scopes = sum("scope" in payload for payload in present.values())
    counted = sum(shard.count(edge.CountRequest(exact=True, filter=_below(mark))) for mark in ("+", "-", "x"))
    dated = edge.FieldCondition("created", range=edge.RangeFloat(gte=0))
    timed = shard.count(edge.CountRequest(exact=True, filter=edge.Filter(must=[dated])))
    if (counted, timed) != (scopes, scopes):
        found.append(f"the index finds {counted} of {scopes} records by their place, {timed} by their time")
    worded = edge.Filter(
        must=[edge.HasVectorCondition(SPARSE)],
        must_not=[edge.FieldCondition("scope", match=edge.MatchPrefix("+"))],
    )
    if shard.count(edge.CountRequest(exact=True, filter=worded)):
        found.append("the index finds words where there are none")
    return found


def _below(mark: str) -> edge.Filter:
    return edge.Filter(must=[edge.FieldCondition("scope", match=edge.MatchPrefix(mark))])
