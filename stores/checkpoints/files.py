"""The SQLite file of checkpoints as a file: missed, checked, and copied while it is in use."""

# ruff: noqa: S608  (all that is put into these statements are constants)

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from mneme.core.durable import sync
from mneme.core.errors import Damaged, MnemeError, StorageFailure
from mneme.core.private import make_private_file
from mneme.stores.checkpoints.tally import KEPT, KEYS, MADE, REMEDY, SET_UP, missing_rows, noted
from mneme.stores.ledger.database import failure_of

MAX_PROBLEMS = 20
"""Problems that a check lists."""
ROOM = 4 * 2**20
"""Bytes that must be free for the shared memory that SQLite makes beside a file to read it."""
RESTORE = "Restore a backup, or move {path}* away to begin without conversations."


def refuse_gone(path: Path) -> None:
    """Raise Damaged where there were checkpoints, and the file is missing or empty."""
    note = Path(f"{path}{KEPT}")
    if note.exists() and not (path.exists() and path.stat().st_size):  # in this order: others may make both
        raise Damaged(
            f"The checkpoints at {path} are gone: the file was there, and is missing or empty.",
            f"Restore a backup. Or remove {note}, to begin without conversations.",
        )


def note_kept(path: Path) -> None:
    """Note that the file has been made, once its name survives a power cut."""
    note = Path(f"{path}{KEPT}")
    if note.exists():
        return
    try:
        sync(path.parent)
        make_private_file(note)
    except OSError as failure:
        raise StorageFailure(
            f"{note} cannot be written: {failure.strerror}", "Make the folder writable."
        ) from failure


def check_checkpoints(path: Path) -> list[str]:
    """Check the file, where there is or was one; return what is wrong."""
    try:
        refuse_gone(path)
    except Damaged as gone:
        return [f"{gone} {gone.hint}"]
    return check_sqlite(path) if path.is_file() else []


def check_sqlite(path: Path) -> list[str]:
    """Read the whole file and compare its tables with their indexes; return what is wrong."""
    try:
        with readable(path) as file, closing(_open(file)) as connection:
            rows = connection.execute(f"PRAGMA integrity_check({MAX_PROBLEMS})").fetchall()
            missing = missing_rows(connection, path) if Path(f"{path}{KEPT}").exists() else []
    except sqlite3.Error as failure:
        refusal = _refusal(failure, path)
        return [f"{refusal} {refusal.hint}"]
    told = (f"{each} {REMEDY}" for each in missing)
    damage = [f"{path}: {row[0]}" for row in rows if row[0] != "ok"]
    return [*damage, *([RESTORE.format(path=path)] if damage else []), *told]


def accept_missing(path: Path) -> list[str]:
    """Count the rows as they are, from now on; return what was missing. Raises Damaged, NotWritable."""
    try:
        with readable(path) as file, closing(_open(file)) as connection:
            if not missing_rows(connection, path):
                return []
        with closing(_open(path)) as connection, connection:
            for statement in SET_UP:
                connection.execute(statement)
            found = missing_rows(connection, path)
            for table in KEYS:
                counted = f"UPDATE counted SET rows = (SELECT count(*) FROM {table}) WHERE name = '{table}'"
                connection.execute(counted)
            connection.execute("UPDATE counted SET rows = max(rows, ?) WHERE name = ?", (noted(path), MADE))
    except sqlite3.Error as failure:
        raise _refusal(failure, path) from failure
    return found


def _refusal(failure: sqlite3.Error, path: Path) -> MnemeError:
    """Return what an error of SQLite means for the user, with the remedy of conversations."""
    refusal = failure_of(failure, str(path))
    return Damaged(str(refusal), RESTORE.format(path=path)) if isinstance(refusal, Damaged) else refusal


def copy_sqlite(path: Path, target: Path) -> None:
    """Copy the file as it is at one moment, also while others write to it. Raises StorageFailure."""
    make_private_file(target)
    try:
        with readable(path) as file, closing(_open(file)) as source, closing(sqlite3.connect(target)) as copy:
            source.backup(copy)
    except sqlite3.Error as failure:
        raise StorageFailure(
            f"The checkpoints at {path} cannot be copied: {failure}.", "`mneme verify` says what is wrong."
        ) from failure


@contextmanager
def readable(path: Path) -> Iterator[Path]:
    """Give the path of the file, or of a copy where its folder cannot be written, as SQLite must to read."""
    disk = os.statvfs(path)
    if os.access(path.parent, os.W_OK) and disk.f_bavail * disk.f_frsize > ROOM:
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="mneme-reading-") as room:
        for end in ("", "-wal"):
            if (file := Path(f"{path}{end}")).exists():
                shutil.copyfile(file, Path(room, path.name + end))
        yield Path(room, path.name)


def _open(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"{path.absolute().as_uri()}?mode=rw", uri=True, timeout=30)
