"""The upgrade of ledgers of format 2 to a log, from their journal or from a Qdrant server.

The new log is written beside the old files, checked, and only then put in its place; then the old files are
removed, since what is forgotten later must not stay in them. If the process is killed, the next one starts
over, or removes what is left. The texts are embedded when the ledger is opened next.
"""

import json
import logging
import shutil
import zlib
from collections.abc import Iterable
from functools import partial
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from mneme.core.errors import Damaged, LedgerMismatch, StorageFailure
from mneme.stores.database import storage_errors
from mneme.stores.ledger.checking import problems_in
from mneme.stores.ledger.folder import GENERATIONS, MANIFEST, NEW_LOG, Folder
from mneme.stores.ledger.log import Transaction, write_log
from mneme.stores.ledger.query import LEDGER_FORMAT, Payload
from mneme.stores.ledger.reading import check_format
from mneme.stores.ledger.records import Version

JOURNAL = "versions.journal"
RESTORE_HINT = "Restore it from a backup: `mneme restore`."
FORMER_FORMAT = 2
"""The format that can be upgraded."""

log = logging.getLogger(__name__)


class Manifest(BaseModel):
    """The settings with which an older ledger was made."""

    model_config = ConfigDict(frozen=True)

    format: int
    embedder: str
    dimension: int
    generation: int


def bring_in(transaction: Transaction, points: Iterable[tuple[str, Payload]]) -> None:
    """Add the points of an older ledger to a new log: versions, receipts and tombstones."""
    if transaction.state.seq:  # another process has done so since the log was found empty
        return
    versions, notes, void = dict[tuple[str, int], Version](), dict[str, Payload](), list[str]()
    for point, payload in points:
        if "forgotten" in payload:
            mark = json.loads(payload["forgotten"])
            last = payload.get("last") or mark["versions"]
            notes[point] = {"id": point, "mark": mark, "created": payload["created"], "last": last}
        elif "event" in payload:
            version = Version.model_validate_json(payload["event"])
            versions.setdefault((version.record, version.version), version)
        elif payload.get("version") == 0:
            void.append(point)
    for note in notes.values():
        note["receipts"], void = void, []  # an older ledger does not say whose they are
        transaction.add("forget", body=json.dumps(note, ensure_ascii=False))
    for version in sorted(versions.values(), key=lambda each: (each.at, each.version)):
        transaction.add("version", version=version)
    count = len({record for record, _ in versions})
    log.warning("The older ledger has %s records with %s versions.", count, len(versions))


def is_older(folder: Folder) -> bool:
    """Return whether a folder has a ledger of an older format that has not been upgraded."""
    left = any(folder.path.glob(GENERATIONS)) or (folder.path / MANIFEST).exists()
    return left and not folder.log.exists()


def remove_older(folder: Folder) -> None:
    """Remove the files of an upgraded ledger: forgotten text must not stay in them."""
    for path in [*folder.path.glob(GENERATIONS), folder.path / NEW_LOG]:
        shutil.rmtree(path, ignore_errors=True)


def upgrade(folder: Folder) -> None:
    """Write the log of an older ledger in a folder, from its journal.

    Raises LedgerMismatch, Damaged, StorageFailure; then the older ledger is as it was.
    """
    copies = [folder.path / MANIFEST, *(path / MANIFEST for path in folder.path.glob(GENERATIONS))]
    manifests = [manifest for path in copies if (manifest := read_manifest(path)) is not None]
    newest = max(manifests, key=lambda manifest: manifest.generation, default=None)
    if newest is None:
        raise LedgerMismatch(f"{copies[0]} is missing or damaged; nothing was touched.", RESTORE_HINT)
    check_format(folder.path, newest.format, FORMER_FORMAT)
    journal = folder.path / f"generation-{newest.generation:06d}" / JOURNAL
    if newest.format > FORMER_FORMAT or not journal.exists():
        raise StorageFailure(f"The ledger's log in {folder.path} is missing.", RESTORE_HINT)
    log.warning("The ledger at %s is being upgraded to format %s, once.", folder.path, LEDGER_FORMAT)
    with storage_errors(f"read {journal}"):
        points = journal_points(journal.read_bytes())
    with folder.new_log() as path:
        write_log(path, (newest.embedder, newest.dimension), partial(bring_in, points=points))
        if wrong := problems_in(path):
            raise Damaged(
                f"The ledger's file {journal} is damaged: {wrong[0]}; nothing was changed.",
                "`mneme repair` of the version that wrote it says what is lost. Or restore a backup.",
            )
    folder.note_format(LEDGER_FORMAT, newest.embedder, newest.dimension)


def read_manifest(path: Path) -> Manifest | None:
    """Return a manifest; None where it is missing or damaged."""
    try:
        return Manifest.model_validate_json(path.read_bytes())
    except (OSError, ValidationError):
        return None


def journal_points(text: bytes) -> list[tuple[str, Payload]]:
    """Return the lines of a journal, but not a write that was cut at its end. Raises Damaged."""
    found: list[tuple[str, Payload]] = []
    begun = broken = 0
    for number, line in enumerate(text.split(b"\n"), 1):
        try:
            is_whole = int(line[:8], 16) == zlib.crc32(line[9:])
        except ValueError:
            is_whole = False
        if is_whole and broken:
            raise Damaged(f"Line {broken} of the journal is damaged; nothing was changed.", RESTORE_HINT)
        if is_whole:
            point, payload, left = json.loads(line[9:])
            found.append((point, payload))
            begun = begun + 1 if left else 0
        broken = broken or (0 if is_whole else number)
    return found[: len(found) - begun]
