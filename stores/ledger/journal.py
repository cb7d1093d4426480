"""The journal of a generation: every version in full, each with a checksum, in a file of plain lines.

It is the truth from which the engine's index can always be built anew. A line is a checksum and a JSON list:
a point's id, its payload, and how many lines of the same write follow. Heads are not in it, since they follow
from the versions; what they alone know, the group that a record was placed in, is a line with its scope.
"""

import errno
import json
import os
import threading
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from pydantic import ValidationError

from mneme.core.durable import sync
from mneme.stores.ledger.engine import Payload, head_point
from mneme.stores.ledger.manifest import storage_errors
from mneme.stores.ledger.records import Version, record_id, version_id

JOURNAL = "versions.journal"


class Content(NamedTuple):
    """What a journal holds, in order, the numbers of the damaged lines, and how many lines it has."""

    entries: list[tuple[str, Payload]]
    damaged: list[int]
    lines: int = 0

    @property
    def ends_torn(self) -> bool:
        """Whether all damage is at the end, where a power cut leaves it: in what was not confirmed."""
        return self.damaged == [*range(self.lines - len(self.damaged) + 1, self.lines + 1)]

    @property
    def ids(self) -> set[str]:
        """Return the ids of the points that must be in the index, without those of the heads."""
        return {point for point, payload in self.entries if "scope" not in payload or "forgotten" in payload}


class Journal:
    """An open journal, to which writes are added once they are in the index.

    Where it is not whole, something that is in the index is missing: it must be written anew.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.is_whole = path, True
        self._added = self._synced = 0
        self._syncing = threading.Lock()
        with storage_errors(f"write {path}"):
            self._file = path.open("ab", buffering=0)

    def add(self, points: Mapping[str, Payload]) -> None:
        """Add the points of one write. Raises StorageFailure; then the journal is not whole any more."""
        text = "".join(lines(kept(points))).encode()
        with self._failing(), storage_errors(f"write {self.path}"):
            if self._file.write(text) != len(text):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self._added += 1

    def flush(self) -> None:
        """Make everything that was added survive a power cut; one sync does for all that wait for it.

        Raises StorageFailure, also after a sync that failed: the system would call the next one a success.
        """
        with self._syncing, storage_errors(f"write {self.path}"):
            added = self._added
            if added == self._synced or self._file.closed:
                return
            if not self.is_whole:
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            with self._failing():
                os.fsync(self._file.fileno())
            self._synced = added

    def close(self) -> None:
        with self._syncing:
            self._file.close()

    @contextmanager
    def _failing(self) -> Iterator[None]:
        try:
            yield
        except BaseException:
            self.is_whole = False
            raise


def kept(points: Mapping[str, Payload]) -> dict[str, Payload]:
    """Return the points that the journal keeps: all but the heads."""
    return {point: payload for point, payload in points.items() if "n" not in payload}


def placement(head: Payload) -> Payload | None:
    """Return what the journal keeps of a head that was placed in a group."""
    version = Version.model_validate_json(head["event"])
    usual = head_point("", version, "", None, None).payload["scope"]
    return None if head["scope"] == usual else {"scope": head["scope"]}


def lines(points: Mapping[str, Payload]) -> Iterator[str]:
    """Yield the lines of one write."""
    for left, (point, payload) in zip(range(len(points) - 1, -1, -1), points.items(), strict=True):
        body = json.dumps([point, payload, left], ensure_ascii=False, separators=(",", ":"))
        yield f"{zlib.crc32(body.encode()):08x} {body}\n"


def write(path: Path, points: Iterable[tuple[str, Payload]]) -> None:
    """Write a journal anew, whole or not at all, from all points of an index."""
    temporary = path.with_suffix(".tmp")
    with storage_errors(f"write {path}"), temporary.open("w", encoding="utf-8") as file:
        for point, payload in points:
            entry = placement(payload) if "n" in payload else payload
            if entry is not None:
                file.writelines(lines({point: entry}))
        file.flush()
        os.fsync(file.fileno())
    with storage_errors(f"write {path}"):
        temporary.replace(path)
        sync(path.parent)


def read(path: Path) -> Content:
    """Read a journal; a write of which a line is missing at the end was never confirmed, and is left out."""
    entries: list[tuple[str, Payload]] = []
    damaged: list[int] = []
    begun = 0
    with storage_errors(f"read {path}"):
        text = path.read_bytes()
    *whole, rest = text.split(b"\n")
    for number, line in enumerate(whole, 1):
        entry = _entry(line)
        if entry is None:
            damaged.append(number)
            continue
        entries.append(entry[:2])
        begun = begun + 1 if entry[2] else 0
    if rest:
        damaged.append(len(whole) + 1)
    return Content(entries[: len(entries) - begun], damaged, len(whole) + bool(rest))


def _entry(line: bytes) -> tuple[str, Payload, int] | None:
    try:
        check, body = line[:8], line[9:]
        if int(check, 16) != zlib.crc32(body):
            return None
        point, payload, left = json.loads(body)
    except (ValueError, TypeError):
        return None
    return point, payload, left


class Histories(NamedTuple):
    """Records: their versions (as JSON) by number, their scopes where placed; and all other points."""

    versions: dict[str, dict[int, str]]
    placed: dict[str, str]
    others: dict[str, Payload]

    @property
    def gaps(self) -> list[str]:
        """Name the versions that are missing before a record's last one."""
        odd = [versions for versions in self.versions.values() if len(versions) < max(versions)]
        heads = [Version.model_validate_json(versions[max(versions)]) for versions in odd]
        return [
            f"{head.key}, version {number}"
            for head, versions in zip(heads, odd, strict=True)
            for number in range(head.first, head.version)
            if number not in versions
        ]


def histories(entries: Iterable[tuple[str, Payload]]) -> Histories:
    """Put entries together; a version that is no version, or has not the id it must have, is left out."""
    found = Histories({}, {}, {})
    for point, payload in entries:
        if "event" in payload:
            _add_version(found, point, payload["event"])
        elif "scope" in payload and "forgotten" not in payload:
            found.placed[point] = payload["scope"]
        else:
            found.others[point] = payload
    return found


def _add_version(found: Histories, point: str, event: str) -> None:
    try:
        version = Version.model_validate_json(event)
    except ValidationError:
        return
    root = record_id(version.namespace, version.key)
    if point == version_id(root, version.version):
        found.versions.setdefault(root, {})[version.version] = event
        found.placed.pop(root, None)
