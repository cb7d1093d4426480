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
    chained,
    digest_of,
    head_row,
    rows_of_forgotten,
    state_of,
)
from mneme.stores.ledger.records import Version, receipt_id

ENTRIES = "SELECT seq, kind, record, number, nonce, body, digest, chain FROM ledger_entries ORDER BY seq"


def problems_of(database: Database) -> list[str]:
    """Read everything in a log; return in words what is wrong."""
    try:
        with database.reading(snapshot=True) as cursor:
            if isinstance(database, Sqlite):
                found = cursor.execute("PRAGMA integrity_check").fetchall()
                if found != [("ok",)]:
                    return [str(row[0]) for row in found]
            return _chain_problems(cursor) or [*_table_problems(cursor), *_vector_problems(cursor)]
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


def _chain_problems(cursor: Cursor) -> list[str]:
    state, found = state_of(cursor), list[str]()
    expected, chain = 1, bytes(SUM)
    for seq, kind, record, number, nonce, body, digest, stored in cursor.execute(ENTRIES):
        if seq != expected:
            found.append(f"entries {expected} to {seq - 1} are missing")
        elif chained(chain, seq, Entry(kind, record, number, ""), digest) != stored:
            found.append(f"the checksum of entry {seq} is wrong")
        if body is not None and digest_of(nonce, body) != digest:
            found.append(f"entry {seq} is damaged")
        elif body is None and nonce is not None:
            found.append(f"entry {seq} has lost its content")
        expected, chain = seq + 1, stored
    if (expected - 1, chain) != (state.seq, state.chain):
        found.append(f"the log ends at entry {expected - 1}, and {state.seq} were written")
    return found


class Tables:
    """The rows that follow from the entries, by their keys."""

    def __init__(self) -> None:
        self.heads: dict[str, tuple[Any, ...]] = {}
        self.receipts: dict[str, tuple[Any, ...]] = {}
        self.tombstones: dict[str, tuple[Any, ...]] = {}
        self._numbers: dict[tuple[str, int], None] = {}
        self._first: dict[str, int] = {}

    def add(self, seq: int, kind: str, record: str, number: int, body: str) -> None:
        """Add what follows from an entry whose body was not erased."""
        if kind == "version":
            version = Version.model_validate_json(body)
            self.heads[record] = head_row(record, seq, version)
            self._numbers[record, version.version] = None
            self._first[record] = version.first
            if version.idempotency_key:
                receipt = receipt_id(record, version.idempotency_key)
                self.receipts[receipt] = (receipt, record, version.version)
        elif kind == "forget":
            for table, row in rows_of_forgotten(record, body):
                getattr(self, table)[row[0]] = row
        elif kind == "place":
            self._place(body)
        elif kind == "lost":
            self._numbers[record, number] = None

    @property
    def gaps(self) -> list[tuple[str, int]]:
        """Return which versions before the last ones are missing, and were not known to be lost."""
        return [
            (record, number)
            for record, row in self.heads.items()
            for number in range(self._first[record], row[2])
            if (record, number) not in self._numbers
        ]

    def _place(self, body: str) -> None:
        for place, records in json.loads(body).items():
            for record in records:
                if record in self.heads:
                    row = self.heads[record]
                    self.heads[record] = (*row[:4], place, *row[5:])


def tables_of(cursor: Cursor) -> Tables:
    """Return what follows from all entries that are whole."""
    tables = Tables()
    for seq, kind, record, number, nonce, body, digest, _ in cursor.execute(ENTRIES):
        if body is not None and digest_of(nonce, body) == digest:
            tables.add(seq, kind, record, number, body)
    return tables


def _table_problems(cursor: Cursor) -> list[str]:
    tables, found = tables_of(cursor), list[str]()
    for name in ("heads", "receipts", "tombstones"):
        rows = {row[0]: tuple(row) for row in cursor.execute(f"SELECT * FROM ledger_{name}").fetchall()}
        expected = getattr(tables, name)
        if wrong := [key for key in expected if rows.get(key) != expected[key]]:
            found.append(f"{len(wrong)} rows of {name} are missing or wrong")
        if name != "receipts" and (more := rows.keys() - expected.keys()):
            found.append(f"{len(more)} rows of {name} follow from no entry")
    return found + [f"version {number} of record {record} is missing" for record, number in tables.gaps]


def _vector_problems(cursor: Cursor) -> list[str]:
    rows = cursor.execute("SELECT record, dense, sum FROM ledger_vectors")
    wrong = sum(zlib.crc32(dense) != total for _, dense, total in rows)
    return [f"{wrong} vectors are damaged"] if wrong else []
