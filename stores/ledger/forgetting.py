"""Forgetting a record: all its points are erased; a note that it happened stays, without content."""

from collections.abc import Mapping, Sequence, Set
from datetime import datetime, timedelta
from itertools import chain, starmap

from pydantic import BaseModel, ConfigDict

from mneme.core.errors import Conflict
from mneme.stores.ledger.deciding import FORGOTTEN
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

    A record that was forgotten meanwhile is left out, so that the note of the first time stays. `rewritten`
    records stay, with the value given, as if it had been their first. Raises Conflict where one of them has
    been written to since it was read. Of `dropped` ones nothing is left. `known` are the highest versions of
    earlier rounds, and of this one afterwards.
    """
    found = yield [_id(head) for head in (*heads, *dropped, *(head for head, _ in rewritten))]
    emptied = [(head, value) for head, value in rewritten if _needs_emptying(head, value, found)]
    touched = [*heads, *dropped, *(head for head, _ in emptied)]
    for root, version in ((_id(head), head.version) for head in touched):
        known[root] = max(version, found.get(root, {"n": 0})["n"], known.get(root, 0))
    highest = {_id(head): known[_id(head)] for head in touched}
    versions = yield list(chain.from_iterable(starmap(_version_ids, highest.items())))
    erased = (*(root for root in highest if root in found), *versions)
    there = [head for head in heads if _is_there(head, highest[_id(head)], found.keys() | versions.keys())]
    gone = {_id(head) for head in there}
    receipts = filter(None, (_void_receipt(payload, gone) for payload in versions.values()))
    tombstones = (_tombstone(head, mark, highest[_id(head)]) for head in there)
    renewed = chain.from_iterable(_written_anew(head, value, mark.at) for head, value in emptied)
    return Erasure(erased, (*receipts, *tombstones, *renewed))


def _id(head: Version) -> str:
    return record_id(head.namespace, head.key)


def _is_there(head: Version, highest: int, points: Set[str]) -> bool:
    return any(each in points for each in (_id(head), *_version_ids(_id(head), highest)))


def _version_ids(root: str, highest: int) -> list[str]:
    """Name all versions, and the one that a writer may be adding at this moment."""
    return [version_id(root, number) for number in range(1, highest + 2)]


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


def _void_receipt(payload: Payload, gone: Set[str]) -> Point | None:
    """Return a receipt by which a replay of a forgotten write is recognised and refused."""
    version = Version.model_validate_json(payload["event"])
    root = record_id(version.namespace, version.key)
    if root not in gone or version.idempotency_key is None:
        return None
    return Point(receipt_id(root, version.idempotency_key), {"version": FORGOTTEN})


def _tombstone(head: Version, mark: Forgotten, versions: int) -> Point:
    update = {"namespace": head.namespace, "versions": versions}
    payload = {
        "scope": scope("x", head.namespace),
        "created": microseconds(mark.at),
        "forgotten": mark.model_copy(update=update).model_dump_json(),
    }
    return Point(tombstone_id(_id(head)), payload)


def _written_anew(head: Version, value: Value, now: datetime) -> tuple[Point, Point]:
    created = head.created + timedelta(microseconds=1)  # a writer that read the former one fails
    update = {
        "version": 1,
        "event": "insert",
        "value": value,
        "text": "",
        "at": now,
        "created": created,
    }
    first, root = head.model_copy(update=update), _id(head)
    claim = version_point(version_id(root, 1), first)
    return claim, head_point(root, first, claim.payload["event"], None, None)
