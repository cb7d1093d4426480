"""Forgetting a record: all its points are erased; a note that it happened stays, without content."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from itertools import chain

from pydantic import BaseModel, ConfigDict

from mneme.core.errors import Conflict
from mneme.stores.ledger.deciding import FORGOTTEN, last_number
from mneme.stores.ledger.engine import Erasing, Erasure, Payload, Point, head_point, scope, version_point
from mneme.stores.ledger.records import (
    Namespace,
    Value,
    Version,
    microseconds,
    receipt_id,
    record_id,
    tombstone_id,
    version_id,
)


class Forgotten(BaseModel):
    """What is left of a forgotten record: that it was, who erased it and why; no content, no key."""

    model_config = ConfigDict(frozen=True)

    namespace: Namespace = ()
    versions: int = 0
    at: datetime
    reason: str
    actor: str


def erasing(
    heads: Sequence[Version],
    rewritten: Sequence[tuple[Version, Value]],
    dropped: Sequence[Version],
    mark: Forgotten,
    known: dict[str, int],
) -> Erasing:
    """Find every point of these records as they are now, which may be more than when they were read.

    A record that was forgotten meanwhile is left out, so that the note of the first time stays; so is a new
    one of its name. `rewritten` records stay, with the value given, as if it had been their first. Raises
    Conflict where one of them has been written to since it was read. Of `dropped` ones nothing is left.
    `known` are the highest versions of earlier rounds, and of this one afterwards.
    """
    roots = [_id(head) for head in (*heads, *dropped, *(head for head, _ in rewritten))]
    found = yield [point for root in roots for point in (root, tombstone_id(root))]
    emptied = [(head, value) for head, value in rewritten if _needs_emptying(head, value, found)]
    touched = {_id(head): head for head in (*heads, *dropped, *(head for head, _ in emptied))}
    now = {root: _event(found[root]) for root in touched if root in found}
    now = {root: head for root, head in now.items() if head.first <= known.get(root, touched[root].version)}
    for root, head in touched.items():
        known[root] = max(head.version, now.get(root, head).version, known.get(root, 0))
    points = yield [each for head in touched.values() for each in _version_ids(head, known[_id(head)])]
    versions = {point: _event(payload) for point, payload in points.items()}
    versions = {point: each for point, each in versions.items() if each.first <= known[_id(each)]}
    for each in versions.values():  # also one that a writer added just now, after which there may be more
        known[_id(each)] = max(each.version, known[_id(each)])
    gone = {root for root in map(_id, heads) if root in now or root in map(_id, versions.values())}
    receipts = (_void_receipt(e) for e in versions.values() if e.idempotency_key and _id(e) in gone)
    tombstones = (_tombstone(touched[root], mark, known[root], found) for root in gone)
    renewed = (_written_anew(head, value, mark.at, known[_id(head)]) for head, value in emptied)
    following = (version_id(_id(head), known[_id(head)] + 1) for head, _ in emptied)
    return Erasure(
        (*now, *versions, *following),
        (*receipts, *tombstones, *chain.from_iterable(renewed)),
        {root: found[root]["created"] for root in now},
    )


def _event(payload: Payload) -> Version:
    return Version.model_validate_json(payload["event"])


def _id(head: Version) -> str:
    return record_id(head.namespace, head.key)


def _version_ids(head: Version, highest: int) -> list[str]:
    """Name all versions, and the one that a writer may be adding at this moment."""
    return [version_id(_id(head), number) for number in range(head.first, highest + 2)]


def _needs_emptying(head: Version, value: Value, found: Mapping[str, Payload]) -> bool:
    current = found.get(_id(head))
    if current is None:
        return False
    version = Version.model_validate_json(current["event"])
    if version.value == value:
        return False
    if version.version != head.version:
        raise Conflict(f"Record {head.key} was written to while another was being forgotten.")
    return True


def _void_receipt(version: Version) -> Point:
    """Return a receipt by which a replay of a forgotten write is recognised and refused."""
    return Point(receipt_id(_id(version), version.idempotency_key or ""), {"version": FORGOTTEN})


def _tombstone(head: Version, mark: Forgotten, last: int, found: Mapping[str, Payload]) -> Point:
    """Return the note that a record was forgotten, with the last number of its name (see `last_number`)."""
    before = found.get(tombstone_id(_id(head)))
    update = {"namespace": head.namespace, "versions": last - head.first + 1}
    payload = {
        "scope": scope("x", head.namespace),
        "created": microseconds(mark.at),
        "forgotten": mark.model_copy(update=update).model_dump_json(),
        "last": max(last, last_number(before)),
    }
    return Point(tombstone_id(_id(head)), payload)


def _written_anew(head: Version, value: Value, now: datetime, last: int) -> tuple[Point, Point]:
    """Return a record that begins anew, after every number that a writer may have read or be writing."""
    created, number = head.created + timedelta(microseconds=1), last + 2
    update = {
        "version": number,
        "first": number,
        "event": "insert",
        "value": value,
        "text": "",
        "at": now,
        "created": created,
    }
    first, root = head.model_copy(update=update), _id(head)
    claim = version_point(version_id(root, number), first)
    return claim, head_point(root, first, claim.payload["event"], None, None)
