"""Proposals that rules make in a discussion, and the proposals that a context still shows.

Rules have no expert knowledge. They propose what the task demands (its list items, and sentences with `must`
or `should`), what persons have said since and what other workflows know, in their own words; where the task
demands nothing, the duties of their role. What has left the context counts as not said. Items are read back
from turns and memories by their form, `Name (choice) because …`.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from textwrap import shorten

from mneme.prompts.discussion.intrinsic_memory import ITEM, Speaking
from mneme.rules.discussion.memory_update import ENTRY_END, words

DEMAND = re.compile(
    r"^\s*[-*•]\s*(\S.+)$|((?:[^.\n]|\.\d)*\b(?:must|should|needs? to|has to|have to)\b(?:[^.\n]|\.\d)*)",
    re.MULTILINE,
)
PHRASE = re.compile(r"[,;:.]| and | of the ")
PERSON_TURN = re.compile(r"^[^\n]*\(a person\)[^\n]*:\n")
MAX_DUTIES = 4
NAME_WORD = re.compile(r"[^\W_](?:[\w'%/-]|[.,:](?=\w))*")
"""A word, a number, a time or a date of a name."""
MAX_ITEM_NAME_CHARS, SHORTEST_LINE = 80, 110
CUT = " …"


@dataclass
class Item:
    """An item of the solution, as far as a context shows it."""

    name: str
    choice: str
    because: str
    turns: list[int] = field(default_factory=list)

    def __str__(self) -> str:
        return f"{self.name} ({self.choice}) because {self.because}."


def items_in(text: str) -> Iterator[Item]:
    """Read the items that a text names, in order; a turn's number holds for all items in it."""
    turn = re.match(r"\[(\d+)\] ", text)
    for item in ITEM.finditer(text):
        # A turn's own number, else what a memory or the writer's list of proposals has beside the item.
        numbers = [each for each in (turn and turn[1], item["before"], item["after"]) if each][:1]
        turns = [int(each) for each in ", ".join(numbers).split(", ") if each]
        because = item["because"].strip(" .;")
        yield Item(item["name"].strip(), item["choice"].strip(), because, turns)


def joined(found: Iterable[Item]) -> dict[str, Item]:
    """Return items by name: the last said counts, with the turns of the earlier ones."""
    by_name: dict[str, Item] = {}
    for item in found:
        if older := by_name.pop(item.name.lower(), None):  # so that it stands where it was said last
            item.turns = sorted({*older.turns, *item.turns})
        by_name[item.name.lower()] = item
    return by_name


def shown_items(given: Speaking) -> dict[str, Item]:
    """Return the items that memory and turns show."""
    return joined(item for text in [given.memory, *given.turns.root] for item in items_in(text))


def demands(given: Speaking) -> list[Item]:
    """Return the demands of the task and of persons as items, those in a role's own words first."""
    asked = [(hit[1] or hit[2], "the task asks for it") for hit in DEMAND.finditer(given.task)]
    said = [PERSON_TURN.sub("", turn) for turn in given.turns.root if PERSON_TURN.match(turn)]
    sentences = [each for text in said if not ITEM.search(text) for each in ENTRY_END.split(text)]
    asked += [(each, "a person said so") for each in sentences]
    known = (each.rpartition(" [") for each in given.holding)  # what is shared, and where it is from
    asked += [(text, f"it is known: {origin.rstrip(']')}") for text, _, origin in known]
    found = joined(_item(text, "to be met", why) for text, why in asked if len(_name(text)) > 2)
    return sorted(found.values(), key=lambda item: not words(item.because) & words(given.duties))


def own_items(given: Speaking) -> list[Item]:
    """Return what a role proposes: the demands, or its duties where the task makes none."""
    duties = [_item(each, "to be decided", "it is a duty") for each in phrases_of(given.duties, given.task)]
    return demands(given) + ([] if DEMAND.search(given.task) else duties)


def phrases_of(duties: str, task: str) -> list[str]:
    """Return the first duties of a role, those that share words with its task before others."""
    phrases = dict.fromkeys(" ".join(each.split()) for each in PHRASE.split(duties))
    usable = (each for each in phrases if words(each))
    return sorted(usable, key=lambda each: -len(words(each) & words(task)))[:MAX_DUTIES]


def fitted(lines: Sequence[str], room: int) -> str:
    """Join as many lines as fit, each cut to its share."""
    kept = lines[: max(1, room // SHORTEST_LINE)]
    return "\n".join(shorten(each, room // len(kept) - 1, placeholder=CUT) for each in kept)


def _item(text: str, choice: str, why: str) -> Item:
    said = " ".join(text.split()).strip(" .:;-*?!")
    return Item(_name(said), choice, f"{why}: {shorten(said, 160, placeholder=CUT)}")


def _name(text: str) -> str:
    name = shorten(" ".join(NAME_WORD.findall(text.partition("; ")[0])), MAX_ITEM_NAME_CHARS, placeholder="…")
    return name[:1].upper() + name[1:]
