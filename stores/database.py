"""The SQL database of a log or of checkpoints: SQLite in the home, for any number of processes.

`postgres.py` has the other dialect. The statements are the same in both; `?` marks a parameter.
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
from functools import partial
from io import FileIO
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from tenacity import retry, retry_if_exception_message, stop_after_delay, wait_random

from mneme.core.errors import Damaged, MnemeError, NotWritable, StorageFailure
from mneme.core.private import make_private_file

T = TypeVar("T")
P = ParamSpec("P")
READER_THREADS = 4
NOTE_SUFFIX = "-kept"
NOTE_DIGITS = 20
"""Digits of the number in a note: always the same width, since a new number overwrites the old one."""
BUSY_SECONDS = 60.0
"""Maximum seconds that a write waits for other processes, which write for milliseconds each."""
TURN_SECONDS = 10.0
"""Maximum seconds that a writer waits for its turn, since the process that has it may be suspended."""
LOG_SECONDS = 0.5
"""The longest that emptying a write-ahead log waits for readers at a time: no other writes meanwhile."""
LOG_WAITS = (0.0, 0.01, *[0.03] * 1000)
"""Seconds between attempts to empty a write-ahead log that another process is reading or emptying."""
REPAIR = "`mneme verify` says what is whole; `mneme repair` builds the ledger anew from that."
SPACE = "Check the disk's free space and who may write to the folder; MNEME_HOME names another."
FULL = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM)
NO_WRITING = (errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
DAMAGE_CODES = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR, sqlite3.SQLITE_MISMATCH)


@contextmanager
def storage_errors(what: str) -> Iterator[None]:
    """Turn an OSError into NotWritable or StorageFailure, with one line for the user."""
    try:
        yield
    except OSError as refusal:
        reason = refusal.strerror or str(refusal)
        kind = NotWritable if refusal.errno in NO_WRITING else StorageFailure
        raise kind(f"Cannot {what}: {reason}.", SPACE) from refusal


def kept_of(path: Path) -> Path:
    """Return the path of the note beside a database file: that it was made, and how much was written."""
    return Path(f"{path}{NOTE_SUFFIX}")


def noted_size(note: Path | None) -> int:
    """Return how much had been written according to the note beside a database file; 0 if it is unreadable.

    It can be unreadable where a group shares the database and the note belongs to another member.
    """
    text = b""
    with suppress(OSError):
        text = note.read_bytes() if note else text
    return int(text) if text.isdigit() else 0


class Cursor(Protocol):
    """The cursor that executes statements, in either dialect."""

    @property
    def rowcount(self) -> int: ...
    def execute(self, statement: str, given: Sequence[Any] = (), /) -> "Cursor": ...
    def executemany(self, statement: str, rows: Sequence[Sequence[Any]], /) -> object: ...
    def fetchone(self) -> Any: ...
    def fetchall(self) -> list[Any]: ...
    def __iter__(self) -> Iterator[Any]: ...


class Database(ABC):
    """A database with connections that any thread may use.

    `blob` is the column type for bytes, `text` that for text compared byte by byte. `locked` ends the first
    SELECT of a write, so that another writer waits; `alone` is the statement that makes processes create
    tables one after the other. `snapshot` starts a transaction in which all statements see one state.
    `taken` locks a name for a transaction, where several threads of a process may write at once (`writers`).
    `serial` is the type of an integer key, `compact` ends a table with a text key. `field` reads a field of a
    version's value as text. `errors` are those of the driver.
    """

    blob, text, locked, alone, snapshot = "BLOB", "TEXT", "", "", "BEGIN"
    taken, writers, serial, compact = "", 1, "INTEGER", " WITHOUT ROWID"
    field = "json_extract(e.body, '$.value.{}')"
    errors: tuple[type[Exception], ...] = (sqlite3.Error,)
    kept: Path | None = None
    place: str

    def read(self, work: Callable[Concatenate[Cursor, P], T], *given: P.args, **more: P.kwargs) -> T:
        """Run a query, all of whose statements see one state. Blocks."""
        with self.reading(snapshot=True) as cursor:
            return work(cursor, *given, **more)

    @contextmanager
    def reading(self, *, snapshot: bool = False) -> Iterator[Cursor]:
        """Yield a cursor for reading; in a `snapshot`, all statements see one state."""
        with self._connected() as connection:
            try:
                with closing(connection.cursor()) as cursor:  # unread rows would keep the old state open
                    if snapshot:
                        cursor.execute(self.snapshot)
                    yield cursor
                    if snapshot:
                        cursor.execute("COMMIT")
            except BaseException:
                with suppress(Exception):  # the connection may be gone
                    connection.rollback()
                raise

    @abstractmethod
    def writing(self) -> AbstractContextManager[Cursor]:
        """Yield a cursor for one transaction, which is on the disk when the context ends without an error."""

    @abstractmethod
    def refusal(self, failure: Exception) -> MnemeError:
        """Return the NotWritable, Damaged or StorageFailure that one of the driver's errors stands for."""

    @abstractmethod
    def _connected(self) -> AbstractContextManager[Any]:
        """Yield an idle connection, or a new one; raise the `refusal` of the driver's errors."""

    @abstractmethod
    def erased(self) -> None: ...
    @abstractmethod
    def vacuum(self) -> None: ...
    @abstractmethod
    def close(self) -> None: ...


def make(cursor: Cursor, database: Database | type["Sqlite"], tables: str) -> None:
    """Make missing tables and indexes; one process after the other."""
    names = ("blob", "text", "serial", "compact")
    described = tables.format(**{name: getattr(database, name) for name in names})
    for statement in f"{database.alone};{described}".split(";"):
        if statement.strip():
            cursor.execute(statement)


def upsert(table: str, columns: Sequence[str], keys: int = 1) -> str:
    """Return the statement that inserts a row, or replaces the one with the same values in its keys."""
    changed = ", ".join(f"{name} = excluded.{name}" for name in columns[keys:])
    return (
        f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))}) "  # noqa: S608
        f"ON CONFLICT ({', '.join(columns[:keys])}) DO UPDATE SET {changed}"
    )


class Worker:
    """Runs database work in threads, so that no event loop blocks; safe from any event loop and thread."""

    def __init__(self, database: Database, writers: int = 1) -> None:
        self.database = database
        self._writer = ThreadPoolExecutor(writers, "sql-write")
        self._readers = ThreadPoolExecutor(READER_THREADS, "sql-read")

    async def read(self, work: Callable[Concatenate[Cursor, P], T], *given: P.args, **more: P.kwargs) -> T:
        """Run a query in a thread; all its statements see one state."""
        return await self.thread(partial(self.database.read, work, *given, **more))

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
    """An SQLite file: readers never wait; writers wait only for each other's transactions.

    `remedy` is the hint for a damaged file. `kept` is the note beside it, by which lost transactions at the
    end are noticed: it holds the number that the statement `written` read after the last transaction.
    """

    def __init__(self, path: Path, remedy: str = REPAIR, kept: Path | None = None, written: str = "") -> None:
        self.path, self.place, self.kept, self._remedy = path, str(path), kept, remedy
        self._written = written
        self._idle: deque[sqlite3.Connection] = deque()  # its `append` and `pop` need no lock
        with storage_errors(f"write {path}"):
            make_private_file(path)
        with self.reading():
            pass  # so that a damaged file is reported now

    @contextmanager
    def writing(self) -> Iterator[Cursor]:
        with self._turn() as note:
            with self.reading() as cursor:
                # A plain BEGIN fails at once if another process writes between its first read and write.
                cursor.execute("BEGIN IMMEDIATE")
                yield cursor
                number = cursor.execute(self._written).fetchone()[0] if note else 0
                cursor.execute("COMMIT")
            if note:
                with suppress(OSError):  # the note may lag behind; it is a lower bound
                    text = note.read()
                    if not text.isdigit() or int(text) < number:
                        note.seek(0)
                        note.write(b"%0*d" % (NOTE_DIGITS, number))

    @contextmanager
    def _turn(self) -> Iterator[FileIO | None]:
        """Lock and yield the note; None if there is none that can be written.

        The order is that of arrival; after TURN_SECONDS a writer goes on without the lock, as SQLite's own
        already separates writers.
        """
        # SQLite polls for its lock at growing intervals and in no order, so one of several processes could
        # wait for many others.
        with ExitStack() as turn:
            note = None
            with suppress(OSError):
                note = turn.enter_context(self.kept.open("r+b", buffering=0)) if self.kept else None
            if note:
                try:
                    fcntl.flock(note, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    # flock has no time-out, and Python repeats it after a signal: so a thread waits. A lock
                    # that it gets too late ends with the file, which is closed by then.
                    given = (note.fileno(), fcntl.LOCK_EX)
                    waiting = threading.Thread(target=fcntl.flock, args=given, daemon=True)
                    waiting.start()
                    waiting.join(TURN_SECONDS)
                turn.callback(fcntl.flock, note, fcntl.LOCK_UN)  # a forked process shares the lock
            yield note

    def erased(self) -> None:
        """Move the write-ahead log into the file and empty it, since deleted text could still be read there.

        Readers in other processes prevent that for moments. Raises StorageFailure if they read for longer.
        """
        for wait in LOG_WAITS:
            time.sleep(wait)
            with self._turn(), self.reading() as cursor:
                cursor.execute(f"PRAGMA busy_timeout = {LOG_SECONDS * 1000:.0f}")
                try:
                    busy, *_ = cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
                finally:
                    cursor.execute(f"PRAGMA busy_timeout = {BUSY_SECONDS * 1000:.0f}")
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
        connection = None
        try:
            with suppress(IndexError):  # another thread may take the last one between a look and the `pop`
                connection = self._idle.pop()
            connection = connection or self._connect()
            yield connection
        except sqlite3.Error as failure:
            raise self.refusal(failure) from failure
        finally:
            if connection is not None:
                self._idle.append(connection)

    def refusal(self, failure: Exception) -> MnemeError:
        code = getattr(failure, "sqlite_errorcode", 0) & 0xFF  # without the bits of the extended code
        if code in FULL or (code == sqlite3.SQLITE_IOERR and "disk I/O" not in str(failure)):
            return NotWritable(f"Cannot write {self.place}: {failure}; nothing was written.", SPACE)
        if code in DAMAGE_CODES:
            return Damaged(f"{self.place} is damaged: {failure}.", self._remedy)
        return StorageFailure(f"{self.place} failed: {failure}; the write is not confirmed.", "Try again.")

    # SQLite ignores its busy time-out while two processes switch a new file to WAL mode at once.
    @retry(
        retry=retry_if_exception_message(match=".*locked"),
        stop=stop_after_delay(BUSY_SECONDS),
        wait=wait_random(0.01, 0.1),
        reraise=True,
    )
    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(  # `writing` begins and commits, in any thread
            self.path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
        )
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")  # acknowledged writes survive a power cut
            connection.execute("PRAGMA secure_delete = ON")  # overwrite deleted content with zeros
            connection.execute("PRAGMA foreign_keys = ON")
            connection.execute("PRAGMA cache_size = -16000")  # KiB: enough for the indexes of 20,000 records
        except BaseException:
            connection.close()
            raise
        return connection
