"""What a power cut leaves of a folder: what was synced for certain, and of the rest any part.

A file has the content that it had when it was last synced; each of its pages may be newer. A name is there
once its folder has been synced, by whatever call it came (a rename is one change, wherever it moves from and
to); a change of names that was not synced may have been kept all the same. That is less than what common file
systems promise, which keep changes of names in their order.
"""

import hashlib
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from mneme.evals.reliability.calls import Call
from mneme.stores.ledger.sparse import parts

PAGE = 4096
ROOT = 0
"""The number of the folder itself."""
Name = tuple[int, str]
"""A folder's number, and a name in it."""
Names = dict[Name, int]


class Content(NamedTuple):
    """A file's size in bytes, and the digests of its pages that are not zero."""

    size: int = 0
    pages: tuple[tuple[int, bytes], ...] = ()


EMPTY = Content()


@dataclass
class State:
    """A folder before a call, as it is and as far as it was synced; `said` was printed by then."""

    call: Call
    said: bytes
    folders: frozenset[int]
    contents: dict[int, Content]
    synced_names: Names
    synced_contents: dict[int, Content]
    changes: list[dict[Name, int | None]]


@dataclass
class Recorder:
    """Keeps those states of a folder that are wanted; call `note` before each call is made."""

    root: Path
    is_wanted: Callable[[], bool] = lambda: True
    calls: int = 0
    states: list[State] = field(default_factory=list)
    pages: dict[bytes, bytes] = field(default_factory=dict)
    _numbers: dict[int, int] = field(default_factory=dict)
    _count: int = ROOT
    _folders: set[int] = field(default_factory=lambda: {ROOT})
    _names: Names = field(default_factory=dict)
    _synced_names: Names = field(default_factory=dict)
    _synced_contents: dict[int, Content] = field(default_factory=dict)
    _changes: list[dict[Name, int | None]] = field(default_factory=list)

    def note(self, call: Call, said: bytes) -> None:
        """Keep the state before a call, where wanted; what a call syncs is safe from then on."""
        numbers = self._look()
        self.calls += 1
        if self.is_wanted():
            self.states.append(self._state(call, said, numbers))
        number = numbers.get(call.path)
        if number is not None and call.kind in ("sync", "msync"):
            self._sync_names(number) if number in self._folders else self._sync_content(number, call)

    def _state(self, call: Call, said: bytes, numbers: dict[Path, int]) -> State:
        return State(
            call,
            said,
            frozenset(self._folders),
            {number: self._content(path) for path, number in numbers.items() if number not in self._folders},
            self._synced_names,
            self._synced_contents,
            list(self._changes),
        )

    def _look(self) -> dict[Path, int]:
        """Read the folder as it is now; return the numbers of its files and folders by their paths."""
        found, names, inodes = {self.root: ROOT}, {}, set()
        for path, stat in _walk(self.root):
            number = self._numbers.get(stat.st_ino)
            if number is None:
                self._count = number = self._count + 1
                self._numbers[stat.st_ino] = number
            inodes.add(stat.st_ino)
            found[path] = number
            names[found[path.parent], path.name] = number
            if path.is_dir():
                self._folders.add(number)
        self._numbers = {inode: number for inode, number in self._numbers.items() if inode in inodes}
        self._note_names(names)
        return found

    def _content(self, path: Path) -> Content:
        pages = []
        for offset, data in parts(path):
            for start in range(0, len(data), PAGE):
                page = data[start : start + PAGE]
                if page.count(0) != len(page):
                    digest = hashlib.blake2b(page, digest_size=12).digest()
                    self.pages.setdefault(digest, page)
                    pages.append(((offset + start) // PAGE, digest))
        return Content(path.stat().st_size, tuple(pages))

    def _note_names(self, names: Names) -> None:
        gone = {name: None for name in self._names if name not in names}
        new = {name: number for name, number in names.items() if self._names.get(name) != number}
        if gone or new:
            self._changes.append({**gone, **new})
            self._names = names

    def _sync_names(self, folder: int) -> None:
        """Keep all changes that touch a folder."""
        synced = dict(self._synced_names)
        for change in self._changes:
            if any(name[0] == folder for name in change):
                _apply(change, synced)
        self._changes = [each for each in self._changes if all(name[0] != folder for name in each)]
        self._synced_names = synced

    def _sync_content(self, number: int, call: Call) -> None:
        now, before = self._content(call.path), self._synced_contents.get(number, EMPTY)
        if call.kind == "msync":
            offset, _, length = call.more.partition("+")
            pages = range(int(offset) // PAGE, (int(offset) + int(length) + PAGE - 1) // PAGE)
            kept = dict(before.pages) | {page: digest for page, digest in now.pages if page in pages}
            now = Content(now.size, tuple(sorted(kept.items())))
        self._synced_contents = {**self._synced_contents, number: now}


def _walk(folder: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """Yield everything below a folder, from above to below."""
    for entry in sorted(os.scandir(folder), key=lambda entry: entry.name):
        yield Path(entry.path), entry.stat(follow_symlinks=False)
        if entry.is_dir(follow_symlinks=False):
            yield from _walk(Path(entry.path))


def _apply(change: dict[Name, int | None], names: Names) -> None:
    for name, number in change.items():
        if number is None:
            names.pop(name, None)
        else:
            names[name] = number


Kept = Callable[[], bool]
"""Asked of each page and change of names that was not synced: whether it was kept all the same."""


def lay_out(state: State, pages: dict[bytes, bytes], place: Path, kept: Kept) -> None:
    """Write what a cut leaves into a new folder: what was synced, and what was kept of the rest."""
    names = dict(state.synced_names)
    for change in state.changes:
        if kept():
            _apply(change, names)
    below: dict[int, list[tuple[str, int]]] = {}
    for (folder, name), number in names.items():
        below.setdefault(folder, []).append((name, number))
    place.mkdir()
    waiting = [(place, ROOT)]
    while waiting:
        path, folder = waiting.pop()
        for name, number in below.get(folder, ()):
            if number in state.folders:
                (path / name).mkdir()
                waiting.append((path / name, number))
            else:
                _write(path / name, _left(state, number, kept), pages)


def _left(state: State, number: int, kept: Kept) -> Content:
    """Return the content that a cut leaves of a file."""
    synced = state.synced_contents.get(number, EMPTY)
    now = state.contents.get(number, synced)
    before, after = dict(synced.pages), dict(now.pages)
    changed = sorted(page for page in before.keys() | after.keys() if before.get(page) != after.get(page))
    mixed = before | {page: after.get(page) for page in changed if kept()}
    size = now.size if now.size == synced.size or kept() else synced.size
    return Content(size, tuple((page, digest) for page, digest in mixed.items() if digest is not None))


def _write(path: Path, content: Content, pages: dict[bytes, bytes]) -> None:
    with path.open("xb", buffering=0) as file:
        for page, digest in content.pages:
            if page * PAGE < content.size:
                os.pwrite(file.fileno(), pages[digest], page * PAGE)
        file.truncate(content.size)
