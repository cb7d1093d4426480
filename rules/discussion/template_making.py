"""How rules answer the questions of `prompts/discussion/template_making.py`."""

import re
from collections.abc import Iterator
from textwrap import shorten

from mneme.prompts.discussion import template_making as questions
from mneme.prompts.discussion.memory_template import SLOT
from mneme.prompts.discussion.template_making import LONGEST_PURPOSE, Draft, Place, Slot, plain_words
from mneme.rules.discussion.memory_rules import words
from mneme.rules.registry import rule

PHRASE = re.compile(r"[,;:.]| and | of the ")


DUTIES = 4


LONGEST_NAME = 40


@rule(questions.make_template)
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
        Slot(purpose=_brief(f"What was said about {each}"), many=True, group="duties", name=_slug(each))
        for each in duties
    ]
    return Draft(reason=f"{given.role}: {', '.join(duties) or 'the whole task'}.", slots=[*common, *own])


def _of_items(given: Place) -> str:
    return _brief(f"Each {given.item.lower()} or proposal, with choice, because, {given.fields or 'reasons'}")


def _brief(purpose: str) -> str:
    return shorten(purpose, LONGEST_PURPOSE, placeholder=" …")


def _duties(given: Place) -> Iterator[str]:
    """Yield the phrases of a role's duties, those that share words with the task first."""
    phrases = [" ".join(each.split()) for each in PHRASE.split(given.duties)]
    usable = {_slug(each): each for each in phrases if SLOT.match(_slug(each)) and words(each)}
    task = words(given.task)
    yield from sorted(usable.values(), key=lambda each: -len(words(each) & task))[:DUTIES]


def _slug(phrase: str) -> str:
    kept = [word for word in plain_words(phrase) if word not in {"the", "a", "an", "of", "for"}]
    return "_".join(kept[:4])[:LONGEST_NAME].strip("_")
