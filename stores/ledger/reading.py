"""Reading a ledger where it cannot be written: the disk is full or read-only, or belongs to others.

A copy of the log is opened in a temporary folder (in memory, where no disk has room for it), which is removed
on closing; the copy's writes are refused, and its index is made with the first search.
"""

import shutil
import tempfile
from pathlib import Path

from mneme.core.errors import NotWritable
from mneme.stores.ledger.addresses import place_of
from mneme.stores.ledger.folder import GENERATIONS, LOG, RESERVE, has_ledger, storage_errors
from mneme.stores.ledger.opening import Store, open_store
from mneme.stores.ledger.sparse import copy_file, copy_folder, on_disk

MEMORY = "/dev/shm"  # noqa: S108  (the folder in it has a name by chance, and is for its owner alone)


def open_copy(location: str, embedder: str, dimension: int, why: NotWritable) -> Store:
    """Open a copy of the ledger at a location, which cannot be written for this reason. Blocks.

    Raises LedgerMismatch, StorageFailure, and the reason itself where there is no ledger.
    """
    place = place_of(location)
    path = place.folder
    if path is None or not has_ledger(path):
        raise why
    with storage_errors(f"copy the ledger at {path} to read it"):
        room = Path(tempfile.mkdtemp(prefix="mneme-reading-", dir=_place(path)))
    try:
        with storage_errors(f"copy the ledger at {path} to read it"):
            _copy(path, room / "ledger")
        store = open_store(str(room / "ledger"), embedder, dimension)
    except BaseException:
        shutil.rmtree(room, ignore_errors=True)
        raise
    store.refusal, store.origin, store.room = why, place, room
    return store


def _place(path: Path) -> str | None:
    """Return a folder with room for a copy and an index; None for the usual one, where no other is better."""
    needed = 3 * on_disk(path) + RESERVE
    for place in (_temporary(), MEMORY):
        if place and Path(place).is_dir() and shutil.disk_usage(place).free > needed:
            return place
    return None


def _temporary() -> str:
    """Return the folder for temporary files; empty where none can be written."""
    try:
        return tempfile.gettempdir()
    except FileNotFoundError:
        return ""


def _copy(path: Path, copy: Path) -> None:
    copy.mkdir(mode=0o700)
    for each in path.iterdir():
        if each.name.startswith((LOG, "mneme.json")) and not each.name.endswith("-shm"):
            copy_file(each, copy / each.name)
        elif each.match(GENERATIONS):
            copy_folder(each, copy / each.name)
