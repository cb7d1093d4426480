"""An SQL database, of a log or of checkpoints: SQLite in the home, which any number of processes may use.

`postgres.py` has the other dialect. The statements are the same in both; a `?` stands for what is given.
"""

import asyncio
import errno
import fcntl
import sqlite3
import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, suppress
from io import FileIO
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from tenacity import retry, retry_if_exception_message, stop_after_delay, wait_random

from mneme.core.errors import Damaged, NotWritable, StorageFailure
from mneme.core.private import make_private_file

T = TypeVar("T")
P = ParamSpec("P")
READER_THREADS = 4
NOTE_SUFFIX = "-kept"
NOTE_DIGITS = 20
"""The digits of the number in a note, which is written over the one before."""
BUSY_SECONDS = 60.0
"""The longest that a write waits for other processes, which hold the database for milliseconds each."""
TURN_SECONDS = 10.0
"""The longest that a writer waits for its turn, since whoever has it may be stopped."""
LOG_WAITS = (0.0, 0.01, *[0.03] * 1000)
"""Seconds between attempts to empty a write-ahead log that another process reads, or empties as well."""
REPAIR = "`mneme verify` says what is whole; `mneme repair` builds the ledger anew from that."
SPACE = "Check the disk's free space and who may write to the folder; MNEME_HOME names another."
FULL = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM)
NO_WRITING = (errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
DAMAGE_CODES = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR, sqlite3.SQLITE_MISMATCH)


@contextmanager
def storage_errors(what: str) -> Iterator[None]:
    """Turn an operating-system refusal into one line for the user."""
    try:
        yield
    except OSError as refusal:
        reason = refusal.strerror or str(refusal)
        kind = NotWritable if refusal.errno in NO_WRITING else StorageFailure
        raise kind(f"Cannot {what}: {reason}.", SPACE) from refusal


def kept_of(path: Path) -> Path:
    """Return the note beside checkpoints, or a ledger: that they were made, and how much was written."""
    return Path(f"{path}{NOTE_SUFFIX}")


def noted_size(note: Path | None) -> int:
    """Return how much had been written by the note beside a database's file; 0 where that says nothing.

    So it is where one of a group, who may write the database, may not read the note of another.
    """
    text = b""
    with suppress(OSError):
        text = note.read_bytes() if note else text
    return int(text) if text.isdigit() else 0


def lock_in_turn(file: FileIO) -> None:
    """Lock a file, after those who waited before; without, where its turn does not come within TURN_SECONDS.

    A lock goes with the process that has it, and with the file's being closed: also where it comes too late.
    """
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        waiting = threading.Thread(target=fcntl.flock, args=(file.fileno(), fcntl.LOCK_EX), daemon=True)
        waiting.start()
        waiting.join(TURN_SECONDS)


class Cursor(Protocol):
    """What statements are executed with, in either dialect."""

    @property
    def rowcount(self) -> int: ...
    def execute(self, statement: str, given: Sequence[Any] = (), /) -> "Cursor": ...
    def executemany(self, statement: str, rows: Sequence[Sequence[Any]], /) -> object: ...
    def fetchone(self) -> Any: ...
    def fetchall(self) -> list[Any]: ...
    def __iter__(self) -> Iterator[Any]: ...


class Database(ABC):
    """A database with connections that any thread may take.

    `blob` is the type of a column for bytes, `text` of one for text that is compared byte by byte. `locked`
    follows the statement that begins a write, so that another writer waits; `alone` is the statement at which
    whoever makes tables waits for others that do so. `begin` and `snapshot` begin a transaction that writes,
    and one in which all statements see one state. `taken` takes a name for a transaction, where several of
    one process may write at once (`writers`). `serial` is the type of a number by which rows are found,
    `compact` ends a table whose rows are found by a text. `field` reads a field of a version's value as text.
    """

    blob, text, locked, alone, begin, snapshot = "BLOB", "TEXT", "", "", "BEGIN IMMEDIATE", "BEGIN"
    taken, writers, serial, compact = "", 1, "INTEGER", " WITHOUT ROWID"
    field = "json_extract(e.body, '$.value.{}')"
    kept: Path | None = None
    place: str

    def reading(self, *, snapshot: bool = False) -> AbstractContextManager[Cursor]:
        """Yield a cursor for reading; in a `snapshot`, all statements see one state."""
        return self._transaction(self.snapshot if snapshot else "")

    def writing(self) -> AbstractContextManager[Cursor]:
        """Yield a cursor for one transaction, which is on the disk when the context ends without an error."""
        return self._transaction(self.begin)

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[Cursor]:
        with self.failures(), self._connected() as connection:
            if begin:
                connection.execute(begin)
            try:
                with closing(connection.cursor()) as cursor:  # else rows left unread would hold the old state
                    yield cursor
                if begin:
                    connection.execute("COMMIT")
            except BaseException:
                with suppress(Exception):  # the connection may be gone
                    connection.rollback()
                raise

    @abstractmethod
    def failures(self) -> AbstractContextManager[None]:
        """Turn what the driver raises into NotWritable, Damaged or StorageFailure."""

    @abstractmethod
    def _connected(self) -> AbstractContextManager[Any]:
        """Yield an idle connection, or a new one."""

    @abstractmethod
    def erased(self) -> None: ...
    @abstractmethod
    def vacuum(self) -> None: ...
    @abstractmethod
    def close(self) -> None: ...


def make(cursor: Cursor, database: Database | type["Sqlite"], tables: str) -> None:
    """Make tables and indexes that are not there; one process after the other."""
    names = ("blob", "text", "serial", "compact")
    described = tables.format(**{name: getattr(database, name) for name in names})
    for statement in f"{database.alone};{described}".split(";"):
        if statement.strip():
            cursor.execute(statement)


def upsert(table: str, columns: Sequence[str], keys: int = 1) -> str:
    """Return the statement that writes a row, in place of one with the same values of the first columns."""
    changed = ", ".join(f"{name} = excluded.{name}" for name in columns[keys:])
    return (
        f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))}) "  # noqa: S608
        f"ON CONFLICT ({', '.join(columns[:keys])}) DO UPDATE SET {changed}"
    )


class Worker:
    """Runs database work in threads, so that no event loop waits; safe from any event loop and thread."""

    def __init__(self, database: Database, writers: int = 1) -> None:
        self.database = database
        self._writer = ThreadPoolExecutor(writers, "sql-write")
        self._readers = ThreadPoolExecutor(READER_THREADS, "sql-read")

    async def read(self, work: Callable[Concatenate[Cursor, P], T], *given: P.args, **more: P.kwargs) -> T:
        """Read in a thread; all statements of one piece of work see one state."""

        def reading() -> T:
            with self.database.reading(snapshot=True) as cursor:
                return work(cursor, *given, **more)

        return await self.thread(reading)

    async def thread(self, work: Callable[[], T]) -> T:
        """Run in a thread work that waits for a disk or a server."""
        return await asyncio.get_running_loop().run_in_executor(self._readers, work)

    async def to_the_end(self, work: Callable[[], T]) -> T:
        """Run work that writes in a thread, and complete it even if the caller is cancelled."""
        done = asyncio.get_running_loop().run_in_executor(self._writer, work)
        try:
            return await asyncio.shield(done)
        except asyncio.CancelledError:
            await asyncio.wait([done])
            raise

    def close(self) -> None:
        """Wait for what is being written, and close the database."""
        self._writer.shutdown()
        self._readers.shutdown()
        self.database.close()


class Sqlite(Database):
    """An SQLite file: readers never wait, writers for one another's transaction alone.

    `remedy` is what to do where it is damaged, `kept` the note beside it, by which a lost end is noticed: how
    much had been written after the last transaction, which the statement `written` reads.
    """

    def __init__(self, path: Path, remedy: str = REPAIR, kept: Path | None = None, written: str = "") -> None:
        self.path, self.place, self.kept, self._remedy = path, str(path), kept, remedy
        self._written = written
        self._idle: deque[sqlite3.Connection] = deque()
        with storage_errors(f"write {path}"):
            make_private_file(path)
        with self.reading():
            pass  # what is wrong with the file is said now

    @contextmanager
    def writing(self) -> Iterator[Cursor]:
        with self._turn() as note:
            with super().writing() as cursor:
                yield cursor
                number = cursor.execute(self._written).fetchone()[0] if note else 0
            if note:
                with suppress(OSError):  # then the note says a little less
                    text = note.read()
                    if not text.isdigit() or int(text) < number:
                        note.seek(0)
                        note.write(b"%0*d" % (NOTE_DIGITS, number))

    @contextmanager
    def _turn(self) -> Iterator[FileIO | None]:
        """Lock the note, and yield it, where there is one that may be written.

        SQLite's lock is enough to hold writers apart. But who waits for it looks again ever less often, and
        in no order, so that among several processes one waits for many others.
        """
        with ExitStack() as turn:
            note = None
            with suppress(OSError):
                note = turn.enter_context(self.kept.open("r+b", buffering=0)) if self.kept else None
            if note:
                lock_in_turn(note)
                turn.callback(fcntl.flock, note, fcntl.LOCK_UN)  # a process forked meanwhile has it open, too
            yield note

    def erased(self) -> None:
        """Move the write-ahead log into the file and empty it: deleted text could be read in it else.

        Readers in other processes prevent that for moments. Raises StorageFailure where it lasts longer.
        """
        for wait in LOG_WAITS:
            time.sleep(wait)
            with self._turn(), self.reading() as cursor:
                busy, *_ = cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            if not busy:
                return
        raise StorageFailure(
            f"Erased, but another process still reads {self.place}: traces remain in {self.place}-wal.",
            "Stop the other process, then erase once more.",
        )

    def vacuum(self) -> None:
        """Return the space of deleted data to the disk."""
        with self.reading() as cursor:
            cursor.execute("VACUUM")
        self.erased()

    def close(self) -> None:
        """Close all connections; the last one of all processes moves the write-ahead log into the file."""
        while self._idle:
            self._idle.popleft().close()

    @contextmanager
    def _connected(self) -> Iterator[sqlite3.Connection]:
        try:
            connection = self._idle.pop()
        except IndexError:
            connection = self._connect()
        try:
            yield connection
        finally:
            self._idle.append(connection)

    @contextmanager
    def failures(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as failure:
            code = getattr(failure, "sqlite_errorcode", 0) & 0xFF
            if code in FULL or (code == sqlite3.SQLITE_IOERR and "disk I/O" not in str(failure)):
                raise NotWritable(
                    f"Cannot write {self.place}: {failure}; nothing was written.", SPACE
                ) from failure
            if code in DAMAGE_CODES:
                raise Damaged(f"{self.place} is damaged: {failure}.", self._remedy) from failure
            unconfirmed = f"{self.place} failed: {failure}; the write is not confirmed."
            raise StorageFailure(unconfirmed, "Try again.") from failure

    # SQLite does not wait its busy time-out where two processes turn a new file into WAL mode at once.
    @retry(
        retry=retry_if_exception_message(match=".*locked"),
        stop=stop_after_delay(BUSY_SECONDS),
        wait=wait_random(0.01, 0.1),
        reraise=True,
    )
    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self.path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
        )
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")  # what is acknowledged survives a power cut
            connection.execute("PRAGMA secure_delete = ON")  # overwrite with zeros what is deleted
            connection.execute("PRAGMA foreign_keys = ON")
            connection.execute("PRAGMA cache_size = -16000")  # KiB: it has what 20,000 records are found by
        except BaseException:
            connection.close()
            raise
        return connection
