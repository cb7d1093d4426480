"""Backups: one file with all memories and checkpoints, made during use, restored into an empty place.

The file is a ZIP archive with the ledger's log and the checkpoints, each as SQLite copies it. The index is
not in it; it is rebuilt.
"""

import asyncio
import os
import shutil
import tempfile
import zipfile
import zlib
from contextlib import closing
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from pydantic import BaseModel, ValidationError

from mneme.api.copies import note_backup
from mneme.core.durable import sync, sync_all
from mneme.core.errors import BadInput, Damaged, LedgerMismatch
from mneme.core.private import make_private_file, make_private_folder
from mneme.core.settings import settings
from mneme.models.embedding.embedders import Embedder
from mneme.stores.checkpoints.files import check_sqlite, copy_sqlite, refuse_gone
from mneme.stores.database import Sqlite, kept_of, storage_errors
from mneme.stores.ledger.addresses import place_of
from mneme.stores.ledger.checking import problems_in
from mneme.stores.ledger.folder import GENERATIONS, LOG, LOG_FILES, MANIFEST
from mneme.stores.ledger.ledger import reembed
from mneme.stores.ledger.log import write_log
from mneme.stores.ledger.opening import open_store, open_to_read
from mneme.stores.ledger.reading import check_format
from mneme.stores.ledger.upgrading import FORMER_FORMAT, JOURNAL, Manifest, bring_in, journal_points
from mneme.stores.ledger.verifying import count_of

CHECKPOINTS = "checkpoints.sqlite"


class Backup(BaseModel):
    """Contents of a backup, or of what was restored from it."""

    file: str
    records: int
    versions: int
    checkpoints: bool


def back_up(file: Path) -> Backup:
    """Write a backup of the ledger and the checkpoints of the settings, which may stay open. Blocks.

    Raises BadInput where the file exists or one of the two is on a server; Damaged, StorageFailure.
    """
    folder, checkpoints = _places()
    if file.exists():
        raise BadInput(f"{file} exists.", "Give the name of a new file.")
    with storage_errors(f"write {file}"), tempfile.TemporaryDirectory(dir=file.absolute().parent) as room:
        log, draft = Path(room) / LOG, Path(room) / "draft"  # beside `file`: only there can it be renamed
        store = open_to_read(str(folder))  # one of an older version is upgraded, a damaged one refused
        try:
            copy_sqlite(Path(store.place.log) / LOG, log)
        finally:
            store.close()
        make_private_file(draft)  # before it has content
        with draft.open("wb") as raw:
            with zipfile.ZipFile(raw, "w", zipfile.ZIP_DEFLATED) as archive:
                archive.write(log, LOG)
                refuse_gone(checkpoints)
                if checkpoints.exists():
                    copy_sqlite(checkpoints, Path(room) / CHECKPOINTS)
                    archive.write(Path(room) / CHECKPOINTS, CHECKPOINTS)
            raw.flush()
            os.fsync(raw.fileno())
        told = _told(file, log, checkpoints.exists())
        draft.rename(file)  # only now: the name always stands for a whole backup
        sync(file.absolute().parent)
        note_backup(file)
    return told


async def restore(file: Path, embedder: Embedder) -> Backup:
    """Restore the ledger and the checkpoints of the settings from a backup; neither may be there yet.

    Raises BadInput, Damaged, StorageFailure; then nothing has been restored.
    """
    folder, checkpoints = _places()
    with tempfile.TemporaryDirectory(prefix="mneme-restore-") as name:
        room = Path(name)
        await asyncio.to_thread(_unpack, file, room)
        beside = [Path(f"{checkpoints}{end}") for end in ("", "-wal", "-shm")]
        for path in (*folder.glob(LOG_FILES), folder / MANIFEST, *folder.glob(GENERATIONS), *beside):
            if path.exists():
                there = " and ".join(str(each) for each in (folder, *beside) if each.exists())
                raise BadInput(
                    f"{path} exists; a backup is restored into an empty place, memories and conversations.",
                    f"Move away {there}, or set MNEME_HOME to a new folder.",
                )
        told = await asyncio.to_thread(_told, file, room / LOG, (room / CHECKPOINTS).exists())
        with storage_errors(f"write {folder}"):
            await asyncio.to_thread(make_private_folder, folder)
            kept_of(folder).unlink(missing_ok=True)  # it tells of the ledger that was here before
            await asyncio.to_thread(make_private_file, folder / LOG)  # `copyfile` keeps the mode of a file
            await asyncio.to_thread(shutil.copyfile, room / LOG, folder / LOG)
            await asyncio.to_thread(sync_all, folder)
        if told.checkpoints:
            await asyncio.to_thread(make_private_folder, checkpoints.parent)
            kept_of(checkpoints).unlink(missing_ok=True)
            await asyncio.to_thread(copy_sqlite, room / CHECKPOINTS, checkpoints)
        try:
            store = await asyncio.to_thread(open_store, str(folder), embedder.name, embedder.dimension)
            await asyncio.to_thread(store.close)
        except LedgerMismatch:  # the backup was made with another embedder
            await reembed(str(folder), embedder, progress=lambda count: None)
        written = datetime.fromtimestamp(file.stat().st_mtime, UTC)
        await asyncio.to_thread(note_backup, file, written)
        return told


def _places() -> tuple[Path, Path]:
    place, checkpoints = place_of(settings().ledger_location), settings().checkpoints_location
    if place.folder is None or "://" in checkpoints:
        raise BadInput(
            "A ledger or checkpoints on a server are not in this backup.",
            "Use the server's own: pg_dump; or `mneme memories export`.",
        )
    return place.folder, Path(checkpoints).expanduser().absolute()


def _unpack(file: Path, room: Path) -> None:
    """Write a log and checkpoints into a folder; an older backup has a journal instead of a log."""
    try:
        with zipfile.ZipFile(file) as archive:
            # By our own names: no path that a made-up archive gives is written.
            for name in {LOG, MANIFEST, JOURNAL, CHECKPOINTS} & set(archive.namelist()):
                archive.extract(name, room)
        if (room / JOURNAL).exists():
            text = (room / JOURNAL).read_bytes()
            points = journal_points(text)
            if len(points) != text.count(b"\n"):
                raise _damaged(file, ["lines of the journal"])
            manifest = Manifest.model_validate_json((room / MANIFEST).read_bytes())
            check_format(file, manifest.format, FORMER_FORMAT)
            write_log(room / LOG, (manifest.embedder, manifest.dimension), partial(bring_in, points=points))
    except FileNotFoundError as missing:
        raise BadInput(f"There is no file {file}.", "Give a file of `mneme backup`.") from missing
    except (OSError, zipfile.BadZipFile, ValidationError, zlib.error) as broken:
        raise BadInput(
            f"{file} is not a backup, or it is damaged: {broken}.", "Give a file of `mneme backup`."
        ) from broken
    if not (room / LOG).exists():
        raise BadInput(f"{file} lacks {LOG}.", "Give a file of `mneme backup`.")
    wrong = check_sqlite(room / CHECKPOINTS) if (room / CHECKPOINTS).exists() else []
    if wrong := [*problems_in(room / LOG), *wrong]:
        raise _damaged(file, wrong)


def _damaged(file: Path, wrong: list[str]) -> Damaged:
    return Damaged(f"{file} is damaged: {wrong[0]}; nothing was restored.", "Use another backup.")


def _told(file: Path, log: Path, checkpoints: bool) -> Backup:
    with closing(Sqlite(log)) as database:
        records, versions = count_of(database)
    return Backup(file=str(file), records=records, versions=versions, checkpoints=checkpoints)
