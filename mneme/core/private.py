"""Private files: only their owner can read them, whatever the umask."""

import os
from contextlib import suppress
from pathlib import Path

from mneme.core.durable import sync

WORLD_BITS = 0o007
OTHERS_BITS = 0o077


def make_private_folder(path: Path) -> None:
    """Make a folder, and its missing parents, for the owner alone (0700)."""
    for missing in reversed([each for each in (path, *path.parents) if not each.exists()]):  # outermost first
        missing.mkdir(mode=0o700, exist_ok=True)  # another process may make it meanwhile
        sync(missing.parent)  # so that the folder's name survives a power cut
    if not path.is_dir():
        raise NotADirectoryError(f"{path} is not a folder")


def make_private_file(path: Path) -> None:
    """Make an empty file for the owner alone (0600), unless it exists."""
    if not path.exists():
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))  # private from its first moment


def is_open_to_all(path: Path) -> bool:
    """Return whether everybody on the machine may enter or read the path, as a common umask allows.

    A path that is open to its group alone was made so on purpose.
    """
    return bool(path.stat().st_mode & WORLD_BITS)


def is_shared(path: Path) -> bool:
    """Return whether the path is open to its group, and to nobody else."""
    mode = path.stat().st_mode
    return bool(mode & OTHERS_BITS) and not mode & WORLD_BITS


def close_all_to_others(folder: Path) -> None:
    """Remove everybody else's rights to a folder and to everything in it."""
    for at, _, files in os.walk(folder):  # another process may be removing some of them
        for path in (Path(at), *(Path(at, name) for name in files)):
            close_to_others(path)


def close_to_others(path: Path) -> None:
    """Remove everybody else's rights; a path that this user may not change stays as it is."""
    with suppress(OSError):
        mode = path.stat().st_mode
        if mode & OTHERS_BITS:
            path.chmod(mode & 0o700)
