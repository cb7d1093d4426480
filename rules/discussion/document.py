"""Rules that write the document: the items that the context still shows, and nothing that was not said."""

from collections.abc import Sequence

from mneme.prompts.discussion import document as questions
from mneme.prompts.discussion.document import TURNS, UNSAID, UNSHOWN, Documenting, Written
from mneme.prompts.discussion.memory_template import Slots
from mneme.rules.discussion.proposals import Item, shown_items
from mneme.rules.registry import rule


@rule(questions.write_document)
def write_document(given: Documenting) -> Written:
    """List the items that the context shows."""
    found, outline = list(shown_items(given).values()), given.outline
    unsaid = UNSHOWN if given.is_cut else UNSAID
    entries = []
    for item in found:
        parts = {name: item.because if name.lower() == "because" else unsaid for name in outline.item_fields}
        name = f"{item.name} ({item.choice})"
        entries.append(Slots({TURNS: [*item.turns[-questions.MAX_TURN_NUMBERS :]], "name": name, **parts}))
    return Written(
        report=Slots({name: _prose(name, found, given) or unsaid for name in outline.report}),
        fields=Slots(dict.fromkeys(outline.fields, unsaid)),
        items=entries,
        # Rules cannot rate: the middle of the scale, as the report says.
        ratings=Slots(dict.fromkeys(outline.ratings, (questions.LOWEST + questions.HIGHEST) // 2)),
    )


def _prose(name: str, found: Sequence[Item], given: Documenting) -> str:
    if name == "plan":
        return " ".join(f"{item.name}: {item.because}." for item in found)
    if name != "summary":
        return ""
    ending = "Agreed" if given.ended == "consensus" else f"Not agreed by all ({given.ended})"
    named = ", ".join(f"{item.name} ({item.choice})" for item in found) or "nothing"
    return f"{ending}: {named}. Written by rules, which cannot rate: ratings are the middle of the scale."
