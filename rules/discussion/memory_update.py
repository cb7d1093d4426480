"""Rules that update a structured memory: each statement goes into the slot whose words it shares.

A line that begins with a label (`Risk: …`) is one statement; other lines are cut into sentences. A later
statement about what stands before a colon or a bracket (`Storage (S3) …`) takes the earlier one's place.
Where a memory is full, what is oldest goes first.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from mneme.prompts.discussion.intrinsic_memory import item_name
from mneme.prompts.discussion.memory_template import (
    MAX_ENTRIES,
    MAX_ENTRY_CHARS,
    Path,
    Slots,
    at,
    held,
    size,
    slots,
)
from mneme.prompts.discussion.memory_update import Remembering, Updated, update_memory
from mneme.rules.registry import rule

Purposes = Mapping[Path, Any]
"""The purpose of each slot: a text, or a list of one for a slot that holds a list."""
Kept = dict[Path, list[str]]
LABELLED = re.compile(r"([A-Za-z][\w '/-]{1,40}):\s+(\S.*)")
ENTRY_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z0-9\"'(])")
SUBJECT_HEAD = re.compile(r"([^:(.;,]{3,60})\s*(?::\s|\()")
CONTENT_WORD = re.compile(r"\b\w*\d\w*\b|[^\W\d_]{4,}")
LABEL = 4.0  # weight of a label's word in a slot's name, beside that of a statement's word in its purpose


@rule(update_memory)
def update(given: Remembering) -> Updated:
    """Put each statement of the output into the slot that it fits; drop the oldest to make room."""
    purposes = dict(slots(given.template.root))
    kept = {path: held(at(given.memory.root, path)) for path in purposes}
    changed = {_take_in(purposes, kept, each) for each in statements(given.output)}
    while (excess := size(_memory(purposes, kept)) - given.limit) > 0 and any(kept.values()):
        _drop(kept, excess)
    names = sorted(".".join(path) for path in changed)
    reason = f"New in {', '.join(names)}." if names else "Nothing new was said."
    return Updated(reason=reason, memory=Slots(_memory(purposes, kept)))


def _memory(purposes: Purposes, kept: Kept) -> dict[str, Any]:
    """Return the entries in the template's shape."""
    memory: dict[str, Any] = {}
    for path, purpose in purposes.items():
        within = memory
        for name in path[:-1]:
            within = within.setdefault(name, {})
        within[path[-1]] = [*kept[path]] if isinstance(purpose, list) else "".join(kept[path])
    return memory


def statements(output: str) -> Iterator[str]:
    """Cut an output into its statements."""
    for line in (each.strip(" \t-*•") for each in output.splitlines()):
        cut = [line] if LABELLED.match(line) else ENTRY_END.split(line)
        yield from (" ".join(each.split()) for each in cut if CONTENT_WORD.search(each))


def words(text: str) -> frozenset[str]:
    """Return the longer words of a text, without the plural's s."""
    found = CONTENT_WORD.findall(text.lower().replace("_", " "))
    return frozenset(word.removesuffix("s") if len(word) > 4 and word.isalpha() else word for word in found)


def _take_in(purposes: Purposes, kept: Kept, statement: str) -> Path:
    """Put a statement into the slot that fits best; return the slot's path."""
    label, said = found.groups() if (found := LABELLED.match(statement)) else ("", statement)

    def fit(path: Path) -> float:
        name, whole = words(" ".join(path)), words(f"{' '.join(path)} {' '.join(held(purposes[path]))}")
        labelled = LABEL * len(words(label) & name) + len(words(label) & whole)
        # The longer a statement, the less its words count beside its label: it shares some with any slot.
        shared: float = len(words(said) & whole) / (1 + len(words(said))) ** 0.5
        return labelled + shared

    path, said = max(purposes, key=fit), said[:MAX_ENTRY_CHARS]  # where nothing fits, the first slot
    others = [each for each in kept[path] if each != said and _subject(each) != (_subject(said) or None)]
    kept[path] = [*others, said][-(MAX_ENTRIES if isinstance(purposes[path], list) else 1) :]
    return path


def _subject(statement: str) -> str:
    found = SUBJECT_HEAD.match(statement)
    return item_name(statement) or (found[1].strip().lower() if found else "")


def _drop(kept: Kept, excess: int) -> None:
    """Drop the oldest entry of the fullest list, or cut the longest text."""
    fullest = max(kept, key=lambda path: len(kept[path]))
    if len(kept[fullest]) > 1:
        del kept[fullest][0]
        return
    longest = max(kept, key=lambda path: len("".join(kept[path])))
    kept[longest] = [*filter(None, [kept[longest][0][:-excess]])]
