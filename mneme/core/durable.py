"""What a power cut leaves: a file's content once it is synced, and its name once its folder is."""

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

AT_ONCE = 16
"""Files synced at the same time: they share the disk's commits."""


def sync(path: Path) -> None:
    """Make a file's content, or the names in a folder, survive a power cut."""
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def sync_all(folder: Path) -> None:
    """Make a folder, and everything below it, survive a power cut."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(sync, [folder, *folder.rglob("*")]))


def write_durably(path: Path, content: bytes) -> None:
    """Write a file anew: after a power cut it is there as a whole, or the former one is."""
    temporary = path.with_suffix(".tmp")
    with temporary.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
    sync(path.parent)
