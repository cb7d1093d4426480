"""Queries of the log: its state, records, their histories, neighbours and vectors.

Each function takes a cursor, so that several read one state.
"""
# ruff: noqa: S608  (all that is put into these statements are constants, and marks)

import hashlib
import zlib
from array import array
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import Any, NamedTuple

from mneme.core.errors import Damaged, LedgerMismatch
from mneme.stores.database import REPAIR, Cursor
from mneme.stores.ledger.query import LAST_CHAR, LEDGER_FORMAT, Where, passes, scope_of
from mneme.stores.ledger.records import Version, gaps, microseconds, tombstone_id

MAX_MARKS = 500  # SQLite before 3.32 takes at most 999
"""Maximum values in one statement."""
MAX_CACHED_CHARS = 4096  # with `KEPT_VERSIONS`, at most 16 million characters
"""Maximum characters of a version that is cached in memory."""
DIGEST_BYTES = 16
"""Bytes of a digest and of a checksum."""
NO_LIMIT = 10**9  # SQLite has no OFFSET without LIMIT; Postgres refuses its -1 for all
SQL = {"eq": "=", "gt": ">", "gte": ">=", "lt": "<", "lte": "<="}
HEAD_COLUMNS: dict[tuple[str, ...], tuple[str, Any]] = {
    ("expires",): ("h.expires", int | float),
}
"""Fields by which conditions select few of many records; the database has indexes on them."""
BODY_COLUMNS = "e.seq, e.record, e.nonce, e.body, e.digest"
"""The columns of an entry that are needed to read its version: see `versions_in`."""
# A LEFT JOIN: a head whose entry is missing is damage, and not one record less.
HEADS = """SELECT e.seq, h.record, e.nonce, e.body, e.digest FROM ledger_heads h
    LEFT JOIN ledger_entries e ON e.seq = h.seq AND e.record = h.record"""
"""Selects the latest versions of records: see `versions_in`."""

Sides = tuple[Sequence[str], Sequence[str]]
"""The ids of the records before and after a record, nearest first."""
Read = Callable[[bytes, str, bytes], Version | None]
"""Returns the version in an entry's nonce, body and digest; None if it is damaged: see `version_in`."""


class State(NamedTuple):
    """The state of the log; `indexed` is the last entry that a shared index has followed."""

    ledger: str
    format: int
    embedder: str
    dimension: int
    seq: int
    chain: bytes
    indexed: int


class Tombstone(NamedTuple):
    """The tombstone of a record: its time, in microseconds since 1970, and the record's last version number.

    A new record of that name continues the numbers, so that a writer which read the forgotten record
    conflicts with the new one.
    """

    at: int
    last: int


NOT_FORGOTTEN = Tombstone(-1, 0)
"""The tombstone of a record that was not forgotten."""


class Order(NamedTuple):
    """The order of listed records: by which column, in which direction, and within which bounds."""

    column: str = "created"
    descending: bool = False
    since: int | None = None
    until: int | None = None


CREATION_ORDER = Order()


class Link(NamedTuple):
    """A link from a record to a record and version that it was made from."""

    record: str
    source: str
    number: int


def state_of(cursor: Cursor, locked: str = "") -> State:
    """Return the state of the log. Raises Damaged."""
    asked = f"SELECT {', '.join(State._fields)} FROM ledger_state WHERE one = 1{locked}"
    row = cursor.execute(asked).fetchone()
    if row is None:
        raise Damaged("The ledger's log has lost its state.", REPAIR)
    return State(*row)


def check_format(place: object, format: int, oldest: int = LEDGER_FORMAT) -> None:
    """Refuse a ledger that this version cannot read or upgrade. Raises LedgerMismatch."""
    if format > LEDGER_FORMAT:
        raise LedgerMismatch(
            f"{place} has the ledger format {format}; this version reads up to {LEDGER_FORMAT}.",
            "Install the version of Mneme that wrote it, or a newer one.",
        )
    if format < oldest:
        raise LedgerMismatch(
            f"{place} has the ledger format {format}; this version upgrades only {oldest}.",
            "`mneme memories export` with the version that wrote it, then `mneme memories import`.",
        )


def check_embedder(place: str, state: State, embedder: str, dimension: int) -> None:
    """Refuse a log of another embedder, or of a newer version. Raises LedgerMismatch."""
    if (state.format, state.embedder, state.dimension) == (LEDGER_FORMAT, embedder, dimension):
        return
    check_format(place, state.format)
    raise LedgerMismatch(
        f"The ledger at {place} was made with the embedder {state.embedder} "
        f"({state.dimension} dimensions), not {embedder} ({dimension}).",
        "Run `mneme memories reembed` to rebuild it, or choose the embedder it was made with.",
    )


def each_value(cursor: Cursor, statement: str, values: Iterable[str], *given: Any) -> list[Any]:
    """Return the rows of a statement whose `{}` is a list of values; long lists take several statements."""
    found, wanted = list[Any](), [*dict.fromkeys(values)]
    for start in range(0, len(wanted), MAX_MARKS):
        some = wanted[start : start + MAX_MARKS]
        marks = ", ".join("?" * len(some))
        found += cursor.execute(statement.format(marks), [*given, *some]).fetchall()
    return found


def digest_of(nonce: bytes | None, body: str | None) -> bytes:
    """Return the digest of a body; empty if it or its nonce is erased, or damaged to another type."""
    if not isinstance(nonce, bytes) or not isinstance(body, str):
        return b""
    # Without the nonce, which is erased with the body, nobody can find a short body by trying.
    return hashlib.sha256(nonce + body.encode()).digest()[:DIGEST_BYTES]


def chained(before: bytes, entry: tuple[int, str, str, int], digest: bytes) -> bytes:
    """Return the checksum of an entry (its number, kind, record and version) that chains all before it."""
    what = "".join(f"{each} " for each in entry).encode()
    return hashlib.sha256(before + what + digest).digest()[:DIGEST_BYTES]


def version_in(nonce: bytes, body: str, digest: bytes) -> Version | None:
    """Return the version in an entry; None if it is damaged."""
    return Version.model_validate_json(body) if digest and digest_of(nonce, body) == digest else None


def versions_in(rows: Iterable[Sequence[Any]], read: Read = version_in) -> list[Version]:
    """Return the versions in entries, selected as `BODY_COLUMNS`; `read` may be cached. Raises Damaged."""
    found = list[Version]()
    for seq, record, nonce, body, digest, *_ in rows:
        take = read if len(body or "") <= MAX_CACHED_CHARS else version_in
        if (version := take(nonce, body, digest)) is None:
            raise Damaged(
                f"Entry {seq} of the ledger's log, of record {record}, is damaged or missing.", REPAIR
            )
        found.append(version)
    return found


def heads_of(
    cursor: Cursor, records: Iterable[str], read: Read = version_in, *, searched: bool = False
) -> dict[str, Version]:
    """Return the latest versions of the records that exist, or of the `searched` ones among them."""
    only = "h.searched = 1 AND " if searched else ""
    rows = each_value(cursor, f"{HEADS} WHERE {only}h.record IN ({{}})", records)
    return {row[1]: version for row, version in zip(rows, versions_in(rows, read), strict=True)}


def entries_after(cursor: Cursor, seq: int) -> list[tuple[str, str]]:
    """Return the kind and the record of each entry after the given one, to the end of the log."""
    return cursor.execute("SELECT kind, record FROM ledger_entries WHERE seq > ?", (seq,)).fetchall()


def tombstones_of(cursor: Cursor, records: Iterable[str]) -> dict[str, Tombstone]:
    """Return the tombstones of these records, for those that have one."""
    marks = {tombstone_id(record): record for record in records}
    rows = each_value(cursor, "SELECT id, created, last FROM ledger_tombstones WHERE id IN ({})", marks)
    return {marks[mark]: Tombstone(created, last) for mark, created, last in rows}


def _selected(where: Where, order: Order | None, *more: str) -> tuple[str, list[Any]]:
    """Return the WHERE and ORDER BY clauses, with `more` conditions, and their parameters."""
    tests, given = [*more], list[Any]()
    if where.scopes:  # the index serves a range on both databases, LIKE not always
        tests.append("(" + " OR ".join(["(h.scope >= ? AND h.scope < ?)"] * len(where.scopes)) + ")")
        given += [bound for prefix in where.scopes for bound in (prefix, prefix + LAST_CHAR)]
    for path, operator, value in where.conditions:  # only narrows: `records` tests all of them
        column, kind = HEAD_COLUMNS.get(path, ("", ()))
        if operator in SQL and isinstance(value, kind) and not isinstance(value, bool):
            tests.append(f"{column} {SQL[operator]} ?")
            given.append(value)
    ordered = ""
    if order is not None:
        for bound, sign in ((order.since, ">="), (order.until, "<")):
            if bound is not None:
                tests.append(f"h.{order.column} {sign} ?")
                given.append(bound)
        way = " DESC" if order.descending else ""
        ordered = f" ORDER BY h.{order.column}{way}, h.record{way}"  # so that pages do not overlap
    return f" WHERE {' AND '.join(tests) or 'TRUE'}{ordered}", given


def records(
    cursor: Cursor, where: Where, limit: int | None = None, offset: int = 0, order: Order = CREATION_ORDER
) -> list[Version]:
    """Return the latest versions of records; all of them without a limit."""
    tests, given = _selected(where, order)
    if not where.conditions:
        rows = cursor.execute(f"{HEADS}{tests} LIMIT ? OFFSET ?", [*given, limit or NO_LIMIT, offset])
        return versions_in(rows.fetchall())
    found = (version for row in cursor.execute(f"{HEADS}{tests}", given) for version in versions_in([row]))
    passing = (each for each in found if all(passes(each.value, test) for test in where.conditions))
    return [*islice(passing, offset, offset + limit if limit else None)]


def column(cursor: Cursor, asked: str, where: Where, order: Order | None = None) -> list[Any]:
    """Return one column of the selected heads, such as `h.record`."""
    tests, given = _selected(where, order)
    return [row[0] for row in cursor.execute(f"SELECT {asked} FROM ledger_heads h{tests}", given)]


def links_of(cursor: Cursor, records: Iterable[str], forward: bool = False) -> list[Link]:
    """Return the links from records to their sources; with `forward`, from derived records to them."""
    asked = "source" if forward else "record"
    statement = f"SELECT record, source, number FROM ledger_sources WHERE {asked} IN ({{}})"
    return [Link(*row) for row in each_value(cursor, statement, records)]


def derived_records(cursor: Cursor, where: Where) -> list[Version]:
    """Return the records that were made from others, in the order of their first writing."""
    tests, given = _selected(where, CREATION_ORDER, "h.record IN (SELECT record FROM ledger_sources)")
    return versions_in(cursor.execute(f"{HEADS}{tests}", given).fetchall())


def records_with(cursor: Cursor, where: Where, fields: Sequence[str], read: str) -> list[Version]:
    """Return the records in whose value one of these fields has something, as the database `read`s it.

    They are in the order in which they were first written.
    """
    tests = " OR ".join(f"COALESCE({read.format(name)}, '') NOT IN ('', '[]')" for name in fields)
    # A record without a body is damaged, which must be reported and not passed over.
    selected, given = _selected(where, CREATION_ORDER, f"(e.body IS NULL OR {tests})")
    return versions_in(cursor.execute(HEADS + selected, given).fetchall())


def tombstones(cursor: Cursor, prefix: str) -> list[str]:
    """Return the tombstones whose scope begins with a prefix, oldest first."""
    asked = "SELECT body FROM ledger_tombstones WHERE scope >= ? AND scope < ? ORDER BY created, id"
    return [row[0] for row in cursor.execute(asked, (prefix, prefix + LAST_CHAR))]


def versions_of(cursor: Cursor, wanted: Iterable[tuple[str, int]]) -> dict[tuple[str, int], Version]:
    """Return versions by record and number, without missing and erased ones."""
    asked = {*wanted}
    statement = f"""SELECT {BODY_COLUMNS}, e.number FROM ledger_entries e
        WHERE e.record IN ({{}}) AND e.kind = 'version' AND e.body IS NOT NULL"""
    found = each_value(cursor, statement, (record for record, _ in asked))
    rows = [row for row in found if (row[1], row[5]) in asked]
    return {(row[1], row[5]): version for row, version in zip(rows, versions_in(rows), strict=True)}


def histories(cursor: Cursor, wanted: Sequence[str]) -> dict[str, list[Version]]:
    """Return all versions of these records, each oldest first. Raises Damaged if one is missing."""
    heads = heads_of(cursor, wanted)
    known = versions_of(cursor, gaps(heads, ()))
    if gone := {*gaps(heads, known)}:
        lost = "SELECT record, number FROM ledger_entries WHERE record IN ({}) AND kind = 'lost'"
        gone -= {*map(tuple, each_value(cursor, lost, heads))}  # a repair has reported these already
    if gone:
        record, number = min(gone)
        raise Damaged(f"{heads[record].key} has lost its version {number}.", REPAIR)
    found: dict[str, list[Version]] = {record: [] for record in wanted if record in heads}
    for record, number in sorted(known):
        found[record].append(known[record, number])
    return found


def neighbours_of(cursor: Cursor, heads: Sequence[Version], reach: int) -> list[Sides]:
    """Return the neighbours of records in their scopes, in the order of creation."""
    given = [each for head in heads for each in 2 * (scope_of(head), microseconds(head.created), reach)]
    asked = " UNION ALL ".join(  # Postgres before 16 needs a name for each subquery
        f"""SELECT * FROM (SELECT {number}, record FROM ledger_heads
        WHERE scope = ? AND created {operator} ? ORDER BY created {way} LIMIT ?) AS side{number}"""
        for number, (operator, way) in enumerate(len(heads) * (("<", "DESC"), (">", "ASC")))
    )
    rows = cursor.execute(asked, given).fetchall() if heads else []
    sides = [[record for side, record in rows if side == number] for number in range(2 * len(heads))]
    return [*zip(sides[::2], sides[1::2], strict=True)]


def vectors_by_ids(cursor: Cursor, wanted: Iterable[str]) -> dict[str, "array[float]"]:
    """Return the vectors of these records; records that are not searched have none. Raises Damaged."""
    # During `reembed` a record has another vector, too, by the embedder that is not in use yet.
    statement = "SELECT record, dense, sum FROM ledger_vectors WHERE embedder = ? AND record IN ({})"
    rows = each_value(cursor, statement, wanted, state_of(cursor).embedder)
    for record, blob, checksum in rows:
        if zlib.crc32(blob) != checksum:
            raise Damaged(f"The vector of record {record} is damaged.", "`mneme repair` computes it anew.")
    return {record: array("f", blob) for record, blob, _ in rows}


def unembedded(cursor: Cursor, embedder: str, limit: int) -> dict[str, Version]:
    """Return live records whose text has no vector by this embedder."""
    rows = cursor.execute(
        f"""{HEADS} LEFT JOIN ledger_vectors v ON v.record = h.record AND v.embedder = ?
        WHERE h.searched = 1 AND v.record IS NULL LIMIT ?""",
        (embedder, limit),
    ).fetchall()
    return {row[1]: version for row, version in zip(rows, versions_in(rows), strict=True)}
