"""Opening a ledger: its log in the home or in Postgres, and its index beside it or on a Qdrant server."""

import shutil
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Union

from mneme.core.errors import Damaged, LedgerMismatch, NotWritable, StorageFailure, needs
from mneme.stores.database import REPAIR, Database, Sqlite, kept_of, noted_size, storage_errors
from mneme.stores.ledger.addresses import Place, place_of
from mneme.stores.ledger.checking import problems_of
from mneme.stores.ledger.edge_index import EdgeIndex, copies_in
from mneme.stores.ledger.folder import (
    GENERATIONS,
    LOG,
    LOG_FILES,
    MANIFEST,
    RESERVE,
    Folder,
    has_ledger,
    is_sealed,
    refuse_gone,
    unseal,
)
from mneme.stores.ledger.log import Log, make_tables, write_log
from mneme.stores.ledger.query import LEDGER_FORMAT
from mneme.stores.ledger.reading import check_embedder, state_of
from mneme.stores.ledger.upgrading import JOURNAL, is_older, remove_older, upgrade

FOLDER_ATTEMPTS = 50
"""Maximum attempts to lock exclusively a folder that has no log."""
MEMORY_DISK = "/dev/shm"  # noqa: S108  (the folder in it has a random name, and is private)
if TYPE_CHECKING:
    from mneme.stores.ledger.server_index import ServerIndex

Index = Union[EdgeIndex, "ServerIndex"]

_OPEN: dict[Place, "Store"] = {}
_OPENING = threading.RLock()


class Store:
    """An open log with its index; a process opens each location only once."""

    def __init__(self, place: Place, log: Log, index: Index, folder: Folder | None = None) -> None:
        self.place, self.log, self.index, self.folder = place, log, index, folder
        self.users = 0
        self.refusal: NotWritable | None = None
        self.origin = place
        self.room: Path | None = None  # of a read-only copy: its original, and its folder

    def close(self) -> None:
        """Close the store after its last user in this process has closed it."""
        with _OPENING:
            self.users -= 1
            if not self.users:
                _OPEN.pop(self.place, None)
                self._shut()

    def _shut(self) -> None:
        """Close everything; the last process in a folder seals its log."""
        with ExitStack() as closed:  # the log is sealed when nobody of this process writes to it any more
            if self.room is not None:
                closed.callback(shutil.rmtree, self.room, ignore_errors=True)
            if self.folder is not None:
                closed.callback(self.folder.close)
            closed.callback(self.log.close)
            self.index.close()


def open_store(location: str, embedder: str, dimension: int, api_key: str = "") -> Store:
    """Open the ledger at a location, or create it if there is none yet. Blocks.

    Without the name of an embedder, the ledger must exist and may have any embedder. Raises LedgerMismatch,
    Damaged, StorageFailure; then nothing has been changed.
    """
    place = place_of(location)
    if not embedder and place.folder is not None and not has_ledger(place.folder):
        refuse_gone(place.folder)
        raise LedgerMismatch(f"There is no ledger at {place.folder}.", "Set MNEME_LEDGER, or MNEME_HOME.")
    with _OPENING, ExitStack() as opened:
        if (store := _OPEN.get(place)) is None:
            store = _opened(place, embedder, dimension, api_key)
            opened.callback(store._shut)
        if embedder:
            check_embedder(place.shown, store.log.database.read(state_of), embedder, dimension)
        opened.pop_all()
        _OPEN[place] = store
        store.users += 1
        return store


def _opened(place: Place, embedder: str, dimension: int, api_key: str) -> Store:
    folder: Folder | None = None
    database: Database
    with ExitStack() as opened:
        if place.folder is None:
            with needs("A ledger in Postgres", "postgres"):
                module: Any = import_module("mneme.stores.postgres")
            database = module.Postgres(place.log)
            opened.callback(database.close)
            with database.writing() as cursor:
                make_tables(cursor, database, embedder, dimension)
        else:
            folder = Folder(place.folder)
            opened.callback(folder.release)
            database = open_log(folder, embedder, dimension)
            opened.callback(database.close)
        check_space: Callable[[], None] = folder.check_space if folder else lambda: None
        log = Log(database, check_space)
        index: Index
        if place.index:
            server: Any = import_module("mneme.stores.ledger.server_index")  # its client is slow to import
            index = server.ServerIndex(place.index, database, api_key)
            opened.callback(index.close)
            if not database.read(state_of).seq:  # imports an older ledger from the server
                index.opened()
        else:
            index = EdgeIndex(Path(place.log), database, check_space)
        store = Store(place, log, index, folder)
        opened.pop_all()
        return store


def open_log(folder: Folder, embedder: str, dimension: int) -> Sqlite:
    """Open the log in a folder; check it if no other process has it open. Raises LedgerInUse."""
    folder.check_space()
    for _ in range(FOLDER_ATTEMPTS):
        if folder.is_alone():
            break
        folder.share()
        if folder.log.exists():  # else its maker ended before there was one
            return _log_in(folder)
        time.sleep(0.02)
    else:  # another process has a deleted log open
        raise folder.in_use()
    if is_older(folder):
        upgrade(folder)
    is_trusted = is_sealed(folder.path, LOG_FILES)
    if not folder.log.exists():
        if copies_in(folder.path):
            hint = "Restore the ledger from a backup: `mneme restore`."
            raise StorageFailure(f"{folder.log} is missing.", hint)
        refuse_gone(folder.path)
        with folder.new_log() as path:
            write_log(path, (embedder, dimension), lambda transaction: None)
        is_trusted = True
    with ExitStack() as opened:
        database = _log_in(folder)
        opened.callback(database.close)
        # An older copy of the log has a seal that fits, too: the note beside it knows better.
        is_trusted = is_trusted and database.read(state_of).seq >= noted_size(database.kept)
        if not is_trusted and (wrong := problems_of(database)):
            more = f" and {len(wrong) - 1} more" if wrong[1:] else ""
            raise Damaged(f"The ledger's log {database.place} is damaged: {wrong[0]}{more}.", REPAIR)
        remove_older(folder)  # only now that the new log has been read as a whole
        unseal(folder.path)
        folder.note_format(LEDGER_FORMAT, embedder, dimension)
        with database.writing() as cursor:  # a log of an earlier version may lack a table
            make_tables(cursor, database, embedder, dimension)
        opened.pop_all()
    folder.share()
    return database


def _log_in(folder: Folder) -> Sqlite:
    return Sqlite(folder.log, kept=kept_of(folder.path), written="SELECT seq FROM ledger_state")


def open_to_read(location: str, embedder: str = "", dimension: int = 0, api_key: str = "") -> Store:
    """Open the ledger at a location, or a copy of it if it cannot be written: see `open_store`. Blocks."""
    try:
        return open_store(location, embedder, dimension, api_key)
    except NotWritable as why:
        return _copy(location, embedder, dimension, why)


def _copy(location: str, embedder: str, dimension: int, why: NotWritable) -> Store:
    """Open a copy of the ledger at a location that cannot be written, for the reason `why`.

    The copy of the log is in a temporary folder (in memory if no disk has room for it), which is removed on
    closing. Writes are refused, and the index is built at the first search. Raises LedgerMismatch,
    StorageFailure, and `why` if there is no ledger.
    """
    place = place_of(location)
    path = place.folder
    if path is None or not has_ledger(path):
        raise why
    files = [kept_of(path), *path.glob(LOG_FILES), path / MANIFEST, *path.glob(f"{GENERATIONS}/{JOURNAL}")]
    # Without the memory that its processes share (`-shm`), of which SQLite makes its own.
    files = [file for file in files if file.exists() and not file.name.endswith("-shm")]
    with storage_errors(f"copy the ledger at {path} to read it"), ExitStack() as copied:
        needed, places = 5 * sum(file.stat().st_size for file in files) + RESERVE, [MEMORY_DISK]
        with suppress(FileNotFoundError):  # no temporary folder can be written
            places.insert(0, tempfile.gettempdir())
        roomy = (each for each in places if Path(each).is_dir() and shutil.disk_usage(each).free > needed)
        room = Path(tempfile.mkdtemp(prefix="mneme-reading-", dir=next(roomy, None)))
        copied.callback(shutil.rmtree, room, ignore_errors=True)
        for file in files:
            copy = room / file.relative_to(path.parent)
            copy.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            shutil.copyfile(file, copy)
        try:
            store = open_store(str(room / path.name), embedder, dimension)
        except Damaged as damage:
            told = str(damage).replace(str(room / path.name), str(path))
            raise Damaged(told, f"{why} {why.hint} Then: {damage.hint}") from damage
        copied.pop_all()
    store.log.database.place = str(path / LOG)  # so that an error names the real file
    store.refusal, store.origin, store.room = why, place, room
    return store
