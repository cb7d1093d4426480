"""Notes in Markdown, as Obsidian and others keep them: each paragraph and list item is a statement.

A statement keeps its context (the note, its headings, the line before a list). Code, quotations, tables and
HTML are not the user's statements, and are left out.
"""

import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime, time
from functools import reduce
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from markdown_it import MarkdownIt
from markdown_it.tree import SyntaxTreeNode

from mneme.core.errors import BadInput
from mneme.importing.item import Item, Reading, clean, first_time, id_of

NOTE_SUFFIXES = {".md", ".markdown", ".mdown"}
MAX_NOTE_BYTES = 2_000_000
"""Maximum bytes of a note; a larger file was not written by hand."""
FRONT_MATTER = re.compile(r"\A---[ \t]*\n(.{0,65536}?\n)(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL)
DATES = [
    *("date", "created", "created_at", "date created", "creation date", "date_created"),
    *("updated", "modified"),
]
NOTE_DATE = re.compile(r"(\d{4}-\d{2}-\d{2})")

SKIPPED_BLOCKS = {
    "fence": "pieces of code",
    "code_block": "pieces of code",
    "html_block": "pieces of HTML",
    "blockquote": "quotations",
    "table": "tables",
}
CALLOUT = re.compile(r"^\[!\w+\][+-]?[ \t]*")
"""Marker of an Obsidian callout, which is written like a quotation but is the user's own text."""
OBSIDIAN = (
    (re.compile(r"%%.*?%%", re.DOTALL), ""),  # comments
    (re.compile(r"!\[\[[^\]]*\]\]"), ""),  # what is embedded: a note, a picture
    (re.compile(r"\[\[[^\]|]*\|([^\]]+)\]\]"), r"\1"),
    (re.compile(r"\[\[([^\]#|]+)[^\]]*\]\]"), r"\1"),
    (re.compile(r"==(.+?)=="), r"\1"),
    (re.compile(r"\s\^[\w-]+$", re.MULTILINE), ""),  # names of blocks
    (re.compile(r"^(\s*)\[ \]\s+"), r"\1To do: "),
    (re.compile(r"^(\s*)\[[xX]\]\s+"), r"\1Done: "),
    (re.compile(r"(\w)::(?=\s)"), r"\1:"),  # fields
)
HASHTAG = re.compile(r"(?<!\S)#([\w/-]*[^\W\d][\w/-]*)")
COMMENTS = OBSIDIAN[0][0]
BREAKS, WORDS = {"softbreak", "hardbreak"}, {"text", "code_inline", "text_special"}
"""Kinds of tokens that are ends of lines, and those with words; others are formatting."""
_markdown = MarkdownIt("commonmark").enable("table")


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
        raise BadInput(f"{place} has no notes.", f"Notes end with {', '.join(sorted(NOTE_SUFFIXES))}.")
    return reading


def _notes(root: Path, reading: Reading) -> Iterator[Path]:
    """Yield the notes below a folder in order, without hidden folders and links that lead out of it."""
    whole = root.resolve()
    for folder, below, names in os.walk(root):
        below[:] = sorted(each for each in below if not each.startswith("."))
        for name in sorted(names):
            file = Path(folder, name)
            if name.startswith(".") or file.suffix.lower() not in NOTE_SUFFIXES:
                continue
            if not file.resolve().is_relative_to(whole):
                reading.notes.append(f"{file}: a link that leads out of the folder")
            else:
                yield file


def _text(file: Path, reading: Reading) -> str | None:
    """Return the text of a note; None for a file that is no note, with the reason."""
    try:
        if not file.is_file():
            why = "no file"
        elif file.stat().st_size > MAX_NOTE_BYTES:
            why = f"larger than {MAX_NOTE_BYTES // 1_000_000} MB"
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
    for each in (*(about.get(name) for name in DATES), *NOTE_DATE.findall(file.stem)):
        if each is not None and (found := _moment(each)):
            return found
    return first_time(file.stat().st_mtime)


def _moment(given: Any) -> datetime | None:
    """Return a time; a date becomes noon in the local zone, which is the same date in nearly all zones."""
    if isinstance(given, str) and NOTE_DATE.fullmatch(given.strip()):
        try:
            given = date.fromisoformat(given.strip())
        except ValueError:
            return None
    if isinstance(given, date) and not isinstance(given, datetime):
        return datetime.combine(given, time(12)).astimezone()
    if isinstance(given, datetime) and given.tzinfo is None:
        return given.astimezone()
    return first_time(given) if isinstance(given, str | datetime) else None


class Statement(NamedTuple):
    """A paragraph or a list item, the headings above it, and the lines that lead to it, outermost first."""

    text: str
    headings: Sequence[str]
    lead: Sequence[str]


def statements(text: str, skipped: Counter[str]) -> Iterator[Statement]:
    """Yield the statements of a text in order, and count the parts that are left out."""
    # Comments go before the parser sees them: they may span blocks.
    yield from _below(SyntaxTreeNode(_markdown.parse(COMMENTS.sub("", text))), {}, [], skipped)


def _below(
    place: SyntaxTreeNode, headings: dict[int, str], lead: Sequence[str], skipped: Counter[str]
) -> Iterator[Statement]:
    """Yield the statements of a block; a paragraph that ends with a colon leads to the list after it."""
    last, is_in_list = "", place.type == "list_item"
    for block in place.children:
        is_before_list = block.next_sibling is not None and block.next_sibling.type.endswith("_list")
        if block.type in SKIPPED_BLOCKS and not _is_callout(block):
            skipped[SKIPPED_BLOCKS[block.type]] += 1
        elif block.type == "heading":
            level, last = int(block.tag[1]), ""
            for lower in [each for each in headings if each >= level]:  # it ends those below and beside it
                del headings[lower]
            headings[level] = _words(block)
        elif block.type == "paragraph":
            last = _words(block)
            if last and not (is_before_list and last.endswith(":")):
                yield Statement(last, [*headings.values()], lead)
        else:
            is_led = block.type.endswith("_list") and last and (is_in_list or last.endswith(":"))
            yield from _below(block, headings, [*lead, last] if is_led else lead, skipped)
            last = ""


def _is_callout(block: SyntaxTreeNode) -> bool:
    first = next((each for each in block.walk() if each.type == "inline"), None)
    return block.type == "blockquote" and first is not None and bool(CALLOUT.match(first.content))


def _words(block: SyntaxTreeNode) -> str:
    """Return the words of a paragraph or heading, without formatting, and without bare links and tags."""
    pieces = [each for inline in block.to_tokens() for each in inline.children or ()]
    raw = "".join("\n" if each.type in BREAKS else each.content * (each.type in WORDS) for each in pieces)
    text = reduce(lambda words, each: each[0].sub(each[1], words), OBSIDIAN, CALLOUT.sub("", raw))
    said = [HASHTAG.sub(r"\1", line) for line in text.splitlines() if HASHTAG.sub("", line).strip()]
    return " ".join(" ".join(said).split())
