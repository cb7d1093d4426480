"""Opening a ledger: its log in the home or in Postgres, and its index beside it or on a Qdrant server."""

import shutil
import threading
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from mneme.core.errors import Damaged, LedgerMismatch, NotWritable, StorageFailure, needs
from mneme.stores.ledger.addresses import Place, place_of
from mneme.stores.ledger.checking import problems_of
from mneme.stores.ledger.database import REPAIR, Database, Sqlite
from mneme.stores.ledger.edge_index import EdgeIndex, copies_in
from mneme.stores.ledger.folder import LOG, Folder, has_ledger
from mneme.stores.ledger.log import Log, check_embedder, make_tables, state_of, write_log
from mneme.stores.ledger.query import FORMAT, LedgerInfo
from mneme.stores.ledger.sealing import is_sealed, seal, unseal
from mneme.stores.ledger.server_index import ServerIndex
from mneme.stores.ledger.upgrading import is_older, upgrade

_OPEN: dict[str, "Store"] = {}
_OPENING = threading.RLock()


Index = EdgeIndex | ServerIndex


class Store:
    """An open log with its index; within a process a place is opened once, however often it is asked for."""

    def __init__(self, place: Place, log: Log, index: Index, folder: Folder | None = None) -> None:
        self.place, self.log, self.index, self.folder = place, log, index, folder
        self.users = 0
        self.refusal: NotWritable | None = None
        self.origin = place
        self.room: Path | None = None  # of a copy that is only read, what it is a copy of, and where
        with log.database.reading() as cursor:
            self.state = state_of(cursor)
        self.key = self.state.ledger

    def info(self) -> LedgerInfo:
        """Return what the ledger says of itself."""
        with self.log.database.reading() as cursor:
            state = state_of(cursor)
        return LedgerInfo(
            kind="server" if self.place.index else "edge",
            location=self.origin.shown,
            entries=state.seq,
            embedder=state.embedder,
            dimension=state.dimension,
            format=state.format,
            layout=self.index.layout(),
        )

    def close(self) -> None:
        """Close it once its last user in this process has closed it."""
        with _OPENING:
            self.users -= 1
            if not self.users:
                _OPEN.pop(str(self.place), None)
                self._shut()

    def _shut(self) -> None:
        try:
            self.index.close()
        finally:
            self.log.close()
            if self.folder is not None:
                _let_go(self.folder)
            if self.room is not None:
                shutil.rmtree(self.room, ignore_errors=True)


def open_store(location: str, embedder: str, dimension: int, api_key: str = "") -> Store:
    """Open what is at a location, or make it where there is nothing yet. Blocks.

    Without the name of an embedder there must be a ledger, whatever its embedder is. Raises LedgerMismatch,
    Damaged, StorageFailure; then nothing has been touched.
    """
    place = place_of(location)
    if not embedder and place.folder is not None and not has_ledger(place.folder):
        raise LedgerMismatch(f"There is no ledger at {place.folder}.", "Set MNEME_LEDGER, or MNEME_HOME.")
    with _OPENING:
        found = _OPEN.get(str(place))
        store = found or _opened(place, embedder, dimension, api_key)
        try:
            if embedder:
                with store.log.database.reading() as cursor:
                    check_embedder(place.shown, state_of(cursor), embedder, dimension)
        except BaseException:
            if found is None:
                store._shut()
            raise
        _OPEN[str(place)] = store
        store.users += 1
        return store


def _opened(place: Place, embedder: str, dimension: int, api_key: str) -> Store:
    if place.folder is None:
        with needs("A ledger in Postgres", "postgres"):
            module: Any = import_module("mneme.stores.ledger.postgres")
        database = module.Postgres(place.log)
        try:
            with database.alone() as cursor:
                make_tables(cursor, database, embedder, dimension)
            return _with_index(place, database, None, api_key)
        except BaseException:
            database.close()
            raise
    folder = Folder(place.folder)
    try:
        database = open_log(folder, embedder, dimension)
        try:
            return _with_index(place, database, folder, api_key)
        except BaseException:
            database.close()
            raise
    except BaseException:
        folder.release()
        raise


def _with_index(place: Place, database: Database, folder: Folder | None, api_key: str) -> Store:
    check_space: Callable[[], None] = folder.check_space if folder else lambda: None
    log = Log(database, check_space)
    if place.index:
        index: Index = ServerIndex.open(place.index, log, api_key)
    else:
        assert folder is not None
        index = EdgeIndex(folder.path, database, check_space)
    return Store(place, log, index, folder)


def open_log(folder: Folder, embedder: str, dimension: int) -> Sqlite:
    """Open the log in a folder, which is checked where no other process has it open."""
    folder.check_space()
    if not folder.is_alone():
        folder.share()
        return Sqlite(folder.log)
    if is_older(folder):
        upgrade(folder)
    is_new = not folder.log.exists()
    if is_new and copies_in(folder.path):
        raise StorageFailure(
            f"{folder.log} is missing.", "Restore the ledger from a backup: `mneme restore`."
        )
    sealed = None if is_new else is_sealed(folder.path, folder.seal, log_files(folder))
    if is_new:
        with folder.new_log() as path:
            write_log(path, (embedder, dimension), lambda transaction: None)
    database = Sqlite(folder.log)
    try:
        if not is_new and not sealed:
            _check(database)
        unseal(folder.path, folder.seal)
        with database.writing() as cursor:
            make_tables(cursor, database, embedder, dimension)
        folder.note_format(FORMAT, embedder, dimension)
    except BaseException:
        database.close()
        raise
    folder.share()
    return database


def _check(database: Sqlite) -> None:
    """Read everything in a log that was not sealed as it is. Raises Damaged."""
    if wrong := problems_of(database):
        more = f" and {len(wrong) - 1} more" if wrong[1:] else ""
        raise Damaged(f"The ledger's log {database.place} is damaged: {wrong[0]}{more}.", REPAIR)


def log_files(folder: Folder) -> list[Path]:
    """Return the files of the log: a write-ahead log is there only after a kill."""
    return [*folder.path.glob(f"{LOG}*")]


def _let_go(folder: Folder) -> None:
    """Release a folder; whoever is the last one seals its log."""
    try:
        if folder.log.exists() and folder.is_alone():
            seal(folder.path, folder.seal, log_files(folder))
    finally:
        folder.release()
