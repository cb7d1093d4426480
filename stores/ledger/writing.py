"""How writes become versions in the log: compare-and-set, replays, and what is refused."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from tenacity import retry, retry_if_exception_type, stop_after_attempt, wait_random

from mneme.core.errors import Conflict, Damaged, NotFound
from mneme.stores.ledger.database import REPAIR
from mneme.stores.ledger.listing import versions_of
from mneme.stores.ledger.log import (
    Head,
    Transaction,
    check_embedder,
    heads_of,
    last_numbers,
    numbers_of,
    put_vector,
)
from mneme.stores.ledger.records import Namespace, Version, Write, receipt_id, record_id

retry_on_conflict = retry(
    retry=retry_if_exception_type(Conflict),
    stop=stop_after_attempt(100),
    wait=wait_random(0, 0.02),
    reraise=True,
)
"""Read and decide again where somebody else wrote first; a decorator."""


class Prepared(NamedTuple):
    """A write with its key decided and its text embedded."""

    write: Write
    key: str
    dense: Sequence[float] | None

    @property
    def record(self) -> str:
        return record_id(self.write.namespace, self.key)

    @property
    def receipt(self) -> str | None:
        key = self.write.idempotency_key
        return receipt_id(self.record, key) if key else None


def append(
    batch: Sequence[Prepared], now: Callable[[], datetime], embedder: tuple[str, int]
) -> Callable[[Transaction], list[Version]]:
    """Return the work that stores a batch, in order, each write as its record's next version.

    A write that was done before returns what it made then. Raises Conflict, NotFound, LedgerMismatch.
    """

    def work(transaction: Transaction) -> list[Version]:
        cursor = transaction.cursor
        check_embedder("hand", transaction.state, *embedder)
        heads = heads_of(cursor, (each.record for each in batch))
        done = dict(numbers_of(cursor, filter(None, (each.receipt for each in batch))))
        inserted = (each.record for each in batch if each.write.event == "insert")
        last = last_numbers(cursor, inserted)
        made = dict[tuple[str, int], Version]()
        outcomes: list[tuple[str, int]] = []
        for each in batch:
            number = done.get(each.receipt or "")
            if number is None:
                version = next_version(each, heads.get(each.record), each.write.at or now(), last)
                _store(transaction, each, version)
                number = version.version
                heads[each.record] = Head(version, "")
                made[each.record, number] = version
                if each.receipt:
                    done[each.receipt] = number
            elif number == 0:
                raise NotFound(
                    f"Record {each.key} has been forgotten; a replayed write does not bring it back."
                )
            outcomes.append((each.record, number))
        known = versions_of(cursor, [each for each in outcomes if each not in made]) | made
        if lost := [each for each in outcomes if each not in known]:
            raise Damaged(f"Version {lost[0][1]} of record {lost[0][0]} is missing.", REPAIR)
        return [known[each] for each in outcomes]

    return work


def _store(transaction: Transaction, prepared: Prepared, version: Version) -> None:
    """Put a version, and the vector of its text where it is searched; another vector would not be its own."""
    transaction.add_version(version)
    if version.live and prepared.dense is not None:
        put_vector(transaction, prepared.record, prepared.dense)
    elif version.version > version.first:
        transaction.rows["vectors"] = [
            row for row in transaction.rows.get("vectors", ()) if row[0] != prepared.record
        ]
        transaction.delete("vectors", "record", [prepared.record])


def next_version(
    prepared: Prepared, found: Head | None, now: datetime, forgotten: Mapping[str, int]
) -> Version:
    """Return the version that the write makes of the record as it is, or refuse.

    `forgotten` has the last number that a forgotten record of the same name had. Raises Conflict where
    somebody else wrote first, NotFound where there is no record.
    """
    write, head = prepared.write, found and found.version
    _check_state(prepared, head)
    number = head.version + 1 if head else forgotten.get(prepared.record, 0) + 1
    value, text, shelf = (head.value, head.text, head.shelf) if head else ({}, "", "")
    return Version(
        namespace=write.namespace,
        key=prepared.key,
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


def _check_state(prepared: Prepared, head: Version | None) -> None:
    """Refuse a write that does not follow the record as it is."""
    write, key = prepared.write, prepared.key
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
