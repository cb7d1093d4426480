"""The folder of an embedded ledger: its owner, its contents, and its switch to a new generation.

`mneme.json` names the generation in use (the sub-folder with the engine's files), the format and the
embedder. A new generation is built beside the old one, and rewriting `mneme.json` switches to it in one
step. Other generations, which a crash may leave, are removed at the next opening.
"""

import contextlib
import errno
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from filelock import FileLock, Timeout
from pydantic import BaseModel, ConfigDict, ValidationError
from tenacity import retry, retry_if_exception, stop_after_delay, wait_fixed

from mneme.core.errors import LedgerInUse, LedgerMismatch, StorageFailure
from mneme.stores.ledger.engine import FORMAT

MANIFEST, LOCK, OWNER, GENERATION = "mneme.json", "mneme.lock", "mneme.owner", "generation-"
RESERVE = 64 * 1024 * 1024


class Manifest(BaseModel):
    """What the ledger in a folder is made with."""

    model_config = ConfigDict(frozen=True)

    format: int
    embedder: str
    dimension: int
    generation: int


@contextlib.contextmanager
def storage_errors(what: str) -> Iterator[None]:
    """Turn an operating-system refusal into one line for the user."""
    try:
        yield
    except OSError as refusal:
        reason = refusal.strerror or str(refusal)
        raise StorageFailure(
            f"Cannot {what}: {reason}.", "Check the disk's free space and who may write to the folder."
        ) from refusal


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
            path.mkdir(parents=True, exist_ok=True)
        self._lock = FileLock(
            path / LOCK, thread_local=False, fallback_to_soft=False, preserve_lock_file=True
        )
        with storage_errors(f"write to the ledger's folder {path}"):
            self._own()
        self.manifest = self._read_manifest()

    @property
    def shard(self) -> Path:
        """The folder of the generation in use."""
        assert self.manifest is not None
        return self.generation(self.manifest.generation)

    def generation(self, number: int) -> Path:
        return self.path / f"{GENERATION}{number:06d}"

    def fresh(self, number: int) -> Path:
        """Return an empty folder for a generation that is not in use yet."""
        path = self.generation(number)
        with storage_errors(f"create {path}"):
            shutil.rmtree(path, ignore_errors=True)
            path.mkdir()
        return path

    def switch(self, manifest: Manifest) -> None:
        """Make another generation the one in use, atomically."""
        with storage_errors(f"write {self.path / MANIFEST}"):
            _write_durably(self.path / MANIFEST, manifest.model_dump_json(indent=2) + "\n")
        self.manifest = manifest

    def clear_leftovers(self) -> None:
        """Remove generations that are not in use: a crash left them, or a switch."""
        for path in self.path.glob(f"{GENERATION}*"):
            if self.manifest is None or path != self.shard:
                with storage_errors(f"remove {path}"):
                    _remove(path)

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
        raise StorageFailure(
            f"The disk of {self.path} is nearly full; nothing was written.",
            f"Free some space: the ledger needs {missing} MB to write safely.",
        )

    def size(self) -> int:
        """Return how many bytes the generation in use takes on the disk."""
        return sum(path.stat().st_blocks * 512 for path in self.shard.rglob("*") if path.is_file())

    def release(self) -> None:
        """Let another process own the folder."""
        (self.path / OWNER).unlink(missing_ok=True)
        self._lock.release()

    def _check_kind(self) -> None:
        if self.path.exists() and not self.path.is_dir():
            raise LedgerMismatch(f"{self.path} is a file, not a ledger.", "Give the path of a folder.")
        with storage_errors(f"read {self.path}"):
            names = {path.name for path in self.path.iterdir()} if self.path.exists() else set()
        if names and not names & {MANIFEST, LOCK}:
            raise LedgerMismatch(
                f"{self.path} is not empty and holds no ledger; nothing was touched.",
                "Give an empty or a new folder, or the folder of a ledger.",
            )

    def _own(self) -> None:
        try:
            self._lock.acquire(blocking=False)
        except Timeout as taken:
            raise LedgerInUse(
                f"Another process{self._owner()} has the ledger at {self.path} open.",
                "Stop it; or start `langgraph dev`, which the command line can share; or let both use a "
                "Qdrant server: set MNEME_LEDGER to its URL.",
            ) from taken
        (self.path / OWNER).write_text(str(os.getpid()))

    def _owner(self) -> str:
        try:
            return f" (pid {int((self.path / OWNER).read_text())})"
        except (OSError, ValueError):  # just started, or just gone: the message leaves it out
            return ""

    def _read_manifest(self) -> Manifest | None:
        path = self.path / MANIFEST
        if not path.exists():
            return None
        try:
            with storage_errors(f"read {path}"):
                manifest = Manifest.model_validate_json(path.read_text())
        except ValidationError as broken:
            raise LedgerMismatch(
                f"{path} is not a ledger's manifest.", "Restore it from a backup."
            ) from broken
        check_format(self.path, manifest.format)
        return manifest


def check_format(location: object, found: int) -> None:
    """Refuse a ledger that a newer version of Mneme wrote; older formats are upgraded."""
    if found > FORMAT:
        raise LedgerMismatch(
            f"{location} has the ledger format {found}; this version reads up to {FORMAT}.",
            "Install the version of Mneme that wrote it, or a newer one.",
        )


def _write_durably(path: Path, text: str) -> None:
    temporary = path.with_suffix(".tmp")
    with temporary.open("w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
