"""What rules can propose in a discussion, and what a context still shows of what was proposed.

Rules know no field. They propose what the task demands (its list items, and sentences with `must` or
`should`) and what persons asked for since; where the task demands nothing, the duties of their role. What has
been lost from the context they take for not said. Items are read back from turns and memories by their form,
`Name (choice) because …. Pros: …`.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from textwrap import shorten

from mneme.prompts.discussion.intrinsic_memory import Speaking
from mneme.rules.discussion.memory_update import words

ITEM = re.compile(
    r"^[\s\"\-*•]*(?:\[(\d+)\] )?(?:([A-Z]\w+): )?([^\W_a-z][\w /&'-]{2,60}?) \(([^()]{1,80})\) because "
    r"(.*?)(?: \[(\d+)\])?\"?,?$",
    re.MULTILINE,
)
"""An item, with the number of its turn before it or, in what is remembered, after it."""
PART = re.compile(r"(?:^|[.;] )([A-Z][a-z]+): ")
DEMAND = re.compile(
    r"^\s*[-*•]\s*(\S.+)$|([^.\n]*\b(?:must|should|needs? to|has to|have to)\b[^.\n]*)", re.MULTILINE
)
PHRASE = re.compile(r"[,;:.]| and | of the ")
PERSON = re.compile(r"^[^\n]*\(a person\)[^\n]*:\n")
CLAUSE = re.compile(r"(?<=[.!?;,])\s+|\n|\bbut\b")
WISH = re.compile(
    r"\b(?:add|include|need|want|must|should|where is|what about|there is no|lacks?)\b(.*)", re.IGNORECASE
)
REFUSAL = re.compile(
    r"\b(no|without|drop|remove|avoid|leave out|not|never|only|at most)\b|n't\b", re.IGNORECASE
)
MOST_DUTIES = 4
LONGEST_NAME = 60
CUT = " …"


@dataclass
class Item:
    """An item of the solution, as far as a context shows it."""

    name: str
    choice: str
    because: str
    parts: dict[str, str] = field(default_factory=dict)
    label: str = ""
    turns: list[int] = field(default_factory=list)

    def __str__(self) -> str:
        parts = "".join(f". {name.capitalize()}: {text}" for name, text in self.parts.items())
        return f"{self.name} ({self.choice}) because {self.because}{parts}."


def items_in(text: str) -> Iterator[Item]:
    """Read the items that a text names, in order; a turn's number holds for all that is said in it."""
    turn = re.match(r"\[(\d+)\] ", text)
    for before, label, name, choice, rest, after in ITEM.findall(text):
        because, *parts = PART.split(rest.rstrip(' .,"'))
        said = {part.lower(): told.strip(" .;") for part, told in zip(parts[::2], parts[1::2], strict=True)}
        numbers = [int(each) for each in (turn and turn[1], before, after) if each]
        yield Item(name.strip(), choice.strip(), because.strip(" .;"), said, label, numbers[:1])


def joined(found: Iterable[Item]) -> dict[str, Item]:
    """Return items by name: the last said counts, with the parts and turns of the earlier ones."""
    by_name: dict[str, Item] = {}
    for item in found:
        older = by_name.pop(item.name.lower(), None)
        if older:
            item.parts, item.turns = {**older.parts, **item.parts}, sorted({*older.turns, *item.turns})
        by_name[item.name.lower()] = item
    return by_name


def visible(given: Speaking) -> dict[str, Item]:
    """Return the items that memory and turns show, without those that a person has refused."""
    found = joined(item for text in [given.memory, *given.turns.root] for item in items_in(text))
    return {name: item for name, item in found.items() if not _is_refused(item.name, _clauses(given))}


def summarised(given: Speaking) -> dict[str, Item]:
    """Return the items of the latest summary that is visible."""
    summaries = ([item for item in items_in(turn) if item.label == "Summary"] for turn in given.turns.root)
    return joined(next(filter(None, reversed(list(summaries))), []))


def demands(given: Speaking) -> list[Item]:
    """Return what task and persons ask for as items, those in a role's own words first."""
    asked = [(hit[1] or hit[2], "the task asks for it") for hit in DEMAND.finditer(given.task)]
    asked += [(each, "a person asked for it") for each in _wishes(given)]
    found = [_item(text, "to be met", why) for text, why in asked if len(_name(text)) > 2]
    kept = [item for item in joined(found).values() if not _is_refused(item.name, _clauses(given))]
    return sorted(kept, key=lambda item: not words(item.because) & words(given.duties))


def own_items(given: Speaking) -> list[Item]:
    """Return what a role proposes: the demands, or its duties where the task makes none."""
    duties = [_item(each, "to be decided", "it is a duty") for each in phrases_of(given.duties, given.task)]
    kept = [item for item in duties if len(item.name) > 2 and not _is_refused(item.name, _clauses(given))]
    return demands(given) + ([] if DEMAND.search(given.task) else kept)


def phrases_of(duties: str, task: str) -> list[str]:
    """Return the first duties of a role, those that share words with its task before others."""
    phrases = dict.fromkeys(" ".join(each.split()) for each in PHRASE.split(duties))
    usable = (each for each in phrases if words(each))
    return sorted(usable, key=lambda each: -len(words(each) & words(task)))[:MOST_DUTIES]


def fitted(lines: Sequence[str], room: int) -> str:
    """Join lines, the longest cut until all fit; the last are left out where even that is too long."""
    kept = list(lines)
    while sum(map(len, kept)) + len(kept) > room and len(kept) > 1:
        longest = max(range(len(kept)), key=lambda at: len(kept[at]))
        brief = shorten(kept[longest], max(90, len(kept[longest]) * 4 // 5), placeholder=CUT)
        if len(brief) < len(kept[longest]):
            kept[longest] = brief
        else:
            kept.pop()
    return "\n".join(kept)[:room]


def _item(text: str, choice: str, why: str) -> Item:
    said = " ".join(text.split()).strip(" .:;-*?!")
    return Item(_name(said), choice, f"{why}: {shorten(said, 160, placeholder=CUT)}")


def _name(text: str) -> str:
    name = shorten(" ".join(re.findall(r"[^\W\d_][\w'-]*|\d+", text)), LONGEST_NAME, placeholder="")
    return name[:1].upper() + name[1:]


def _clauses(given: Speaking) -> list[str]:
    """Return what persons have said, clause by clause."""
    said = (PERSON.sub("", turn) for turn in given.turns.root if PERSON.match(turn))
    return [clause.strip() for text in said for clause in CLAUSE.split(text) if clause.strip()]


def _wishes(given: Speaking) -> Iterator[str]:
    for clause in _clauses(given):
        wish = WISH.search(clause)
        if wish and not REFUSAL.search(clause.replace("here is no ", "")):
            yield re.sub(r"^\s*(?:an?|the|to|be)\b", "", wish[1])


def _is_refused(name: str, clauses: Sequence[str]) -> bool:
    """Say whether the last clause of a person that names something refuses it."""
    naming = [each for each in clauses if words(name) and words(name) <= words(each)]
    last = naming[-1].replace("here is no ", "") if naming else ""
    return bool(REFUSAL.search(last))
