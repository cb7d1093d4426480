"""Where texts were copied to: the folders in which servers ran, and the backups; noted in MNEME_HOME."""

import os
import zipfile
import zlib
from collections.abc import Collection
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from pydantic import BaseModel, ValidationError

from mneme.core.private import make_private_file, make_private_folder
from mneme.core.settings import settings
from mneme.stores.ledger.journal import JOURNAL

NOTES = "copies.json"


class Made(BaseModel):
    """A backup: where it was written, and when."""

    file: str
    at: datetime


class Ran(BaseModel):
    """A server that ran, by its folder."""

    folder: str


class Copies(BaseModel):
    """What has been noted."""

    backups: list[Made] = []
    servers: list[Ran] = []


def noted() -> Copies:
    """Return what has been noted; nothing where the file is missing or broken."""
    try:
        return Copies.model_validate_json(_notes().read_bytes())
    except (OSError, ValidationError):
        return Copies()


def note_backup(file: Path) -> None:
    """Note that a backup was made."""
    copies, name = noted(), str(file.absolute())
    others = [each for each in copies.backups if each.file != name]
    _write(copies.model_copy(update={"backups": [*others, Made(file=name, at=datetime.now(UTC))]}))


def note_server() -> None:
    """Note that this process serves from its working directory."""
    copies, folder = noted(), str(Path.cwd())
    others = [each for each in copies.servers if each.folder != folder]
    _write(copies.model_copy(update={"servers": [*others, Ran(folder=folder)]}))


def backups_with(names: Collection[str]) -> list[Made]:
    """Return the backups that may hold one of these records, by the keys of memories and the ids of messages.

    One that is not where it was written may have been moved, so it is among them. Blocks.
    """
    return [made for made in noted().backups if _may_hold(Path(made.file), [each.encode() for each in names])]


def _may_hold(file: Path, names: Collection[bytes]) -> bool:
    try:
        with zipfile.ZipFile(file) as archive, archive.open(JOURNAL) as lines:
            return any(name in line for line in lines for name in names)
    except (OSError, KeyError, zipfile.BadZipFile, zlib.error):
        return True


def _notes() -> Path:
    return settings().home / NOTES


def _write(copies: Copies) -> None:
    """Write the notes; where that cannot be done, the backup is made and the server starts all the same."""
    file = _notes()
    draft = file.with_suffix(f".{os.getpid()}")
    with suppress(OSError):
        make_private_folder(file.parent)
        make_private_file(draft)
        draft.write_text(copies.model_dump_json(indent=2))
        draft.replace(file)
