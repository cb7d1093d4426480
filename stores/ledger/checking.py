"""Checking a log: its entries are added anew to an empty one, from which the same rows must follow."""
# ruff: noqa: S608  (all that is put into these statements are constants)

import json
import zlib
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mneme.core.errors import MnemeError
from mneme.stores.database import Cursor, Database, Sqlite, kept_of, noted_size
from mneme.stores.ledger.log import LOG_COLUMNS, Transaction
from mneme.stores.ledger.reading import DIGEST_BYTES, chained, digest_of, state_of
from mneme.stores.ledger.records import Version, gaps

READ = {table: f"SELECT {', '.join(columns)} FROM ledger_{table}" for table, columns in LOG_COLUMNS.items()}
DERIVED = ("heads", "receipts", "sources", "tombstones")


@dataclass
class LogReplay:
    """The content of a log's entries, and what is wrong with them, in words.

    `heads` has the last version of each record that is whole, `known` the numbers of all that are or are
    known to be lost, `broken` those of damaged entries; `gone` counts the missing entries before the last.
    """

    problems: list[str] = field(default_factory=list)
    heads: dict[str, Version] = field(default_factory=dict)
    known: set[tuple[str, int]] = field(default_factory=set)
    broken: list[tuple[str, int]] = field(default_factory=list)
    gone: int = 0
    seq: int = 0
    chain: bytes = bytes(DIGEST_BYTES)


def replay(transaction: Transaction, entries: Iterable[tuple[Any, ...]]) -> LogReplay:
    """Add the intact entries of another log to an empty one."""
    found = LogReplay()
    for seq, kind, record, number, nonce, body, digest, stored in entries:
        before, is_erased = found.chain, body is nonce is None
        found.seq, found.chain, missing = seq, stored, seq - found.seq - 1
        if missing:
            found.problems.append(f"entries {seq - missing} to {seq - 1} are missing")
            found.gone += missing
        # A damaged file may have values of other types.
        if not digest or not isinstance(digest, bytes) or not (is_erased or digest_of(nonce, body) == digest):
            found.problems.append(f"entry {seq} is damaged")
            found.broken.append((record, number))
            continue
        if not missing and before and chained(before, (seq, kind, record, number), digest) != stored:
            found.problems.append(f"the checksum of entry {seq} is wrong")
        version = Version.model_validate_json(body) if kind == "version" and body is not None else None
        transaction.add(kind, record, number, body, version=version, nonce=nonce, digest=digest)
        if version is not None:
            found.heads[version.record] = version
            found.known.add((version.record, version.version))
        elif kind == "lost":
            found.known.add((record, number))
        elif kind == "place" and body is not None:  # of an earlier version, whose shelves were in groups
            scopes = {each: scope for scope, records in json.loads(body).items() for each in records}
            heads = {row[0]: row for row in transaction.rows["heads"]}
            placed = [(*row[:4], scopes.get(row[0], row[4]), *row[5:]) for row in heads.values()]
            transaction.rows["heads"] = placed
    return found


def problems_of(database: Database) -> list[str]:
    """Read everything in a log; return its problems in words."""
    written = noted_size(database.kept)  # before what it is compared with: others write, too
    try:
        with database.reading(snapshot=True) as cursor:
            return next(filter(None, _checks(cursor, written, is_file=isinstance(database, Sqlite))), [])
    except MnemeError as failure:
        return [str(failure)]


def problems_in(path: Path) -> list[str]:
    """Read everything in a log's file; return its problems in words."""
    try:
        with closing(Sqlite(path, kept=kept_of(path.parent))) as database:
            return problems_of(database)
    except MnemeError as failure:
        return [str(failure)]


def _checks(cursor: Cursor, written: int, *, is_file: bool) -> Iterator[list[str]]:
    """Yield the problems that each check finds; the later ones make sense where the earlier found none."""
    if is_file:
        yield [row[0] for row in cursor.execute("PRAGMA integrity_check").fetchall() if row != ("ok",)]
    state = state_of(cursor)
    transaction = Transaction(cursor, state._replace(seq=0, chain=bytes(DIGEST_BYTES)))
    found = replay(transaction, cursor.execute(f"{READ['entries']} ORDER BY seq"))
    yield found.problems
    if (found.seq, found.chain) != (written := max(written, state.seq), state.chain):
        lost = "its end was lost, or an older copy was put in its place"
        yield [f"the log ends at entry {found.seq}, and {written} were written: {lost}"]
    yield [problem for table in DERIVED for problem in _differences(table, cursor, transaction.rows[table])]
    missing = gaps(found.heads, found.known)
    yield [f"{found.heads[record].key}, version {number} is missing" for record, number in missing]
    wrong = sum(zlib.crc32(dense) != total for *_, dense, total in cursor.execute(READ["vectors"]))
    yield [f"{wrong} vectors are damaged"] if wrong else []


def _differences(table: str, cursor: Cursor, following: Iterable[tuple[Any, ...]]) -> Iterator[str]:
    """Yield in words how the rows of a table differ from those that follow from the entries."""
    expected = {row[:1]: row for row in following}
    rows = {row[:1]: row for row in cursor.execute(READ[table])}
    if wrong := sum(rows.get(key) != row for key, row in expected.items()):
        yield f"{wrong} rows of {table} are missing or wrong"
    # A record that was written anew (`rewritten`) keeps receipts of versions whose entries are erased.
    if table != "receipts" and (more := rows.keys() - expected.keys()):
        yield f"{len(more)} rows of {table} follow from no entry"
