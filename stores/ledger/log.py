"""The log: every version of every record in SQL, in one order; it is the truth from which all else follows.

An *entry* has a sequence number without gaps, a digest of its body, and a checksum that chains it to all
before it. Its kinds: a `version` of a record; a `vector` that a record got later; a `place`, a division of a
shelf into groups; the note that a record was forgotten (`forget`), or is gone without a note (`drop`), or has
lost a version in a repair (`lost`); a change of the `embedder`. Forgetting takes body and nonce out of
entries, and leaves their digests, which then say nothing and keep the chain whole.

The tables `heads`, `receipts`, `sources` (what a record was made from, whenever) and `tombstones` follow from
the entries; `vectors` has what an index needs so
that no text is embedded again. Every write is one transaction: writes that come at the same time share one.
"""
# ruff: noqa: S608  (all that is put into these statements are constants, and marks)

import asyncio
import hashlib
import json
import secrets
import zlib
from array import array
from collections import defaultdict, deque
from collections.abc import Callable, Collection, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar
from uuid import uuid4

from pydantic import TypeAdapter

from mneme.core.errors import Damaged, LedgerMismatch, MnemeError
from mneme.stores.database import REPAIR, Cursor, Database, Sqlite, Worker, make, upsert
from mneme.stores.ledger.query import FORMAT, scope
from mneme.stores.ledger.records import Version, microseconds, receipt_id, tombstone_id

T = TypeVar("T")
Kind = Literal["version", "vector", "place", "forget", "drop", "embedder", "lost"]
MAX_MARKS = 500
"""Values in one statement."""
SUM = 16
"""Bytes of a digest and of a checksum."""
TABLES = """
CREATE TABLE IF NOT EXISTS ledger_state (one INTEGER PRIMARY KEY, ledger TEXT, format INTEGER, embedder TEXT,
    dimension INTEGER, seq BIGINT, chain {blob}, indexed BIGINT);
CREATE TABLE IF NOT EXISTS ledger_entries (seq {serial} PRIMARY KEY, kind TEXT, record TEXT, number INTEGER,
    nonce {blob}, body TEXT, digest {blob}, chain {blob});
CREATE INDEX IF NOT EXISTS ledger_entries_record ON ledger_entries (record, number);
CREATE TABLE IF NOT EXISTS ledger_heads (record TEXT PRIMARY KEY, seq BIGINT, number INTEGER,
    searched INTEGER, scope {text}, created BIGINT, updated BIGINT, expires DOUBLE PRECISION,
    contradicts {text}){compact};
CREATE INDEX IF NOT EXISTS ledger_heads_scope ON ledger_heads (scope, created);
CREATE INDEX IF NOT EXISTS ledger_heads_expires ON ledger_heads (expires) WHERE expires IS NOT NULL;
CREATE INDEX IF NOT EXISTS ledger_heads_contradicts ON ledger_heads (contradicts)
    WHERE contradicts IS NOT NULL;
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
BODY = "e.seq, e.record, e.nonce, e.body, e.digest"
"""What is read of an entry to take its body from it: see `versions_in`."""
VERSIONS = TypeAdapter(list[Version])
KEPT_VERSIONS, KEPT_CHARS = 4096, 4096
"""How many versions are kept in memory once they were read, and the characters of the longest of them."""
kept: dict[bytes, Version] = {}
"""Versions by the digests of their entries; whoever learns that something was erased empties it."""
HEADS = """SELECT e.seq, h.record, e.nonce, e.body, e.digest, h.scope FROM ledger_heads h
    LEFT JOIN ledger_entries e ON e.seq = h.seq AND e.record = h.record"""
"""Reads records as they are now: see `versions_in`."""


class State(NamedTuple):
    """What the log says of itself; `indexed` is up to where a shared index has followed it."""

    ledger: str
    format: int
    embedder: str
    dimension: int
    seq: int
    chain: bytes
    indexed: int


class Head(NamedTuple):
    """A record as it is now, with its scope, and the entry that made it so."""

    version: Version
    scope: str
    seq: int


class Tombstone(NamedTuple):
    """When a record was forgotten, in microseconds since 1970, and the highest number that it had.

    The numbers go on after it. A writer that read a forgotten record can so never be taken for one that read
    the record that has its name now.
    """

    at: int
    last: int


NEVER = Tombstone(-1, 0)
"""Of a record that was not forgotten."""


class Entry(NamedTuple):
    """An entry to be added; its body is None where it was erased."""

    kind: Kind
    record: str
    number: int = 0
    body: str | None = ""


class HeadRow(NamedTuple):
    """What is listed of a record by its last version, without its body."""

    record: str
    seq: int
    number: int
    searched: int
    scope: str
    created: int
    updated: int
    expires: float | None
    contradicts: str | None


COLUMNS = {
    "entries": ("seq", "kind", "record", "number", "nonce", "body", "digest", "chain"),
    "heads": HeadRow._fields,
    "receipts": ("id", "record", "number"),
    "sources": ("id", "record", "source", "number"),
    "tombstones": ("id", "scope", "created", "last", "body"),
    "vectors": ("record", "embedder", "dense", "sum"),
}
KEYS = dict.fromkeys(COLUMNS, 1) | {"vectors": 2}
"""How many of the first columns tell one row of a table from another."""
UPSERTS = {name: upsert(f"ledger_{name}", columns, KEYS[name]) for name, columns in COLUMNS.items()}


@dataclass
class Transaction:
    """One transaction, in which jobs read, and add what is written together at the end of each.

    `rows` are those that wait to be written, by table and key.
    """

    cursor: Cursor
    state: State
    rows: dict[str, dict[Any, Any]] = field(default_factory=lambda: defaultdict(dict))

    def add_version(self, version: Version) -> None:
        """Add a version, which is the record as it is from now on."""
        self.add(Entry("version", version.record, version.version, version.model_dump_json()), version)

    def add(
        self, entry: Entry, version: Version | None = None, nonce: bytes | None = None, digest: bytes = b""
    ) -> Version | None:
        """Add an entry, and the rows that follow from it; return the version in it, which names the record.

        One of another log has a `digest` and, unless it was erased, a `nonce`; else nothing follows from it.
        """
        (kind, record, number, body), seq = entry, self.state.seq + 1
        if not digest:
            nonce = secrets.token_bytes(8)
            digest = digest_of(nonce, body or "")
        if kind == "version" and body is not None:
            version = version or Version.model_validate_json(body)
            record, number = version.record, version.version
            self._follow(seq, record, version)
        elif kind == "forget" and body is not None:
            self._note(record, json.loads(body))
        elif kind == "place" and body is not None:
            heads = self.rows["heads"]
            placed = {(each,): place for place, records in json.loads(body).items() for each in records}
            heads |= {key: heads[key]._replace(scope=placed[key]) for key in heads.keys() & placed.keys()}
        chain = chained(self.state.chain, seq, Entry(kind, record, number), digest)
        self.state = self.state._replace(seq=seq, chain=chain)
        self.put("entries", (seq, kind, record, number, nonce, body, digest, chain))
        return version

    def _follow(self, seq: int, record: str, version: Version) -> None:
        """Put the rows that follow from a record's last version."""
        expires: Any = version.value.get("expires")
        contradicts = version.value.get("may_contradict")
        head = HeadRow(
            record=record,
            seq=seq,
            number=version.version,
            searched=int(version.is_searched),
            scope=scope("+" if version.live else "-", version.namespace, version.shelf, complete=True),
            created=microseconds(version.created),
            updated=microseconds(version.at),
            expires=float(expires) if type(expires) in (int, float) else None,
            contradicts=contradicts if isinstance(contradicts, str) else None,
        )
        self.put("heads", head)
        if version.idempotency_key:
            self.put("receipts", (receipt_id(record, version.idempotency_key), record, version.version))
        for source, _, number in (each.partition("@") for each in version.change.source.records):
            self.put("sources", (f"{record} {source}", record, source, int(number)))

    def _note(self, record: str, note: dict[str, Any]) -> None:
        """Put the rows that follow from the note of a forgotten record."""
        mark = json.dumps(note["mark"], ensure_ascii=False)
        place = scope("x", tuple(note["mark"]["namespace"]))
        self.put(
            "tombstones", (note.get("id") or tombstone_id(record), place, note["created"], note["last"], mark)
        )
        for each in note["receipts"]:
            self.put("receipts", (each, record, 0))

    def put(self, table: str, row: tuple[Any, ...]) -> None:
        """Let a row be written, in place of one with the same key."""
        self.rows[table][row[: KEYS[table]]] = row

    def delete(self, table: str, records: Collection[str]) -> None:
        """Delete the rows of records at once; heads and vectors that wait to be written, too."""
        waiting = self.rows[table]
        self.rows[table] = {key: row for key, row in waiting.items() if row[0] not in records}
        self.cursor.executemany(f"DELETE FROM ledger_{table} WHERE record = ?", [(each,) for each in records])

    def erase(self, records: Collection[str]) -> None:
        """Take the content of records out of all tables."""
        erased = "UPDATE ledger_entries SET nonce = NULL, body = NULL WHERE record = ? AND kind = 'version'"
        self.cursor.executemany(erased, [(each,) for each in records])
        for table in ("heads", "sources", "vectors"):
            self.delete(table, records)

    def attempt(self, work: "Callable[[Transaction], object]") -> object:
        """Do work and return its result; or its refusal, of which nothing stays."""
        before = self.state
        self.cursor.execute("SAVEPOINT job")
        try:
            result = work(self)
            self.flush()
        except MnemeError as refusal:
            result, self.state = refusal, before
            self.rows.clear()
            self.cursor.execute("ROLLBACK TO SAVEPOINT job")
        self.cursor.execute("RELEASE SAVEPOINT job")
        return result

    def flush(self) -> None:
        """Write what was put, and the state."""
        for table, rows in self.rows.items():
            self.cursor.executemany(UPSERTS[table], [*rows.values()])
        self.rows.clear()
        self.cursor.execute(
            """UPDATE ledger_state
            SET format = ?, embedder = ?, dimension = ?, seq = ?, chain = ?, indexed = ?""",
            [*self.state[1:]],
        )


class Log(Worker):
    """An open log; every method is safe from any event loop and thread."""

    def __init__(self, database: Database, check: Callable[[], None] = lambda: None) -> None:
        """Open the tables, which must be there; `check` may refuse to write, before each transaction."""
        super().__init__(database)
        self._check = check
        self._waiting: deque[tuple[Callable[[Transaction], Any], Future[Any]]] = deque()

    async def write(self, work: Callable[[Transaction], T], *, erases: bool = False) -> T:
        """Do work in a transaction, whole or not at all; return its result once that is on the disk."""
        done = Future[T]()
        self._waiting.append((work, done))
        self._writer.submit(self._drain)
        result = await asyncio.wrap_future(done)
        if erases:
            kept.clear()
            await asyncio.wrap_future(self._writer.submit(self.database.erased))
        return result

    def _drain(self) -> None:
        """Do all that waits in one transaction."""
        jobs = [self._waiting.popleft() for _ in range(len(self._waiting))]
        if not jobs:
            return
        try:
            self._check()
            with self.database.writing() as cursor:
                transaction = Transaction(cursor, state_of(cursor, self.database.locked))
                results = [transaction.attempt(work) for work, _ in jobs]
        except BaseException as failure:  # noqa: BLE001  (it goes to those who wait)
            results = [failure for _ in jobs]
        for (_, done), result in zip(jobs, results, strict=True):
            if not done.set_running_or_notify_cancel():
                continue
            done.set_exception(result) if isinstance(result, BaseException) else done.set_result(result)


def transact(database: Database, work: Callable[[Transaction], T]) -> T:
    """Do work in a transaction, and block meanwhile."""
    with database.writing() as cursor:
        transaction = Transaction(cursor, state_of(cursor, database.locked))
        result = work(transaction)
        transaction.flush()
        return result


def write_log(path: Path, made_with: tuple[str, int], work: Callable[[Transaction], T]) -> T:
    """Make a new log in a file, and write its first entries."""
    database = Sqlite(path)
    try:
        with database.writing() as cursor:
            make_tables(cursor, database, *made_with)
        return transact(database, work)
    finally:
        database.close()


def make_tables(cursor: Cursor, database: Database | type[Sqlite], embedder: str, dimension: int) -> None:
    """Make the tables of a new log, unless they are there."""
    make(cursor, database, TABLES)
    cursor.execute(
        "INSERT INTO ledger_state VALUES (1, ?, ?, ?, ?, 0, ?, 0) ON CONFLICT (one) DO NOTHING",
        (uuid4().hex, FORMAT, embedder, dimension, bytes(SUM)),
    )


def state_of(cursor: Cursor, locked: str = "") -> State:
    """Return what the log says of itself. Raises Damaged."""
    asked = f"SELECT {', '.join(State._fields)} FROM ledger_state WHERE one = 1{locked}"
    row = cursor.execute(asked).fetchone()
    if row is None:
        raise Damaged("The ledger's log has lost its state.", REPAIR)
    return State(*row)


def current_state(database: Database) -> State:
    """Return what the log says of itself now. Raises Damaged."""
    with database.reading() as cursor:
        return state_of(cursor)


def check_format(place: object, format: int, oldest: int = FORMAT) -> None:
    """Refuse a ledger that this version cannot read or upgrade. Raises LedgerMismatch."""
    if format > FORMAT:
        raise LedgerMismatch(
            f"{place} has the ledger format {format}; this version reads up to {FORMAT}.",
            "Install the version of Mneme that wrote it, or a newer one.",
        )
    if format < oldest:
        raise LedgerMismatch(
            f"{place} has the ledger format {format}; this version upgrades only {oldest}.",
            "`mneme memories export` with the version that wrote it, then `mneme memories import`.",
        )


def check_embedder(place: str, state: State, embedder: str, dimension: int) -> None:
    """Refuse a log of another embedder, or of a newer version. Raises LedgerMismatch."""
    check_format(place, state.format)
    if (state.embedder, state.dimension) != (embedder, dimension):
        raise LedgerMismatch(
            f"The ledger at {place} was made with the embedder {state.embedder} "
            f"({state.dimension} dimensions), not {embedder} ({dimension}).",
            "Run `mneme memories reembed` to rebuild it, or choose the embedder it was made with.",
        )


def put_vector(transaction: Transaction, record: str, dense: Sequence[float], embedder: str = "") -> None:
    """Keep the vector of a record's text as it is now, by the ledger's embedder or another."""
    blob = array("f", dense).tobytes()
    row = (record, embedder or transaction.state.embedder, blob, zlib.crc32(blob))
    transaction.put("vectors", row)


def digest_of(nonce: bytes, body: str) -> bytes:
    """Return the digest of a body; without the nonce, erased with it, nobody can guess at the body."""
    return hashlib.sha256(nonce + body.encode()).digest()[:SUM]


def is_whole(nonce: bytes | None, body: str | None, digest: bytes) -> bool:
    """Say whether a body is as it was written."""
    return isinstance(nonce, bytes) and isinstance(body, str) and digest_of(nonce, body) == digest


def chained(before: bytes, seq: int, entry: Entry, digest: bytes) -> bytes:
    """Return the checksum of an entry and all before it."""
    what = f"{seq} {entry.kind} {entry.record} {entry.number} ".encode()
    return hashlib.sha256(before + what + digest).digest()[:SUM]


def each_value(cursor: Cursor, statement: str, values: Iterable[str], *given: Any) -> list[Any]:
    """Return the rows of a statement with `{}` in place of a list of values, for all of them."""
    found, wanted = list[Any](), [*dict.fromkeys(values)]
    for start in range(0, len(wanted), MAX_MARKS):  # as many as one statement can take
        some = wanted[start : start + MAX_MARKS]
        marks = ", ".join("?" * len(some))
        found += cursor.execute(statement.format(marks), [*given, *some]).fetchall()
    return found


def versions_in(rows: Iterable[Sequence[Any]]) -> list[Version]:
    """Return the versions in entries, of which `BODY` was read. Raises Damaged.

    Those read last are kept by their digests: to parse a version takes as long as to find ten. Their values
    are shared, so nobody may change what is in them.
    """
    found = [(row, kept.get(row[4])) for row in rows]
    new = [row for row, version in found if version is None]
    for seq, record, *content in (row[:5] for row in new):
        if not is_whole(*content):
            raise Damaged(
                f"Entry {seq} of the ledger's log, of record {record}, is damaged or missing.", REPAIR
            )
    parsed = VERSIONS.validate_json(f"[{','.join(row[3] for row in new)}]") if new else []
    if len(new) <= MAX_MARKS:  # a listing of very many would fill the memory
        kept.update(
            (row[4], each) for row, each in zip(new, parsed, strict=True) if len(row[3]) <= KEPT_CHARS
        )
        for oldest in [*islice(kept, max(0, len(kept) - KEPT_VERSIONS))]:
            kept.pop(oldest, None)  # another thread may have been first
    next_one = iter(parsed)
    return [version or next(next_one) for _, version in found]


def heads_of(cursor: Cursor, records: Iterable[str]) -> dict[str, Head]:
    """Return those of the records that are there, as they are now."""
    rows = each_value(cursor, f"{HEADS} WHERE h.record IN ({{}})", records)
    found = zip(rows, versions_in(rows), strict=True)
    return {row[1]: Head(version, row[5], row[0]) for row, version in found}


def current(cursor: Cursor, records: Iterable[str]) -> dict[str, Version]:
    """Return the latest versions of those of the records that are there."""
    return {record: head.version for record, head in heads_of(cursor, records).items()}


def tombstones_of(cursor: Cursor, records: Iterable[str]) -> dict[str, Tombstone]:
    """Return what is left of a forgotten record under the name of each record, where there was one."""
    marks = {tombstone_id(record): record for record in records}
    rows = each_value(cursor, "SELECT id, created, last FROM ledger_tombstones WHERE id IN ({})", marks)
    return {marks[mark]: Tombstone(created, last) for mark, created, last in rows}
