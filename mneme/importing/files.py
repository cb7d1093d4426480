"""Files of other programs: JSON of any size, archives of exports, and databases; none of them is changed."""

import json
import re
import shutil
import sqlite3
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import closing, contextmanager
from io import TextIOWrapper
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any, TextIO

from mneme.core.errors import BadInput

CONVERSATIONS = re.compile(r"conversations(-\d+)?\.json", re.IGNORECASE)
"""The files in which both programs write conversations; large exports have several with numbers."""
MAX_MEMBERS = 100_000
MAX_BYTES = 8 << 30
"""Maximum bytes of the conversations in one export."""
MAX_RATIO = 250
"""Maximum compression ratio of a text file in an archive; zip bombs exceed 1000."""
EXPORT_HINT = "Give the zip file that was sent to you, the folder that was in it, or its conversations.json."
CHUNK_CHARS = 1 << 20
"""Characters that are read at once."""
MAX_CHARACTERS = 100_000_000
"""Maximum characters of one element."""
ELEMENT_GAP = re.compile(r"[\s,]*")
ITEM_KEYS = ("conversations", "results", "items", "memories")
"""Field names under which an object may have the elements."""
SQLITE = b"SQLite format 3\x00"
_decoder = json.JSONDecoder()


def conversations(export: Path) -> Iterator[Any]:
    """Yield every conversation of an export, as its raw JSON. Raises BadInput."""
    try:
        if export.is_dir():
            files = sorted(each for each in export.rglob("*.json") if CONVERSATIONS.fullmatch(each.name))
            if not files:
                raise BadInput("This folder has no conversations.json.", EXPORT_HINT)
        elif zipfile.is_zipfile(export):
            yield from _in_archive(export)
            return
        else:
            files = [export]
        for file in files:
            with file.open(encoding="utf-8-sig") as text:  # some programs write a byte-order mark
                yield from elements(text, file.name)
    except OSError as error:
        raise BadInput(f"Cannot read {export}: {error.strerror or error}.", EXPORT_HINT) from error


def _in_archive(export: Path) -> Iterator[Any]:
    try:
        with zipfile.ZipFile(export) as archive:
            for member in _members(archive, export):
                with archive.open(member) as raw, TextIOWrapper(raw, encoding="utf-8-sig") as text:
                    yield from elements(text, member.filename)
    except (zipfile.BadZipFile, zlib.error, EOFError) as error:
        raise BadInput(f"{export} is damaged: {error}.", "Download it again.") from error
    except NotImplementedError as error:
        hint = "Unpack it yourself and give the folder."
        raise BadInput(f"{export} is packed in a way that cannot be read: {error}.", hint) from error


def _members(archive: zipfile.ZipFile, export: Path) -> list[zipfile.ZipInfo]:
    """Return the files to read in an archive. Raises BadInput for a malicious one."""
    everything = archive.infolist()
    if len(everything) > MAX_MEMBERS:
        raise BadInput(f"{export} has {len(everything):,} files; an export has fewer.", EXPORT_HINT)
    found = [
        each
        for each in everything
        if CONVERSATIONS.fullmatch(PurePosixPath(each.filename).name) and "__MACOSX" not in each.filename
    ]
    if not found:
        raise BadInput(f"{export} has no conversations.json.", EXPORT_HINT)
    for each in found:
        _check(each)
    if sum(each.file_size for each in found) > MAX_BYTES:
        raise BadInput(f"The conversations in {export} have more than {MAX_BYTES >> 30} GB.", EXPORT_HINT)
    return sorted(found, key=lambda each: each.filename)


def _check(member: zipfile.ZipInfo) -> None:
    """Raise BadInput for a file of an archive that cannot or should not be read."""
    name, place = member.filename, PurePosixPath(member.filename)
    if place.is_absolute() or ".." in place.parts or ":" in place.parts[0]:  # a drive of Windows
        raise BadInput(f"The archive has an unsafe name: {name!r}.", "It is not an export; do not unpack it.")
    if member.flag_bits & 1:  # bit 0 of the ZIP format's flags
        raise BadInput(f"{name} is encrypted.", "Unpack the archive with its password and give the folder.")
    if member.file_size > MAX_RATIO * max(member.compress_size, 1024):  # a small file does no harm
        times = member.file_size // max(member.compress_size, 1)
        raise BadInput(
            f"{name} would be {times:,} times larger than in the archive: this is no export.",
            "If you trust it, unpack it yourself and give the folder.",
        )


def elements_of(file: Path) -> Iterator[Any]:
    """Yield the `elements` of a file. Raises BadInput, also if the file cannot be read."""
    try:
        with file.open(encoding="utf-8-sig") as text:
            yield from elements(text, str(file))
    except OSError as error:
        raise BadInput(f"Cannot read {file}: {error.strerror or error}.", "Is the name right?") from error


def elements(file: TextIO, name: str) -> Iterator[Any]:
    """Yield the elements of an array, of the array in an object, or of JSON Lines, one at a time.

    At most one element is in memory. The package `ijson` (3.6.0) was tried and is as fast, but it does not
    bound elements, and 100 kB of opening brackets make it take all memory. Raises BadInput for invalid JSON,
    for an element that is too large, and for a truncated file.
    """
    try:
        for value in _values(file, name):
            found = [value[each] for each in ITEM_KEYS if each in value] if isinstance(value, dict) else []
            yield from found[0] if found and isinstance(found[0], list) else [value]
    except UnicodeDecodeError as error:
        raise BadInput(f"{name} is not UTF-8 text.", "Give the file as it was exported.") from error


def _values(file: TextIO, name: str) -> Iterator[Any]:
    """Yield the values of an array, or consecutive values."""
    # `text` is the part that is in memory, `place` where the next value or mark is looked for.
    text, place, is_array, number = "", 0, False, 0
    while True:
        if between := ELEMENT_GAP.match(text, place):
            place = between.end()
        if place == len(text):
            text, place = file.read(CHUNK_CHARS), 0
            if text:
                continue
            if number and not is_array:
                return
            raise BadInput(f"{name} ends after {number} elements, in the middle.", "Export it again.")
        if not number and not is_array and text[place] == "[":
            is_array, place = True, place + 1
        elif is_array and text[place] == "]":
            return
        else:
            value, text, place = _whole(file, text, place, f"{name}, element {number + 1},")
            number += 1
            yield value


def _whole(file: TextIO, text: str, place: int, name: str) -> tuple[Any, str, int]:
    """Return the value at a position, reading on until it is complete, and the position after it."""
    while True:
        try:
            value, end = _decoder.raw_decode(text, place)
        except RecursionError as error:
            raise BadInput(f"{name} is nested too deeply.", "It is not an export.") from error
        except ValueError as error:
            if len(text) - place > MAX_CHARACTERS:
                large = f"{name} has more than {MAX_CHARACTERS:,} characters."
                raise BadInput(large, "It is not an export.") from error
            more = file.read(max(CHUNK_CHARS, len(text) - place))  # doubled: each try parses anew
            if not more:
                raise BadInput(f"{name} is not JSON: {error}.", "Export it again.") from error
            text, place = text[place:] + more, 0
        else:
            return value, text, end


def is_sqlite(file: Path) -> bool:
    """Return whether a file is an SQLite database."""
    try:
        with file.open("rb") as raw:
            return raw.read(len(SQLITE)) == SQLITE
    except OSError:
        return False


@contextmanager
def opened_copy(file: Path) -> Iterator[sqlite3.Connection]:
    """Open a copy of an SQLite database; rows can be read by the names of their columns. Raises BadInput."""
    hint = "Close the program that uses it, and try again."
    with TemporaryDirectory(prefix="mneme-import-") as folder:
        try:
            # A copy, with writes that are not in the file yet: SQLite writes beside a file even to read it.
            for ending in ("", "-wal", "-journal"):
                if (part := Path(f"{file}{ending}")).exists():
                    shutil.copyfile(part, Path(folder, f"copy{ending}"))
            with closing(sqlite3.connect(Path(folder, "copy"))) as connection:
                connection.row_factory = sqlite3.Row
                connection.text_factory = lambda raw: raw.decode(errors="replace")
                yield connection
        except OSError as error:
            raise BadInput(f"Cannot read {file}: {error.strerror or error}.", hint) from error
        except sqlite3.Error as error:
            raise BadInput(f"{file} cannot be read as a database: {error}.", hint) from error
