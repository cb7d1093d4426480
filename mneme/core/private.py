"""Files that hold what people said: only their owner reads them, whatever the umask."""

import os
from contextlib import suppress
from pathlib import Path

from mneme.core.durable import sync

EVERYBODY = 0o007
OTHERS = 0o077


def make_private_folder(path: Path) -> None:
    """Make a folder, and those above it that are missing, for the owner alone (0700)."""
    for missing in reversed([each for each in (path, *path.parents) if not each.exists()]):
        missing.mkdir(mode=0o700, exist_ok=True)
        sync(missing.parent)
    if not path.is_dir():
        raise NotADirectoryError(f"{path} is not a folder")


def make_private_file(path: Path) -> None:
    """Make an empty file for the owner alone (0600), unless it exists."""
    if not path.exists():
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))


def is_open_to_all(path: Path) -> bool:
    """Return whether everybody on the machine may enter or read it, as a common umask leaves it.

    What is open to its group alone was made so on purpose.
    """
    return bool(path.stat().st_mode & EVERYBODY)


def is_shared(path: Path) -> bool:
    """Return whether it is open to its group, and to nobody else."""
    mode = path.stat().st_mode
    return bool(mode & OTHERS) and not mode & EVERYBODY


def close_all_to_others(folder: Path) -> None:
    """Take away the rights of everybody but the owner to a folder and everything in it."""
    for at, _, files in os.walk(folder):  # another process may be removing some of them
        for path in (Path(at), *(Path(at, name) for name in files)):
            close_to_others(path)


def close_to_others(path: Path) -> None:
    """Take away the rights of everybody but the owner; where this user may not, it stays as it is."""
    with suppress(OSError):
        mode = path.stat().st_mode
        if mode & OTHERS:
            path.chmod(mode & 0o700)
