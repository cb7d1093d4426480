"""Make a memory template from a role and a task: the paper's named limit (§6), lifted.

What is made is a draft: a person reviews it before a team uses it.
"""

import re
import unicodedata
from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel, Field

from prompts.intrinsic_memory import DATA
from prompts.memory_rules import words
from prompts.memory_template import SLOT, Slots, wrong_in
from prompts.prompt import prompt

LEAST, MOST = 3, 12
PHRASE = re.compile(r"[,;:.]| and | of the ")
DUTIES = 4
LONGEST_NAME = 40
SPELT = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "æ": "ae", "ø": "oe", "ł": "l", "đ": "d", "œ": "oe"})
ACCENTS = dict.fromkeys(range(0x300, 0x370))
"""Marks that a letter is decomposed into."""


class Place(BaseModel):
    """A role in a team that is to discuss a task."""

    role: str
    duties: str
    task: str
    item: str = "Component"
    fields: str = ""


class Slot(BaseModel):
    """One slot of a template."""

    purpose: str = Field(description="What the slot is to hold, in words.")
    many: bool = Field(description="Whether it holds a list; else one text.")
    group: str = Field("", description="The slot that it stands in; empty: at the top.")
    name: str = Field(description="Small letters, digits and underscores.")


class Draft(BaseModel):
    """A template to be reviewed."""

    reason: str = Field(description="What this role must not forget in this task.")
    slots: list[Slot]

    @property
    def template(self) -> dict[str, Any]:
        """Return the template as nested JSON."""
        nested: dict[str, Any] = {}
        for slot in self.slots:
            within = nested.setdefault(slot.group, {}) if slot.group else nested
            within[slot.name] = [slot.purpose] if slot.many else slot.purpose
        return nested


@prompt(
    system=f"""You design the structured memory of one agent in a team that discusses a task. List the slots
that keep what this role must not forget: its knowledge, its position, what it proposed and why, what was
agreed, what is open, and what is particular to this role in this task. From {LEAST} to {MOST} slots; a slot
may stand in a group. {DATA}
Reply with one JSON object, e.g. {{"reason": "Costs decide here.", "slots": [{{"purpose": "What I stand for
now", "many": false, "group": "", "name": "position"}}, {{"purpose": "Each cost that was named", "many": true,
"group": "costs", "name": "named"}}]}}""",
    user="""Role: $role
Duties: $duties

Task:
$task

The team produces items called $item, of each of which it says: $fields""",
)
def make_template(given: Place) -> Draft:
    """Take what every discussant must keep, and a slot for each duty that the task touches first."""
    duties = list(_duties(given))
    common = [
        Slot(purpose="What I know of my field that bears on the task", many=True, name="expertise"),
        Slot(purpose="What I stand for now, in one or two sentences", many=False, name="position"),
        Slot(purpose=_of_items(given), many=True, group="proposals", name="proposed"),
        Slot(
            purpose="What was weighed and not taken, with the reason",
            many=True,
            group="proposals",
            name="rejected",
        ),
        Slot(purpose="What the team has agreed on or accepted", many=True, name="agreements"),
        Slot(purpose="Objections, risks, gaps and open questions", many=True, name="concerns"),
    ]
    own = [
        Slot(purpose=f"What was said about {each}", many=True, group="duties", name=_slug(each))
        for each in duties
    ]
    return Draft(reason=f"{given.role}: {', '.join(duties) or 'the whole task'}.", slots=[*common, *own])


def _of_items(given: Place) -> str:
    return f"Each {given.item.lower()} or proposal, with choice, because, {given.fields or 'reasons'}"


def _duties(given: Place) -> Iterator[str]:
    """Yield the phrases of a role's duties, those that share words with the task first."""
    phrases = [" ".join(each.split()) for each in PHRASE.split(given.duties)]
    usable = {_slug(each): each for each in phrases if SLOT.match(_slug(each)) and words(each)}
    task = words(given.task)
    yield from sorted(usable.values(), key=lambda each: -len(words(each) & task))[:DUTIES]


def named_after(title: str) -> str:
    """Return a name in plain small letters, with accents taken off letters rather than letters left out."""
    return "_".join(_plain(title))


def _plain(text: str) -> list[str]:
    spelt = text.casefold().translate(SPELT)
    return re.findall(r"[a-z0-9]+", unicodedata.normalize("NFKD", spelt).translate(ACCENTS))


def _slug(phrase: str) -> str:
    kept = [word for word in _plain(phrase) if word not in {"the", "a", "an", "of", "for"}]
    return "_".join(kept[:4])[:LONGEST_NAME].strip("_")


@make_template.check
def can_be_used(given: Place, answer: Draft) -> None:
    """Refuse names that are no names, slots that are there twice, and too few or too many of them."""
    if not LEAST <= len(answer.slots) <= MOST:
        raise ValueError(f"There are {len(answer.slots)} slots; give {LEAST} to {MOST}.")
    groups = {slot.group for slot in answer.slots if slot.group}
    paths = [(slot.group, slot.name) for slot in answer.slots]
    twice = [
        name for group, name in paths if paths.count((group, name)) > 1 or (not group and name in groups)
    ]
    if twice:
        raise ValueError(f"The slot {twice[0]} is there twice.")
    if wrong := wrong_in(Slots(answer.template).root):
        raise ValueError(wrong)
