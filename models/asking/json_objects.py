"""Find the JSON objects in a reply, also in forms that JSON does not allow but that have one meaning only.

Read as they stand: a fence or prose around an object, comments, a comma too many, single quotes,
typographic quotes as delimiters, line breaks within strings, Python's `True`, `False` and `None`, and an
object wrapped in a list of one, in a single key or in a tool call. Never read: an object that is cut off, a
field given twice with different values, and numbers that are none.
"""

import json
import re
from collections.abc import Collection, Iterable
from typing import Any

import json5

from mneme.models.asking.unusable import Unusable

Json = dict[str, Any]

OBJECT_START = re.compile(r"""\{(?=\s*(?:["'“”„‘’}#]|//|/\*))""")
FENCED = re.compile(r"```(?:json5?|python|javascript)?[ \t]*\n?(\s*\{.*?\}\s*)```", re.DOTALL | re.IGNORECASE)
OUTSIDE_STRINGS = re.compile(
    r"""("(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|//[^\n]*|/\*.*?\*/)|\b(True|False|None)\b|#[^\n]*""", re.DOTALL
)
PLAIN_STRING = r'("(?:\\.|[^"\\])*")'
DOUBLE = re.compile(PLAIN_STRING + r"|(?<=[\[{,:])(\s*)[“”„‟]|[“”‟](?=\s*[:,}\]])")
SINGLE = re.compile(PLAIN_STRING + r"|(?<=[\[{,:])(\s*)[‘’‚]|[‘’](?=\s*[:,}\]])")
WORDS = {"True": "true", "False": "false", "None": "null"}
DEEPEST = 3
"""Wrappers around an answer that are taken off, one within the other."""


def objects(text: str) -> list[Json]:
    """Return the outermost complete objects of a text; none at all where one of them cannot be read.

    One object in a fence stands for itself, unless the text around it holds another one.
    Raises Unusable where one field is given twice.
    """
    fences = FENCED.findall(text)
    if len(fences) == 1 and len(inside := _objects(fences[0])) == 1:
        return inside + _objects(FENCED.sub("", text))
    return _objects(text)


def _objects(text: str) -> list[Json]:
    found = list[Json]()
    while start := OBJECT_START.search(text):
        first = _first(text[start.start() :])
        if first is None:
            return []
        found.append(first[0])
        text = first[1]
    return found


def _first(text: str) -> tuple[Json, str] | None:
    """Read the object that a text begins with; return it and the text after it, or None."""
    try:
        value, end = STRICT.raw_decode(text)
    except (json.JSONDecodeError, NotANumberError, RecursionError):
        return _lenient(_plain(text)) or _lenient(_plain(_straight(text)))
    return value, text[end:]


def _lenient(text: str) -> tuple[Json, str] | None:
    try:
        value, wrong, end = json5.parse(
            text,
            start=0,
            strict=False,
            consume_trailing=False,
            object_pairs_hook=_each_once,
            parse_constant=_no_number,
        )
    except (RecursionError, NotANumberError):
        return None
    return None if wrong or not isinstance(value, dict) else (value, text[end:])


def _plain(text: str) -> str:
    """Write Python's words and comments, outside of strings, as JSON5 has them."""
    return OUTSIDE_STRINGS.sub(lambda match: match[1] or WORDS.get(match[2], ""), text)


def _straight(text: str) -> str:
    """Write typographic quotes that stand where a string begins or ends as plain ones."""
    doubled = DOUBLE.sub(lambda match: match[1] or (match[2] or "") + '"', text)
    return SINGLE.sub(lambda match: match[1] or (match[2] or "") + "'", doubled)


def _each_once(pairs: Iterable[tuple[str, Any]]) -> Json:
    """Refuse an object that says two things of one field, of which a parser would keep the last."""
    found: Json = {}
    for name, value in pairs:
        if found.setdefault(name, value) != value:
            raise Unusable(f"The field {name!r} is given twice, with different values.")
    return found


class NotANumberError(ValueError):
    """NaN and the infinities: JSON has none, and no answer means them."""


def _no_number(constant: str) -> float:
    raise NotANumberError(constant)


STRICT = json.JSONDecoder(  # which lets line breaks within strings pass
    strict=False, object_pairs_hook=_each_once, parse_constant=_no_number
)


def unwrapped(found: Json, fields: Collection[str]) -> Json:
    """Take off what was put around an answer of these fields: one key, a list of one, or a tool call."""
    for _ in range(DEEPEST):
        if not found.keys().isdisjoint(fields):
            break
        inner = _within(found)
        if inner is None:
            break
        found = inner
    return found


def _within(found: Json) -> Json | None:
    named = call(found)
    if named:
        return named[1]
    value = next(iter(found.values())) if len(found) == 1 else None
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    return value if isinstance(value, dict) else None


def call(found: Json) -> tuple[str, Json] | None:
    """Read an object as a tool call: its name and its arguments; None where it is none."""
    inner = found.get("function", found)
    if not isinstance(inner, dict):
        return None
    name, arguments = inner.get("name"), inner.get("arguments", inner.get("parameters"))
    if isinstance(arguments, str):
        spelled = objects(arguments)
        arguments = spelled[0] if len(spelled) == 1 else None
    return (name, arguments) if isinstance(name, str) and isinstance(arguments, dict) else None


def calls_in(text: str) -> list[tuple[str, Json]]:
    """Return the tool calls that a text spells out: (name, arguments) of each."""
    return [named for found in objects(text) if (named := call(found))]
