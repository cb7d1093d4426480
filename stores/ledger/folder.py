"""The folder of an embedded ledger: its owner, its contents, and its switch to a new generation.

`mneme.json` names the generation in use (the sub-folder with the engine's files), the format and the
embedder. A new generation is built in a folder `making-…`, gets a copy of its `mneme.json` when it is
complete, and is renamed to `generation-…`; rewriting `mneme.json` then switches to it in one step.

So a `making-…` folder is never complete, a generation always is, and `mneme.json` can be restored from
the copy. Deleted are only the former and a generation that the one in use has replaced; whatever else is
found is moved into a folder `set-aside-…` with the time in its name, and that is said.
"""

import errno
import logging
import os
import shutil
from datetime import UTC, datetime
from pathlib import Path

from filelock import FileLock, Timeout
from tenacity import retry, retry_if_exception, stop_after_delay, wait_fixed

from mneme.core.durable import sync
from mneme.core.errors import LedgerMismatch, NotWritable, StorageFailure
from mneme.core.private import close_to_others, is_open_to_all, is_shared, make_private_folder
from mneme.stores.ledger.manifest import (
    MANIFEST,
    Manifest,
    check_format,
    read_manifest,
    storage_errors,
    unnamed,
    write_manifest,
)
from mneme.stores.ledger.owner import OWNER, in_use, note_owner
from mneme.stores.ledger.sealing import mark_open
from mneme.stores.ledger.sparse import on_disk

LOCK = "mneme.lock"
GENERATION, MAKING, ASIDE = "generation-", "making-", "set-aside-"
NUMBER = "[0-9]" * 6
OURS = ("mneme.", MAKING, ASIDE)
RESERVE = 64 * 1024 * 1024


log = logging.getLogger(__name__)


@retry(
    retry=retry_if_exception(lambda refusal: getattr(refusal, "errno", 0) == errno.ENOTEMPTY),
    stop=stop_after_delay(5),
    wait=wait_fixed(0.05),
    reraise=True,
)
def _remove(path: Path) -> None:
    """Remove a generation; a search that is ending there may write one more file meanwhile."""
    if path.exists():
        shutil.rmtree(path)


class Folder:
    """An embedded ledger's folder, owned by this process until `release`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._check_kind()
        with storage_errors(f"create the ledger's folder {path}"):
            make_private_folder(path)
        self._lock = FileLock(
            path / LOCK, thread_local=False, fallback_to_soft=False, preserve_lock_file=True
        )
        with storage_errors(f"write to the ledger's folder {path}"):
            self._own()
        try:
            with storage_errors(f"write to the ledger's folder {path}"):
                note_owner(path)
            self.manifest = self._read_manifest()
        except BaseException:
            self.release()
            raise
        self.keep_private()

    @property
    def shard(self) -> Path:
        """The folder of the generation in use."""
        assert self.manifest is not None
        return self.generation(self.manifest.generation)

    def generation(self, number: int) -> Path:
        return self.path / f"{GENERATION}{number:06d}"

    def making(self, number: int) -> Path:
        return self.path / f"{MAKING}{number:06d}"

    def fresh(self, number: int) -> Path:
        """Return an empty folder in which a generation is made; nothing is in use there."""
        path = self.making(number)
        with storage_errors(f"create {path}"):
            _remove(path)
            path.mkdir()
        return path

    def complete(self, manifest: Manifest) -> Path:
        """Make a generation of the folder that `fresh` gave; all its files are written and closed."""
        path = self.generation(manifest.generation)
        if path.exists():
            self.set_aside(path, "is a generation of another ledger, or of another time")
        with storage_errors(f"write {path}"):
            making = self.making(manifest.generation)
            write_manifest(making / MANIFEST, manifest)
            mark_open(making)  # after a power cut its index is built anew, so only the journal is synced
            making.rename(path)
            sync(self.path)
        return path

    def switch(self, manifest: Manifest) -> None:
        """Make another generation the one in use, atomically."""
        with storage_errors(f"write {self.path / MANIFEST}"):
            write_manifest(self.path / MANIFEST, manifest)
        self.manifest = manifest

    def discard(self, path: Path) -> None:
        """Remove a generation, or what was to become one; not even a power cut brings it back as a whole."""
        doomed = self.path / path.name.replace(GENERATION, MAKING)
        with storage_errors(f"remove {path}"):
            path.rename(doomed)
            sync(self.path)
            _remove(doomed)
            sync(self.path)

    def clear_leftovers(self) -> None:
        """Remove what a crash or a switch left; call it once the generation in use has been opened."""
        if read_manifest(self.shard / MANIFEST) != self.manifest:  # made or changed by an older version
            with storage_errors(f"write {self.shard / MANIFEST}"):
                write_manifest(self.shard / MANIFEST, self._in_use())
        for path in [*self.path.glob(f"{MAKING}{NUMBER}"), *filter(self._is_replaced, self._generations())]:
            self.discard(path)
        for path in self._generations():
            if path != self.shard:
                self.set_aside(path, "is not a generation that this ledger knows")

    def disown(self, path: Path) -> None:
        """Let no generation count as the one that replaced this: then it is set aside, and not deleted."""
        with storage_errors(f"remove {path / MANIFEST}"):
            (path / MANIFEST).unlink(missing_ok=True)
            sync(path)

    def set_aside(self, path: Path, why: str) -> Path:
        """Move away what is not recognised, and say so; return where it is."""
        aside = self.path / f"{ASIDE}{datetime.now(UTC):%Y%m%dT%H%M%S.%fZ}"
        with storage_errors(f"move {path} to {aside}"):
            aside.mkdir()
            path.rename(aside / path.name)
            sync(aside)
            sync(self.path)
        log.warning("%s %s. It was moved to %s. Delete it if you do not need it.", path, why, aside)
        return aside

    def warn_of_aside(self) -> None:
        """Say where what has been erased may be still."""
        for path in sorted(self.path.glob(f"{ASIDE}*")):
            log.warning("%s was set aside, and may still hold what has been forgotten now: delete it.", path)

    def check_space(self, needed: int = 0) -> None:
        """Refuse to write when the disk is nearly full.

        The engine maps its files: on a full disk a page that cannot be allocated kills the whole
        process (SIGBUS), and the shard cannot be opened any more. So there is a reserve.
        """
        with storage_errors(f"look at the disk of {self.path}"):
            disk = os.statvfs(self.path)
        if disk.f_bavail * disk.f_frsize >= RESERVE + needed:
            return
        missing = (RESERVE + needed) // 2**20 + 1
        raise NotWritable(
            f"The disk of {self.path} is nearly full; nothing was written.",
            f"Free some space: the ledger needs {missing} MB to write safely.",
        )

    def keep_private(self) -> None:
        """Close every file to others, unless the folder is open to its group alone: that was on purpose."""
        if is_shared(self.path):
            return
        if is_open_to_all(self.path):
            log.warning(
                "Everybody on this machine could read %s; only you can from now on. "
                "To share it with a group: chmod -R g+rwX %s.",
                self.path,
                self.path,
            )
        for path in (self.path, *self.path.rglob("*")):
            close_to_others(path)

    def size(self) -> int:
        """Return how many bytes the generation in use takes on the disk."""
        return on_disk(self.shard)

    def release(self) -> None:
        """Let another process own the folder, which may have been deleted meanwhile."""
        if self.path.is_dir():
            self.keep_private()
        (self.path / OWNER).unlink(missing_ok=True)
        self._lock.release()

    def _check_kind(self) -> None:
        if self.path.exists() and not self.path.is_dir():
            raise LedgerMismatch(f"{self.path} is a file, not a ledger.", "Give the path of a folder.")
        with storage_errors(f"read {self.path}"):
            names = {path.name for path in self.path.iterdir()} if self.path.exists() else set()
        foreign = [name for name in names if not name.startswith(OURS)]
        if foreign and MANIFEST not in names and not self._generations():
            raise LedgerMismatch(
                f"{self.path} is not empty and holds no ledger; nothing was touched.",
                "Give an empty or a new folder, or the folder of a ledger.",
            )

    def _generations(self) -> list[Path]:
        return sorted(path for path in self.path.glob(f"{GENERATION}{NUMBER}") if path.is_dir())

    def _is_replaced(self, path: Path) -> bool:
        manifest = read_manifest(path / MANIFEST)
        return manifest is not None and manifest.generation < self._in_use().generation

    def _in_use(self) -> Manifest:
        assert self.manifest is not None
        return self.manifest

    def _own(self) -> None:
        try:
            self._lock.acquire(blocking=False)
        except Timeout as taken:
            raise in_use(self.path) from taken

    def _read_manifest(self) -> Manifest | None:
        """Return what is in use, from the copies where `mneme.json` is lost; None for a new ledger."""
        path, generations = self.path / MANIFEST, self._generations()
        named = read_manifest(path)
        if named is not None:
            check_format(self.path, named.format)
        copies = [
            copy
            for each in generations
            if (copy := read_manifest(each / MANIFEST)) and self.generation(copy.generation) == each
        ]
        newest = max(copies, key=lambda copy: copy.generation, default=None)
        if newest is not None and (named is None or newest.generation > named.generation):
            return self._recovered(newest)
        if named is None and (generations or path.exists()):
            raise unnamed(path, generations)
        if named is not None and self.generation(named.generation) not in generations:
            raise StorageFailure(
                f"The files of the ledger in {self.generation(named.generation)} are missing.",
                "Restore the whole folder from a backup.",
            )
        return named

    def _recovered(self, manifest: Manifest) -> Manifest:
        """Go on with the newest complete generation, whatever `mneme.json` says, and keep all others."""
        check_format(self.path, manifest.format)
        path = self.path / MANIFEST
        if path.exists():
            self.set_aside(path, f"does not name the newest generation, {manifest.generation}")
        for each in self._generations():
            if each != self.generation(manifest.generation):
                self.set_aside(each, f"was not in use any more beside generation {manifest.generation}")
        self.switch(manifest)
        log.warning("%s was missing or damaged; it has been restored from its copy.", path)
        return manifest
