"""How a write becomes the next version of a record: compare-and-set, replays, and what is refused."""

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from mneme.core.errors import Conflict, NotFound
from mneme.stores.ledger.engine import Entry, Payload, Point, Step, head_point, version_point
from mneme.stores.ledger.records import (
    Namespace,
    Version,
    Write,
    receipt_id,
    record_id,
    tombstone_id,
    version_id,
)
from mneme.stores.ledger.words import Words

FORGOTTEN = 0  # the version that a receipt names once its record has been forgotten


class Prepared(NamedTuple):
    """A write with its key decided and its text embedded."""

    write: Write
    key: str
    dense: Sequence[float] | None
    words: Words | None


def step(prepared: Prepared, now: Callable[[], datetime]) -> Step:
    """Return the step that stores the write as its record's next version, unless that was done before."""
    write = prepared.write
    record = record_id(write.namespace, prepared.key)
    receipt = write.idempotency_key and receipt_id(record, write.idempotency_key)
    tombstone = tombstone_id(record) if write.event == "insert" else None

    def decide(seen: Mapping[str, Payload]) -> Entry | str:
        if receipt and receipt in seen:
            return _done_already(record, prepared.key, seen[receipt]["version"])
        head = Version.model_validate_json(seen[record]["event"]) if record in seen else None
        version = next_version(prepared, head, write.at or now(), last_number(seen.get(tombstone or "")))
        claim = version_point(version_id(record, version.version), version)
        head_now = head_point(record, version, claim.payload["event"], prepared.dense, prepared.words)
        receipts = (Point(receipt, {"version": version.version}),) if receipt else ()
        return Entry(version, (claim,), head_now, receipts)

    return Step(record, tuple(filter(None, (record, receipt, tombstone))), decide)


def last_number(tombstone: Payload | None) -> int:
    """Return the highest number of a version that was forgotten under a name; 0 where there is none.

    The numbers go on after it. A writer that read a forgotten record can so never be taken for one that read
    the record that has its name now.
    """
    if tombstone is None:
        return 0
    known: int = tombstone.get("last") or json.loads(tombstone["forgotten"])["versions"]
    return known


def next_version(prepared: Prepared, head: Version | None, now: datetime, forgotten: int = 0) -> Version:
    """Return the version that the write makes of the record as it is, or refuse.

    `forgotten` is the last number that a forgotten record of the same name had.

    Raises Conflict where somebody else wrote first, NotFound where there is no record.
    """
    write = prepared.write
    if write.event == "insert":
        return _first(prepared, head, now, forgotten + 1)
    if head is None:
        raise missing(write.namespace, prepared.key)
    if write.expected_version != head.version:
        raise Conflict(
            f"Record {prepared.key} is at version {head.version}, not {write.expected_version}.",
            "Read it again and decide again.",
        )
    if head.live is (write.event == "restore"):
        raise Conflict(f"Cannot {write.event} {prepared.key}: it is {'live' if head.live else 'retired'}.")
    return Version(
        namespace=write.namespace,
        key=prepared.key,
        version=head.version + 1,
        first=head.first,
        event=write.event,
        value=head.value if write.value is None else write.value,
        text=head.text if write.text is None else write.text,
        at=max(now, head.at + timedelta(microseconds=1)),
        created=head.created,
        change=write.change,
        live=write.event != "retire",
        shelf=head.shelf if write.shelf is None else write.shelf,
        idempotency_key=write.idempotency_key,
    )


def missing(namespace: Namespace, key: str) -> NotFound:
    """Return the error for a record that is not there."""
    return NotFound(f"There is no record {key} in {'/'.join(namespace)}.")


def _first(prepared: Prepared, head: Version | None, now: datetime, number: int) -> Version:
    write = prepared.write
    if head is not None:
        raise Conflict(f"Record {prepared.key} exists already, at version {head.version}.")
    return Version(
        namespace=write.namespace,
        key=prepared.key,
        version=number,
        first=number,
        event="insert",
        value=write.value or {},
        text=write.text or "",
        at=now,
        created=now,
        change=write.change,
        live=True,
        shelf=write.shelf or "",
        idempotency_key=write.idempotency_key,
    )


def _done_already(record: str, key: str, version: int) -> str:
    if version == FORGOTTEN:
        raise NotFound(f"Record {key} has been forgotten; a replayed write does not bring it back.")
    return version_id(record, version)
