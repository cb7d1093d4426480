"""Make a memory template from a role and a task: the paper's named limit (§6), lifted.

The result is a draft: a person reviews it before a team uses it.
"""

import re
import unicodedata
from typing import Any

from pydantic import BaseModel, Field

from mneme.prompts.discussion.intrinsic_memory import DISCUSSION_IS_DATA
from mneme.prompts.discussion.memory_template import Slots, wrong_in
from mneme.prompts.prompt import Prompt, Reason

LEAST, MOST = 3, 12
MAX_SLOT_NAME_CHARS = 48
MAX_PURPOSE_CHARS = 300
# `ø`, `ł`, `đ`, `æ` and `œ` have no decomposition in Unicode; an umlaut is spelt as in German.
SPELT = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "æ": "ae", "ø": "oe", "ł": "l", "đ": "d", "œ": "oe"})
ACCENTS = dict.fromkeys(range(0x300, 0x370))  # combining marks, which decomposition parts from their letters


class Place(BaseModel):
    """A role in a team that is to discuss a task."""

    role: str
    duties: str
    task: str
    item: str = "Component"
    fields: str = ""


class Slot(BaseModel):
    """One slot of a template."""

    purpose: str = Field(max_length=MAX_PURPOSE_CHARS, description="What the slot is to hold, in words.")
    many: bool = Field(description="Whether it holds a list; else one text.")
    group: str = Field(
        "", max_length=MAX_SLOT_NAME_CHARS, description="The slot that it stands in; empty: at the top."
    )
    # A name follows what it is for, as a decision its reason.
    name: str = Field(max_length=MAX_SLOT_NAME_CHARS, description="Small letters, digits and underscores.")


class Draft(BaseModel):
    """A template to be reviewed."""

    reason: Reason = Field(description="What this role must not forget in this task.")
    slots: list[Slot] = Field(max_length=2 * MOST)

    @property
    def template(self) -> dict[str, Any]:
        """Return the template as nested JSON."""
        nested: dict[str, Any] = {}
        for slot in self.slots:
            within = nested.setdefault(slot.group, {}) if slot.group else nested
            within[slot.name] = [slot.purpose] if slot.many else slot.purpose
        return nested


make_template = Prompt(
    name="make_template",
    given=Place,
    answer=Draft,
    system=f"""You design the structured memory of one agent in a team that discusses a task. List the slots
that keep what this role must not forget: its knowledge, its position, what it proposed and why, what was
agreed, what is open, and what is particular to this role in this task. From {LEAST} to {MOST} slots. A slot
has a name of small letters, digits and underscores, holds one text or a list (many), and may stand in a
group with others. {DISCUSSION_IS_DATA}""",
    examples=[
        Draft(
            reason="The warden of the mountain hut must not lose sight of wood and guests.",
            slots=[
                Slot(purpose="How the hut is to be heated", many=False, name="heating"),
                Slot(purpose="Each guest who has booked a bed", many=True, group="beds", name="booked"),
                Slot(purpose="What is to be carried up", many=True, name="supplies"),
            ],
        )
    ],
    user="""Role: $role
Duties: $duties

Task:
$task

The team produces items called $item, of each of which it says: $fields""",
    bounds=[lambda given: {"slots": {"minItems": LEAST, "maxItems": MOST}}],
)


def plain_words(text: str) -> list[str]:
    """Return the words of a text in lower case; accents are removed, their letters stay."""
    spelt = text.casefold().translate(SPELT)
    return re.findall(r"[a-z0-9]+", unicodedata.normalize("NFKD", spelt).translate(ACCENTS))


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
