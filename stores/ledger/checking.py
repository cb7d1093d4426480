"""Checking a log: its entries are added anew to an empty log, whose tables must be the same."""
# ruff: noqa: S608  (all that is put into these statements are constants)

import sqlite3
import zlib
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mneme.core.errors import MnemeError
from mneme.stores.database import Cursor, Database, Sqlite
from mneme.stores.ledger.log import SUM, Entry, Transaction, chained, is_whole, make_tables, state_of
from mneme.stores.ledger.records import Version, gaps

ENTRIES = "SELECT seq, kind, record, number, nonce, body, digest, chain FROM ledger_entries"
DERIVED = ("heads", "receipts", "sources", "tombstones")


@dataclass
class Replayed:
    """What the entries of a log hold, and what is wrong with them, in words.

    `heads` has the last version of each record that is whole, `known` the numbers of all that are or are
    known to be lost, `broken` those of damaged entries; `gone` counts the missing entries before the last.
    """

    problems: list[str] = field(default_factory=list)
    heads: dict[str, Version] = field(default_factory=dict)
    known: set[tuple[str, int]] = field(default_factory=set)
    broken: list[tuple[str, int]] = field(default_factory=list)
    gone: int = 0
    seq: int = 0
    chain: bytes = bytes(SUM)


def replay(transaction: Transaction, entries: Iterable[tuple[Any, ...]]) -> Replayed:
    """Add to an empty log what is whole of the entries of another."""
    found = Replayed()
    for seq, kind, record, number, nonce, body, digest, stored in entries:
        entry, before, is_erased = Entry(kind, record, number, body), found.chain, body is nonce is None
        found.seq, found.chain, missing = seq, stored, seq - found.seq - 1
        if missing:
            found.problems.append(f"entries {seq - missing} to {seq - 1} are missing")
            found.gone += missing
        if not isinstance(digest, bytes) or not (is_erased or is_whole(nonce, body, digest)):
            found.problems.append(f"entry {seq} is damaged")
            found.broken.append((record, number))
            continue
        if not missing and before and chained(before, seq, entry, digest) != stored:
            found.problems.append(f"the checksum of entry {seq} is wrong")
        held, version = transaction.replay(entry, nonce, digest)
        if version is not None:
            found.heads[held.record] = version
        if version is not None or kind == "lost":
            found.known.add((held.record, held.number))
    return found


def problems_of(database: Database) -> list[str]:
    """Read everything in a log; return in words what is wrong."""
    try:
        with database.reading(snapshot=True) as cursor:
            if isinstance(database, Sqlite):
                found = cursor.execute("PRAGMA integrity_check").fetchall()
                if found != [("ok",)]:
                    return [str(row[0]) for row in found]
            if found := _entry_problems(cursor):
                return found
            rows = cursor.execute("SELECT record, dense, sum FROM ledger_vectors")
            wrong = sum(zlib.crc32(dense) != total for _, dense, total in rows)
            return [f"{wrong} vectors are damaged"] if wrong else []
    except MnemeError as failure:
        return [str(failure)]


def problems_in(path: Path) -> list[str]:
    """Read everything in a log's file; return in words what is wrong."""
    try:
        with closing(Sqlite(path)) as database:
            return problems_of(database)
    except MnemeError as failure:
        return [str(failure)]


def _entry_problems(cursor: Cursor) -> list[str]:
    """Return what is wrong with the entries, else with the tables that follow from them."""
    state = state_of(cursor)
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as memory:
        other: Any = memory.cursor()
        make_tables(other, Sqlite, state.embedder, state.dimension)
        transaction = Transaction(other, state_of(other))
        found = replay(transaction, cursor.execute(f"{ENTRIES} ORDER BY seq"))
        transaction.rows.pop("entries", None)  # what follows from them is compared
        transaction.flush()
        if (found.seq, found.chain) != (state.seq, state.chain):
            found.problems.append(f"the log ends at entry {found.seq}, and {state.seq} were written")
        missing = gaps(found.heads, found.known)
        return (
            found.problems
            or [problem for table in DERIVED for problem in _table_problems(table, cursor, other)]
            or [f"{found.heads[record].key}, version {number} is missing" for record, number in missing]
        )


def _table_problems(table: str, cursor: Cursor, other: Cursor) -> list[str]:
    """Compare a table with the same one of a log that has been made anew."""
    asked = f"SELECT * FROM ledger_{table}"
    expected = {row[0]: tuple(row) for row in other.execute(asked)}
    if table == "sources" and not expected:
        return []  # a log that an earlier version wrote may lack the table until it is opened
    rows = {row[0]: tuple(row) for row in cursor.execute(asked).fetchall()}
    wrong = sum(rows.get(key) != row for key, row in expected.items())
    more = rows.keys() - expected.keys() if table != "receipts" else ()
    found = [f"{wrong} rows of {table} are missing or wrong"] if wrong else []
    return found + ([f"{len(more)} rows of {table} follow from no entry"] if more else [])
