"""The files of an export, from a zip archive, a folder or by themselves; nothing is unpacked on the disk."""

import re
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from pathlib import Path, PurePosixPath
from typing import IO, Any

from mneme.core.errors import BadInput
from mneme.importing.elements import elements

CONVERSATIONS = re.compile(r"conversations(-\d+)?\.json", re.IGNORECASE)
"""The files in which both programs write conversations; large exports have several with numbers."""
MOST_MEMBERS = 100_000
LARGEST = 8 << 30
"""Bytes that the conversations of one export may have."""
HIGHEST_RATIO = 250
"""How many times smaller than its content a file of text can be in an archive; bombs go beyond 1000."""
HINT = "Give the zip file that was sent to you, the folder that was in it, or its conversations.json."


def conversations(export: Path) -> Iterator[Any]:
    """Yield every conversation of an export, as its JSON stands there. Raises BadInput."""
    try:
        if export.is_dir():
            yield from _in_files(sorted(each for each in export.rglob("*.json") if _is_wanted(each.name)))
        elif zipfile.is_zipfile(export):
            yield from _in_archive(export)
        else:
            yield from _in_files([export])
    except OSError as error:
        raise BadInput(f"Cannot read {export}: {error.strerror or error}.", HINT) from error


def _is_wanted(name: str) -> bool:
    return CONVERSATIONS.fullmatch(name) is not None


def _in_files(files: list[Path]) -> Iterator[Any]:
    if not files:
        raise BadInput("This folder has no conversations.json.", HINT)
    for file in files:
        with file.open("rb") as raw:
            yield from _in_stream(raw, file.name)


def _in_archive(export: Path) -> Iterator[Any]:
    with _damage_told(export), zipfile.ZipFile(export) as archive:
        for member in _members(archive, export):
            with archive.open(member) as raw:
                yield from _in_stream(raw, member.filename)


def _members(archive: zipfile.ZipFile, export: Path) -> list[zipfile.ZipInfo]:
    """Return what is to be read of an archive. Raises BadInput for one that was made to do harm."""
    everything = archive.infolist()
    if len(everything) > MOST_MEMBERS:
        raise BadInput(f"{export} has {len(everything):,} files; an export has fewer.", HINT)
    found = [each for each in everything if _is_wanted(PurePosixPath(each.filename).name)]
    found = [each for each in found if "__MACOSX" not in each.filename]
    if not found:
        raise BadInput(f"{export} has no conversations.json.", HINT)
    for each in found:
        _check(each)
    if sum(each.file_size for each in found) > LARGEST:
        raise BadInput(f"The conversations in {export} have more than {LARGEST >> 30} GB.", HINT)
    return sorted(found, key=lambda each: each.filename)


def _check(member: zipfile.ZipInfo) -> None:
    """Raise BadInput for a file of an archive that cannot be read, or that nobody should read."""
    name, place = member.filename, PurePosixPath(member.filename)
    if place.is_absolute() or ".." in place.parts or ":" in place.parts[0]:
        raise BadInput(f"The archive has an unsafe name: {name!r}.", "It is not an export; do not unpack it.")
    if member.flag_bits & 1:
        raise BadInput(f"{name} is encrypted.", "Unpack the archive with its password and give the folder.")
    if member.file_size > HIGHEST_RATIO * max(member.compress_size, 1024):
        raise BadInput(
            f"{name} would be {member.file_size // max(member.compress_size, 1):,} times larger than in the "
            "archive: this is no export.",
            "If you trust it, unpack it yourself and give the folder.",
        )


@contextmanager
def _damage_told(export: Path) -> Iterator[None]:
    try:
        yield
    except (zipfile.BadZipFile, zlib.error, EOFError) as error:
        raise BadInput(f"{export} is damaged: {error}.", "Download it again.") from error
    except NotImplementedError as error:
        hint = "Unpack it yourself and give the folder."
        raise BadInput(f"{export} is packed in a way that cannot be read: {error}.", hint) from error


def _in_stream(raw: IO[bytes], name: str) -> Iterator[Any]:
    with TextIOWrapper(raw, encoding="utf-8-sig") as text:
        yield from elements(text, name)
