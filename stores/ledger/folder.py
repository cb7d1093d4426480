"""The folder of an embedded ledger: its files, their permissions, and the processes that have it open.

`log.sqlite` is the log, `index-…` are copies of the index (see `edge_index`). All processes that have the
ledger open share a lock; a process that has it alone checks the log when opening it, and seals it when
closing it. A seal is the checksum of the closed files, by which damage to them is noticed.
"""

import errno
import fcntl
import json
import logging
import os
import shutil
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from mneme.core.durable import sync, write_durably
from mneme.core.errors import Damaged, LedgerInUse, LedgerMismatch, NotWritable
from mneme.core.private import (
    close_all_to_others,
    close_to_others,
    is_open_to_all,
    is_shared,
    make_private_file,
    make_private_folder,
)
from mneme.stores.database import kept_of, storage_errors

LOCK, LOG, MANIFEST = "mneme.lock", "log.sqlite", "mneme.json"
LOG_FILES = f"{LOG}*"
"""Pattern of the log's files: a write-ahead log remains only after a kill."""
GENERATIONS = "generation-*"
"""The folders of older ledgers."""
NEW_LOG = "mneme.making"
"""The folder in which a new log is written before it takes its place."""
KNOWN_NAMES = ("mneme.", LOG, "index-", "set-aside-", "generation-", "making-")
ASIDE = "set-aside-"
RESERVE = 64 * 1024 * 1024
OPENING_SECONDS = 300.0
"""Maximum seconds that a process waits while another upgrades or repairs the ledger."""

log = logging.getLogger(__name__)


def has_ledger(path: Path) -> bool:
    """Return whether a folder has a ledger of this or an older version."""
    return any(path.glob(LOG_FILES)) or any(path.glob(GENERATIONS))


def refuse_gone(path: Path) -> None:
    """Raise Damaged if a folder had a ledger and its log is missing."""
    if kept_of(path).exists() and not has_ledger(path):
        raise Damaged(
            f"The ledger at {path} is gone: it was there, and its log is missing.",
            f"`mneme restore` brings back a backup. Or remove {kept_of(path)}, to begin without memories.",
        )


class Folder:
    """A ledger's folder, which this process keeps locked, shared or exclusively, until `release`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        _check_kind(path)
        with storage_errors(f"create the ledger's folder {path}"):
            make_private_folder(path)
        with storage_errors(f"write to the ledger's folder {path}"):
            self._lock = os.open(path / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            self.keep_private()
        except BaseException:
            self.release()
            raise

    @property
    def log(self) -> Path:
        return self.path / LOG

    def is_alone(self) -> bool:
        """Try to lock the folder exclusively, until `share` or `release`; return whether that succeeded."""
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def share(self) -> None:
        """Let other processes open the ledger, too; wait while one has it alone. Raises LedgerInUse."""
        until = time.monotonic() + OPENING_SECONDS
        while True:
            try:
                fcntl.flock(self._lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() > until:
                    raise self.in_use() from None
                time.sleep(0.02)  # flock has no time-out
            else:
                return

    def in_use(self) -> LedgerInUse:
        """Return the error for work that needs the ledger exclusively."""
        return LedgerInUse(
            f"Another process has the ledger at {self.path} open.",
            "End that process first: a chat, an MCP client, `langgraph dev`, or a program of yours.",
        )

    @contextmanager
    def new_log(self) -> Iterator[Path]:
        """Yield the path for a new log, which takes its place at the end: completely, or not at all."""
        making = self.path / NEW_LOG
        with storage_errors(f"write {self.log}"):
            shutil.rmtree(making, ignore_errors=True)
            making.mkdir(mode=0o700)
            yield making / LOG
            sync(making / LOG)  # before it has its name: a power cut must not leave half a log there
            (making / LOG).rename(self.log)
            sync(self.path)
            shutil.rmtree(making)

    def set_aside(self, why: str) -> Path:
        """Move away a log that is no longer used, with a warning; return its new place."""
        aside = self.path / f"{ASIDE}{datetime.now(UTC):%Y%m%dT%H%M%S.%fZ}"
        with storage_errors(f"move {self.log} to {aside}"):
            aside.mkdir(mode=0o700)
            for each in self.path.glob(LOG_FILES):
                each.rename(aside / each.name)
            sync(self.path)
        log.warning("%s %s. It was moved to %s. Delete it if you do not need it.", self.log, why, aside)
        return aside

    def warn_of_aside(self) -> None:
        """Warn about files set aside, which may still contain erased text."""
        for path in sorted(self.path.glob(f"{ASIDE}*")):
            log.warning("%s was set aside, and may still hold what has been forgotten now: delete it.", path)

    def check_space(self) -> None:
        """Refuse to write when the disk is nearly full.

        The index maps its files into memory: on a full disk a page that cannot be allocated kills the process
        (SIGBUS). So a reserve stays free.
        """
        with storage_errors(f"look at the disk of {self.path}"):
            disk = os.statvfs(self.path)
        if disk.f_bavail * disk.f_frsize < RESERVE:
            raise NotWritable(
                f"The disk of {self.path} is nearly full; nothing was written.",
                f"Free some space: the ledger needs {RESERVE // 2**20 + 1} MB to write safely.",
            )

    def note_format(self, format: int, embedder: str, dimension: int) -> None:
        """Write a manifest with the format, by which older versions know that they cannot read the ledger."""
        file, made = self.path / MANIFEST, {"format": format, "embedder": embedder, "dimension": dimension}
        text = json.dumps(made | {"generation": 0})  # older versions read no manifest without it
        with storage_errors(f"write {file}"):
            if embedder and (not file.exists() or file.read_text(errors="replace") != text):
                write_durably(file, text)
        with suppress(OSError):  # another owner's folder: then its loss is not noticed
            make_private_file(kept_of(self.path))

    def keep_private(self) -> None:
        """Close every file to others, unless the folder is open only to its group, which was on purpose."""
        if is_shared(self.path):
            return
        was_open = is_open_to_all(self.path)
        close_to_others(kept_of(self.path))
        close_all_to_others(self.path)
        if was_open and not is_open_to_all(self.path):
            log.warning(
                "Everybody on this machine could read %s; only you can from now on. "
                "To share it with a group: chmod -R g+rwX %s.",
                self.path,
                self.path,
            )

    def close(self) -> None:
        """Seal the log if no other process has it open, and release the folder."""
        try:
            if self.log.exists() and self.is_alone():
                seal(self.path, LOG_FILES)
        finally:
            self.release()

    def release(self) -> None:
        """Release the lock on the folder, which may have been deleted meanwhile."""
        with suppress(OSError):
            self.keep_private()
        os.close(self._lock)


def _check_kind(path: Path) -> None:
    if path.exists() and not path.is_dir():
        raise LedgerMismatch(f"{path} is a file, not a ledger.", "Give the path of a folder.")
    with storage_errors(f"read {path}"):
        names = {each.name for each in path.iterdir()} if path.exists() else set()
    if any(not name.startswith(KNOWN_NAMES) for name in names) and not names & {LOG, MANIFEST}:
        raise LedgerMismatch(
            f"{path} is not empty and holds no ledger; nothing was touched.",
            "Give an empty or a new folder, or the folder of a ledger.",
        )


SEAL = "mneme.seal"
CHUNK_BYTES = 4 * 1024 * 1024
ZERO_PAGE = bytes(4096)


def seal(folder: Path, files: str = "**/*") -> None:
    """Write the checksum of closed files; if the disk is full, none: they are checked when opened."""
    try:
        (folder / SEAL).write_text(_checksum(folder, files))
    except OSError:
        with suppress(OSError):
            unseal(folder)


def is_sealed(folder: Path, files: str = "**/*") -> bool | None:
    """Return whether files are as they were closed; None if there is no seal."""
    try:
        noted = (folder / SEAL).read_text(errors="replace")
        return None if "{" in noted else noted == _checksum(folder, files)  # earlier versions wrote JSON
    except OSError:
        return False if (folder / SEAL).exists() else None


def unseal(folder: Path) -> None:
    """Remove a seal, since the files will change from now on."""
    (folder / SEAL).unlink(missing_ok=True)


def _checksum(folder: Path, files: str) -> str:
    """Return a checksum of files' names, sizes and non-zero pages."""
    total = 0
    for path in sorted(each for each in folder.glob(files) if each.is_file() and each.name != SEAL):
        total = zlib.crc32(f"{path.relative_to(folder)} {path.stat().st_size}".encode(), total)
        for offset, data in parts(path):
            for start in range(0, len(data), len(ZERO_PAGE)):
                page = data[start : start + len(ZERO_PAGE)]
                if page != ZERO_PAGE[: len(page)]:  # a file system may fill a hole, or make one
                    total = zlib.crc32(page, total ^ (offset + start) & 0xFFFFFFFF)
    return f"{total:08x}"


def parts(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield the parts of a file between its holes, with offsets; the engine's files are mostly holes."""
    with path.open("rb", buffering=0) as opened:
        file, at = opened.fileno(), 0
        size = os.fstat(file).st_size
        while at < size:
            begin, end = at, size
            try:
                begin = os.lseek(file, at, os.SEEK_DATA)
                end = os.lseek(file, begin, os.SEEK_HOLE)
            except OSError as refusal:  # only a hole follows, or the file system has no holes
                begin = size if refusal.errno == errno.ENXIO else at
            for offset in range(begin, end, CHUNK_BYTES):
                yield offset, os.pread(file, min(CHUNK_BYTES, end - offset), offset)
            at = end
