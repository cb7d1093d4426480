"""One file with everything that is remembered: made while it is in use, and restored into an empty place.

The file is a ZIP archive: the ledger's versions as its journal keeps them, each with a checksum, and the
checkpoints as SQLite copies them. The vectors are not in it; they are computed again.
"""

import asyncio
import os
import tempfile
import zipfile
import zlib
from pathlib import Path

from pydantic import BaseModel, ValidationError

from mneme.api.copies import note_backup
from mneme.core.durable import sync
from mneme.core.errors import BadInput, Damaged
from mneme.core.private import make_private_file, make_private_folder
from mneme.core.settings import settings
from mneme.models.embedding.embedders import Embedder
from mneme.stores.checkpoints.files import check_sqlite, copy_sqlite, refuse_gone
from mneme.stores.ledger import journal
from mneme.stores.ledger.beside import read_beside
from mneme.stores.ledger.building import build
from mneme.stores.ledger.folder import Folder
from mneme.stores.ledger.journal import JOURNAL, Content
from mneme.stores.ledger.ledger import is_server
from mneme.stores.ledger.manifest import MANIFEST, Manifest, check_format, storage_errors

CHECKPOINTS = "checkpoints.sqlite"


class Backup(BaseModel):
    """What a backup holds, or what was restored from it."""

    file: str
    records: int
    versions: int
    checkpoints: bool


def back_up(file: Path) -> Backup:
    """Write a backup of the ledger and the checkpoints of the settings; nobody need close them. Blocks.

    Raises BadInput where the file exists or one of the two is on a server; Damaged, StorageFailure.
    """
    location, checkpoints = _places()
    if file.exists():
        raise BadInput(f"{file} exists.", "Give the name of a new file.")
    manifest, content = read_beside(location)
    with storage_errors(f"write {file}"), tempfile.TemporaryDirectory(dir=file.absolute().parent) as room:
        draft = Path(room) / "draft"
        make_private_file(draft)
        with draft.open("wb") as raw:
            with zipfile.ZipFile(raw, "w", zipfile.ZIP_DEFLATED) as archive:
                archive.writestr(MANIFEST, manifest.model_dump_json())
                text = "".join(
                    line for point, payload in content.entries for line in journal.lines({point: payload})
                )
                archive.writestr(JOURNAL, text)
                refuse_gone(checkpoints)
                if checkpoints.exists():
                    copy_sqlite(checkpoints, Path(room) / CHECKPOINTS)
                    archive.write(Path(room) / CHECKPOINTS, CHECKPOINTS)
            raw.flush()
            os.fsync(raw.fileno())
        draft.rename(file)
        sync(file.absolute().parent)
        note_backup(file)
    return _told(file, content, checkpoints.exists())


async def restore(file: Path, embedder: Embedder) -> Backup:
    """Build the ledger and the checkpoints of the settings from a backup; neither may be there yet.

    Raises BadInput, Damaged, StorageFailure; then nothing has been restored.
    """
    location, checkpoints = _places()
    with tempfile.TemporaryDirectory(prefix="mneme-restore-") as room:
        manifest, content = await asyncio.to_thread(_unpack, file, Path(room))
        folder = await asyncio.to_thread(_empty_place, location, checkpoints)
        try:
            made = manifest.model_copy(
                update={"embedder": embedder.name, "dimension": embedder.dimension, "generation": 1}
            )
            await build(folder, made, journal.histories(content.entries), embedder)
        finally:
            await asyncio.to_thread(folder.release)
        held = Path(room) / CHECKPOINTS
        if held.exists():
            await asyncio.to_thread(make_private_folder, checkpoints.parent)
            await asyncio.to_thread(copy_sqlite, held, checkpoints)
        return _told(file, content, held.exists())


def _places() -> tuple[Path, Path]:
    location, checkpoints = settings().ledger_location, settings().checkpoints_location
    if is_server(location) or "://" in checkpoints:
        raise BadInput(
            "A ledger or checkpoints on a server are not in this backup.",
            "Use the server's own: Qdrant's snapshots, pg_dump; or `mneme memories export`.",
        )
    return Path(location).expanduser().absolute(), Path(checkpoints).expanduser().absolute()


def _unpack(file: Path, room: Path) -> tuple[Manifest, Content]:
    try:
        with zipfile.ZipFile(file) as archive:
            for name in {MANIFEST, JOURNAL, CHECKPOINTS} & set(archive.namelist()):
                archive.extract(name, room)
        manifest = Manifest.model_validate_json((room / MANIFEST).read_bytes())
        content = journal.read(room / JOURNAL)
    except FileNotFoundError as missing:
        if not file.exists():
            raise BadInput(f"There is no file {file}.", "Give a file of `mneme backup`.") from missing
        raise BadInput(f"{file} lacks {missing.filename}.", "Give a file of `mneme backup`.") from missing
    except (OSError, zipfile.BadZipFile, ValidationError, zlib.error) as broken:
        raise BadInput(
            f"{file} is not a backup, or it is damaged: {broken}.", "Give a file of `mneme backup`."
        ) from broken
    check_format(file, manifest.format)
    if wrong := content.damaged or ((room / CHECKPOINTS).exists() and check_sqlite(room / CHECKPOINTS)):
        raise Damaged(f"{file} is damaged: {wrong}; nothing was restored.", "Use another backup.")
    return manifest, content


def _empty_place(location: Path, checkpoints: Path) -> Folder:
    """Own a new ledger's folder. Raises BadInput where there is anything already."""
    for path in (location / MANIFEST, checkpoints, *location.glob("generation-*")):
        if path.exists():
            raise BadInput(
                f"{path} exists; a backup is restored into an empty place.",
                "Move it away first, or set MNEME_HOME to a new folder.",
            )
    return Folder(location)


def _told(file: Path, content: Content, checkpoints: bool) -> Backup:
    versions = journal.histories(content.entries).versions
    count = sum(map(len, versions.values()))
    return Backup(file=str(file), records=len(versions), versions=count, checkpoints=checkpoints)
