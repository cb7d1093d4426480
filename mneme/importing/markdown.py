"""Notes in Markdown, as Obsidian and others keep them: each paragraph and list item is a statement.

What a statement stands under (the note, its headings, the line before a list) goes with it. Code, quotations,
tables and HTML are not what the user says, and are left out.
"""

import os
import re
from collections.abc import Iterator, Mapping
from datetime import date, datetime, time
from pathlib import Path
from typing import Any

import yaml

from mneme.core.errors import BadInput
from mneme.importing.item import Item, Reading, clean, first_time, id_of, moment
from mneme.importing.statements import statements

ENDINGS = {".md", ".markdown", ".mdown"}
LARGEST = 2_000_000
"""Bytes of a note; what is larger was not written by hand."""
FRONT_MATTER = re.compile(r"\A---[ \t]*\n(.{0,65536}?\n)(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL)
DATES = (
    "date",
    "created",
    "created_at",
    "date created",
    "creation date",
    "date_created",
    "updated",
    "modified",
)
DAY = re.compile(r"(\d{4}-\d{2}-\d{2})")


def read(place: Path) -> Reading:
    """Return the statements of a note, or of all notes below a folder. Raises BadInput."""
    if not place.exists():
        raise BadInput(f"There is no {place}.", "Give a note, or a folder of notes.")
    reading, root = Reading(), place if place.is_dir() else place.parent
    files = list(_notes(place, reading)) if place.is_dir() else [place]
    for file in files:
        if (text := _text(file, reading)) is not None:
            _take(text, file, file.relative_to(root).as_posix(), reading)
    if not files:
        raise BadInput(f"{place} has no notes.", f"Notes end with {', '.join(sorted(ENDINGS))}.")
    return reading


def _notes(root: Path, reading: Reading) -> Iterator[Path]:
    """Yield the notes below a folder in order, without hidden folders and links that lead out of it."""
    whole = root.resolve()
    for folder, below, names in os.walk(root):
        below[:] = sorted(each for each in below if not each.startswith("."))
        for name in sorted(names):
            file = Path(folder, name)
            if name.startswith(".") or file.suffix.lower() not in ENDINGS:
                continue
            if not file.resolve().is_relative_to(whole):
                reading.notes.append(f"{file}: a link that leads out of the folder")
            else:
                yield file


def _text(file: Path, reading: Reading) -> str | None:
    """Return the text of a note; None, with a word on why, for what is none."""
    try:
        if not file.is_file():
            why = "no file"
        elif file.stat().st_size > LARGEST:
            why = f"larger than {LARGEST // 1_000_000} MB"
        elif b"\x00" in (raw := file.read_bytes()):
            why = "binary"
        else:
            return raw.decode("utf-8-sig").replace("\r\n", "\n")
    except OSError as error:
        why = str(error.strerror)
    except UnicodeDecodeError:
        why = "not UTF-8 text"
    reading.notes.append(f"{file}: {why}")
    return None


def _take(text: str, file: Path, name: str, reading: Reading) -> None:
    front = FRONT_MATTER.match(text)
    about = _fields(front[1], name, reading) if front else {}
    told = _told(about, file)
    title = clean(about.get("title")) or file.stem
    for said in statements(text[front.end() :] if front else text, reading.skipped):
        where = f"user: (In my note “{' > '.join([title, *said.headings])}”:)"
        reading.take(
            Item(
                id=id_of("Markdown", name, *said.headings, *said.lead, "", said.text),
                text=said.text,
                time=told,
                thread=f"notes/{name}",
                before=[where, *(f"user: {each}" for each in said.lead)],
            )
        )


def _fields(text: str, name: str, reading: Reading) -> Mapping[str, Any]:
    """Return the front matter of a note, with lower-case names."""
    try:
        found = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError):
        reading.notes.append(f"{name}: its front matter cannot be read; the note is taken without it")
        return {}
    return {str(field).lower(): each for field, each in found.items()} if isinstance(found, dict) else {}


def _told(about: Mapping[str, Any], file: Path) -> datetime | None:
    """Return when a note was written: by its front matter, its name, or else the file's last change."""
    for each in (*(about.get(name) for name in DATES), *DAY.findall(file.stem)):
        if each is not None and (found := _moment(each)):
            return found
    return first_time(file.stat().st_mtime)


def _moment(given: Any) -> datetime | None:
    """Return a time; a day without a time is its noon here, which is that day wherever it is read."""
    if isinstance(given, str) and DAY.fullmatch(given.strip()):
        try:
            given = date.fromisoformat(given.strip())
        except ValueError:
            return None
    if isinstance(given, date) and not isinstance(given, datetime):
        return datetime.combine(given, time(12)).astimezone()
    if isinstance(given, datetime) and given.tzinfo is None:
        return given.astimezone()
    return moment(given) if isinstance(given, str | datetime) else None
