"""What can be used of a memory that was answered wrongly: slot by slot, the old one for the rest."""

from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import Any

from pydantic_core import from_json

from mneme.models.asking.replies import Unusable, objects, without_thought
from mneme.prompts.discussion.memory_template import departures, size
from mneme.prompts.discussion.memory_update import FEW, KEPT, ROOMY, Remembering

Path = tuple[str, ...]


def merged(given: Remembering, raw: str) -> tuple[dict[str, Any], list[str], list[str]]:
    """Return the memory, the slots that are taken from a reply, and those that stay as they were.

    A slot is taken where it is there, has the form of its template, still fits into the memory's bound, and
    is no list that has lost more than the history that an update may lose.
    """
    answered, memory = object_in(raw).get("memory"), deepcopy(given.memory.root)
    taken: list[str] = []
    kept: list[str] = []
    for path, slot in _slots(given.template.root):
        found = _at(answered, path)
        is_usable = found is not None and not any(departures({path[-1]: slot}, {path[-1]: found}))
        fits = is_usable and not _loses(given, _at(memory, path), found) and _put(memory, path, found, given)
        (taken if fits else kept).append(".".join(path))
    return memory, taken, kept


def object_in(raw: str) -> dict[str, Any]:
    """Return the JSON object of a reply; of one that was cut off, all but its last value; else nothing.

    The last value of a list of objects is its last object.
    """
    text = raw if raw.lstrip().startswith("{") else without_thought(raw)
    try:
        if found := objects(text):
            return found[0]
        cut = from_json(text[text.index("{") :], allow_partial="trailing-strings")
    except (Unusable, ValueError):
        return {}
    _drop_last(cut)
    return dict(cut)


def _drop_last(within: dict[str, Any]) -> None:
    """Drop the value that was being written as a reply ended: a part of it says something else."""
    last = next(reversed(within), None)
    if last is None:
        return
    value = within[last]
    if isinstance(value, dict) and value:
        _drop_last(value)
    elif isinstance(value, list) and value and isinstance(value[0], dict):
        value.pop()
    else:
        del within[last]


def _slots(template: Mapping[str, Any], above: Path = ()) -> Iterator[tuple[Path, Any]]:
    for name, slot in template.items():
        if isinstance(slot, Mapping):
            yield from _slots(slot, (*above, name))
        else:
            yield (*above, name), slot


def _at(memory: Any, path: Path) -> Any:
    for name in path:
        memory = memory.get(name) if isinstance(memory, Mapping) else None
    return memory


def _loses(given: Remembering, before: Any, after: Any) -> bool:
    is_roomy = size(given.memory.root) < ROOMY * given.limit
    return isinstance(before, list) and len(before) >= FEW and len(after) < KEPT * len(before) and is_roomy


def _put(memory: dict[str, Any], path: Path, value: Any, given: Remembering) -> bool:
    """Put a value into its slot where the memory's bound leaves room; say whether it did."""
    within = _at(memory, path[:-1])
    old = within[path[-1]]
    within[path[-1]] = value
    if size(memory) <= max(given.limit, size(given.memory.root)):
        return True
    within[path[-1]] = old
    return False
