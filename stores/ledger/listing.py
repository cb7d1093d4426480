"""What is read of the log: records, their histories, neighbours and vectors; each function takes a cursor."""
# ruff: noqa: S608  (all that is put into these statements are constants, and marks)

import zlib
from array import array
from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import islice
from typing import Any, NamedTuple

from mneme.core.errors import Damaged
from mneme.stores.database import REPAIR, Cursor
from mneme.stores.ledger.log import BODY, HEADS, current, each_value, state_of, versions_in
from mneme.stores.ledger.query import LAST, Where, passes
from mneme.stores.ledger.records import Version, gaps, microseconds

ALL = 10**9
SQL = {"eq": "=", "gt": ">", "gte": ">=", "lt": "<", "lte": "<="}
PUSHED: dict[tuple[str, ...], tuple[str, Any]] = {
    ("expires",): ("h.expires", int | float),
}
"""Fields that conditions find few records of many by; the database has indexes of them."""

Sides = tuple[Sequence[str], Sequence[str]]
"""The ids of the records before and after a record, the nearest first."""


class Order(NamedTuple):
    """In which order records are listed, by which column, and which values of it."""

    column: str = "created"
    descending: bool = False
    since: int | None = None
    until: int | None = None


class Link(NamedTuple):
    """That a record was made from a version of another."""

    record: str
    source: str
    number: int


CREATED = Order()


def _selected(where: Where, order: Order | None, *more: str) -> tuple[str, list[Any]]:
    """Return the conditions that the database tests, `more` among them, and what they compare with."""
    tests, given = [*more], list[Any]()
    if where.scopes:
        tests.append("(" + " OR ".join(["(h.scope >= ? AND h.scope < ?)"] * len(where.scopes)) + ")")
        given += [bound for prefix in where.scopes for bound in (prefix, prefix + LAST)]
    for path, operator, value in where.conditions:
        column, kind = PUSHED.get(path, ("", ()))
        if operator in SQL and isinstance(value, kind) and not isinstance(value, bool):
            tests.append(f"{column} {SQL[operator]} ?")
            given.append(value)
    if order is None:
        return " WHERE " + (" AND ".join(tests) or "TRUE"), given
    for bound, sign in ((order.since, ">="), (order.until, "<")):
        if bound is not None:
            tests.append(f"h.{order.column} {sign} ?")
            given.append(bound)
    way = " DESC" if order.descending else ""
    ordered = f" ORDER BY h.{order.column}{way}, h.record{way}"
    return " WHERE " + (" AND ".join(tests) or "TRUE") + ordered, given


def records(
    cursor: Cursor, where: Where, limit: int | None = None, offset: int = 0, order: Order = CREATED
) -> list[Version]:
    """Return records as they are now; all where there is no limit."""
    tests, given = _selected(where, order)
    if not where.conditions:
        rows = cursor.execute(f"{HEADS}{tests} LIMIT ? OFFSET ?", [*given, limit or ALL, offset])
        return versions_in(rows.fetchall())
    found = (version for row in cursor.execute(f"{HEADS}{tests}", given) for version in versions_in([row]))
    passing = (version for version in found if passes(version.value, where.conditions))
    return [*islice(passing, offset, offset + limit if limit else None)]


def column(cursor: Cursor, asked: str, where: Where, order: Order | None = None) -> list[Any]:
    """Return what is asked of the heads that are meant, such as `h.record`, as one column."""
    tests, given = _selected(where, order)
    return [row[0] for row in cursor.execute(f"SELECT {asked} FROM ledger_heads h{tests}", given)]


def links(cursor: Cursor, records: Iterable[str], forward: bool = False) -> list[Link]:
    """Return what records were made from; `forward`, what was made from them."""
    asked = "source" if forward else "record"
    statement = f"SELECT record, source, number FROM ledger_sources WHERE {asked} IN ({{}})"
    return [Link(*row) for row in each_value(cursor, statement, records)]


def derived(cursor: Cursor, where: Where) -> list[Version]:
    """Return the records that were made from others, in the order in which they were first written."""
    tests, given = _selected(where, CREATED, "h.record IN (SELECT record FROM ledger_sources)")
    return versions_in(cursor.execute(f"{HEADS}{tests}", given).fetchall())


def filled(cursor: Cursor, where: Where, fields: Sequence[str], read: str) -> list[Version]:
    """Return the records in whose value one of these fields has something, as the database `read`s it.

    They are in the order in which they were first written.
    """
    tests = " OR ".join(f"COALESCE({read.format(name)}, '') NOT IN ('', '[]')" for name in fields)
    selected, given = _selected(where, CREATED, f"(e.body IS NULL OR {tests})")
    return versions_in(cursor.execute(HEADS + selected, given).fetchall())


def tombstones(cursor: Cursor, prefix: str) -> list[str]:
    """Return the notes of forgotten records whose scope begins with a prefix, the oldest first."""
    asked = "SELECT body FROM ledger_tombstones WHERE scope >= ? AND scope < ? ORDER BY created, id"
    return [row[0] for row in cursor.execute(asked, (prefix, prefix + LAST))]


def versions_of(cursor: Cursor, wanted: Iterable[tuple[str, int]]) -> dict[tuple[str, int], Version]:
    """Return versions by their record and number; those that are gone are left out."""
    asked = {*wanted}
    statement = f"""SELECT {BODY}, e.number FROM ledger_entries e
        WHERE e.record IN ({{}}) AND e.kind = 'version' AND e.body IS NOT NULL"""
    found = each_value(cursor, statement, (record for record, _ in asked))
    rows = [row for row in found if (row[1], row[5]) in asked]
    return {(row[1], row[5]): version for row, version in zip(rows, versions_in(rows), strict=True)}


def histories(cursor: Cursor, wanted: Sequence[str]) -> dict[str, list[Version]]:
    """Return all versions of these records, each oldest first. Raises Damaged where one is missing.

    Those that a repair has not found are left out.
    """
    heads = current(cursor, wanted)
    known = versions_of(cursor, gaps(heads, ()))
    if gone := {*gaps(heads, known)}:
        lost = "SELECT record, number FROM ledger_entries WHERE record IN ({}) AND kind = 'lost'"
        gone -= {*map(tuple, each_value(cursor, lost, heads))}
    if gone:
        record, number = min(gone)
        raise Damaged(f"{heads[record].key} has lost its version {number}.", REPAIR)
    found: dict[str, list[Version]] = {record: [] for record in wanted if record in heads}
    for record, number in sorted(known):
        found[record].append(known[record, number])
    return found


def around(cursor: Cursor, places: Sequence[tuple[str, datetime]], reach: int) -> list[Sides]:
    """Return the neighbours of records in their scopes, in the order of creation."""
    given = [each for place, created in places for each in 2 * (place, microseconds(created), reach)]
    asked = " UNION ALL ".join(
        f"""SELECT * FROM (SELECT {number}, record FROM ledger_heads
        WHERE scope = ? AND created {operator} ? ORDER BY created {way} LIMIT ?) AS side{number}"""
        for number, (operator, way) in enumerate(len(places) * (("<", "DESC"), (">", "ASC")))
    )
    rows = cursor.execute(asked, given).fetchall() if places else []
    sides = [[record for side, record in rows if side == number] for number in range(2 * len(places))]
    return [*zip(sides[::2], sides[1::2], strict=True)]


def vectors_by_ids(cursor: Cursor, wanted: Iterable[str]) -> dict[str, "array[float]"]:
    """Return the vectors of these records; those that search passes over have none."""
    statement = "SELECT record, dense, sum FROM ledger_vectors WHERE embedder = ? AND record IN ({})"
    rows = each_value(cursor, statement, wanted, state_of(cursor).embedder)
    for record, blob, checksum in rows:
        if zlib.crc32(blob) != checksum:
            raise Damaged(f"The vector of record {record} is damaged.", "`mneme repair` computes it anew.")
    return {record: array("f", blob) for record, blob, _ in rows}


def unembedded(cursor: Cursor, embedder: str, limit: int) -> dict[str, Version]:
    """Return live records with a text and without its vector by this embedder."""
    rows = cursor.execute(
        f"""{HEADS} LEFT JOIN ledger_vectors v ON v.record = h.record AND v.embedder = ?
        WHERE h.searched = 1 AND v.record IS NULL LIMIT ?""",
        (embedder, limit),
    ).fetchall()
    return {row[1]: version for row, version in zip(rows, versions_in(rows), strict=True)}
