"""Memories of LangMem, or of any LangGraph store: items as JSON, an SQLite store, or one on Postgres.

LangMem writes `{"kind": "Memory", "content": {"content": "…"}}`, or fields of a schema of one's own.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from mneme.core.errors import BadInput, needs
from mneme.importing.copied import is_sqlite, opened_copy
from mneme.importing.elements import elements_of
from mneme.importing.item import Item, Reading, as_dict, as_list, clean, first_time, id_of
from mneme.importing.whose import Owned, of_one
from mneme.stores.users.memories import Kind

POSTGRES = ("postgres://", "postgresql://")
TEXTS = ("content", "text", "memory", "data")
"""Fields that hold the words of a memory; of others, name and value are written down."""
EPISODES = {"Episode", "EpisodicMemory"}
ROWS = "SELECT prefix, key, value, created_at, updated_at FROM store ORDER BY created_at, prefix, key"
Row = Mapping[str, Any]


def read(source: str, namespace: str = "") -> Reading:
    """Return the memories below a namespace (`memories/ann`) of a file or a Postgres URL. Raises BadInput."""
    reading, found = Reading(), []
    for row in _rows(source):
        parts, value = _parts(row), _value(row.get("value"))
        if text := _text(value):
            found.append(Owned(parts, _item(parts, row, value, text)))
        else:
            reading.skipped["items without words"] += 1
    if not found:
        shown = "The store" if source.startswith(POSTGRES) else source  # a URL can hold a password
        raise BadInput(f"{shown} holds no memories.", "Give a store that LangMem wrote.")
    for item in of_one(found, namespace, "--namespace"):
        reading.take(item)
    return reading


def _rows(source: str) -> Iterator[Row]:
    if source.startswith(POSTGRES):
        yield from _on_postgres(source)
    elif is_sqlite(file := Path(source)):
        with opened_copy(file) as database:
            yield from map(dict, database.execute(ROWS))
    else:
        yield from map(as_dict, elements_of(file))


def _on_postgres(url: str) -> Iterator[Row]:
    with needs("A store on Postgres", "postgres"):
        import psycopg  # noqa: PLC0415
        from psycopg.rows import dict_row  # noqa: PLC0415
    try:
        with psycopg.connect(url, row_factory=dict_row, connect_timeout=10) as connection:
            connection.read_only = True
            with connection.cursor("mneme_import") as cursor:
                yield from cursor.execute(ROWS)
    except psycopg.Error as error:
        reason = str(error).strip().splitlines()[0]
        raise BadInput(
            f"The store cannot be read: {reason}", "Is it the URL of a LangGraph store?"
        ) from error


def _parts(row: Row) -> tuple[str, ...]:
    """Return the namespace of an item: a list in JSON, joined by full stops in a database."""
    given = row.get("namespace", row.get("prefix"))
    return tuple(map(clean, map(str, as_list(given)))) or tuple(clean(given).split("."))


def _value(given: Any) -> Any:
    """Return a value, which SQLite has as text. What is no JSON is no memory."""
    if not isinstance(given, str | bytes):
        return given
    try:
        return json.loads(given)
    except (ValueError, RecursionError):
        return None


def _text(value: Any) -> str:
    """Return a memory in words: its text, or the names and values of its fields; "" where there are none."""
    try:
        return _in_words(value)
    except RecursionError:
        return ""


def _in_words(value: Any) -> str:
    inner = as_dict(value).get("content", value)
    if isinstance(inner, str):
        return clean(inner)
    fields = as_dict(inner)
    if text := next((clean(fields[each]) for each in TEXTS if clean(fields.get(each))), ""):
        return text
    kind, pairs = clean(as_dict(value).get("kind")), "; ".join(_pairs(fields))
    return f"{kind}: {pairs}" if kind and pairs else pairs


def _pairs(fields: Mapping[str, Any]) -> list[str]:
    """Return `name: value` of each field that says something, by name: Postgres keeps no other order."""
    said = {name: _words(each) for name, each in sorted(fields.items())}
    return [f"{clean(name)}: {words}" for name, words in said.items() if words]


def _words(given: Any) -> str:
    if isinstance(given, dict):
        return f"({'; '.join(_pairs(given))})" if given else ""
    if isinstance(given, list):
        return ", ".join(filter(None, map(_words, given)))
    return "" if given is None else clean(str(given))


def _item(parts: tuple[str, ...], row: Row, value: Any, text: str) -> Item:
    kind: Kind = "episodic" if as_dict(value).get("kind") in EPISODES else "semantic"
    created = first_time(row.get("created_at"), row.get("updated_at"))
    return Item(
        id=id_of("LangMem", *parts, clean(str(row.get("key") or text))),
        text=text,
        time=created,
        thread=f"langmem/{'/'.join(parts)}",
        kind=kind,
        since=first_time(row.get("updated_at"), created),
    )
