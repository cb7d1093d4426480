"""Checking a log: its database, its chain, and the tables that follow from the entries."""
# ruff: noqa: S608  (all that is put into these statements are constants, and marks)

import json
import zlib
from pathlib import Path
from typing import Any

from mneme.core.errors import MnemeError
from mneme.stores.ledger.database import Cursor, Database, Sqlite
from mneme.stores.ledger.log import (
    SUM,
    Entry,
    Rows,
    chained,
    is_whole,
    rows_of_forgotten,
    rows_of_version,
    state_of,
)
from mneme.stores.ledger.records import Version, gaps

ENTRIES = "SELECT seq, kind, record, number, nonce, body, digest, chain FROM ledger_entries ORDER BY seq"


def problems_of(database: Database) -> list[str]:
    """Read everything in a log; return in words what is wrong."""
    try:
        with database.reading(snapshot=True) as cursor:
            if isinstance(database, Sqlite):
                found = cursor.execute("PRAGMA integrity_check").fetchall()
                if found != [("ok",)]:
                    return [str(row[0]) for row in found]
            return _entry_problems(cursor) or _vector_problems(cursor)
    except MnemeError as failure:
        return [str(failure)]


def problems_in(path: Path) -> list[str]:
    """Read everything in a log's file; return in words what is wrong."""
    try:
        database = Sqlite(path)
    except MnemeError as failure:
        return [str(failure)]
    try:
        return problems_of(database)
    finally:
        database.close()


def _entry_problems(cursor: Cursor) -> list[str]:
    """Return what is wrong with the entries, else with the tables that follow from them."""
    state, found, tables = state_of(cursor), list[str](), Tables()
    expected, chain = 1, bytes(SUM)
    for seq, kind, record, number, nonce, body, digest, stored in cursor.execute(ENTRIES):
        if seq != expected:
            found.append(f"entries {expected} to {seq - 1} are missing")
        elif chained(chain, seq, Entry(kind, record, number, ""), digest) != stored:
            found.append(f"the checksum of entry {seq} is wrong")
        if body is None and nonce is not None:
            found.append(f"entry {seq} has lost its content")
        elif body is not None and not is_whole(nonce, body, digest):
            found.append(f"entry {seq} is damaged")
        elif body is not None and not found:
            tables.add(seq, Entry(kind, record, number, body))
        expected, chain = seq + 1, stored
    if (expected - 1, chain) != (state.seq, state.chain):
        found.append(f"the log ends at entry {expected - 1}, and {state.seq} were written")
    return found or tables.problems(cursor)


class Tables:
    """The rows that follow from the entries, by their keys."""

    def __init__(self) -> None:
        names = ("heads", "receipts", "sources", "tombstones")
        self._rows: dict[str, dict[str, tuple[Any, ...]]] = {name: {} for name in names}
        self._heads: dict[str, Version] = {}
        self._known = set[tuple[str, int]]()

    def add(self, seq: int, entry: Entry) -> None:
        """Add what follows from an entry whose body was not erased."""
        rows: Rows = []
        if entry.kind == "version":
            version = self._heads[entry.record] = Version.model_validate_json(entry.body)
            rows = rows_of_version(seq, entry.record, version)
        elif entry.kind == "forget":
            rows = rows_of_forgotten(entry.record, entry.body)
        elif entry.kind == "place":
            heads = self._rows["heads"]
            for place, records in json.loads(entry.body).items():
                known = (heads[record] for record in records if record in heads)
                rows += [("heads", (*row[:4], place, *row[5:])) for row in known]
        for table, row in rows:
            self._rows[table][row[0]] = row
        if entry.kind in ("version", "lost"):
            self._known.add((entry.record, entry.number))

    def problems(self, cursor: Cursor) -> list[str]:
        """Compare the tables with what they must be."""
        found: list[str] = []
        for name, expected in self._rows.items():
            if name == "sources" and not expected:
                continue  # a log that an earlier version wrote may lack the table until it is opened
            rows = {row[0]: tuple(row) for row in cursor.execute(f"SELECT * FROM ledger_{name}").fetchall()}
            if wrong := [key for key in expected if rows.get(key) != expected[key]]:
                found.append(f"{len(wrong)} rows of {name} are missing or wrong")
            if name != "receipts" and (more := rows.keys() - expected.keys()):
                found.append(f"{len(more)} rows of {name} follow from no entry")
        missing = gaps(self._heads, self._known)
        return found + [f"version {number} of record {record} is missing" for record, number in missing]


def _vector_problems(cursor: Cursor) -> list[str]:
    rows = cursor.execute("SELECT record, dense, sum FROM ledger_vectors")
    wrong = sum(zlib.crc32(dense) != total for _, dense, total in rows)
    return [f"{wrong} vectors are damaged"] if wrong else []
