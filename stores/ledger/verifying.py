"""Verify a ledger, and repair it from the intact parts of its log."""
# ruff: noqa: S608  (all that is put into these statements are constants, and marks)

import asyncio
import shutil
import sqlite3
import zlib
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from mneme.core.durable import write_durably
from mneme.core.errors import Damaged, MnemeError
from mneme.models.embedding.embedders import Embedder
from mneme.stores.database import Database, kept_of, noted_size
from mneme.stores.ledger.addresses import place_of
from mneme.stores.ledger.checking import READ, problems_in, problems_of, replay
from mneme.stores.ledger.folder import LOG, MANIFEST, Folder, refuse_gone, unseal
from mneme.stores.ledger.ledger import open_ledger
from mneme.stores.ledger.log import Transaction, write_log
from mneme.stores.ledger.opening import open_store, open_to_read
from mneme.stores.ledger.records import gaps
from mneme.stores.ledger.upgrading import read_manifest

MAX_UNREADABLE_ROWS = 1000
"""Consecutive unreadable rows after which a table counts as ended."""


class VerifyReport(BaseModel):
    """The result of a verification; the ledger is intact if there are no problems.

    `hint` says what to do if not everything could be read, for example while the index's server is away.
    """

    location: str
    records: int = 0
    versions: int = 0
    problems: list[str] = []
    hint: str = ""


class RepairReport(BaseModel):
    """The result of a repair: what was lost, and where the damaged files are (`old`; empty: none)."""

    location: str
    records: int = 0
    versions: int = 0
    lost: list[str] = []
    old: str = ""


async def verify(location: str, api_key: str = "") -> VerifyReport:
    """Read and compare everything in a ledger; other processes may use it meanwhile.

    Raises LedgerMismatch, and Damaged if the ledger is gone.
    """
    return await asyncio.to_thread(_verify, location, api_key)


def _verify(location: str, api_key: str = "") -> VerifyReport:
    place = place_of(location)
    if place.folder is not None:
        refuse_gone(place.folder)
    try:
        store = open_to_read(location, api_key=api_key)
    except Damaged as damage:
        return VerifyReport(location=place.shown, problems=[str(damage)])
    found = VerifyReport(location=place.shown)
    try:
        found.problems += problems_of(store.log.database)
        found.records, found.versions = count_of(store.log.database)
        found.problems += [] if found.problems else store.index.verify()
    except MnemeError as failure:
        found.problems.append(str(failure))
        found.hint = failure.hint
    finally:
        store.close()
    return found


def count_of(database: Database) -> tuple[int, int]:
    """Return the number of records in a log, and the number of versions."""
    with database.reading() as cursor:
        records, versions = cursor.execute("""SELECT (SELECT count(*) FROM ledger_heads), count(*)
            FROM ledger_entries WHERE kind = 'version' AND body IS NOT NULL""").fetchone()
        return records, versions


async def repair(location: str, embedder: Embedder, api_key: str = "") -> RepairReport:
    """Rebuild the index of a ledger from its log, and a damaged log from its intact entries.

    Intact data stays as it is. Damaged files are set aside. Raises LedgerInUse, LedgerMismatch,
    StorageFailure, and Damaged if an older ledger cannot be upgraded.
    """
    found = await verify(location, api_key)
    folder, lost, old = place_of(location).folder, list[str](), found.location if found.problems else ""
    if found.problems:
        path = folder and folder / LOG  # not there where an older ledger could not be upgraded
        if path and path.exists() and (wrong := await asyncio.to_thread(problems_in, path)):
            lost, old = await asyncio.to_thread(_repair_log, Folder(path.parent), wrong)
        ledger = await open_ledger(location, embedder, api_key=api_key)
        try:
            await asyncio.to_thread(ledger.rebuild_index)
        finally:
            await ledger.close()
        found = await verify(location, api_key)
    return RepairReport(**found.model_dump(exclude={"problems", "hint"}), lost=lost, old=old)


async def vacuum(location: str, embedder: Embedder, api_key: str = "") -> None:
    """Rewrite the log without erased data, and rebuild an index on a server; others wait meanwhile."""
    store = await asyncio.to_thread(open_store, location, embedder.name, embedder.dimension, api_key)
    try:
        await store.log.thread(store.log.database.vacuum)
        if store.place.index:
            await store.log.thread(store.index.rebuild)
    finally:
        await asyncio.to_thread(store.close)


def _repair_log(folder: Folder, wrong: list[str]) -> tuple[list[str], str]:
    """Rewrite a damaged log; return what is lost, and the damaged file's new place. Raises LedgerInUse."""
    try:
        if not folder.is_alone():
            raise folder.in_use()
        folder.check_space()  # the index is rebuilt afterwards
        unseal(folder.path)
        with folder.new_log() as path:
            lost = _rewritten(folder, path)
            old = folder.set_aside(f"has been built anew ({wrong[0]})")
        write_durably(kept_of(folder.path), "")  # the loss is reported, and not reported again
        return lost, str(old)
    finally:
        folder.release()


def _rewritten(folder: Folder, path: Path) -> list[str]:
    """Write a new log from the readable entries; return what is lost."""
    connection = sqlite3.connect(_lengthened(folder.log, path.parent), isolation_level=None)
    try:
        state = _first(connection, "SELECT embedder, dimension, seq FROM ledger_state")
        if state is None and (manifest := read_manifest(folder.path / MANIFEST)):
            state = (manifest.embedder, manifest.dimension, 0)
        if state is None:
            raise Damaged(f"Nothing of {folder.log} can be read.", "Restore a backup: `mneme restore`.")
        rows, vectors = _readable(connection, "entries"), _readable(connection, "vectors")
    finally:
        connection.close()
    embedder, dimension, last = state
    last = max(last, noted_size(kept_of(folder.path)))
    return write_log(path, (embedder, dimension), lambda given: _salvaged(given, rows, vectors, last))


def _lengthened(log: Path, room: Path) -> Path:
    """Copy a damaged log, extended to the size in its first page: SQLite reads no shorter file."""
    copy = room / "damaged.sqlite"
    for ending in ("", "-wal"):
        if (file := log.with_name(f"{log.name}{ending}")).exists():
            shutil.copyfile(file, copy.with_name(f"{copy.name}{ending}"))
    with copy.open("r+b") as opened:
        first = opened.read(32)  # SQLite's header: the page size at byte 16, the number of pages at 28
        page, count = int.from_bytes(first[16:18]), int.from_bytes(first[28:32])
        # The number may be damaged itself.
        if page * count > copy.stat().st_size and count < MAX_UNREADABLE_ROWS**2:
            opened.truncate(page * count)
    return copy


def _readable(connection: sqlite3.Connection, table: str) -> list[tuple[Any, ...]]:
    """Return the readable rows of a table in a damaged file, read one by one if necessary."""
    with suppress(sqlite3.DatabaseError):
        return connection.execute(READ[table]).fetchall()
    last = (_first(connection, f"SELECT max(rowid) FROM ledger_{table}") or (None,))[0]
    found, failed = list[tuple[Any, ...]](), 0
    for number in range(1, (last or MAX_UNREADABLE_ROWS**2) + 1):
        row = _first(connection, f"{READ[table]} WHERE rowid = {number}")
        found += [row] if row else []
        failed = 0 if row else failed + 1
        if failed == MAX_UNREADABLE_ROWS:
            break
    return found


def _first(connection: sqlite3.Connection, statement: str) -> tuple[Any, ...] | None:
    row: tuple[Any, ...] | None = None
    with suppress(sqlite3.DatabaseError):
        row = connection.execute(statement).fetchone()
    return row


def _salvaged(
    transaction: Transaction,
    rows: Iterable[tuple[Any, ...]],
    vectors: Iterable[tuple[Any, ...]],
    last: int,
) -> list[str]:
    """Add the intact entries of a damaged log, which had `last` entries; return in words what is lost."""
    found = replay(transaction, sorted(rows))
    heads = found.heads
    for record, embedder, dense, checksum in vectors:
        if record in heads and zlib.crc32(dense) == checksum and heads[record].live:
            transaction.rows["vectors"].append((record, embedder, dense, checksum))
    lost = [*gaps(heads, found.known)]
    for record, number in lost:
        transaction.add("lost", record, number)
    lost += [each for each in found.broken if each[0] not in heads or each[1] > heads[each[0]].version]
    names = {record: head.key for record, head in heads.items()}
    told = [f"{names.get(record, f'record {record}')}, version {number}" for record, number in lost]
    if gone := found.gone + max(0, last - found.seq):
        told.append(f"{gone} entries of the log")
    return told if last else [*told, "how many entries there were is not known"]
