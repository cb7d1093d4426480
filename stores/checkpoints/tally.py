"""How many rows an SQLite file of checkpoints should have, so that rows which are gone are missed.

The table `counted` says how many rows each table has, by all who wrote with our statements, and how many were
ever made. The second number also stands in a small file beside the database, which is written after each
commit: where the newest writes are lost with the write-ahead log, the database knows of fewer than that file.
"""

# ruff: noqa: S608  (all that is put into these statements are constants)

import sqlite3
from pathlib import Path

from mneme.stores.database import Cursor

KEPT = "-kept"
"""What follows the file's name in that of the note beside it: that it was made, and how much was written."""
MADE = "made"
DIGITS = 20
"""The digits of the number in that note, which is written over the one before."""
REMEDY = "Restore a backup. Or go on with what is there: `mneme repair`."
KEYS = {
    "checkpoints": ("thread_id", "checkpoint_ns", "checkpoint_id"),
    "writes": ("thread_id", "checkpoint_ns", "checkpoint_id", "task_id", "idx"),
    "items": ("thread_id", "channel", "number"),
}
"""The tables whose rows are counted, with their keys."""


def _trigger(table: str) -> str:
    """Return the trigger that counts a row, unless it replaces one or is ignored."""
    same = " AND ".join(f"{column} = NEW.{column}" for column in KEYS[table])
    return f"""CREATE TRIGGER IF NOT EXISTS {table}_counted BEFORE INSERT ON {table}
        WHEN NOT EXISTS (SELECT 1 FROM {table} WHERE {same})
        BEGIN UPDATE counted SET rows = rows + 1 WHERE name IN ('{table}', '{MADE}'); END"""


SET_UP = (
    "CREATE TABLE IF NOT EXISTS counted (name TEXT PRIMARY KEY, rows INTEGER NOT NULL) WITHOUT ROWID",
    f"INSERT OR IGNORE INTO counted VALUES ('{MADE}', 0)",
    *(
        f"""INSERT OR IGNORE INTO counted SELECT '{table}', count(*) FROM {table}
        WHERE NOT EXISTS (SELECT 1 FROM counted WHERE name = '{table}')"""
        for table in KEYS
    ),
    *map(_trigger, KEYS),
)
ROWS_MADE = f"SELECT rows FROM counted WHERE name = '{MADE}'"
UNCOUNT = "UPDATE counted SET rows = rows - ? WHERE name = ?"


def noted(path: Path) -> int:
    """Return how many rows were noted; 0 where nothing is noted yet."""
    text = Path(f"{path}{KEPT}").read_bytes()
    return int(text) if text.isdigit() else 0


def newest_gone(path: Path, before: int, made: int) -> list[str]:
    """Say where fewer rows were made than had been noted `before`."""
    gone = f"The newest {before - made} rows of the checkpoints at {path} are gone: its write-ahead log was"
    return [f"{gone} removed or damaged."] if made < before else []


def missing_rows(cursor: Cursor, path: Path) -> list[str]:
    """Return what is missing, in words."""
    try:
        counts = dict(cursor.execute("SELECT name, rows FROM counted").fetchall())
    except sqlite3.OperationalError:  # of an earlier version, and not opened since; or it was dropped
        counts = {}
    found = newest_gone(path, noted(path), counts.pop(MADE, 0))
    for table, expected in counts.items():
        (rows,) = cursor.execute(f"SELECT count(*) FROM {table}").fetchone()
        if rows < expected:
            found.append(f"{path}: {expected - rows} rows of {table} were deleted by another program.")
    return found
