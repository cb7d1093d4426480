"""Read what a small model replied: take what is surely meant, refuse everything else with a reason.

Only what loses nothing is mended on the spot: a fence or prose around one JSON object, a comma too many,
the case of an enum's word. Whatever is cut, missing or ambiguous is refused with a sentence for the
model, which is asked again.
"""

import json
import re
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from mneme.models.asking.schema import Json, flat

A = TypeVar("A", bound=BaseModel)

HIDDEN = "think(?:ing)?|tool_call"
OPENING = re.compile(f"<(?:{HIDDEN})>", re.IGNORECASE)
CLOSING = re.compile(f"</(?:{HIDDEN})>", re.IGNORECASE)
THOUGHT = re.compile(r"<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", re.DOTALL | re.IGNORECASE)
THOUGHT_END = re.compile(r"</think(?:ing)?>", re.IGNORECASE)
TAGS = ("<think>", "<thinking>", "<tool_call>", "</think>", "</thinking>", "</tool_call>")
LONGEST_TAG = max(map(len, TAGS))
TRAILING_COMMA = re.compile(r'("(?:\\.|[^"\\])*")|,(?=\s*[}\]])', re.DOTALL)
JSON_START = re.compile(r'\{(?=\s*["}])')
CALL_STARTS = ("{", "[{", "```json", "[TOOL_CALLS]", "<|python_tag|>", "<function")
SAME_TOKENS = 30
LONGEST_CYCLE, CYCLES, CYCLE_CHARS = 120, 10, 240


class Unusable(Exception):  # noqa: N818  (it is what the model is told)
    """A reply that cannot be used: the reason in words for the model, and the reply itself."""

    def __init__(self, reason: str, raw: str = "") -> None:
        super().__init__(reason)
        self.raw = raw


class CutShort(Unusable):
    """The reply reached its limit of tokens: more room may help, showing it to the model does not."""


class Endless(Unusable):
    """The reply repeats itself without end: only another draw can help."""


def read(raw: str, answer: type[A]) -> A:
    """Return the one JSON object of a reply as the answer, or raise `Unusable`."""
    found = _one_object(raw)
    schema = flat(answer)
    _require_fields(found, schema, "", raw)
    try:
        return answer.model_validate_json(json.dumps(_with_enum_words(found, schema)))
    except ValidationError as error:
        raise Unusable(_in_words(error), raw) from error


def _one_object(raw: str) -> Json:
    """Find the JSON object in a reply; more than one, unless they are the same, is ambiguous."""
    try:
        found = objects(raw if raw.lstrip().startswith("{") else without_thought(raw))
    except Unusable as unusable:
        raise Unusable(str(unusable), raw) from unusable
    if not found:
        cut = " It looks cut off." if "{" in raw else ""
        raise Unusable(f"The reply is not a complete JSON object.{cut}", raw)
    if any(other != found[0] for other in found):
        raise Unusable("The reply has more than one JSON object; give exactly one.", raw)
    return found[0]


def objects(text: str) -> list[Json]:
    """Return the outermost complete JSON objects of a text; none at all where one of them is cut off."""
    clean = TRAILING_COMMA.sub(lambda match: match[1] or "", text)
    found, start = [], JSON_START.search(clean)
    while start is not None:
        try:
            value, end = LENIENT.raw_decode(clean, start.start())
        except (json.JSONDecodeError, RecursionError):
            return []
        found.append(value)
        start = JSON_START.search(clean, end)
    return found


def _each_once(pairs: list[tuple[str, Any]]) -> Json:
    """Refuse an object that says two things of one field, of which a parser would keep the last."""
    found: Json = {}
    for name, value in pairs:
        if found.setdefault(name, value) != value:
            raise Unusable(f"The field {name!r} is given twice, with different values.")
    return found


LENIENT = json.JSONDecoder(strict=False, object_pairs_hook=_each_once)  # line breaks within strings pass


def without_thought(text: str) -> str:
    """Return a reply without its thinking, also where only the closing tag is there."""
    return THOUGHT_END.split(THOUGHT.sub("", text))[-1].strip()


def _require_fields(found: Any, schema: Json, path: str, raw: str) -> None:
    """Refuse an object that leaves out a demanded field, which validation would fill with a default."""
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
    """Write each enum's word as the schema writes it, where only case or spaces differ."""
    if isinstance(found, list):
        return [_with_enum_words(item, schema.get("items", {})) for item in found]
    if isinstance(found, dict):
        inner = schema.get("properties", {})
        return {name: _with_enum_words(value, inner.get(name, {})) for name, value in found.items()}
    if not isinstance(found, str):
        return found
    meant = [word for word in schema.get("enum", ()) if str(word).casefold() == found.strip().casefold()]
    return meant[0] if len(meant) == 1 else found


def _in_words(error: ValidationError) -> str:
    complaints = [f"{'.'.join(map(str, e['loc'])) or 'reply'}: {e['msg']}" for e in error.errors()]
    return "; ".join(complaints)


class ThinkingFilter:
    """Pass on of a streamed reply its answer, never its thinking.

    With `hold`, nothing passes before a closing tag or the end: for models whose opening tag is
    written by their template, so that thinking cannot be told from the answer before it ends. Text that
    begins like a tool call is held to its end as well, and refused if it is one.
    """

    def __init__(self, hold: bool = False) -> None:
        self._hold = hold
        self._buffer = ""
        self._thinking = False
        self.said = ""

    def feed(self, text: str) -> str:
        """Return what of the text may be shown now."""
        self._buffer += text
        shown = ""
        while (piece := self._step()) is not None:
            shown += piece
        return self._show(shown)

    def end(self) -> str:
        """Return what is left to show; thinking that never ended is not."""
        rest = "" if self._thinking else self._buffer
        self._buffer = ""
        if not self.said and calls_in(rest):
            raise Unusable("Answer in plain words; no tools are offered.", rest)
        return self._show(rest)

    def _step(self) -> str | None:
        """Move past one tag or up to a possible one; None when more text is needed."""
        if self._thinking:
            return self._skip_thought()
        opening, closing = OPENING.search(self._buffer), CLOSING.search(self._buffer)
        if closing and (not opening or closing.start() < opening.start()):
            return self._unsay(closing.end())
        if opening:
            self._thinking = True
            shown, self._buffer = self._buffer[: opening.start()], self._buffer[opening.end() :]
            return shown
        if self._hold or self._like_a_call():
            return None
        ready = len(self._buffer) - _begun_tag(self._buffer)
        shown, self._buffer = self._buffer[:ready], self._buffer[ready:]
        return shown or None

    def _skip_thought(self) -> str | None:
        closing = CLOSING.search(self._buffer)
        if closing is None:
            self._buffer = self._buffer[-LONGEST_TAG:]
            return None
        self._thinking = False
        self._hold = False
        self._buffer = self._buffer[closing.end() :]
        return ""

    def _unsay(self, end: int) -> str:
        """Drop thinking that had no opening tag; raise where part of it has been shown already."""
        if self.said:
            raise Leaked("The thinking was not marked as such.", self.said)
        self._hold = False
        self._buffer = self._buffer[end:]
        return ""

    def _like_a_call(self) -> bool:
        start = self._buffer.lstrip()
        near = any(start.startswith(mark) or mark.startswith(start) for mark in CALL_STARTS)
        return not self.said and near

    def _show(self, text: str) -> str:
        text = text if self.said else text.lstrip()
        self.said += text
        return text


class Leaked(Unusable):
    """Unmarked thinking was taken for the answer: from now on this model's replies are held to their end."""


def _begun_tag(text: str) -> int:
    """Return the length of the text's end that may be the beginning of a tag."""
    end = text[-LONGEST_TAG:].lower()
    begun = (len(end) - at for at in range(len(end)) if any(tag.startswith(end[at:]) for tag in TAGS))
    return next(begun, 0)


class RepetitionDetector:
    """Notice when a stream repeats itself without end."""

    def __init__(self) -> None:
        self.tail = ""
        self._last = ""
        self._same = 0

    def sees(self, token: str) -> bool:
        """Take the next token, and tell whether the reply has become endless."""
        self._same = self._same + 1 if token == self._last else 1
        self._last = token
        self.tail = (self.tail + token)[-LONGEST_CYCLE * CYCLES :]
        return self._same >= SAME_TOKENS or any(map(self._repeats, range(1, LONGEST_CYCLE + 1)))

    def _repeats(self, period: int) -> bool:
        """Tell whether the text ends in ten or more repetitions of its last characters."""
        end = self.tail[-max(CYCLE_CHARS, period * CYCLES) :]
        return len(end) >= max(CYCLE_CHARS, period * CYCLES) and end[period:] == end[:-period]


def calls_in(text: str) -> list[tuple[str, Json]]:
    """Return the tool calls that a text spells out: (name, arguments) of each."""
    return [call for found in objects(text) if (call := _call(found))]


def _call(found: Json) -> tuple[str, Json] | None:
    inner = found.get("function", found)
    if not isinstance(inner, dict):
        return None
    name, arguments = inner.get("name"), inner.get("arguments", inner.get("parameters"))
    return (name, arguments) if isinstance(name, str) and isinstance(arguments, dict) else None
