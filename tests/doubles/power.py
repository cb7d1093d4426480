"""What a power cut leaves of a folder: what was synced for certain, and of the rest any part.

A file has the content that it had when it was last synced; each of its pages may be newer. A name is there
once its folder has been synced, by whatever call it came (a rename is one change, wherever it moves from and
to); a change of names that was not synced may have been kept all the same. That is less than what common file
systems promise, which keep changes of names in their order.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from mneme.stores.ledger.folder import parts
from tests.doubles.calls import Call

PAGE = 4096
ROOT = 0
"""The number of the folder itself."""
Names = dict[tuple[int, str], int]
"""The number of a file or folder, by the number of the folder that it is in and its name there."""
Change = dict[tuple[int, str], int | None]
Kept = Callable[[], bool]
"""Asked of each page and change of names that was not synced: whether it was kept all the same."""


class Content(NamedTuple):
    """A file's size in bytes, and its pages that are not zero."""

    size: int
    pages: dict[int, bytes]


EMPTY = Content(0, {})


class Disk:
    """A folder, and how much of it is synced; call `note` before each call that changes or syncs it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._numbers: dict[int, int] = {}  # by inode
        self._count = ROOT
        self._folders = {ROOT}
        self._names: Names = {}
        self._synced_names: Names = {}
        self._synced: dict[int, Content] = {}
        self._changes: list[Change] = []

    def note(self, call: Call) -> None:
        """Look at the folder before a call; what the call syncs is safe from then on."""
        number = self._look().get(call.path)
        if number is None or call.kind not in {"sync", "msync"}:
            return
        if number in self._folders:
            self._sync_names(number)
        else:
            self._synced[number] = _synced(call, self._synced.get(number, EMPTY))

    def cut(self, place: Path, kept: Kept = lambda: False) -> None:
        """Write what a cut leaves now into a new folder: what was synced, and what was kept of the rest."""
        paths = {number: path for path, number in self._look().items()}
        names = dict(self._synced_names)
        for change in self._changes:
            if kept():
                _apply(change, names)
        place.mkdir()
        waiting = [(ROOT, place)]
        while waiting:
            folder, at = waiting.pop()
            for (within, name), number in names.items():
                if within == folder and number in self._folders:
                    (at / name).mkdir()
                    waiting.append((number, at / name))
                elif within == folder:
                    before = self._synced.get(number, EMPTY)
                    now = _content(paths[number]) if number in paths else before
                    _write(at / name, _mixed(before, now, kept))

    def _look(self) -> dict[Path, int]:
        """Return the numbers of files and folders by their paths; note which names changed."""
        try:
            return self._seen()
        except FileNotFoundError:  # another thread had been told to go on, and removed it just now
            return self._look()

    def _seen(self) -> dict[Path, int]:
        found: dict[Path, int] = {self.root: ROOT}
        names: Names = {}
        inodes: dict[int, int] = {}
        for path in sorted(self.root.rglob("*")):
            inode = path.stat().st_ino
            if inode not in self._numbers:
                self._count = self._numbers[inode] = self._count + 1
            found[path] = inodes[inode] = self._numbers[inode]
            names[found[path.parent], path.name] = found[path]
            if path.is_dir():
                self._folders.add(found[path])
        changed = {name for name in names.keys() | self._names if names.get(name) != self._names.get(name)}
        if changed:
            self._changes.append({name: names.get(name) for name in changed})
        self._numbers, self._names = inodes, names
        return found

    def _sync_names(self, folder: int) -> None:
        """Keep all changes that touch a folder."""
        touching = [change for change in self._changes if any(within == folder for within, _ in change)]
        for change in touching:
            _apply(change, self._synced_names)
        self._changes = [change for change in self._changes if change not in touching]


def _apply(change: Change, names: Names) -> None:
    for name, number in change.items():
        names.pop(name, None)
        if number is not None:
            names[name] = number


def _content(path: Path) -> Content:
    pages = {}
    for offset, data in parts(path):
        for start in range(0, len(data), PAGE):
            page = data[start : start + PAGE]
            if page.count(0) != len(page):
                pages[(offset + start) // PAGE] = page
    return Content(path.stat().st_size, pages)


def _synced(call: Call, before: Content) -> Content:
    now = _content(call.path)
    if call.kind == "sync":
        return now
    offset, _, length = call.more.partition("+")
    synced = range(int(offset) // PAGE, (int(offset) + int(length) + PAGE - 1) // PAGE)
    kept = {number: page for number, page in before.pages.items() if number not in synced}
    return Content(now.size, kept | {number: page for number, page in now.pages.items() if number in synced})


def _mixed(before: Content, now: Content, kept: Kept) -> Content:
    size = now.size if now.size != before.size and kept() else before.size
    pages = dict(before.pages)
    for number in sorted(before.pages.keys() | now.pages):
        if before.pages.get(number) != now.pages.get(number) and kept():
            pages[number] = now.pages.get(number, b"")
    return Content(size, pages)


def _write(path: Path, content: Content) -> None:
    with path.open("xb", buffering=0) as file:
        for number, page in content.pages.items():
            os.pwrite(file.fileno(), page, number * PAGE)
        file.truncate(content.size)
