"""Seals: the size and checksum of files as they were closed, by which damage to them is noticed."""

import json
import zlib
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from mneme.stores.ledger.sparse import checksum

SEAL = "mneme.seal"
AT_ONCE = 4
"""Files whose checksums are computed at the same time."""


def seal(folder: Path, seal_at: Path | None = None, files: Iterable[Path] | None = None) -> None:
    """Note what closed files are: those given, or all in a folder."""
    sums = json.dumps(_sums(folder, files))
    (seal_at or folder / SEAL).write_text(f"{zlib.crc32(sums.encode()):08x} {sums}")


def is_sealed(folder: Path, seal_at: Path | None = None, files: Iterable[Path] | None = None) -> bool | None:
    """Say whether files are as they were closed; None where that was not noted."""
    try:
        check, sums = (seal_at or folder / SEAL).read_text(errors="replace").split(" ", 1)
        if int(check, 16) != zlib.crc32(sums.encode()):
            return False
        noted = {name: tuple(each) for name, each in json.loads(sums).items()}
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, AttributeError):
        return False
    try:
        return noted == _sums(folder, files)
    except OSError:
        return False


def unseal(folder: Path, seal_at: Path | None = None) -> None:
    """Remove a seal: the files change from now on."""
    (seal_at or folder / SEAL).unlink(missing_ok=True)


def _sums(folder: Path, files: Iterable[Path] | None) -> dict[str, tuple[int, int]]:
    wanted = [*(files if files is not None else folder.rglob("*"))]
    names = [str(p.relative_to(folder)) for p in sorted(wanted) if p.is_file() and p.name != SEAL]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return dict(zip(names, pool.map(lambda name: checksum(folder / name), names), strict=True))
