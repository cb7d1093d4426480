"""How rules update a structured memory: each statement goes into the slot whose words it shares.

A line that begins with a label (`Risk: …`) is one statement; other lines are cut into sentences. A later
statement about what stands before a colon or a bracket (`Storage (S3) …`) takes the earlier one's place.
Where a memory is full, what is oldest goes first.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from typing import Any

from mneme.prompts.discussion.memory_template import LONGEST_ENTRY, MOST_ENTRIES, Slots, size
from mneme.prompts.discussion.memory_update import Remembering, Updated, update_memory
from mneme.rules.registry import rule
from mneme.rules.words import words_in

Path = tuple[str, ...]
LABELLED = re.compile(r"([A-Za-z][\w '/-]{1,40}):\s+(\S.*)")
CLAUSE = re.compile(r"\b(?:is|are|was|were|has|have|can|cannot|must|will)\b", re.IGNORECASE)
"""Shows that what stands before a colon is no label, but says something (`Gate 4 is shut: …`)."""
SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z0-9\"'(])")
SUBJECT = re.compile(r"([^:(.;,]{3,60})\s*[:(]")
WORD = re.compile(r"\b\w*\d\w*\b|[^\W\d_]{3,}")
COMMON = words_in(
    "the and for are was has had that this with from what which who each any all not one two into when "
    "while will would can could may might must should shall been being does did done how why more than"
)
LABEL = 4.0
"""What a word of a label weighs that stands in a slot's name, beside one of a statement's in its purpose."""
SIGNS = {
    "?": "question open unclear",
    "risk": "risk concern failure",
    "fail": "risk concern failed failure",
    "not valid": "failed failure",
    "propos": "proposal proposed solution component plan",
    "accept": "agreed agreement accepted settled",
}
"""What a statement may contain, and the words of slots that are for such statements."""


@rule(update_memory)
def update(given: Remembering) -> Updated:
    """Put each statement of the output into the slot that it fits; drop the oldest to make room."""
    memory = deepcopy(given.memory.root)
    slots = {path: (purpose, held) for path, purpose, held in slots_of(given.template.root, memory)}
    changed = [_take_in(slots, each) for each in statements(given.output)]
    while (excess := size(memory) - given.limit) > 0 and _drop([held for _, held in slots.values()], excess):
        pass
    names = sorted({".".join(path) for path in changed})
    reason = f"New in {', '.join(names)}." if names else "Nothing new was said."
    return Updated(reason=reason, memory=Slots(memory))


class Text:
    """A slot that holds one text, taken for a list of one entry."""

    def __init__(self, within: dict[str, Any], name: str) -> None:
        self.within, self.name = within, name

    @property
    def entries(self) -> list[str]:
        return [self.within[self.name]] if self.within[self.name] else []

    @entries.setter
    def entries(self, kept: Sequence[str]) -> None:
        self.within[self.name] = kept[-1] if kept else ""


class Texts(Text):
    """A slot that holds a list."""

    @property
    def entries(self) -> list[str]:
        return list(self.within[self.name])

    @entries.setter
    def entries(self, kept: Sequence[str]) -> None:
        self.within[self.name] = [each for each in kept if each][-MOST_ENTRIES:]


def slots_of(
    template: Mapping[str, Any], memory: dict[str, Any], above: Path = ()
) -> Iterator[tuple[Path, str, Text]]:
    """Yield every slot's path, what it is for, and its place in a memory."""
    for name, slot in template.items():
        if isinstance(slot, Mapping):
            yield from slots_of(slot, memory[name], (*above, name))
        elif isinstance(slot, list):
            yield (*above, name), slot[0], Texts(memory, name)
        else:
            yield (*above, name), slot, Text(memory, name)


def statements(output: str) -> Iterator[str]:
    """Cut an output into its statements."""
    for line in (each.strip(" \t-*•") for each in output.splitlines()):
        cut = [line] if _labelled(line) else SENTENCE_END.split(line)
        yield from (" ".join(each.split()) for each in cut if WORD.search(each))


def _labelled(line: str) -> re.Match[str] | None:
    found = LABELLED.match(line)
    return None if found is None or CLAUSE.search(found[1]) else found


def words(text: str) -> frozenset[str]:
    """Return the words of a text that mean something, without the plural's s."""
    found = (word for word in WORD.findall(text.lower().replace("_", " ")) if word not in COMMON)
    return frozenset(word.removesuffix("s") if len(word) > 4 and word.isalpha() else word for word in found)


def _take_in(slots: Mapping[Path, tuple[str, Text]], statement: str) -> Path:
    """Put a statement into the slot that it fits best; return the slot's path."""
    label, said = found.groups() if (found := _labelled(statement)) else ("", statement)
    path = max(slots, key=lambda path: _fit(path, slots[path][0], label, said))
    held, said = slots[path][1], said[:LONGEST_ENTRY]
    held.entries = [*(each for each in held.entries if not _same_subject(each, said)), said]
    return path


def _fit(path: Path, purpose: str, label: str, said: str) -> float:
    """Say how well a statement fits a slot: by its label, by what it contains, by the words they share."""
    name, whole = words(" ".join(path)), words(f"{' '.join(path)} {purpose}")
    labelled = LABEL * len(words(label) & name) + len(words(label) & whole)
    signs = [fit for sign, fit in SIGNS.items() if sign in f"{label} {said}".lower()]
    shared: float = len(words(said) & whole) / (1 + len(words(said))) ** 0.5
    return labelled + 2 * len(name & words(" ".join(signs))) + shared


def _same_subject(one: str, other: str) -> bool:
    subjects = [found[1].strip().lower() for found in map(SUBJECT.match, (one, other)) if found]
    return one == other or (len(subjects) == 2 and subjects[0] == subjects[1])


def _drop(held: Sequence[Text], excess: int) -> bool:
    """Drop the oldest entry of the fullest list, or cut the longest text; say whether there was any."""
    fullest = max(held, key=lambda each: len(each.entries))
    longest = max(held, key=lambda each: len("".join(each.entries)))
    if len(fullest.entries) > 1:
        fullest.entries = fullest.entries[1:]
    elif longest.entries:
        longest.entries = [longest.entries[0][: max(0, len(longest.entries[0]) - excess)]]
    return bool(longest.entries or fullest.entries)
