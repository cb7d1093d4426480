"""The log: every version of every record in SQL, in one order; it is the truth from which all else follows.

An *entry* has a sequence number without gaps, a digest of its body, and a checksum that chains it to all
earlier entries. Its kinds: a `version` of a record; a `vector` that a record got later; a note that a record
was forgotten (`forget`), was erased without a tombstone (`drop`), or lost a version in a repair (`lost`); a
change of the `embedder`. Forgetting removes body and nonce from entries and keeps their digests: without the
nonce these reveal nothing, and the chain stays verifiable. A tombstone without content stays.

The tables `heads`, `receipts`, `sources` (the sources of all versions of a record) and `tombstones` can be
derived from the entries; `vectors` spares an index from embedding texts again. Concurrent writes share one
transaction. `append` turns writes into versions (compare-and-set, replays, refusals), `forget` erases
records.
"""
# ruff: noqa: S608  (all that is put into these statements are constants, and marks)

import asyncio
import json
import secrets
import zlib
from array import array
from collections import defaultdict, deque
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future
from contextlib import closing
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Literal, TypeVar, cast
from uuid import uuid4

from tenacity import retry, retry_if_exception_type, stop_after_attempt, wait_random

from mneme.core.errors import Conflict, Damaged, NotFound
from mneme.stores.database import REPAIR, Cursor, Database, Sqlite, Worker, make, upsert
from mneme.stores.ledger.query import LEDGER_FORMAT, scope, scope_of
from mneme.stores.ledger.reading import (
    DIGEST_BYTES,
    NOT_FORGOTTEN,
    State,
    chained,
    check_embedder,
    digest_of,
    each_value,
    heads_of,
    state_of,
    tombstones_of,
    versions_of,
)
from mneme.stores.ledger.records import (
    Forgotten,
    Value,
    Version,
    Write,
    microseconds,
    missing,
    receipt_id,
    tombstone_id,
)

T = TypeVar("T")
Kind = Literal["version", "vector", "forget", "drop", "embedder", "lost"]
LOG_TABLES = """
CREATE TABLE IF NOT EXISTS ledger_state (one INTEGER PRIMARY KEY, ledger TEXT, format INTEGER, embedder TEXT,
    dimension INTEGER, seq BIGINT, chain {blob}, indexed BIGINT);
CREATE TABLE IF NOT EXISTS ledger_entries (seq {serial} PRIMARY KEY, kind TEXT, record TEXT, number INTEGER,
    nonce {blob}, body TEXT, digest {blob}, chain {blob});
CREATE INDEX IF NOT EXISTS ledger_entries_record ON ledger_entries (record, number);
CREATE TABLE IF NOT EXISTS ledger_heads (record TEXT PRIMARY KEY, seq BIGINT, number INTEGER,
    searched INTEGER, scope {text}, created BIGINT, updated BIGINT, expires DOUBLE PRECISION){compact};
CREATE INDEX IF NOT EXISTS ledger_heads_scope ON ledger_heads (scope, created);
CREATE INDEX IF NOT EXISTS ledger_heads_expires ON ledger_heads (expires) WHERE expires IS NOT NULL;
CREATE TABLE IF NOT EXISTS ledger_receipts (id TEXT PRIMARY KEY, record TEXT, number INTEGER){compact};
CREATE INDEX IF NOT EXISTS ledger_receipts_record ON ledger_receipts (record);
CREATE TABLE IF NOT EXISTS ledger_tombstones (id TEXT PRIMARY KEY, scope {text}, created BIGINT, last INTEGER,
    body TEXT);
CREATE TABLE IF NOT EXISTS ledger_sources (id TEXT PRIMARY KEY, record TEXT, source TEXT,
    number INTEGER){compact};
CREATE INDEX IF NOT EXISTS ledger_sources_record ON ledger_sources (record);
CREATE INDEX IF NOT EXISTS ledger_sources_source ON ledger_sources (source);
CREATE TABLE IF NOT EXISTS ledger_vectors (record TEXT, embedder TEXT, dense {blob}, sum BIGINT,
    PRIMARY KEY (record, embedder));
"""
# Tables of earlier versions may have further columns, so every statement names its columns.
LOG_COLUMNS = {
    "entries": ("seq", "kind", "record", "number", "nonce", "body", "digest", "chain"),
    "heads": ("record", "seq", "number", "searched", "scope", "created", "updated", "expires"),
    "receipts": ("id", "record", "number"),
    "sources": ("id", "record", "source", "number"),
    "tombstones": ("id", "scope", "created", "last", "body"),
    "vectors": ("record", "embedder", "dense", "sum"),
}
UPSERTS = {name: upsert(f"ledger_{name}", columns) for name, columns in LOG_COLUMNS.items()}
# During `reembed` a record has two vectors, one by each embedder.
UPSERTS["vectors"] = upsert("ledger_vectors", LOG_COLUMNS["vectors"], keys=2)
retry_on_conflict = retry(
    retry=retry_if_exception_type(Conflict),
    stop=stop_after_attempt(100),
    wait=wait_random(0, 0.02),
    reraise=True,
)
"""Decorator: read and decide again if another writer was first."""


@dataclass
class Transaction:
    """A transaction in which several jobs run; the rows that a job adds are written together at its end.

    `rows` are the rows still to be written, by table; each replaces an earlier row with the same key.
    """

    cursor: Cursor
    state: State
    rows: dict[str, list[tuple[Any, ...]]] = field(default_factory=lambda: defaultdict(list))

    def add(  # noqa: PLR0913 (one name for each thing that an entry has)
        self,
        kind: Kind,
        record: str = "",
        number: int = 0,
        body: str | None = "",
        *,
        version: Version | None = None,
        nonce: bytes | None = None,
        digest: bytes = b"",
    ) -> None:
        """Add an entry and the rows derived from it; a `version` names its record.

        An entry copied from another log has its `digest` and, unless it was erased, its `nonce`; an
        erased one adds no other rows.
        """
        seq = self.state.seq + 1
        if version is not None:
            # A body that is given keeps its bytes: written anew it could have another digest.
            record, number, body = version.record, version.version, body or version.model_dump_json()
            self._put_head(seq, version)
        elif kind == "forget" and body is not None:
            self._put_tombstone(record, json.loads(body))
        if not digest:
            nonce = secrets.token_bytes(8)
            digest = digest_of(nonce, body or "")
        chain = chained(self.state.chain, (seq, kind, record, number), digest)
        self.state = self.state._replace(seq=seq, chain=chain)
        self.rows["entries"].append((seq, kind, record, number, nonce, body, digest, chain))

    def _put_head(self, seq: int, version: Version) -> None:
        """Add the rows derived from a record's latest version."""
        record, expires = version.record, cast(Any, version.value.get("expires"))
        head = (
            record,
            seq,
            version.version,
            int(version.live and bool(version.text.strip())),
            scope_of(version),
            microseconds(version.created),
            microseconds(version.at),
            float(expires) if type(expires) in (int, float) else None,
        )
        self.rows["heads"].append(head)
        if version.idempotency_key:
            receipt = receipt_id(record, version.idempotency_key)
            self.rows["receipts"].append((receipt, record, version.version))
        for source, _, number in (each.partition("@") for each in version.change.source.records):
            self.rows["sources"].append((f"{record} {source}", record, source, int(number)))

    def _put_tombstone(self, record: str, note: dict[str, Any]) -> None:
        """Add the rows derived from the note of a forgotten record."""
        mark, place = note["mark"], scope("x", tuple(note["mark"]["namespace"]))
        id, body = note.get("id") or tombstone_id(record), json.dumps(mark, ensure_ascii=False)
        self.rows["tombstones"].append((id, place, note["created"], note["last"], body))
        for each in note["receipts"]:
            self.rows["receipts"].append((each, record, 0))

    def add_version(self, version: Version, vectors: Mapping[str, Sequence[float]]) -> None:
        """Add a version and its text's vector, if there is one; delete the vectors of the earlier text."""
        self.add("version", version=version)
        if version.version > version.first:  # vectors by other embedders, too, are of the old text
            self.delete("vectors", [version.record])
        if version.live and version.text in vectors:
            self.put_vector(version.record, vectors[version.text])

    def put_vector(self, record: str, dense: Sequence[float], embedder: str = "") -> None:
        """Store the vector of a record's current text, by the ledger's embedder or by another."""
        blob = array("f", dense).tobytes()
        self.rows["vectors"].append((record, embedder or self.state.embedder, blob, zlib.crc32(blob)))

    def delete(self, table: str, records: Collection[str]) -> None:
        """Delete the rows of records at once, also rows that are not written yet."""
        self.rows[table] = [row for row in self.rows[table] if row[0] not in records]
        self.cursor.executemany(f"DELETE FROM ledger_{table} WHERE record = ?", [(each,) for each in records])

    def erase(self, records: Collection[str]) -> None:
        """Remove the content of records from all tables."""
        erased = "UPDATE ledger_entries SET nonce = NULL, body = NULL WHERE record = ? AND kind = 'version'"
        self.cursor.executemany(erased, [(each,) for each in records])
        for table in ("heads", "sources", "vectors"):
            self.delete(table, records)


Work = Callable[[Transaction], T]


def transact(database: Database, works: Sequence[Work[Any]]) -> list[Any]:
    """Run several jobs in one transaction, and return each one's result, or its error; blocks.

    An error that concerns the whole transaction is raised.
    """
    results = list[Any]()
    with database.writing() as cursor:
        state = state_of(cursor, database.locked)
        transaction = Transaction(cursor, state)
        for work in works:
            before = transaction.state
            cursor.execute("SAVEPOINT work")  # a job that fails takes back its own changes alone
            try:
                result = work(transaction)
                # Here and not once at the end: a row that cannot be written is its own job's failure.
                for table, rows in transaction.rows.items():
                    cursor.executemany(UPSERTS[table], rows)
            except Exception as failure:  # noqa: BLE001  (it is raised to the caller who waits for this job)
                result, transaction.state = failure, before
                if isinstance(failure, database.errors):
                    result = database.refusal(failure)
                    result.__cause__ = failure
                try:
                    cursor.execute("ROLLBACK TO SAVEPOINT work")
                except Exception:  # noqa: BLE001  (the database has ended the transaction, or is gone)
                    raise result from None
            transaction.rows.clear()
            cursor.execute("RELEASE SAVEPOINT work")
            results.append(result)
        if transaction.state != state:
            changed = "format = ?, embedder = ?, dimension = ?, seq = ?, chain = ?, indexed = ?"
            cursor.execute(f"UPDATE ledger_state SET {changed}", [*transaction.state[1:]])
    return results


def commit(database: Database, work: Work[T]) -> T:
    """Run one job in a transaction; blocks. Raises the error with which it failed."""
    [result] = transact(database, [work])
    if isinstance(result, Exception):
        raise result
    return cast(T, result)


def write_log(path: Path, made_with: tuple[str, int], work: Work[T]) -> T:
    """Make a new log in a file, and write its first entries."""
    with closing(Sqlite(path)) as database:
        with database.writing() as cursor:
            make_tables(cursor, database, *made_with)
        return commit(database, work)


def make_tables(cursor: Cursor, database: Database | type[Sqlite], embedder: str, dimension: int) -> None:
    """Make the tables of a new log, unless they are there."""
    make(cursor, database, LOG_TABLES)
    cursor.execute(
        "INSERT INTO ledger_state VALUES (1, ?, ?, ?, ?, 0, ?, 0) ON CONFLICT (one) DO NOTHING",
        (uuid4().hex, LEDGER_FORMAT, embedder, dimension, bytes(DIGEST_BYTES)),
    )


class Log(Worker):
    """An open log, safe to use from any event loop and thread."""

    def __init__(self, database: Database, check: Callable[[], None] = lambda: None) -> None:
        """Use a database whose tables exist; `check` runs before each transaction and may refuse it."""
        super().__init__(database)
        self._check = check
        self._waiting: deque[tuple[Work[Any], Future[Any]]] = deque()

    async def write(self, work: Work[T], *, erases: bool = False) -> T:
        """Run a job in a transaction, completely or not at all; return its result once it is on the disk."""
        done = Future[T]()
        self._waiting.append((work, done))
        self._writer.submit(self._drain)  # the first takes all that waits: one transaction, and one sync
        result = await asyncio.wrap_future(done)
        if erases:
            # In the writers' thread, where no write of this process is in its way.
            await asyncio.wrap_future(self._writer.submit(self.database.erased))
        return result

    def _drain(self) -> None:
        """Run all waiting jobs in one transaction."""
        jobs = [self._waiting.popleft() for _ in range(len(self._waiting))]
        if not jobs:  # an earlier call has taken them
            return
        try:
            self._check()
            results = transact(self.database, [work for work, _ in jobs])
        except BaseException as failure:  # noqa: BLE001  (it is raised to the callers who wait)
            results = [failure for _ in jobs]
        for (_, done), result in zip(jobs, results, strict=True):
            if not done.set_running_or_notify_cancel():  # its caller was cancelled; the job is done
                continue
            done.set_exception(result) if isinstance(result, BaseException) else done.set_result(result)


def append(
    transaction: Transaction,
    batch: Sequence[Write],
    vectors: Mapping[str, Sequence[float]],
    now: Callable[[], datetime],
    embedder: tuple[str, int],
) -> list[Version]:
    """Store a batch in order; each write becomes its record's next version.

    `vectors` has the vectors of its texts. A repeated write returns the version that it made the first time,
    or the current version if that one has been erased since. Raises Conflict, NotFound, LedgerMismatch.
    """
    check_embedder("hand", transaction.state, *embedder)  # another process may have changed it meanwhile
    cursor, records = transaction.cursor, [write.record for write in batch]
    heads = heads_of(cursor, records)
    forgotten = tombstones_of(cursor, (record for record in records if record not in heads))
    keys = (write.idempotency_key for write in batch)
    receipts = [receipt_id(record, key) if key else "" for record, key in zip(records, keys, strict=True)]
    asked = "SELECT id, record, number FROM ledger_receipts WHERE id IN ({})"
    done = {id: (record, number) for id, record, number in each_value(cursor, asked, filter(None, receipts))}
    known, versions = versions_of(cursor, done.values()), list[Version]()
    for write, record, receipt in zip(batch, records, receipts, strict=True):
        if (made := done.get(receipt)) is None:
            last = forgotten.get(record, NOT_FORGOTTEN).last
            version = next_version(write, heads.get(record), now(), last)
            made = record, version.version
            heads[record] = known[made] = version  # the batch may write to it again
            if receipt:
                done[receipt] = made
            transaction.add_version(version, vectors)
        elif made[1] == 0:  # the number in receipts of a forgotten record
            raise NotFound(f"Record {write.key} has been forgotten; a replayed write does not bring it back.")
        elif made not in known and (head := heads.get(record)) and made[1] < head.first:
            known[made] = head  # its earlier versions were erased (`rewritten`)
        elif made not in known:
            raise Damaged(f"Version {made[1]} of record {record} is missing.", REPAIR)
        versions.append(known[made])
    return versions


def next_version(write: Write, head: Version | None, now: datetime, last: int) -> Version:
    """Return the version that a write adds after the current one.

    `last` is the highest version number of a forgotten record with the same name. Raises Conflict if another
    writer was first or the event does not fit, NotFound if there is no record.
    """
    key = write.key
    if head is None and write.event != "insert":
        raise missing(write.namespace, key)
    if head is not None and write.event == "insert":
        raise Conflict(f"Record {key} exists already, at version {head.version}.")
    if head is not None and write.expected_version != head.version:
        raise Conflict(
            f"Record {key} is at version {head.version}, not {write.expected_version}.",
            "Read it again and decide again.",
        )
    if head is not None and head.live is (write.event == "restore"):
        raise Conflict(f"Cannot {write.event} {key}: it is {'live' if head.live else 'retired'}.")
    number = (head.version if head else last) + 1
    value, text, shelf = (head.value, head.text, head.shelf) if head else ({}, "", "")
    return Version(
        namespace=write.namespace,
        key=key,
        version=number,
        first=head.first if head else number,
        event=write.event,
        value=value if write.value is None else write.value,
        text=text if write.text is None else write.text,
        at=max(now, head.at + timedelta(microseconds=1)) if head else now,  # clocks of processes differ
        created=head.created if head else now,
        change=write.change,
        live=write.event != "retire",
        shelf=shelf if write.shelf is None else write.shelf,
        idempotency_key=write.idempotency_key,
    )


def forget(
    transaction: Transaction,
    heads: Sequence[Version],
    rewritten: Sequence[tuple[Version, Value]],
    dropped: Sequence[Version],
    mark: Forgotten,
) -> list[Forgotten | None]:
    """Erase records in their current state, with versions that were added since they were read.

    Return a tombstone for each of `heads`; None for a record that was forgotten meanwhile: its first
    tombstone stays, and so does a new record of the same name. `rewritten` records stay with the given value
    as their only version. Raises Conflict if one of them was written to since it was read. `dropped` records
    leave no tombstone.
    """
    known = [*heads, *(head for head, _ in rewritten), *dropped]
    found = heads_of(transaction.cursor, (head.record for head in known))
    now = {  # records that still exist, maybe in a later version; not a new record of the same name
        head.record: latest
        for head in known
        if (latest := found.get(head.record)) and latest.first <= head.version <= latest.version
    }
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
        transaction.add("drop", record)
    for version in anew.values():
        transaction.add("version", version=version)
    return [notes.get(head.record) for head in heads]


def _noted(transaction: Transaction, gone: Mapping[str, Version], mark: Forgotten) -> dict[str, Forgotten]:
    """Write a tombstone for each record, with the receipts by which replays of its writes are refused."""
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
            "last": max(head.version, before.get(record, NOT_FORGOTTEN).last),
            "receipts": receipts[record],
        }
        transaction.add("forget", record, body=json.dumps(note, ensure_ascii=False))
    return notes


def _written_anew(head: Version, value: Value, now: datetime) -> Version:
    """Return a record that begins anew, after every number that a writer may have read or be writing."""
    number = head.version + 2
    return head.model_copy(
        update={
            "version": number,
            "first": number,
            "event": "insert",
            "value": value,
            "text": "",
            "at": now,
            "created": head.created + timedelta(microseconds=1),
        }
    )
