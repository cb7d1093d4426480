"""The bytes of sparse files: the engine's are mostly holes, which take no room and no time here."""

import errno
import os
import zlib
from collections.abc import Iterator
from pathlib import Path

AT_ONCE = 4 * 1024 * 1024
NOTHING = bytes(4096)


def parts(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield the parts of a file that are not holes, each with its offset in bytes."""
    with path.open("rb", buffering=0) as file:
        size, at = os.fstat(file.fileno()).st_size, 0
        while at < size:
            begin, end = _data(file.fileno(), at, size)
            for offset in range(begin, end, AT_ONCE):
                yield offset, os.pread(file.fileno(), min(AT_ONCE, end - offset), offset)
            at = end


def checksum(path: Path) -> tuple[int, int]:
    """Return a file's size in bytes and the checksum of what is not zero in it, wherever its holes are."""
    total = 0
    for offset, data in parts(path):
        for start in range(0, len(data), len(NOTHING)):
            page = data[start : start + len(NOTHING)]
            if page != NOTHING[: len(page)]:
                total = zlib.crc32(page, total ^ (offset + start) & 0xFFFFFFFF)
    return path.stat().st_size, total


def on_disk(folder: Path) -> int:
    """Return how many bytes a folder's files take on the disk, without their holes."""
    return sum(path.stat().st_blocks * 512 for path in folder.rglob("*") if path.is_file())


def copy_file(source: Path, target: Path) -> None:
    """Copy a file with its holes."""
    with target.open("xb", buffering=0) as file:
        for offset, data in parts(source):
            os.pwrite(file.fileno(), data, offset)
        file.truncate(source.stat().st_size)


def copy_folder(source: Path, target: Path) -> None:
    """Copy a folder of plain files into a new one, with their holes."""
    target.mkdir(parents=True)
    for path in sorted(source.iterdir()):
        (copy_folder if path.is_dir() else copy_file)(path, target / path.name)


def _data(file: int, at: int, size: int) -> tuple[int, int]:
    """Return where the next data begins and ends; all of the rest where the file system knows no holes."""
    if not hasattr(os, "SEEK_DATA"):
        return at, size
    try:
        begin = os.lseek(file, at, os.SEEK_DATA)
        return begin, os.lseek(file, begin, os.SEEK_HOLE)
    except OSError as refusal:
        return (size, size) if refusal.errno == errno.ENXIO else (at, size)
