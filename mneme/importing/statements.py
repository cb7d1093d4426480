"""The statements of a Markdown text: its paragraphs and list items, each with what it stands under."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import reduce

from markdown_it import MarkdownIt
from markdown_it.token import Token

LEFT_OUT = {
    "fence": "pieces of code",
    "code_block": "pieces of code",
    "html_block": "pieces of HTML",
    "blockquote_open": "quotations",
    "table_open": "tables",
}
CALLOUT = re.compile(r"^\[!\w+\][+-]?[ \t]*")
"""How Obsidian marks a box, which is written like a quotation but is the user's own."""
OBSIDIAN = (
    (re.compile(r"%%.*?%%", re.DOTALL), ""),  # comments
    (re.compile(r"!\[\[[^\]]*\]\]"), ""),  # what is shown inside
    (re.compile(r"\[\[[^\]|]*\|([^\]]+)\]\]"), r"\1"),
    (re.compile(r"\[\[([^\]#|]+)[^\]]*\]\]"), r"\1"),
    (re.compile(r"==(.+?)=="), r"\1"),
    (re.compile(r"\s\^[\w-]+$", re.MULTILINE), ""),  # names of blocks
    (re.compile(r"^(\s*)\[ \]\s+"), r"\1To do: "),
    (re.compile(r"^(\s*)\[[xX]\]\s+"), r"\1Done: "),
    (re.compile(r"(\w)::(?=\s)"), r"\1:"),  # fields
)
TAG = re.compile(r"(?<!\S)#([\w/-]*[^\W\d][\w/-]*)")
COMMENTS = OBSIDIAN[0][0]
_markdown = MarkdownIt("commonmark").enable("table")


@dataclass(frozen=True)
class Statement:
    """A paragraph or a list item, the headings above it, and the lines that lead to it, outermost first."""

    text: str
    headings: Sequence[str]
    lead: Sequence[str]


@dataclass
class _Place:
    """Where in a text its reader is."""

    headings: dict[int, str] = field(default_factory=dict)
    lists: list[str] = field(default_factory=list)
    """What leads to the list items at hand: the line before each list, and each item around them."""
    last: str = ""


def statements(text: str, skipped: Counter[str]) -> Iterator[Statement]:
    """Yield the statements of a text in order, and count what is left out."""
    tokens, place, number = _markdown.parse(COMMENTS.sub("", text)), _Place(), 0
    while number < len(tokens):
        token = tokens[number]
        if token.type in LEFT_OUT and not _is_callout(tokens, number):
            skipped[LEFT_OUT[token.type]] += 1
            number = _end(tokens, number)
        elif token.type == "heading_open":
            level = int(token.tag[1])
            kept = {each: name for each, name in place.headings.items() if each < level}
            place.headings, place.last = kept | {level: _words(tokens[number + 1])}, ""
            number += 2
        elif token.type == "inline":
            is_before_list = any(each.type.endswith("_list_open") for each in tokens[number + 2 : number + 3])
            yield from _said(_words(token), is_before_list, place)
        else:
            _move(token, place)
        number += 1


def _is_callout(tokens: Sequence[Token], number: int) -> bool:
    inside = tokens[number + 2] if tokens[number].type == "blockquote_open" else None
    return inside is not None and CALLOUT.match(inside.content) is not None


def _end(tokens: Sequence[Token], number: int) -> int:
    """Return where a block ends that begins at a number."""
    depth = 0
    while True:
        depth += tokens[number].nesting
        if depth <= 0:
            return number
        number += 1


def _said(words: str, is_before_list: bool, place: _Place) -> Iterator[Statement]:
    """Yield a paragraph, unless it only leads to the list after it."""
    place.last = words
    if words and not (is_before_list and words.endswith(":")):
        yield Statement(words, [*place.headings.values()], [each for each in place.lists if each])


def _move(token: Token, place: _Place) -> None:
    """Go into a list, or out of it."""
    if token.type.endswith("_list_open"):
        is_lead = bool(place.lists) or place.last.endswith(":")
        place.lists.append(place.last if is_lead else "")
        place.last = ""
    elif token.type.endswith("_list_close"):
        place.lists.pop()
        place.last = ""


def _words(token: Token) -> str:
    """Return the words of a paragraph or heading, without marks, links and tags alone."""
    raw = "".join(map(_piece, token.children or ()))
    text = reduce(lambda words, each: each[0].sub(each[1], words), OBSIDIAN, CALLOUT.sub("", raw))
    said = [TAG.sub(r"\1", line) for line in text.splitlines() if TAG.sub("", line).strip()]
    return " ".join(" ".join(said).split())


def _piece(token: Token) -> str:
    if token.type in {"softbreak", "hardbreak"}:
        return "\n"
    return token.content if token.type in {"text", "code_inline", "text_special"} else ""
