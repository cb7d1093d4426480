"""The SQLite file of checkpoints as a file: checked, and copied while it is in use."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path

from mneme.core.errors import StorageFailure
from mneme.core.private import make_private_file
from mneme.stores.checkpoints.checked import is_whole

MOST = 20
"""Problems that a check lists."""


VALUES = {"checkpoints": "checkpoint", "writes": "value", "items": "value"}
"""The columns that hold values, by their tables."""


def check_sqlite(path: Path) -> list[str]:
    """Read the whole file; compare its tables with their indexes and its values with their checksums.

    Returns what is wrong.
    """
    try:
        with closing(_open(path)) as connection:
            rows = connection.execute(f"PRAGMA integrity_check({MOST})").fetchall()
            wrong = [row[0] for row in rows if row[0] != "ok"] or list(islice(_changed(connection), MOST))
    except sqlite3.Error as failure:
        return [f"{path}: {failure}"]
    return [f"{path}: {each}" for each in wrong]


def _changed(connection: sqlite3.Connection) -> Iterator[str]:
    """Name the values that are not as they were stored."""
    there = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    for table, column in VALUES.items():
        if table in there:  # a file of an earlier version has no items
            query = f"SELECT thread_id, type, {column} FROM {table}"  # noqa: S608 - constants
            for thread, kind, value in connection.execute(query):
                if not is_whole(kind or "", value or b""):
                    yield f"a value of thread {thread} in {table} is not as it was stored"


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
