"""How rules update a structured memory: each statement goes into the slot whose words it shares.

A line that begins with a label (`Risk: …`) is one statement; other lines are cut into sentences. A later
statement about what stands before a colon or a bracket (`Storage (S3) …`) takes the earlier one's place.
Where a memory is full, what is oldest goes first.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from mneme.prompts.discussion.intrinsic_memory import named
from mneme.prompts.discussion.memory_template import LONGEST_ENTRY, MOST_ENTRIES, Slots, size
from mneme.prompts.discussion.memory_update import Remembering, Updated, update_memory
from mneme.rules.registry import rule

Path = tuple[str, ...]
LABELLED = re.compile(r"([A-Za-z][\w '/-]{1,40}):\s+(\S.*)")
SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z0-9\"'(])")
SUBJECT = re.compile(r"([^:(.;,]{3,60})\s*(?::\s|\()")
WORD = re.compile(r"\b\w*\d\w*\b|[^\W\d_]{4,}")
LABEL = 4.0
"""Weight of a label's word in a slot's name, beside a statement's word in its purpose."""


@dataclass
class Slot:
    """A slot's purpose and entries; one text counts as a list of at most one entry."""

    purpose: str
    entries: list[str]
    most: int


@rule(update_memory)
def update(given: Remembering) -> Updated:
    """Put each statement of the output into the slot that it fits; drop the oldest to make room."""
    slots = dict(_slots(given.template.root, given.memory.root))
    changed = {_take_in(slots, each) for each in statements(given.output)}
    memory = _memory(given.template.root, slots)
    while (excess := size(memory) - given.limit) > 0 and any(slot.entries for slot in slots.values()):
        _drop(slots, excess)
        memory = _memory(given.template.root, slots)
    names = sorted(".".join(path) for path in changed)
    reason = f"New in {', '.join(names)}." if names else "Nothing new was said."
    return Updated(reason=reason, memory=Slots(memory))


def _slots(
    template: Mapping[str, Any], memory: Mapping[str, Any], above: Path = ()
) -> Iterator[tuple[Path, Slot]]:
    for name, purpose in template.items():
        held, path = memory[name], (*above, name)
        if isinstance(purpose, Mapping):
            yield from _slots(purpose, held, path)
        elif isinstance(purpose, list):
            yield path, Slot(purpose[0], list(held), MOST_ENTRIES)
        else:
            yield path, Slot(purpose, [held] if held else [], 1)


def _memory(template: Mapping[str, Any], slots: Mapping[Path, Slot], above: Path = ()) -> dict[str, Any]:
    """Return the entries in the template's shape."""
    memory: dict[str, Any] = {}
    for name, purpose in template.items():
        path = (*above, name)
        if isinstance(purpose, Mapping):
            memory[name] = _memory(purpose, slots, path)
        else:
            entries = [each for each in slots[path].entries if each]
            memory[name] = entries if isinstance(purpose, list) else "".join(entries)
    return memory


def statements(output: str) -> Iterator[str]:
    """Cut an output into its statements."""
    for line in (each.strip(" \t-*•") for each in output.splitlines()):
        cut = [line] if LABELLED.match(line) else SENTENCE_END.split(line)
        yield from (" ".join(each.split()) for each in cut if WORD.search(each))


def words(text: str) -> frozenset[str]:
    """Return the longer words of a text, without the plural's s."""
    found = WORD.findall(text.lower().replace("_", " "))
    return frozenset(word.removesuffix("s") if len(word) > 4 and word.isalpha() else word for word in found)


def _take_in(slots: Mapping[Path, Slot], statement: str) -> Path:
    """Put a statement into the slot that it fits best; return the slot's path."""
    label, said = found.groups() if (found := LABELLED.match(statement)) else ("", statement)

    def fit(path: Path) -> float:
        name, whole = words(" ".join(path)), words(f"{' '.join(path)} {slots[path].purpose}")
        labelled = LABEL * len(words(label) & name) + len(words(label) & whole)
        shared: float = len(words(said) & whole) / (1 + len(words(said))) ** 0.5
        return labelled + shared

    path = max(slots, key=fit)
    slot, said = slots[path], said[:LONGEST_ENTRY]
    kept = [each for each in slot.entries if each != said and _subject(each) != (_subject(said) or None)]
    slot.entries = [*kept, said][-slot.most :]
    return path


def _subject(statement: str) -> str:
    found = SUBJECT.match(statement)
    return named(statement) or (found[1].strip().lower() if found else "")


def _drop(slots: Mapping[Path, Slot], excess: int) -> None:
    """Drop the oldest entry of the fullest list, or cut the longest text."""
    fullest = max(slots.values(), key=lambda slot: len(slot.entries))
    if len(fullest.entries) > 1:
        del fullest.entries[0]
        return
    longest = max(slots.values(), key=lambda slot: len("".join(slot.entries)))
    cut = longest.entries[0][: max(0, len(longest.entries[0]) - excess)]
    longest.entries = [cut] if cut else []
