"""Copies of a ledger's files with their holes: copied as they look, they would fill the disk."""

import os
from pathlib import Path

from mneme.stores.ledger.folder import parts


def copy_folder(source: Path, target: Path) -> None:
    """Copy a folder of plain files into a new one."""
    target.mkdir(parents=True)
    for path in sorted(source.iterdir()):
        (copy_folder if path.is_dir() else _copy_file)(path, target / path.name)


def _copy_file(source: Path, target: Path) -> None:
    with target.open("xb", buffering=0) as file:
        for offset, data in parts(source):
            os.pwrite(file.fileno(), data, offset)
        file.truncate(source.stat().st_size)
