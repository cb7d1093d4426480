"""Memories of LangMem, or of any LangGraph store: items as JSON, an SQLite store, or one on Postgres.

LangMem writes `{"kind": "Memory", "content": {"content": "…"}}`, or fields of a schema of one's own.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from mneme.core.errors import BadInput, needs
from mneme.importing.files import elements_of, is_sqlite, opened_copy
from mneme.importing.item import Item, Reading, as_dict, as_list, clean, first_time, id_of, of_owner
from mneme.stores.ledger.addresses import POSTGRES_SCHEMES

TEXT_FIELDS = ("content", "text", "memory", "data")
"""Fields with the text of a memory; without one, names and values of all fields are the text."""
EPISODES = {"Episode", "EpisodicMemory"}
SELECT_ITEMS = "SELECT prefix, key, value, created_at, updated_at FROM store ORDER BY created_at, prefix, key"
Row = Mapping[str, Any]


def read(source: str, namespace: str = "") -> Reading:
    """Return the memories below a namespace (`memories/ann`) of a file or a Postgres URL. Raises BadInput."""
    shown = "The store" if source.startswith(POSTGRES_SCHEMES) else source  # a URL can hold a password
    empty = BadInput(f"{shown} holds no memories.", "Give a store that LangMem wrote.")
    return of_owner(map(_item, _rows(source)), namespace, "--namespace", empty)


def _rows(source: str) -> Iterator[Row]:
    if source.startswith(POSTGRES_SCHEMES):
        yield from _on_postgres(source)
    elif is_sqlite(file := Path(source)):
        with opened_copy(file) as database:
            yield from map(dict, database.execute(SELECT_ITEMS))
    else:
        yield from map(as_dict, elements_of(file))


def _on_postgres(url: str) -> Iterator[Row]:
    with needs("A store on Postgres", "postgres"):
        import psycopg  # noqa: PLC0415
        from psycopg.rows import dict_row  # noqa: PLC0415
    try:
        with psycopg.connect(url, row_factory=dict_row, connect_timeout=10) as connection:
            connection.read_only = True
            with connection.cursor("mneme_import") as cursor:  # a named one leaves the rows on the server
                yield from cursor.execute(SELECT_ITEMS)
    except psycopg.Error as error:
        reason = str(error).strip().splitlines()[0]
        raise BadInput(
            f"The store cannot be read: {reason}", "Is it the URL of a LangGraph store?"
        ) from error


def _item(row: Row) -> Item | None:
    """Read an item; its namespace is a list in JSON, and a string joined by dots in a database."""
    namespace = row.get("namespace", row.get("prefix"))
    parts = tuple(map(clean, map(str, as_list(namespace)))) or tuple(clean(namespace).split("."))
    value = row.get("value")
    try:
        value = json.loads(value) if isinstance(value, str | bytes) else value  # SQLite has it as text
        text = _text(value)
    except (ValueError, RecursionError):
        return None
    created = first_time(row.get("created_at"), row.get("updated_at"))
    if not text:
        return None
    return Item(
        id=id_of("LangMem", *parts, clean(str(row.get("key") or text))),
        text=text,
        time=created,
        thread=f"langmem/{'/'.join(parts)}",
        kind="episodic" if as_dict(value).get("kind") in EPISODES else "semantic",
        since=first_time(row.get("updated_at"), created),
        owner=parts,
    )


def _text(value: Any) -> str:
    """Return a memory in words: its text, or the names and values of its fields; "" if there are none."""
    inner = as_dict(value).get("content", value)
    if isinstance(inner, str):
        return clean(inner)
    fields = as_dict(inner)
    if text := next((clean(fields[each]) for each in TEXT_FIELDS if clean(fields.get(each))), ""):
        return text
    kind, pairs = clean(as_dict(value).get("kind")), "; ".join(_pairs(fields))
    return f"{kind}: {pairs}" if kind and pairs else pairs


def _pairs(fields: Mapping[str, Any]) -> list[str]:
    """Return `name: value` of each non-empty field, sorted by name: Postgres keeps no other order."""
    said = {name: _words(each) for name, each in sorted(fields.items())}
    return [f"{clean(name)}: {words}" for name, words in said.items() if words]


def _words(given: Any) -> str:
    if isinstance(given, dict):
        return f"({'; '.join(_pairs(given))})" if given else ""
    if isinstance(given, list):
        return ", ".join(filter(None, map(_words, given)))
    return "" if given is None else clean(str(given))
