"""Rules that answer the questions of MiTa, `prompts/household/mita.py` and `synopsis.py`."""

from mneme.prompts.household import mita as questions
from mneme.prompts.household import synopsis
from mneme.prompts.household.household import Item
from mneme.prompts.household.mita import REPEATS, Allocation, CrossContext, Proposal, Situation
from mneme.prompts.household.synopsis import NARRATIVE, Found, Passage, Synopsis
from mneme.rules.household.judgement import best
from mneme.rules.household.teamwork import share_out
from mneme.rules.registry import rule


@rule(questions.propose_action)
def propose_action(given: Situation) -> Proposal:
    """Propose the option that is worth most by the member's own view."""
    choice = best(given)
    option = given.options[choice]
    return Proposal(reason=f"{option} seems to be worth most to {given.name}.", choice=choice)


@rule(questions.allocate_actions)
def allocate_actions(given: CrossContext) -> Allocation:
    """Solve the joint assignment over ways, expectations, promises and duplication."""
    names = [each.worker.name for each in given.members]
    chosen = dict(zip(names, share_out(given, given.members), strict=True))
    overruled = [each for each in given.members if chosen[each.worker.name] != each.proposal]
    reasons = [
        f"{len(chosen) - len(overruled)} of {len(chosen)} proposals fit together best; the others give way."
    ]
    reasons += [
        f"What {each.worker.name} proposed {each.times} times by now takes longer, or another does it."
        for each in overruled
        if each.times >= REPEATS
    ]
    return Allocation(reason=" ".join(reasons), choices=chosen)


@rule(synopsis.summarise_passage)
def summarise_passage(given: Passage) -> Synopsis:
    """Summarise what was done, found, placed and checked; all of it, in the order of the record."""
    loose = [item for item in given.items if not item.placed and item.held_by is None]
    return Synopsis(
        narrative=_narrative(given, loose),
        found=[Found(thing=item.id, place=given.places[item.id]) for item in loose],
        placed=[item.id for item in given.items if item.placed],
        checked=[each.id for each in given.containers if each.checked is not None],
        unchecked=[each.id for each in given.containers if each.checked is None],
        explored=[room.id for room in given.rooms],
    )


def _narrative(given: Passage, loose: list[Item]) -> str:
    """Tell what changed, what is where, and who did what, in as many sentences as a narrative holds."""
    labels = {number: f"<{name}> ({number})" for number, name in given.called.items()}
    held = {each.name: " and ".join(labels[thing] for thing in each.hands) for each in given.workers}
    sentences = [
        f"{given.change}.",
        *(f"{item.label} is {item.holder or f'in {labels[item.room]}'}." for item in loose),
        *(f"{name} holds {things}." for name, things in held.items() if things),
        *(f"{labels[room]} was searched by {' and '.join(who)}." for room, who in given.searched.items()),
        *(f"{line}." for line in given.actions.splitlines() if not line.endswith("under way")),
    ]
    text = ""
    for sentence in sentences:
        if len(text) + len(sentence) < NARRATIVE:  # one cut short might say something false
            text = f"{text} {sentence}".strip()
    return text
