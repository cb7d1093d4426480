"""The SQLite file of checkpoints as a file: checked, and copied while it is in use."""

import sqlite3
from contextlib import closing
from pathlib import Path

from mneme.core.errors import StorageFailure
from mneme.core.private import make_private_file

MOST = 20
"""Problems that a check lists."""


def check_sqlite(path: Path) -> list[str]:
    """Read the whole file and compare its tables with their indexes; return what is wrong."""
    try:
        with closing(_open(path)) as connection:
            rows = connection.execute(f"PRAGMA integrity_check({MOST})").fetchall()
    except sqlite3.Error as failure:
        return [f"{path}: {failure}"]
    return [f"{path}: {row[0]}" for row in rows if row[0] != "ok"]


def copy_sqlite(path: Path, target: Path) -> None:
    """Copy the file as it is at one moment, also while others write to it. Raises StorageFailure."""
    make_private_file(target)
    try:
        with closing(_open(path)) as source, closing(sqlite3.connect(target)) as copy:
            source.backup(copy)
    except sqlite3.Error as failure:
        raise StorageFailure(
            f"The checkpoints at {path} cannot be copied: {failure}.", "`mneme verify` says what is wrong."
        ) from failure


def _open(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"{path.absolute().as_uri()}?mode=rw", uri=True, timeout=30)
