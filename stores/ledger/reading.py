"""Reading a ledger where it cannot be written: the disk is full or read-only, or belongs to others.

The engine maps its files for writing, so it cannot open them there. It opens a copy in a temporary folder
(in memory, where no disk has room for it), which is removed on closing; the copy's writes are refused.
"""

import asyncio
import fcntl
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Self

from mneme.core.errors import NotWritable
from mneme.stores.ledger.edge import EdgeEngine
from mneme.stores.ledger.engine import Embedded, EngineInfo, Erasing, Erasure, Step
from mneme.stores.ledger.folder import LOCK, RESERVE
from mneme.stores.ledger.manifest import MANIFEST, storage_errors
from mneme.stores.ledger.owner import in_use
from mneme.stores.ledger.records import Version
from mneme.stores.ledger.sparse import copy_file, copy_folder, on_disk

MEMORY = "/dev/shm"  # noqa: S108  (the folder in it has a name by chance, and is for its owner alone)


class ReadingEngine(EdgeEngine):
    """A ledger's copy that is only read, once `refuse_writes` has been called; make one with `open_copy`."""

    _why: NotWritable | None = None

    @classmethod
    def open_copy(cls, path: Path, embedder: str, dimension: int, why: NotWritable) -> Self:
        """Open a copy of the ledger at a path, which cannot be written for this reason.

        Raises LedgerInUse, LedgerMismatch, StorageFailure, and the reason itself where there is no ledger.
        """
        path = path.expanduser().resolve()
        if not (path / MANIFEST).is_file():
            raise why
        room = make_room(path)
        try:
            with storage_errors(f"copy the ledger at {path} to read it"):
                _copy(path, room / "ledger")
            return cls.open_in_room(path, room, embedder, dimension)
        except BaseException:
            shutil.rmtree(room, ignore_errors=True)
            raise

    @classmethod
    def open_in_room(cls, path: Path, room: Path, embedder: str, dimension: int) -> Self:
        """Open the copy in `room/ledger` of the ledger at a path; the room is removed on closing."""
        engine = cls.open(room / "ledger", embedder, dimension)
        engine._origin, engine._room = path, room
        return engine

    _origin: Path
    _room: Path

    def refuse_writes(self, why: NotWritable) -> None:
        """Refuse to write from now on, for this reason."""
        self._why = why

    async def append(self, steps: Sequence[Step]) -> list[Version]:
        self._refuse()
        return await super().append(steps)

    async def erase(self, plan: Callable[[], Erasing]) -> Erasure:
        self._refuse()
        return await super().erase(plan)

    async def compact(self) -> bool:
        return False

    async def embed(self, heads: Sequence[Embedded]) -> None:
        self._refuse()
        await super().embed(heads)

    async def place(self, shelf: str, groups: Mapping[str, Sequence[str]]) -> None:
        self._refuse()
        await super().place(shelf, groups)

    async def info(self) -> EngineInfo:
        return (await super().info()).model_copy(update={"location": str(self._origin)})

    async def close(self) -> None:
        await super().close()
        await asyncio.to_thread(shutil.rmtree, self._room, ignore_errors=True)

    def _refuse(self) -> None:
        if self._why is not None:
            raise self._why


def make_room(path: Path) -> Path:
    """Make a temporary folder for a copy of the ledger at a path."""
    with storage_errors(f"copy the ledger at {path} to read it"):
        return Path(tempfile.mkdtemp(prefix="mneme-reading-", dir=_place(path)))


def _place(path: Path) -> str | None:
    """Return a folder with room for a copy; None for the usual one, where no other is better."""
    needed = on_disk(path) + RESERVE
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
    """Copy what the engine needs while nobody has the ledger open."""
    with (path / LOCK).open("rb") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as taken:
            raise in_use(path) from taken
        copy.mkdir(mode=0o700)
        for each in path.glob("generation-*"):
            copy_folder(each, copy / each.name)
        if (path / MANIFEST).exists():
            copy_file(path / MANIFEST, copy / MANIFEST)
