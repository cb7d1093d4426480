"""Seals: the size and checksum of files as they were closed, by which damage to them is noticed."""

import errno
import json
import os
import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

SEAL = "mneme.seal"
CONCURRENCY = 4
CHUNK_BYTES = 4 * 1024 * 1024
ZERO_PAGE = bytes(4096)


def seal(folder: Path, files: str = "**/*") -> None:
    """Note what the closed files in a folder are; on a full disk nothing: they are checked when opened."""
    sums = json.dumps(_sums(folder, files))
    try:
        (folder / SEAL).write_text(f"{zlib.crc32(sums.encode()):08x} {sums}")
    except OSError:
        with suppress(OSError):
            unseal(folder)


def is_sealed(folder: Path, files: str = "**/*") -> bool | None:
    """Say whether files are as they were closed; None where that was not noted."""
    try:
        check, sums = (folder / SEAL).read_text(errors="replace").split(" ", 1)
        noted = {name: tuple(each) for name, each in json.loads(sums).items()}
        return int(check, 16) == zlib.crc32(sums.encode()) and noted == _sums(folder, files)
    except FileNotFoundError:
        return None if not (folder / SEAL).exists() else False
    except (OSError, ValueError, TypeError, AttributeError):
        return False


def unseal(folder: Path) -> None:
    """Remove a seal: the files change from now on."""
    (folder / SEAL).unlink(missing_ok=True)


def _sums(folder: Path, files: str) -> dict[str, tuple[int, int]]:
    paths = [path for path in sorted(folder.glob(files)) if path.is_file() and path.name != SEAL]
    names = [str(path.relative_to(folder)) for path in paths]
    with ThreadPoolExecutor(CONCURRENCY) as pool:
        return dict(zip(names, pool.map(_checksum, paths), strict=True))


def _checksum(path: Path) -> tuple[int, int]:
    """Return a file's size in bytes and the checksum of what is not zero in it, wherever its holes are."""
    total = 0
    for offset, data in parts(path):
        for start in range(0, len(data), len(ZERO_PAGE)):
            page = data[start : start + len(ZERO_PAGE)]
            if page != ZERO_PAGE[: len(page)]:
                total = zlib.crc32(page, total ^ (offset + start) & 0xFFFFFFFF)
    return path.stat().st_size, total


def parts(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield the parts of a file that are not holes, each with its offset; the engine's are mostly holes."""
    with path.open("rb", buffering=0) as file:
        size, at = os.fstat(file.fileno()).st_size, 0
        while at < size:
            begin, end = _data(file.fileno(), at, size)
            for offset in range(begin, end, CHUNK_BYTES):
                yield offset, os.pread(file.fileno(), min(CHUNK_BYTES, end - offset), offset)
            at = end


def _data(file: int, at: int, size: int) -> tuple[int, int]:
    """Return where the next data begins and ends; all of the rest where the file system knows no holes."""
    if not hasattr(os, "SEEK_DATA"):
        return at, size
    try:
        begin = os.lseek(file, at, os.SEEK_DATA)
        return begin, os.lseek(file, begin, os.SEEK_HOLE)
    except OSError as refusal:
        return (size, size) if refusal.errno == errno.ENXIO else (at, size)
