"""Ledgers of formats 1 and 2, brought into a log: from their journals, the engine's files, or a server.

The new log is written beside the old files, checked, and only then put in its place; then the old files are
removed, since what is forgotten later must not stay in them. Where the process is killed, the next one
starts over, or removes what is left.

Format 1 kept the pools, rubrics, discussions, household episodes and task memories of the team `ann.b` below
("teams", "ann.b", …), formats since then below ("teams", "ann%2Eb", …). A name that `escaped` could have made
(`ann%2Eb`) is taken for one that is escaped already. Where two records meet in one place, the one that was
there stays, and so does the other in its old place.
"""

import json
import logging
import shutil
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import qdrant_edge as edge
from pydantic import BaseModel, ConfigDict, ValidationError

from mneme.core.durable import sync
from mneme.core.errors import Damaged, LedgerMismatch, MnemeError, StorageFailure
from mneme.stores.ledger.checking import problems_of
from mneme.stores.ledger.database import Sqlite
from mneme.stores.ledger.folder import MANIFEST, Folder, storage_errors
from mneme.stores.ledger.log import (
    Entry,
    Log,
    Transaction,
    make_tables,
    put_forgotten,
    put_vector,
    put_version,
    scope_of,
)
from mneme.stores.ledger.namespaces import escaped, is_escaped
from mneme.stores.ledger.query import DENSE, FORMAT, Payload
from mneme.stores.ledger.records import Version, record_id
from mneme.stores.ledger.sparse import copy_folder

GENERATION, JOURNAL, SEAL = "generation-", "versions.journal", "mneme.seal"
MAKING = "mneme.making"
"""Where a log is written before it takes the place of the older files."""
ENGINE = "mneme.older"
"""A copy of the engine's files to read: opening them changes them."""
START = Path("/proc/sys/kernel/random/boot_id")
KINDS = ("pools", "rubrics", "discussions", "household", "task_memory")
"""What format 1 kept below the plain names of teams."""
AT_ONCE = 1000

log = logging.getLogger(__name__)


class Manifest(BaseModel):
    """What an older ledger was made with."""

    model_config = ConfigDict(frozen=True)

    format: int
    embedder: str
    dimension: int
    generation: int


class Piece(NamedTuple):
    """A point of an older ledger: a version, a head, a receipt, a tombstone or a placement."""

    id: str
    payload: Payload
    dense: Sequence[float] | None = None


class Contents:
    """What an older ledger holds."""

    def __init__(self, pieces: Iterable[Piece]) -> None:
        self.versions: dict[tuple[str, int], Version] = {}
        self.places: dict[str, str] = {}
        self.vectors: dict[str, tuple[int, Sequence[float]]] = {}
        self.notes: dict[str, Payload] = {}
        self.void: dict[str, None] = {}
        for piece in pieces:
            self._add(piece)

    def _add(self, piece: Piece) -> None:
        payload = piece.payload
        if "forgotten" in payload:
            self.notes[piece.id] = payload
        elif "event" in payload:
            self._add_event(piece)
        elif "scope" in payload:
            self.places[piece.id] = payload["scope"]
        elif payload.get("version") == 0:
            self.void[piece.id] = None

    def _add_event(self, piece: Piece) -> None:
        try:
            version = Version.model_validate_json(piece.payload["event"])
        except ValidationError:
            return
        record = record_id(version.namespace, version.key)
        if "n" not in piece.payload:
            self.places.pop(record, None)
        else:
            self.places[record] = piece.payload["scope"]
            if piece.dense is not None:
                self.vectors[record] = (version.version, piece.dense)
        self.versions.setdefault((record, version.version), version)

    def gaps(self) -> list[str]:
        """Name the versions that are missing before a record's last one."""
        last: dict[str, Version] = {}
        for (record, number), version in self.versions.items():
            if record not in last or last[record].version < number:
                last[record] = version
        return [
            f"{head.key}, version {number}"
            for record, head in last.items()
            for number in range(head.first, head.version)
            if (record, number) not in self.versions
        ]


def is_older(folder: Folder) -> bool:
    """Say whether a folder has a ledger of an older format; remove what an upgrade left."""
    generations = [*folder.path.glob(f"{GENERATION}*")]
    if folder.log.exists():
        for path in [*generations, *folder.path.glob("making-*"), folder.path / MAKING, folder.path / ENGINE]:
            shutil.rmtree(path, ignore_errors=True)
        return False
    return bool(generations) or (folder.path / MANIFEST).exists()


def upgrade(folder: Folder, embedder: str, dimension: int) -> None:
    """Bring the older ledger in a folder into a log, and remove its files.

    Raises LedgerMismatch, Damaged, StorageFailure; then the older ledger is as it was.
    """
    manifest, generation = _found(folder.path)
    if embedder and (manifest.embedder, manifest.dimension) != (embedder, dimension):
        raise LedgerMismatch(
            f"The ledger at {folder.path} was made with the embedder {manifest.embedder} "
            f"({manifest.dimension} dimensions), not {embedder} ({dimension}).",
            "Open it once with that embedder; then `mneme memories reembed` rebuilds it for another.",
        )
    log.warning("The ledger at %s is being upgraded to format %s, once.", folder.path, FORMAT)
    with storage_errors(f"read {generation}"):
        contents = Contents(pieces_of(generation, folder.path / ENGINE))
    if gaps := contents.gaps():
        raise Damaged(
            f"The ledger's files in {generation} are damaged: {gaps[0]} is missing; nothing was changed.",
            "`mneme repair` of the version that wrote it says what is lost. Or restore a backup.",
        )
    making = folder.path / MAKING
    shutil.rmtree(making, ignore_errors=True)
    making.mkdir(mode=0o700)
    write_log(making / folder.log.name, contents, manifest)
    with storage_errors(f"write {folder.log}"):
        (making / folder.log.name).rename(folder.log)
        sync(folder.path)
    folder.note_format(FORMAT, manifest.embedder, manifest.dimension)
    is_older(folder)
    count = len({record for record, _ in contents.versions})
    log.warning("Upgraded: %s records with %s versions.", count, len(contents.versions))


def write_log(path: Path, contents: Contents, manifest: Manifest) -> None:
    """Write a new log with contents, and check it. Raises StorageFailure."""
    database = Sqlite(path)
    try:
        with database.writing() as cursor:
            make_tables(cursor, database, manifest.embedder, manifest.dimension)
        writer = Log(database)
        try:
            writer.write_now(lambda transaction: bring_in(transaction, contents, manifest.format))
            if wrong := problems_of(database):
                raise StorageFailure(f"The upgraded ledger is not whole: {wrong[0]}; the older one stays.")
        finally:
            writer.close()
    finally:
        database.close()


def bring_in(transaction: Transaction, contents: Contents, format: int) -> None:
    """Add all contents of an older ledger to a new log."""
    void = [*contents.void]
    for mark, payload in contents.notes.items():
        forgotten = json.loads(payload["forgotten"])
        last = payload.get("last") or forgotten["versions"]
        note = {"id": mark, "mark": forgotten, "created": payload["created"], "last": last, "receipts": void}
        put_forgotten(transaction, "", json.dumps(note, ensure_ascii=False))
        void = []
    moved = _moved(contents) if format == 1 else {}
    heads: dict[str, Version] = {}
    in_order = sorted(contents.versions.items(), key=lambda each: (each[1].at, each[1].version))
    for (record, _), version in in_order:
        new = moved.get(record)
        heads[record] = version if new is None else _escaped(version)
        put_version(transaction, new or record, heads[record])
    places: dict[str, list[str]] = {}
    for record, place in contents.places.items():
        if record in heads and record not in moved and place != scope_of(heads[record]):
            places.setdefault(place, []).append(record)
    if places:
        put_places(transaction, places)
    for record, (number, dense) in contents.vectors.items():
        if record in heads and heads[record].version == number and heads[record].live:
            put_vector(transaction, moved.get(record, record), dense)


def put_places(transaction: Transaction, places: Mapping[str, Sequence[str]]) -> None:
    """Put records into other scopes, where they stay until they are written to again."""
    transaction.add(Entry("place", "", 0, json.dumps(places, ensure_ascii=False)))
    transaction.flush()
    for place, records in places.items():
        transaction.cursor.executemany(
            "UPDATE ledger_heads SET scope = ? WHERE record = ?", [(place, record) for record in records]
        )


def _moved(contents: Contents) -> dict[str, str]:
    """Return the new ids of the records whose team's name is not escaped, where their new place is free."""
    moved: dict[str, str] = {}
    for (record, _), version in contents.versions.items():
        first, *below = version.namespace
        if first == "teams" and below[1:] and below[1] in KINDS and not is_escaped(below[0]):
            new = _escaped(version)
            moved[record] = record_id(new.namespace, new.key)
    taken = {record for record, _ in contents.versions}
    return {record: new for record, new in moved.items() if new not in taken}


def _escaped(version: Version) -> Version:
    first, team, *below = version.namespace
    return version.model_copy(update={"namespace": (first, escaped(team), *below)})


def _found(folder: Path) -> tuple[Manifest, Path]:
    """Return what an older ledger was made with, and its files in use."""
    copies = [folder / MANIFEST, *(path / MANIFEST for path in folder.glob(f"{GENERATION}*"))]
    found = [manifest for path in copies if (manifest := read_manifest(path)) is not None]
    newest = max(found, key=lambda manifest: manifest.generation, default=None)
    if newest is not None and newest.format > 2:
        if newest.format > FORMAT:
            raise LedgerMismatch(
                f"{folder} has the ledger format {newest.format}; this version reads up to {FORMAT}.",
                "Install the version of Mneme that wrote it, or a newer one.",
            )
        raise StorageFailure(
            f"The ledger's log in {folder} is missing.", "Restore it from a backup: `mneme restore`."
        )
    if newest is None:
        raise LedgerMismatch(
            f"{folder / MANIFEST} is missing or damaged; nothing was touched.", "Restore it from a backup."
        )
    generation = folder / f"{GENERATION}{newest.generation:06d}"
    if not generation.is_dir():
        raise StorageFailure(
            f"The files of the ledger in {generation} are missing.", "Restore the whole folder from a backup."
        )
    return newest, generation


def read_manifest(path: Path) -> Manifest | None:
    """Return a manifest; None where it is missing or damaged."""
    try:
        return Manifest.model_validate_json(path.read_bytes())
    except (OSError, ValidationError):
        return None


def pieces_of(generation: Path, room: Path) -> Iterator[Piece]:
    """Yield what the journal holds, then what the engine's files do: vectors, and what the journal lacks."""
    journal = generation / JOURNAL
    if journal.exists():
        yield from journal_pieces(journal.read_bytes())
    try:
        yield from _engine_pieces(generation, room)
    except MnemeError as failure:
        if not journal.exists():
            raise
        log.warning("%s All texts are embedded again.", failure)
    finally:
        shutil.rmtree(room, ignore_errors=True)


def journal_pieces(text: bytes) -> Iterator[Piece]:
    """Yield the lines of a journal that are whole, but not a write of which a line is missing at the end."""
    found: list[Piece] = []
    begun = 0
    for line in text.split(b"\n"):
        try:
            if int(line[:8], 16) == zlib.crc32(line[9:]):
                point, payload, left = json.loads(line[9:])
                found.append(Piece(point, payload))
                begun = begun + 1 if left else 0
        except (ValueError, TypeError):
            continue
    yield from found[: len(found) - begun]


def _engine_pieces(generation: Path, room: Path) -> Iterator[Piece]:
    if _was_cut(generation):
        raise Damaged("The machine stopped while the ledger was open; its index cannot be trusted.")
    if not any((generation / "segments").glob("*")):
        raise Damaged(f"The engine's files in {generation} are missing.")
    shutil.rmtree(room, ignore_errors=True)
    copy_folder(generation, room)
    try:
        shard = edge.EdgeShard.load(str(room))
        following: Any = None
        while True:
            asked = edge.ScrollRequest(offset=following, limit=AT_ONCE, with_payload=True, with_vector=True)
            records, following = shard.scroll(asked)
            for each in records:
                vectors: Any = each.vector or {}
                yield Piece(str(each.id), each.payload or {}, vectors.get(DENSE))
            if following is None:
                break
        shard.close()
    except GeneratorExit:
        raise
    except (
        BaseException
    ) as failure:  # the engine raises bare Exception, and in a panic, something that is none
        if not (isinstance(failure, Exception) or type(failure).__name__ == "PanicException"):
            raise
        raise Damaged(f"The engine's files in {generation} are damaged: {failure}.") from failure


def _was_cut(generation: Path) -> bool:
    """Say whether the machine stopped while an older ledger was open."""
    try:
        mark = (generation / SEAL).read_text(errors="replace")
        return mark.startswith("open ") and mark.split()[1:] != START.read_text().split()
    except OSError:
        return False
