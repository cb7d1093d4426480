"""Durable writes: sync a file's content and its folder, so that data and name survive a power cut."""

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

SYNC_THREADS = 16
"""Files synced at the same time: they share the disk's commits."""


def sync(path: Path) -> None:
    """Make a file's content, or the names in a folder, survive a power cut."""
    opened = os.open(path, os.O_RDONLY)  # a folder cannot be opened for writing, and need not be
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def sync_all(folder: Path) -> None:
    """Make a folder, and everything below it, survive a power cut."""
    with ThreadPoolExecutor(SYNC_THREADS) as pool:
        list(pool.map(sync, [folder, *folder.rglob("*")]))


def write_durably(path: Path, content: str | bytes, mode: int = 0o600) -> None:
    """Replace a file atomically: after a power cut the new file or the former one is there, complete."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")  # the same folder: only then is the rename atomic
    try:
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT, mode), "wb") as file:
            file.truncate()  # a killed process of the same id may have left a longer draft
            file.write(content.encode() if isinstance(content, str) else content)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
    sync(path.parent)  # else a power cut may undo the rename
