"""How rules answer the questions of `prompts/discussion/memory_template.py`."""

from collections.abc import Iterator, Mapping
from typing import Any

Path = tuple[str, ...]


Content = str | list[str]


def slots(template: Mapping[str, Any], above: Path = ()) -> Iterator[tuple[Path, str, bool]]:
    """Yield every slot's path, what it is for, and whether it holds a list."""
    for name, slot in template.items():
        path = (*above, name)
        if isinstance(slot, Mapping):
            yield from slots(slot, path)
        else:
            yield path, slot[0] if isinstance(slot, list) else slot, isinstance(slot, list)


def content(memory: Mapping[str, Any], path: Path) -> Content:
    """Return what a slot holds."""
    found: Any = memory
    for name in path:
        found = found[name]
    return found  # type: ignore[no-any-return]
