"""Erase messages from a stored conversation: their text is replaced, everything else stays.

Two passes: `find` finds the messages to erase and the replies to them; `clean` returns a value without them.
A conversation can then be continued as before.

Values are unpacked without creating their objects: LangGraph stores those as MessagePack inside extensions.
So a text in a message can be replaced, whatever classes contain it.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import ormsgpack

from mneme.stores.checkpoints.threads import MSGPACK, SUM, Value, intact
from mneme.stores.users.traces import Origins

JSON_KIND = "json"
EXTENSIONS = range(8)
"""LangGraph's own extension codes."""
MSGPACK_OPTIONS = ormsgpack.OPT_NON_STR_KEYS | ormsgpack.OPT_REPLACE_SURROGATES
ERASED = "[erased]"
BLANK: Mapping[str, Any] = {"additional_kwargs": {}, "response_metadata": {}, "tool_calls": []}
"""Fields of a message that can contain a model's words beside the text."""
PEOPLE = ("human", "user", "HumanMessageChunk")
MODEL_ROLES = ("ai", "assistant", "AIMessageChunk")
ERASED_FIELDS = ("message", "content", "text", "quote")
"""Names of fields whose text is what somebody said."""
NAME_FIELDS = ("entities", "relations")
"""Names of a memory's fields that are erased together with those."""


class Extension:
    """An object in MessagePack: its extension code and its content."""

    def __init__(self, code: int, inside: Any) -> None:
        self.code, self.inside = code, inside


def unpack(kind: str, data: bytes) -> Any:
    """Return a stored value; None if its kind has no text. Raises ValueError if it is damaged."""
    kind, data = intact((kind, data))
    if kind == JSON_KIND:
        return json.loads(data)
    if kind != MSGPACK:
        return None
    # LangGraph's extensions hold MessagePack again; the bytes of others are kept as they are.
    return ormsgpack.unpackb(
        data,
        ext_hook=lambda code, held: Extension(code, unpack(MSGPACK, held) if code in EXTENSIONS else held),
        option=ormsgpack.OPT_NON_STR_KEYS,
    )


def pack(kind: str, value: Any) -> bytes:
    """Return a value in its stored form."""
    if kind == JSON_KIND:
        return json.dumps(value, ensure_ascii=False).encode()
    return ormsgpack.packb(value, default=_as_extension, option=MSGPACK_OPTIONS)


def _as_extension(value: Any) -> ormsgpack.Ext:
    if not isinstance(value, Extension):
        raise TypeError(f"{type(value)} was not unpacked from a checkpoint")
    packed = pack(MSGPACK, value.inside) if value.code in EXTENSIONS else value.inside
    return ormsgpack.Ext(value.code, packed)


class Eraser:
    """Erase messages that told something, the replies to them, and replies that repeat it."""

    def __init__(self, told: Origins, repeats: Callable[[str], bool]) -> None:
        self._told, self._repeats = told, repeats
        self._ids, self._said = set(told.messages), set[str]()
        self.finds = 0
        """Number of erasable messages found, counting one again in each checkpoint."""
        self.hits = 0
        """Number of replacements."""

    @property
    def turns(self) -> int:
        """The number of different messages found so far."""
        return len(self._said)

    def look(self, values: Iterable[Value]) -> None:
        """Find the messages to erase in stored values."""
        for kind, data in values:
            self.find(unpack(kind, data))

    def rewrite(self, kind: str, data: bytes) -> bytes:
        """Return a stored value without the erased texts; the same bytes if it holds none of them."""
        before = self.hits
        cleaned = self.clean(unpack(kind, data))
        return data if self.hits == before else pack(kind.partition(SUM)[0], cleaned)

    def find(self, value: Any) -> None:
        """Record the messages in a value that are to be erased, and the replies to them."""
        answers = False
        for message in filter(None, map(_message, value if isinstance(value, list) else ())):
            # All replies up to the next message of a person answer the one that is erased.
            is_answer = answers and _is_reply(message) and _text(message) != ERASED
            is_found = is_answer or self._is_found(message)
            answers = answers if _is_reply(message) else is_found
            if is_found:
                self._note(message)
        for each in _parts(value):
            self.find(each)

    def _note(self, message: Mapping[str, Any]) -> None:
        """Record a message to erase; a person's text is then searched for everywhere else, too."""
        text = _text(message)
        if text not in self._said and not _is_reply(message):
            self._told |= Origins(turns=frozenset({text}))
        self.finds += 1
        self._ids.add(str(message.get("id") or ""))
        self._said.add(text)

    def _is_found(self, message: Mapping[str, Any]) -> bool:
        text = _text(message)
        if text in {"", ERASED}:
            return False
        name = str(message.get("id") or message.get("message_id") or "")
        is_known = (
            name in self._ids if name else text in self._said
        )  # found before, maybe in another checkpoint
        return is_known or (_is_reply(message) and self._repeats(text)) or self._told.is_in(text)

    def clean(self, value: Any) -> Any:
        """Return a value with `[erased]` in place of each erased text."""
        if isinstance(value, str):
            return self._erase() if any(part in value for part in self._told.passages) else value
        if isinstance(value, dict) and _message(value) is value and self._is_found(value):
            blank = {name: type(each)() for name, each in BLANK.items() if name in value}
            return value | {"content": self._erase()} | blank
        if isinstance(value, dict):
            cleaned = {
                name: self._erase() if name in ERASED_FIELDS and self._is_said(each) else self.clean(each)
                for name, each in value.items()
            }
            is_erased = any(cleaned.get(name) == ERASED for name in ERASED_FIELDS)
            return cleaned | {name: [] for name in NAME_FIELDS if is_erased and value.get(name)}
        if isinstance(value, list):
            return [self.clean(each) for each in value]
        return Extension(value.code, self.clean(value.inside)) if isinstance(value, Extension) else value

    def _is_said(self, text: Any) -> bool:
        return isinstance(text, str) and bool(text) and (text in self._said or text in self._told.sayings)

    def _erase(self) -> str:
        self.hits += 1
        return ERASED


def texts_of(values: Iterable[Value]) -> Iterator[str]:
    """Yield all texts in stored values."""
    parts = [unpack(kind, data) for kind, data in values]
    for part in parts:  # grows by the parts of each part
        if isinstance(part, str):
            yield part
        parts += _parts(part)


def _message(value: Any) -> Mapping[str, Any] | None:
    """Return the fields of a chat message, in whatever form it is stored; None for anything else."""
    if isinstance(value, Extension):
        parts = value.inside if isinstance(value.inside, list) else [value.inside]
        return next(filter(None, (_message(each) for each in parts if isinstance(each, dict))), None)
    is_message = isinstance(value, dict) and "content" in value and _maker(value) in (*PEOPLE, *MODEL_ROLES)
    return value if is_message else None


def _maker(message: Mapping[str, Any]) -> Any:
    return message.get("type") or message.get("role")


def _is_reply(message: Mapping[str, Any]) -> bool:
    return _maker(message) in MODEL_ROLES


def _text(message: Mapping[str, Any]) -> str:
    """Return the text of a message, whose content may be a list of blocks."""
    content = message["content"]
    blocks = content if isinstance(content, list) else [content]
    return "".join(str(each.get("text", "")) if isinstance(each, dict) else str(each) for each in blocks)


def _parts(value: Any) -> Iterable[Any]:
    if isinstance(value, Extension):
        return (value.inside,)
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()
