"""How writes become versions in the log (compare-and-set, replays, refusals), and how records are forgotten.

Of a forgotten record the bodies are erased; a note that it happened stays, without content.
"""
# ruff: noqa: S608  (all that is put into these statements are constants, and marks)

import json
from collections.abc import Callable, Collection, Mapping, Sequence
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
    each_value,
    heads_of,
    listed,
    put_vector,
    tombstones_of,
)
from mneme.stores.ledger.records import Namespace, Value, Version, Write, microseconds

retry_on_conflict = retry(
    retry=retry_if_exception_type(Conflict),
    stop=stop_after_attempt(100),
    wait=wait_random(0, 0.02),
    reraise=True,
)
"""Read and decide again where somebody else wrote first; a decorator."""


NUMBERS = "SELECT id, number FROM ledger_receipts WHERE id IN ({})"
"""Reads the numbers of the versions that receipts are of; 0 of a forgotten one."""


def append(
    batch: Sequence[Write],
    vectors: Mapping[str, Sequence[float]],
    now: Callable[[], datetime],
    embedder: tuple[str, int],
) -> Callable[[Transaction], list[Version]]:
    """Return the work that stores a batch, in order, each write as its record's next version.

    `vectors` are those of the texts that it needs. A write that was done before returns what it made then.
    Raises Conflict, NotFound, LedgerMismatch.
    """

    def work(transaction: Transaction) -> list[Version]:
        cursor, named = transaction.cursor, [(each, each.record, each.receipt or "") for each in batch]
        check_embedder("hand", transaction.state, *embedder)
        known_heads = heads_of(cursor, (record for _, record, _ in named))
        heads = {record: head.version for record, head in known_heads.items()}
        done = dict(each_value(cursor, NUMBERS, (receipt for _, _, receipt in named if receipt)))
        forgotten = tombstones_of(cursor, (record for _, record, _ in named if record not in heads))
        made = dict[tuple[str, int], Version]()
        outcomes: list[tuple[str, int]] = []
        for write, record, receipt in named:
            number = done.get(receipt)
            if number is None:
                last = forgotten.get(record, NEVER).last
                version = next_version(write, heads.get(record), write.at or now(), last)
                _store(transaction, record, version, vectors.get(version.text))
                number = version.version
                heads[record] = made[record, number] = version
                if receipt:
                    done[receipt] = number
            elif number == 0:
                raise NotFound(
                    f"Record {write.key} has been forgotten; a replayed write does not bring it back."
                )
            outcomes.append((record, number))
        known = versions_of(cursor, [each for each in outcomes if each not in made]) | made
        if lost := [each for each in outcomes if each not in known]:
            raise Damaged(f"Version {lost[0][1]} of record {lost[0][0]} is missing.", REPAIR)
        return [known[each] for each in outcomes]

    return work


def _store(transaction: Transaction, record: str, version: Version, dense: Sequence[float] | None) -> None:
    """Put a version, and the vector of its text where it is searched; another vector would not be its own."""
    transaction.add_version(version)
    if version.live and dense is not None:
        put_vector(transaction, record, dense)
    elif version.version > version.first:
        transaction.delete("vectors", [record])


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
    heads: Sequence[Version],
    rewritten: Sequence[tuple[Version, Value]],
    dropped: Sequence[Version],
    mark: Forgotten,
) -> Callable[[Transaction], list[Forgotten | None]]:
    """Return the work that erases records as they are now, which may be more than when they were read.

    It returns the note of each of `heads`; None of one that was forgotten meanwhile, whose note of the first
    time stays; so does a new record of its name. `rewritten` records stay, with the value given, as if it had
    been their first. Raises Conflict where one of them has been written to since it was read. Of `dropped`
    ones nothing is left.
    """

    def work(transaction: Transaction) -> list[Forgotten | None]:
        known = [*heads, *(head for head, _ in rewritten), *dropped]
        found = heads_of(transaction.cursor, (head.record for head in known))
        now: dict[str, Version] = {}
        for head in known:  # which are there still, maybe in a later version; not under the name of a new one
            latest = found[head.record].version if head.record in found else None
            if latest is not None and latest.first <= head.version <= latest.version:
                now[head.record] = latest
        gone = {head.record: now[head.record] for head in heads if head.record in now}
        anew = [
            (now[head.record], value)
            for head, value in rewritten
            if head.record in now.keys() - gone.keys() and _needs_emptying(head, now[head.record], value)
        ]
        unnoted = {head.record for head in dropped} & now.keys() - gone.keys()
        notes = _noted(transaction, gone, mark)
        _erase(transaction, [*gone, *(head.record for head, _ in anew), *unnoted], unnoted)
        for record in unnoted:
            transaction.add(Entry("drop", record, 0, ""))
        for head, value in anew:
            transaction.add_version(_written_anew(head, value, mark.at))
        return [notes.get(head.record) for head in heads]

    return work


def _needs_emptying(head: Version, now: Version, value: Value) -> bool:
    if now.value == value:
        return False
    if now.version != head.version:
        raise Conflict(f"Record {head.key} was written to while another was being forgotten.")
    return True


def _noted(transaction: Transaction, gone: dict[str, Version], mark: Forgotten) -> dict[str, Forgotten]:
    """Leave a note of each record, with the receipts by which a replay of its writes is refused."""
    before = tombstones_of(transaction.cursor, gone)
    statement = "SELECT id, record FROM ledger_receipts WHERE record IN ({}) AND number > 0"
    receipts: dict[str, list[str]] = {record: [] for record in gone}
    for receipt, record in each_value(transaction.cursor, statement, gone):
        receipts[record].append(receipt)
    notes: dict[str, Forgotten] = {}
    for record, head in gone.items():
        update = {"namespace": head.namespace, "versions": head.version - head.first + 1}
        notes[record] = mark.model_copy(update=update)
        note = {
            "mark": notes[record].model_dump(mode="json"),
            "created": microseconds(mark.at),
            "last": max(head.version, before.get(record, NEVER).last),
            "receipts": receipts[record],
        }
        transaction.add(Entry("forget", record, 0, json.dumps(note, ensure_ascii=False)))
    return notes


def _erase(transaction: Transaction, records: Sequence[str], unnoted: Collection[str]) -> None:
    """Take the content of records out of all tables."""
    for some, marks in listed(records):
        transaction.cursor.execute(
            f"""UPDATE ledger_entries SET nonce = NULL, body = NULL
            WHERE record IN ({marks}) AND kind = 'version'""",
            some,
        )
    for table in ("heads", "sources", "vectors"):
        transaction.delete(table, records)
    transaction.delete("receipts", unnoted)


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
