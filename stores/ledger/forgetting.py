"""Forgetting records: their bodies are erased; a note that it happened stays, without content."""
# ruff: noqa: S608  (all that is put into these statements are constants, and marks)

import json
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta

from pydantic import BaseModel, ConfigDict

from mneme.core.errors import Conflict
from mneme.stores.ledger.log import (
    NEVER,
    Entry,
    Transaction,
    each_value,
    heads_of,
    listed,
    tombstones_of,
)
from mneme.stores.ledger.records import Namespace, Value, Version, microseconds


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


def _erase(transaction: Transaction, records: Sequence[str], unnoted: Iterable[str]) -> None:
    """Take the content of records out of all tables."""
    for some, marks in listed(records):
        transaction.cursor.execute(
            f"""UPDATE ledger_entries SET nonce = NULL, body = NULL
            WHERE record IN ({marks}) AND kind = 'version'""",
            some,
        )
    for table in ("heads", "sources"):
        transaction.delete(table, "record", records)
    transaction.delete("vectors", "record", records)
    transaction.delete("receipts", "record", unnoted)


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
