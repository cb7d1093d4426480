"""How writes become versions in the log (compare-and-set, replays, refusals), and how records are forgotten.

Of a forgotten record the bodies are erased; a note that it happened stays, without content.
"""

import json
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta

from pydantic import BaseModel, ConfigDict
from tenacity import retry, retry_if_exception_type, stop_after_attempt, wait_random

from mneme.core.errors import Conflict, Damaged, NotFound
from mneme.stores.database import REPAIR
from mneme.stores.ledger.listing import versions_of
from mneme.stores.ledger.log import (
    NEVER,
    Entry,
    Transaction,
    check_embedder,
    current,
    each_value,
    put_vector,
    tombstones_of,
)
from mneme.stores.ledger.records import Namespace, Value, Version, Write, microseconds, receipt_id

retry_on_conflict = retry(
    retry=retry_if_exception_type(Conflict),
    stop=stop_after_attempt(100),
    wait=wait_random(0, 0.02),
    reraise=True,
)
"""Read and decide again where somebody else wrote first; a decorator."""


def append(
    transaction: Transaction,
    batch: Sequence[Write],
    vectors: Mapping[str, Sequence[float]],
    now: Callable[[], datetime],
    embedder: tuple[str, int],
) -> list[Version]:
    """Store a batch, in order, each write as its record's next version.

    `vectors` are those of the texts that it needs. A write that was done before returns what it made then.
    Raises Conflict, NotFound, LedgerMismatch.
    """
    check_embedder("hand", transaction.state, *embedder)
    cursor, records = transaction.cursor, [write.record for write in batch]
    heads = current(cursor, records)
    forgotten = tombstones_of(cursor, (record for record in records if record not in heads))
    once = [write.idempotency_key for write in batch]
    receipts = [receipt_id(record, key) if key else "" for record, key in zip(records, once, strict=True)]
    asked = "SELECT id, record, number FROM ledger_receipts WHERE id IN ({})"
    done = {id: (record, number) for id, record, number in each_value(cursor, asked, filter(None, receipts))}
    known, versions = versions_of(cursor, done.values()), list[Version]()
    for write, record, receipt in zip(batch, records, receipts, strict=True):
        if (made := done.get(receipt)) is None:
            last = forgotten.get(record, NEVER).last
            version = next_version(write, heads.get(record), now(), last)
            made = record, version.version
            heads[record] = known[made] = version
            if receipt:
                done[receipt] = made
            transaction.add_version(version)
            if version.live and version.text in vectors:
                put_vector(transaction, record, vectors[version.text])
            elif version.version > version.first:  # the vector is another text's
                transaction.delete("vectors", [record])
        elif made[1] == 0:
            raise NotFound(f"Record {write.key} has been forgotten; a replayed write does not bring it back.")
        elif made not in known:
            raise Damaged(f"Version {made[1]} of record {record} is missing.", REPAIR)
        versions.append(known[made])
    return versions


def next_version(write: Write, head: Version | None, now: datetime, last: int) -> Version:
    """Return the version that the write makes of the record as it is, or refuse.

    `last` is the highest number that a forgotten record of the same name had. Raises Conflict where somebody
    else wrote first, NotFound where there is no record.
    """
    _check_state(write, head)
    number = (head.version if head else last) + 1
    value, text, shelf = (head.value, head.text, head.shelf) if head else ({}, "", "")
    return Version(
        namespace=write.namespace,
        key=write.key or "",
        version=number,
        first=head.first if head else number,
        event=write.event,
        value=value if write.value is None else write.value,
        text=text if write.text is None else write.text,
        at=max(now, head.at + timedelta(microseconds=1)) if head else now,
        created=head.created if head else now,
        change=write.change,
        live=write.event != "retire",
        shelf=shelf if write.shelf is None else write.shelf,
        idempotency_key=write.idempotency_key,
    )


def _check_state(write: Write, head: Version | None) -> None:
    """Refuse a write that does not follow the record as it is."""
    key = write.key or ""
    if write.event == "insert":
        if head is not None:
            raise Conflict(f"Record {key} exists already, at version {head.version}.")
        return
    if head is None:
        raise missing(write.namespace, key)
    if write.expected_version != head.version:
        raise Conflict(
            f"Record {key} is at version {head.version}, not {write.expected_version}.",
            "Read it again and decide again.",
        )
    if head.live is (write.event == "restore"):
        raise Conflict(f"Cannot {write.event} {key}: it is {'live' if head.live else 'retired'}.")


def missing(namespace: Namespace, key: str) -> NotFound:
    """Return the error for a record that is not there."""
    return NotFound(f"There is no record {key} in {'/'.join(namespace)}.")


class Forgotten(BaseModel):
    """What is left of a forgotten record: that it was, who erased it and why; no content, no key."""

    model_config = ConfigDict(frozen=True)

    namespace: Namespace = ()
    versions: int = 0
    at: datetime
    reason: str
    actor: str


def forget(
    transaction: Transaction,
    heads: Sequence[Version],
    rewritten: Sequence[tuple[Version, Value]],
    dropped: Sequence[Version],
    mark: Forgotten,
) -> list[Forgotten | None]:
    """Erase records as they are now, which may be more than when they were read.

    Return the note of each of `heads`; None of one that was forgotten meanwhile, whose note of the first
    time stays; so does a new record of its name. `rewritten` records stay, with the value given, as if it had
    been their first. Raises Conflict where one of them has been written to since it was read. Of `dropped`
    ones nothing is left.
    """
    known = [*heads, *(head for head, _ in rewritten), *dropped]
    found, now = current(transaction.cursor, (head.record for head in known)), dict[str, Version]()
    for head in known:  # which are there still, maybe in a later version; not under the name of a new one
        latest = found.get(head.record)
        if latest is not None and latest.first <= head.version <= latest.version:
            now[head.record] = latest
    gone = {head.record: now.pop(head.record) for head in heads if head.record in now}
    anew = dict[str, Version]()
    for head, value in rewritten:
        latest = now.get(head.record)
        if latest is None or latest.value == value:
            continue
        if latest.version != head.version:
            raise Conflict(f"Record {head.key} was written to while another was being forgotten.")
        anew[head.record] = _written_anew(latest, value, mark.at)
    unnoted = {head.record for head in dropped} & now.keys()
    notes = _noted(transaction, gone, mark)
    transaction.erase({*gone, *anew, *unnoted})
    transaction.delete("receipts", unnoted)
    for record in unnoted:
        transaction.add(Entry("drop", record))
    for version in anew.values():
        transaction.add_version(version)
    return [notes.get(head.record) for head in heads]


def _noted(transaction: Transaction, gone: Mapping[str, Version], mark: Forgotten) -> dict[str, Forgotten]:
    """Leave a note of each record, with the receipts by which a replay of its writes is refused."""
    before, receipts = tombstones_of(transaction.cursor, gone), defaultdict[str, list[str]](list)
    asked = "SELECT record, id FROM ledger_receipts WHERE record IN ({}) AND number > 0"
    for record, receipt in each_value(transaction.cursor, asked, gone):
        receipts[record].append(receipt)
    notes = dict[str, Forgotten]()
    for record, head in gone.items():
        count = head.version - head.first + 1
        notes[record] = mark.model_copy(update={"namespace": head.namespace, "versions": count})
        note = {
            "mark": notes[record].model_dump(mode="json"),
            "created": microseconds(mark.at),
            "last": max(head.version, before.get(record, NEVER).last),
            "receipts": receipts[record],
        }
        transaction.add(Entry("forget", record, 0, json.dumps(note, ensure_ascii=False)))
    return notes


def _written_anew(head: Version, value: Value, now: datetime) -> Version:
    """Return a record that begins anew, after every number that a writer may have read or be writing."""
    number = head.version + 2
    update = {
        "version": number,
        "first": number,
        "event": "insert",
        "value": value,
        "text": "",
        "at": now,
        "created": head.created + timedelta(microseconds=1),
    }
    return head.model_copy(update=update)
