"""How rules draft a memory template: what every discussant keeps, and a slot for each of the first duties."""

from textwrap import shorten

from mneme.prompts.discussion import template_making as questions
from mneme.prompts.discussion.memory_template import SLOT
from mneme.prompts.discussion.template_making import MAX_PURPOSE_CHARS, Draft, Place, Slot, plain_words
from mneme.rules.discussion.proposals import phrases_of
from mneme.rules.registry import rule

SLOT_WORDS, MAX_KEY_CHARS = 4, 40


@rule(questions.make_template)
def make_template(given: Place) -> Draft:
    """Keep position, proposals, agreements and concerns, and what is said of each duty."""
    of_item = f"Each {given.item.lower()} proposed, with choice, because, {given.fields or 'reasons'}"
    common = [
        Slot(purpose="What I stand for now, in one or two sentences", many=False, name="position"),
        _slot(of_item, "proposals", "proposed"),
        _slot("What was weighed and not taken, with the reason", "proposals", "rejected"),
        _slot("What the team has agreed on or accepted", "", "agreements"),
        _slot("Objections, risks, gaps and open questions", "", "concerns"),
    ]
    own = {}
    for phrase in phrases_of(given.duties, given.task):
        kept = [word for word in plain_words(phrase) if word not in {"the", "a", "an", "of", "for"}]
        own["_".join(kept[:SLOT_WORDS])[:MAX_KEY_CHARS].strip("_")] = f"What was said about {phrase}"
    slots = [*common, *(_slot(what, "duties", name) for name, what in own.items() if SLOT.match(name))]
    return Draft(reason="Rules draft the same for every role, with its own duties.", slots=slots)


def _slot(purpose: str, group: str, name: str) -> Slot:
    return Slot(
        purpose=shorten(purpose, MAX_PURPOSE_CHARS, placeholder=" …"), many=True, group=group, name=name
    )
