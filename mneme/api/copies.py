"""Places that texts were copied to (servers' folders, backups, files of discussions), noted in MNEME_HOME."""

import zipfile
import zlib
from collections.abc import Collection
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from pydantic import BaseModel, ValidationError

from mneme.core.durable import write_durably
from mneme.core.private import make_private_folder
from mneme.core.settings import settings
from mneme.stores.ledger.folder import LOG
from mneme.stores.ledger.upgrading import JOURNAL

NOTES = "copies.json"
COPY_CHUNK_BYTES = 1024 * 1024
"""Bytes of a backup that are searched at once."""


class BackupReport(BaseModel):
    """A backup: where it was written, and when; and whether this home was restored from it."""

    file: str
    at: datetime
    is_restored: bool = False


class ServerRun(BaseModel):
    """A server that ran, by its folder."""

    folder: str


class Copies(BaseModel):
    """All noted copies."""

    backups: list[BackupReport] = []
    servers: list[ServerRun] = []
    reports: dict[str, str] = {}
    """Files of discussions, and the names of their threads."""


def noted() -> Copies:
    """Return the notes; empty if the file is missing or broken."""
    try:
        return Copies.model_validate_json(_notes().read_bytes())
    except (OSError, ValidationError):
        return Copies()


def note_backup(file: Path, restored: datetime | None = None) -> None:
    """Note that a backup was written now, or that one written at `restored` was restored here."""
    copies, at = noted(), restored or datetime.now(UTC)
    made = BackupReport(file=str(file.absolute()), at=at, is_restored=restored is not None)
    others = [each for each in copies.backups if each.file != made.file]
    _write(copies.model_copy(update={"backups": [*others, made]}))


def note_server() -> None:
    """Note that this process serves from its working directory."""
    copies, ran = noted(), ServerRun(folder=str(Path.cwd()))
    _write(copies.model_copy(update={"servers": [*(each for each in copies.servers if each != ran), ran]}))


def note_reports(files: Collection[Path], thread: str) -> None:
    """Note files that were written about a discussion, with the name of its thread."""
    copies, new = noted(), dict.fromkeys((str(each.absolute()) for each in files), thread)
    _write(copies.model_copy(update={"reports": copies.reports | new}))


def erase_files(threads: Collection[str]) -> list[str]:
    """Erase traces and reports in MNEME_HOME; return other folders, with keys only their last part."""
    home, elsewhere = settings().home.absolute(), set[Path]()
    for thread in threads:
        trace = home / "household" / f"{thread.split('/')[1]}.jsonl"  # a later run may have the name
        if trace.exists() and thread in trace.read_text("utf-8", "replace"):
            trace.unlink()
    for file in (Path(name) for name, thread in noted().reports.items() if thread in threads):
        if file.is_relative_to(home):
            file.unlink(missing_ok=True)
        elif file.exists():
            elsewhere.add(file.parent)
    advice = "written of a discussion that repeats it: delete it"
    return [f"{each if settings().auth is None else each.name}: {advice}" for each in sorted(elsewhere)]


def backups_with(names: Collection[str]) -> list[BackupReport]:
    """Return the backups that may hold one of these records, by the keys of memories and the ids of messages.

    A missing backup may have been moved, so it is included. Blocks.
    """
    return [made for made in noted().backups if _may_hold(Path(made.file), [each.encode() for each in names])]


def _may_hold(file: Path, names: Collection[bytes]) -> bool:
    """Return whether a backup contains one of the names."""
    before, most = b"", max(map(len, names), default=0)
    try:
        with zipfile.ZipFile(file) as archive:
            content = archive.open(JOURNAL if JOURNAL in archive.namelist() else LOG)
            while part := content.read(COPY_CHUNK_BYTES):
                if any(name in before + part for name in names):
                    return True
                before = part[-most:] if most else b""  # a name may lie across the border of two chunks
    except (OSError, KeyError, zipfile.BadZipFile, zlib.error):  # not readable here: it may contain one
        return True
    return False


def _notes() -> Path:
    return settings().home / NOTES


def _write(copies: Copies) -> None:
    """Write the notes; a failure stops neither the backup nor the start of the server."""
    with suppress(OSError):
        make_private_folder(_notes().parent)
        write_durably(_notes(), copies.model_dump_json(indent=2))
