"""Open, check and copy the SQLite file of checkpoints, also while it is in use.

The table `counted` says how many rows each table should have, by all who wrote with our statements, and how
many were ever made, so that rows which are gone are missed. The second number also stands in a small file
beside the database, which is written after each commit: where the newest writes are lost with the write-ahead
log, the database knows of fewer than that file.
"""

# ruff: noqa: S608  (all that is put into these statements are constants)

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

from mneme.core.durable import sync
from mneme.core.errors import BadInput, Damaged, MnemeError, StorageFailure
from mneme.core.private import close_to_others, is_shared, make_private_file, make_private_folder
from mneme.stores.checkpoints.threads import CHECKPOINT_TABLES
from mneme.stores.database import NOTE_SUFFIX, Cursor, Sqlite, kept_of, make, noted_size, storage_errors

_JSON = "CAST(metadata AS TEXT)"
RUN = f"CASE WHEN json_valid({_JSON}) THEN json_extract({_JSON}, '$.run_id') END"
"""The run that a checkpoint is of; SQLite finds JSON malformed where it holds NaN."""
MAX_PROBLEMS = 20
"""Maximum problems that a check lists."""
ROOM = 4 * 2**20
"""Bytes that must be free for the shared memory that SQLite makes beside a file to read it."""
CHECKPOINTS_HINT = "Restore a backup, or move {path}* away to begin without conversations."

MADE = "made"
REMEDY = "Restore a backup. Or go on with what is there: `mneme repair`."
PRIMARY_KEYS = {
    "checkpoints": ("thread_id", "checkpoint_ns", "checkpoint_id"),
    "writes": ("thread_id", "checkpoint_ns", "checkpoint_id", "task_id", "idx"),
    "items": ("thread_id", "channel", "number"),
}
"""The tables whose rows are counted, with their keys."""


def _trigger(table: str) -> str:
    """Return the trigger that counts a row, unless it replaces one or is ignored."""
    same = " AND ".join(f"{column} = NEW.{column}" for column in PRIMARY_KEYS[table])
    return f"""CREATE TRIGGER IF NOT EXISTS {table}_counted BEFORE INSERT ON {table}
        WHEN NOT EXISTS (SELECT 1 FROM {table} WHERE {same})
        BEGIN UPDATE counted SET rows = rows + 1 WHERE name IN ('{table}', '{MADE}'); END"""


SET_UP = (
    "CREATE TABLE IF NOT EXISTS counted (name TEXT PRIMARY KEY, rows INTEGER NOT NULL) WITHOUT ROWID",
    f"INSERT OR IGNORE INTO counted VALUES ('{MADE}', 0)",
    *(
        f"""INSERT OR IGNORE INTO counted SELECT '{table}', count(*) FROM {table}
        WHERE NOT EXISTS (SELECT 1 FROM counted WHERE name = '{table}')"""
        for table in PRIMARY_KEYS
    ),
    *map(_trigger, PRIMARY_KEYS),
)
ROWS_MADE = f"SELECT rows FROM counted WHERE name = '{MADE}'"
UNCOUNT = "UPDATE counted SET rows = rows - ? WHERE name = ?"


def refuse_gone(path: Path) -> None:
    """Raise Damaged where there were checkpoints, and the file is missing or empty."""
    note = kept_of(path)
    if note.exists() and not (path.exists() and path.stat().st_size):  # in this order: others may make both
        raise Damaged(
            f"The checkpoints at {path} are gone: the file was there, and is missing or empty.",
            f"Restore a backup. Or remove {note}, to begin without conversations.",
        )


def open_file(path: Path) -> Sqlite:
    """Open the checkpoints in a file, making or upgrading its tables. Blocks.

    Raises BadInput where it is something else, Damaged, StorageFailure.
    """
    _make_folder(path)
    refuse_gone(path)
    if path.exists():
        with storage_errors(f"read {path}"), path.open("rb") as file:
            head = file.read(16)
        if head and not head.startswith(b"SQLite format 3"):
            raise BadInput(f"{path} is not an SQLite file.", "Set MNEME_CHECKPOINTS to another file.")
    remedy = f"`mneme verify` lists all damage. Restore a backup, or move {path}* away ({NOTE_SUFFIX} too)."
    with ExitStack() as opened:
        # Checked before a table of ours is put into what may be another program's.
        database = Sqlite(path, remedy, kept_of(path), ROWS_MADE)
        opened.callback(database.close)
        with database.reading() as cursor:
            _check(cursor, path, remedy)
        if not is_shared(path):  # open to its group alone: that was on purpose
            for end in ("", "-wal", "-shm", NOTE_SUFFIX):
                close_to_others(Path(f"{path}{end}"))
        with database.writing() as cursor:
            make(cursor, Sqlite, CHECKPOINT_TABLES)
            for statement in (f"CREATE INDEX IF NOT EXISTS checkpoints_run ON checkpoints ({RUN})", *SET_UP):
                cursor.execute(statement)
        _note_kept(path)
        before = noted_size(database.kept)  # before what it is compared with: others write, too
        with database.reading() as cursor:
            if gone := newest_gone(path, before, cursor.execute(ROWS_MADE).fetchone()[0]):
                raise Damaged(gone[0], REMEDY)
        opened.pop_all()
    return database


def _make_folder(path: Path) -> None:
    if path.is_dir():
        raise BadInput(f"{path} is a folder.", "MNEME_CHECKPOINTS names a file.")
    try:
        make_private_folder(path.parent)
    except OSError as failure:
        raise StorageFailure(
            f"The folder of {path} cannot be made: {failure.strerror}",
            "Set MNEME_CHECKPOINTS, or MNEME_HOME, to a place you may write to.",
        ) from failure


def _check(cursor: Cursor, path: Path, remedy: str) -> None:
    """Refuse another program's database, and a damaged one."""
    tables = {name for (name,) in cursor.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if tables and "checkpoints" not in tables:
        raise BadInput(f"{path} is a database of another program.", "Set MNEME_CHECKPOINTS to another file.")
    if (found := cursor.execute("PRAGMA quick_check(1)").fetchone()[0]) != "ok":
        raise Damaged(f"The checkpoints at {path} are damaged: {found}.", remedy)


def _note_kept(path: Path) -> None:
    """Note beside the file that it has been made."""
    note = kept_of(path)
    with storage_errors(f"write {note}"):
        if not note.exists():
            sync(path.parent)  # else a power cut could leave the note without the file, which is an error
            make_private_file(note)


def check_checkpoints(path: Path) -> list[str]:
    """Check the file, also one that is missing; return the problems found."""
    try:
        refuse_gone(path)
    except Damaged as gone:
        return [f"{gone} {gone.hint}"]
    return check_sqlite(path) if path.is_file() else []


def check_sqlite(path: Path) -> list[str]:
    """Read the whole file and compare its tables with their indexes; return the problems found."""
    before = noted_size(kept_of(path))  # before what it is compared with: others write, too
    try:
        with _reading(path) as cursor:
            rows = cursor.execute(f"PRAGMA integrity_check({MAX_PROBLEMS})").fetchall()
            missing = missing_rows(cursor, path, before) if kept_of(path).exists() else []
    except MnemeError as refusal:
        return [f"{refusal} {refusal.hint}"]
    told = (f"{each} {REMEDY}" for each in missing)
    damage = [f"{path}: {row[0]}" for row in rows if row[0] != "ok"]
    return [*damage, *([CHECKPOINTS_HINT.format(path=path)] if damage else []), *told]


def accept_missing(path: Path) -> list[str]:
    """Accept the current numbers of rows; return what was missing. Raises Damaged, NotWritable."""
    before = noted_size(kept_of(path))
    with _reading(path) as cursor:
        if not missing_rows(cursor, path, before):
            return []
    with closing(Sqlite(path, CHECKPOINTS_HINT.format(path=path))) as database, database.writing() as cursor:
        for statement in SET_UP:  # the counts may be missing, too
            cursor.execute(statement)
        found = missing_rows(cursor, path, before)
        for table in PRIMARY_KEYS:
            cursor.execute(f"UPDATE counted SET rows = (SELECT count(*) FROM {table}) WHERE name = '{table}'")
        cursor.execute("UPDATE counted SET rows = max(rows, ?) WHERE name = ?", (before, MADE))
    return found


@contextmanager
def _reading(path: Path) -> Iterator[Cursor]:
    with (
        readable_path(path) as file,
        closing(Sqlite(file, CHECKPOINTS_HINT.format(path=path))) as database,
        database.reading(snapshot=True) as cursor,
    ):
        yield cursor


def copy_sqlite(path: Path, target: Path) -> None:
    """Copy the file as it is at one moment, also while others write to it. Raises StorageFailure."""
    make_private_file(target)
    try:
        with readable_path(path) as file, closing(sqlite3.connect(target)) as copy:
            there = f"{file.absolute().as_uri()}?mode=rw"
            with closing(sqlite3.connect(there, uri=True, timeout=30)) as source:
                source.backup(copy)
    except sqlite3.Error as failure:
        raise StorageFailure(
            f"The checkpoints at {path} cannot be copied: {failure}.", "`mneme verify` says what is wrong."
        ) from failure


@contextmanager
def readable_path(path: Path) -> Iterator[Path]:
    """Yield the path of the file, or of a copy where its folder cannot be written."""
    # To read a file with a write-ahead log, SQLite writes its shared memory beside it.
    if not path.is_file() or (os.access(path.parent, os.W_OK) and shutil.disk_usage(path).free > ROOM):
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="mneme-reading-") as room:
        copy = Path(room, path.name)
        with storage_errors(f"copy {path} to read it"):
            for end in ("", "-wal"):
                if (file := Path(f"{path}{end}")).exists():
                    shutil.copyfile(file, f"{copy}{end}")
        try:
            yield copy
        except MnemeError as failure:  # the copy is gone when this is read
            told, hint = (each.replace(str(copy), str(path)) for each in (str(failure), failure.hint))
            raise type(failure)(told, hint) from failure


def newest_gone(path: Path, before: int, made: int) -> list[str]:
    """Return a message if fewer rows were made than had been noted `before`; else nothing."""
    gone = f"The newest {before - made} rows of the checkpoints at {path} are gone: its write-ahead log was"
    return [f"{gone} removed or damaged."] if made < before else []


def missing_rows(cursor: Cursor, path: Path, before: int) -> list[str]:
    """Return messages about missing rows; `before` is the number of rows made that had been noted."""
    try:
        counts = dict(cursor.execute("SELECT name, rows FROM counted").fetchall())
    except sqlite3.OperationalError:  # of an earlier version, and not opened since; or it was dropped
        counts = {}
    found = newest_gone(path, before, counts.pop(MADE, 0))
    for table, expected in counts.items():
        (rows,) = cursor.execute(f"SELECT count(*) FROM {table}").fetchone()
        if rows < expected:
            found.append(f"{path}: {expected - rows} rows of {table} were deleted by another program.")
    return found
