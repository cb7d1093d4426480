"""Memories of Mem0: what `get_all` returned, or its local store, a folder of Qdrant's Python client.

The store holds pickled points. They are read without creating their objects, so that none of their code runs.
"""

import io
import os
import pickle
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from mneme.core.errors import BadInput
from mneme.importing.files import elements_of, opened_copy
from mneme.importing.item import Item, Reading, State, as_dict, clean, first_time, id_of, of_owner

MEM0_OWNERS = ("user_id", "agent_id", "run_id")
MEM0_HINT = "Give a file with what `get_all` returned, as JSON, or the folder of a local store."


def read(source: Path, owner: str = "", collection: str = "mem0", history: Path | None = None) -> Reading:
    """Return the memories of one owner (`ann`, or `agent_id/helper`), with their earlier texts.

    Without a file of its history, Mem0's own is read beside a store. Raises BadInput.
    """
    if (is_store := source.is_dir()) and history is None:
        own = Path(os.environ.get("MEM0_DIR") or Path.home() / ".mem0", "history.db")  # where Mem0 has it
        history = own if own.is_file() else None
    earlier = _history(history) if history is not None else {}
    given = _stored(source, collection) if is_store else elements_of(source)
    found = (_item(as_dict(each), earlier) for each in given)
    return of_owner(found, owner, "--of", BadInput(f"{source} holds no memories.", MEM0_HINT))


def _item(memory: Mapping[str, Any], earlier: Mapping[str, Sequence[State]]) -> Item | None:
    text = clean(memory.get("memory") or memory.get("data"))
    if not text:
        return None
    owner = next(((name, str(memory[name])) for name in MEM0_OWNERS if memory.get(name)), ("", "nobody"))
    # A user is named alone (`ann`), any other owner with its kind (`agent_id/helper`).
    whose = tuple(map(clean, owner[1:] if owner[0] in {"user_id", ""} else owner))
    known = earlier.get(str(memory.get("id")), ())
    created = first_time(memory.get("created_at"), memory.get("updated_at"))
    return Item(
        id=id_of("Mem0", clean(str(memory.get("id") or text))),
        text=text,
        time=created,
        thread=f"mem0/{'/'.join(whose)}",
        earlier=known[:-1] if known and known[-1].text == text else (),
        since=first_time(memory.get("updated_at"), created),
        owner=whose,
    )


def _stored(folder: Path, collection: str) -> Iterator[dict[str, Any]]:
    """Yield the payloads of a local store, with the ids of their points. Raises BadInput."""
    there = sorted(each.parent.name for each in folder.glob("collection/*/storage.sqlite"))
    if collection not in there:
        hint = f"Say --collection and one of: {', '.join(there)}." if there else MEM0_HINT
        raise BadInput(f"{folder} has no collection {collection!r} of a local store.", hint)
    with opened_copy(folder / "collection" / collection / "storage.sqlite") as database:
        known: set[str] = set()
        for row in database.execute("SELECT point FROM points ORDER BY rowid DESC"):  # the latest first
            point = _point(row["point"])
            if (name := str(point.get("id"))) not in known:
                known.add(name)
                yield as_dict(point.get("payload")) | {"id": name}


class _Kept:
    """The state of a pickled object, without its class: none of its code runs."""

    inside: Any = None

    def __init__(self, *_: Any) -> None: ...

    def __setstate__(self, state: Any) -> None:
        self.inside = state


class _Reader(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> type[_Kept]:
        return _Kept


def _point(pickled: object) -> dict[str, Any]:
    """Return the fields of a pickled point; empty if it is not one."""
    try:
        made = _Reader(io.BytesIO(pickled if isinstance(pickled, bytes) else b"")).load()
    except (pickle.UnpicklingError, EOFError, TypeError, AttributeError, IndexError, KeyError, ValueError):
        return {}
    inside = made.inside if isinstance(made, _Kept) else None
    return as_dict(as_dict(inside).get("__dict__", inside))


def _history(file: Path) -> Mapping[str, Sequence[State]]:
    """Return the texts of each memory, oldest first, from Mem0's history. Raises BadInput."""
    found: dict[str, list[State]] = defaultdict(list)
    with opened_copy(file) as database:
        for row in database.execute("SELECT * FROM history ORDER BY rowid"):
            if text := clean(row["new_memory"]):
                found[row["memory_id"]].append(State(text, first_time(row["updated_at"], row["created_at"])))
    return found
