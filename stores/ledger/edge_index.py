"""The index in the home: Qdrant Edge, one copy for each process that searches.

The engine lets one process into a folder. So each process that searches owns a copy of its own
(`index-1`, `index-2`, …): the first that nobody has, brought to the end of the log. A copy is made where all
are taken, and stays for the next one; a process that only reads, lists or writes needs none. The alternative,
one owner whom the others ask, has them wait for it, and depends on its being alive. A copy and its first
search took 0.25 s of processor time to build for 1,000 records, 4.6 s for 20,000; 0.06 and 0.19 s when it was
opened again (two busy cores).

A copy is trusted where it was closed and its files are as they were then; after a kill, a power cut or damage
it is built anew from the log. Search is exact within its scope, so recall is 1 by construction and no HNSW
graph is built: a user's records are reached through the scope index and compared in well under a
millisecond per thousand. For many millions of records in one scope, use a Qdrant server.
"""

import fcntl
import logging
import os
import shutil
import threading
from collections.abc import Callable
from pathlib import Path

from mneme.core.errors import Damaged, MnemeError
from mneme.core.private import make_private_file, make_private_folder
from mneme.stores.database import Database
from mneme.stores.ledger.edge_engine import EdgeEngine, unseen
from mneme.stores.ledger.folder import is_sealed, unseal
from mneme.stores.ledger.index import Changes, agrees, build, changes, differences
from mneme.stores.ledger.reading import check_embedder, current_state

COPY = "index-"
POLL_SECONDS = 0.5
"""Seconds between two looks whether another process has written."""

log = logging.getLogger(__name__)


class EdgeIndex:
    """This process's copy; opened with the first search."""

    def __init__(self, folder: Path, database: Database, check_space: Callable[[], None]) -> None:
        self._folder, self._database, self._check_space = folder, database, check_space
        self._following, self._renewing = threading.RLock(), threading.Lock()
        self._ended = threading.Event()
        self._watch: threading.Thread | None = None
        self._copy: EdgeEngine | None = None
        self._has_remains = False

    def follow(self) -> int:
        """Bring the copy to the end of the log; return up to which entry it has followed it."""
        copy = self.opened()
        state = current_state(self._database)
        if state.seq == copy.followed:
            return copy.followed
        check_embedder(str(self._folder), state, *copy.made_with)
        with self._following:
            self._check_space()
            self._catch_up(self.opened())
        return state.seq

    def _catch_up(self, copy: EdgeEngine) -> None:
        with self._database.reading(snapshot=True) as cursor:
            found = changes(cursor, copy.followed)
        copy.apply(found)
        self._has_remains |= found.erases

    def written(self) -> None:
        """Follow at once where this process has a copy."""
        if self._copy is not None:
            self.follow()

    def erased(self) -> None:
        """Build this copy anew without what was erased, and remove those that nobody has open."""
        self.written()
        self._remove_remains()
        for path in copies_in(self._folder):
            if (lock := _lock(path)) is not None:
                shutil.rmtree(path, ignore_errors=True)
                os.close(lock)

    def rebuild(self) -> None:
        """Build the copy anew; searches go on in the former one meanwhile, and other changes too."""
        self._has_remains = True
        self.opened()
        self._remove_remains()

    def _remove_remains(self) -> None:
        """Put a copy that is built anew in the place of one whose files may hold what was erased."""
        with self._renewing:
            if not self._has_remains:
                return
            self._has_remains = False
            former = self.opened()
            new = self._built(former.folder, former.lock)
            with self._following:
                self._catch_up(new)
                self._copy = new
            former.discard()

    def verify(self) -> list[str]:
        """Compare the copies that nobody has open, and that of this process, with the log."""
        wrong: list[str] = []
        for path in copies_in(self._folder):
            if (lock := _lock(path)) is not None:
                wrong += [f"{path.name}: its files are damaged"] if is_sealed(path) is False else []
                os.close(lock)
        if not copies_in(self._folder):
            return wrong
        copy = self.opened()
        with self._following, self._database.reading(snapshot=True) as cursor:
            copy.apply(changes(cursor, copy.followed))  # of the state that is compared
            return wrong + differences(cursor, copy.points())

    def layout(self) -> None:
        """Return None: only an index on a server has a layout."""
        return

    def close(self) -> None:
        """Close the copy, and note what its files are."""
        self._ended.set()
        if self._watch is not None and self._watch is not threading.current_thread():
            self._watch.join()
        with self._renewing, self._following:
            copy, self._copy = self._copy, None
            if copy is not None:
                copy.close()
                if self._has_remains:
                    shutil.rmtree(copy.folder, ignore_errors=True)

    def opened(self) -> EdgeEngine:
        """The open copy, which answers searches."""
        if self._copy is None:
            with self._following:
                if self._copy is None:
                    self._copy = self._open()
                    self._watch = threading.Thread(target=self._look, name="ledger-follow", daemon=True)
                    self._watch.start()
        return self._copy

    def _look(self) -> None:
        """Follow what other processes write, and erase, so that searches need not."""
        while not self._ended.wait(POLL_SECONDS):
            try:
                self.follow()
                self._remove_remains()
            except MnemeError as failure:
                log.debug("The index could not follow the log, and does so with the next search: %s", failure)

    def _open(self) -> EdgeEngine:
        """Own the first copy that nobody has, or a new one, and open it, or build it."""
        lock, number = None, 0
        while lock is None:
            number += 1
            folder = self._folder / f"{COPY}{number}"
            lock = _lock(folder)
        try:
            make_private_folder(folder)
            if (copy := self._loaded(folder, lock)) is not None:
                return copy
            for shard in shards_in(folder):
                shutil.rmtree(shard, ignore_errors=True)
            return self._built(folder, lock)
        except BaseException:
            os.close(lock)
            raise

    def _loaded(self, folder: Path, lock: int) -> EdgeEngine | None:
        """Open a copy that was closed as it is now; None where it must be built anew."""
        sealed, shards = is_sealed(folder), shards_in(folder)
        unseal(folder)
        if sealed is False:
            log.warning("The index in %s was damaged; it is built anew from the log.", folder)
        if not sealed or len(shards) != 1:
            return None
        try:
            with unseen():
                copy = EdgeEngine(shards[0], lock)
                stamp = copy.read_stamp()
            with self._database.reading(snapshot=True) as cursor:
                why = agrees(cursor, stamp)
            if not why:
                return copy
            copy.shard.close()
        except Damaged as damage:
            why = str(damage)
        log.warning("The index in %s is built anew from the log: %s.", folder, why.rstrip("."))
        return None

    def _built(self, folder: Path, lock: int) -> EdgeEngine:
        """Build a copy from the log."""
        self._check_space()
        number = 1 + max((int(each.name) for each in shards_in(folder)), default=0)
        shard = folder / f"{number:06d}"
        make_private_folder(shard)
        copy = EdgeEngine(shard, lock, dimension=current_state(self._database).dimension)
        copy.apply(Changes(build(self._database, copy.upsert)))
        return copy


def _lock(copy: Path) -> int | None:
    """Own a copy until the lock is closed; None where a process has it."""
    path = copy.with_name(f"{copy.name}.lock")
    make_private_file(path)
    lock = os.open(path, os.O_RDWR)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        return None
    return lock


def copies_in(folder: Path) -> list[Path]:
    """Return the copies in a ledger's folder."""
    return sorted(path for path in folder.glob(f"{COPY}*") if path.is_dir())


def shards_in(copy: Path) -> list[Path]:
    """Return the engine's folders in a copy: one, but for a moment while it is built anew."""
    return sorted(path for path in copy.glob("[0-9]*") if path.is_dir())
