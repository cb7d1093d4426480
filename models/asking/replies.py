"""Read a small model's reply: accept what is clearly meant, refuse everything else with a reason.

Accepted: a fence or prose around an object, comments, an extra comma, single quotes, typographic quotes as
delimiters, line breaks within strings, Python's `True`, `False` and `None`, an enum's word in another case,
and an object wrapped in a list of one, in a single key or in a tool call. Refused: an object that is cut off,
a field given twice with different values, NaN and infinities. `Unusable` tells the model what was wrong, and
its subclass decides how the model is asked again.

A small model also copies a sentence of a worked example, whatever the question is. A sentence of an example
counts as copied unless its words occur in the question as well.
"""

import json
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, TypeVar

import json5
from pydantic import BaseModel, ValidationError

from mneme.models.asking.schema import Json, flat


class Unusable(Exception):  # noqa: N818  (it is what the model is told)
    """A reply that cannot be used: the reason, worded for the model, and the reply itself."""

    shown_back = True
    """Whether it can help the model to see the reply and what was wrong."""
    verdict = "That reply cannot be used."
    again = ""

    def __init__(self, reason: str, raw: str = "") -> None:
        super().__init__(reason)
        self.raw = raw


class Doubtful(Unusable):
    """The reply is usable but may lack something: the model is asked once more, then its answer stands."""

    verdict = "Look at that reply again."
    again = "If the reply was right as it was, repeat it."

    def __init__(self, reason: str, raw: str, answer: Any) -> None:
        super().__init__(reason, raw)
        self.answer = answer


class CutShort(Unusable):
    """The reply reached its limit of tokens: more room may help."""

    shown_back = False


class Endless(Unusable):
    """The reply repeats itself, counts up or takes too long: only another sample can help, not more room."""

    shown_back = False


class CopiedExample(Unusable):
    """The reply repeats a worked example: the example is left out of the next request."""

    shown_back = False


class LeakedThinking(Unusable):
    """Unmarked thinking was taken for the answer: from now on this model's replies are held to their end."""

    shown_back = False


# A brace in prose or code is followed by something else than a field, a comment or the closing brace.
OBJECT_START = re.compile(r"""\{(?=\s*(?:["'“”„‘’}#]|//|/\*))""")
FENCED = re.compile(r"```(?:json5?|python|javascript)?[ \t]*\n?(\s*\{.*?\}\s*)```", re.DOTALL | re.IGNORECASE)
# Strings and JSON5's comments match too, as group 1, so that nothing inside them is taken for a literal.
OUTSIDE_STRINGS = re.compile(
    r"""("(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|//[^\n]*|/\*.*?\*/)|\b(True|False|None)\b|#[^\n]*""", re.DOTALL
)
# A typographic quote delimits a string only next to a bracket, comma or colon; the others are text.
PLAIN_STRING = r'("(?:\\.|[^"\\])*")'
DOUBLE = re.compile(PLAIN_STRING + r"|(?<=[\[{,:])(\s*)[“”„‟]|[“”‟](?=\s*[:,}\]])")
SINGLE = re.compile(PLAIN_STRING + r"|(?<=[\[{,:])(\s*)[‘’‚]|[‘’](?=\s*[:,}\]])")
JSON_LITERALS = {"True": "true", "False": "false", "None": "null"}
MAX_WRAPPERS = 3
"""Maximum nested wrappers around an answer that are removed."""


def objects(text: str) -> list[Json]:
    """Return the outermost complete objects of a text; none if one of them cannot be read.

    A single object in a fence is returned alone, unless the text around it has another one. Raises Unusable
    if a field is given twice with different values.
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
    """Return the object at the beginning of a text, and the text after it; None if it cannot be read."""
    try:  # strictly first: json5 takes 3,000 times as long
        value, end = STRICT.raw_decode(text)
    except (json.JSONDecodeError, NotANumberError, RecursionError):
        # Replace typographic quotes where a string begins or ends.
        doubled = DOUBLE.sub(lambda match: match[1] or (match[2] or "") + '"', text)
        straight = SINGLE.sub(lambda match: match[1] or (match[2] or "") + "'", doubled)
        return _lenient(_plain(text)) or _lenient(_plain(straight))
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
    """Replace Python's literals, and remove comments, outside of strings."""
    return OUTSIDE_STRINGS.sub(lambda match: match[1] or JSON_LITERALS.get(match[2], ""), text)


def _each_once(pairs: Iterable[tuple[str, Any]]) -> Json:
    """Refuse an object with two values for one field, of which a parser would keep the last."""
    found: Json = {}
    for name, value in pairs:
        if found.setdefault(name, value) != value:
            raise Unusable(f"The field {name!r} is given twice, with different values.")
    return found


class NotANumberError(ValueError):
    """NaN or an infinity: JSON has none, and no answer needs them."""


def _no_number(constant: str) -> float:
    raise NotANumberError(constant)


STRICT = json.JSONDecoder(  # which lets line breaks within strings pass
    strict=False, object_pairs_hook=_each_once, parse_constant=_no_number
)


def unwrapped(found: Json, fields: Collection[str]) -> Json:
    """Remove wrappers around an answer with these fields: one key, a list of one, or a tool call."""
    for _ in range(MAX_WRAPPERS):
        if not found.keys().isdisjoint(fields):
            break
        value = (
            named[1] if (named := call(found)) else next(iter(found.values())) if len(found) == 1 else None
        )
        if isinstance(value, list) and len(value) == 1:
            value = value[0]
        if not isinstance(value, dict):
            break
        found = value
    return found


def call(found: Json) -> tuple[str, Json] | None:
    """Read an object as a tool call: its name and its arguments; None if it is not one."""
    inner = found.get("function", found)
    if not isinstance(inner, dict):
        return None
    name, arguments = inner.get("name"), inner.get("arguments", inner.get("parameters"))
    if isinstance(arguments, str):  # OpenAI's protocol has them as a text
        spelled = objects(arguments)
        arguments = spelled[0] if len(spelled) == 1 else None
    return (name, arguments) if isinstance(name, str) and isinstance(arguments, dict) else None


def calls_in(text: str) -> list[tuple[str, Json]]:
    """Return the tool calls written in a text: (name, arguments) of each."""
    return [named for found in objects(text) if (named := call(found))]


A = TypeVar("A", bound=BaseModel)

THOUGHT = re.compile(r"<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", re.DOTALL | re.IGNORECASE)
THOUGHT_END = re.compile(r"</think(?:ing)?>", re.IGNORECASE)


def read(raw: str, answer: type[A]) -> A:
    """Return the one JSON object of a reply as the answer, or raise `Unusable`.

    Several objects are ambiguous unless they are equal.
    """
    try:  # what begins with its object has no thinking before it: `<think>` in there is text
        spelled = objects(raw if raw.lstrip().startswith("{") else without_thought(raw))
    except Unusable as unusable:
        raise Unusable(str(unusable), raw) from unusable
    if not spelled:
        cut = " It looks cut off." if "{" in raw else ""
        raise Unusable(f"The reply is not a complete JSON object.{cut}", raw)
    if any(other != spelled[0] for other in spelled):
        raise Unusable("The reply has more than one JSON object; give exactly one.", raw)
    schema = flat(answer)
    found = unwrapped(spelled[0], schema.get("properties", {}))
    _require_fields(found, schema, "", raw)
    try:
        return answer.model_validate_json(json.dumps(_with_enum_words(found, schema)))
    except ValidationError as error:
        complaints = [f"{'.'.join(map(str, e['loc'])) or 'reply'}: {e['msg']}" for e in error.errors()]
        raise Unusable("; ".join(complaints), raw) from error


def without_thought(text: str) -> str:
    """Return a reply without its thinking, even if it has only the closing tag."""
    return THOUGHT_END.split(THOUGHT.sub("", text))[-1].strip()


def _require_fields(found: Any, schema: Json, path: str, raw: str) -> None:
    """Refuse an object without a required field, which validation would fill with a default."""
    if isinstance(found, list):
        for number, item in enumerate(found):
            _require_fields(item, schema.get("items", {}), f"{path}[{number}]", raw)
    if not isinstance(found, dict):
        return
    missing = [name for name in schema.get("required", ()) if name not in found]
    if missing:
        place = f" in {path}" if path else ""
        raise Unusable(f"Missing field{place}: {', '.join(missing)}.", raw)
    for name, inner in schema.get("properties", {}).items():
        _require_fields(found.get(name), inner, f"{path}.{name}" if path else name, raw)


def _with_enum_words(found: Any, schema: Json) -> Any:
    """Write each enum's word as in the schema, if only case or surrounding spaces differ."""
    if isinstance(found, list):
        return [_with_enum_words(item, schema.get("items", {})) for item in found]
    if isinstance(found, dict):
        inner = schema.get("properties", {})
        return {name: _with_enum_words(value, inner.get(name, {})) for name, value in found.items()}
    if not isinstance(found, str):
        return found
    meant = [word for word in schema.get("enum", ()) if str(word).casefold() == found.strip().casefold()]
    return meant[0] if len(meant) == 1 else found


QUOTED_STRING = re.compile(r'"((?:[^"\\]|\\.)*)"')
REPLY_WORD = re.compile(r"\w+")
MIN_REPEATED_WORDS = 4
"""Minimum words of a copied sentence; a shorter one is a name or a phrase, which two answers may share."""
SUPPORTED_SHARE = 0.6
"""Minimum share of a sentence's longer words that occur in the question for it to be a real answer."""
MIN_WORD_CHARS = 4


def copied(examples: Sequence[str], asked: str, reply: str) -> str:
    """Return the sentence of an example that a reply repeats; empty if none."""
    known = {*_words(asked)}
    said = [_words(text) for found in objects(reply) for text in _texts(found)]
    for example in examples:
        for sentence in QUOTED_STRING.findall(example):
            words, size = _words(sentence), len(_words(sentence))
            repeats = any(words == text[at : at + size] for text in said for at in range(len(text)))
            longer = [word for word in words if len(word) >= MIN_WORD_CHARS] or words  # not "the" and "of"
            is_asked = sum(word in known for word in longer) >= SUPPORTED_SHARE * len(longer)
            if size >= MIN_REPEATED_WORDS and not is_asked and repeats:
                return str(sentence)
    return ""


def _words(text: str) -> list[str]:
    return REPLY_WORD.findall(text.casefold())


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _texts(each)
