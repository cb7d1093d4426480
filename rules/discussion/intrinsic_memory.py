"""Rules that take turns in a discussion: they propose what is missing, and accept when nothing is left.

They compare no alternatives, drawbacks or proposals of others.
"""

from mneme.prompts.discussion import intrinsic_memory as questions
from mneme.prompts.discussion.intrinsic_memory import Speaking
from mneme.rules.discussion.memory_update import words
from mneme.rules.discussion.proposals import demands, fitted, items_in, own_items, shown_items
from mneme.rules.registry import rule

MAX_PROPOSALS_PER_TURN = 2
MAX_GAPS = 3


@rule(questions.contribute)
def contribute(given: Speaking) -> questions.Contribution:
    """Propose what the context does not show; accept when nothing is left."""
    shown = shown_items(given)
    missing = [item for item in own_items(given) if item.name.lower() not in shown]
    lines = [f"Proposal: {item}" for item in missing[:MAX_PROPOSALS_PER_TURN]]
    accept = len(missing) <= MAX_PROPOSALS_PER_TURN and bool(shown or missing)
    lines += ["Accepted: I accept the solution with what is said here."] if accept else []
    message = fitted(lines or ["I have nothing to add."], given.room)
    said = [*shown.values(), *items_in(message)]
    return questions.Contribution(
        reasoning=f"{len(missing)} of my items are missing.",
        message=message,
        changes=bool(missing),
        accept=accept,
        answers=[
            number
            for number, issue in enumerate(given.issues)
            if issue.endswith("open)") and any(words(item.name) <= words(issue) for item in said)
        ],
    )


@rule(questions.delegate)
def delegate(given: questions.Delegating) -> questions.Delegation:
    """Ask the next one; call for the document once all is accepted and answered."""
    if open_ := [*given.outstanding, *given.unanswered]:
        asked = f"{given.following}, what do you propose, and do you accept what is proposed?"
        return questions.Delegation(
            reasoning=f"Outstanding: {', '.join(open_)}.", message=asked, finalize=False
        )
    said = "All have accepted"
    return questions.Delegation(
        reasoning=f"{said}.", message=f"{said}: let the document be written.", finalize=True
    )


@rule(questions.integrate)
def integrate(given: Speaking) -> questions.Summary:
    """List every item that memory and turns still show."""
    found = [f"Summary: {item}" for item in shown_items(given).values()]
    message = fitted(found or ["Nothing has been proposed yet."], given.room)
    return questions.Summary(reasoning=f"{len(found)} items are visible.", message=message)


@rule(questions.evaluate)
def evaluate(given: Speaking) -> questions.Evaluation:
    """Name what was asked for and nobody has proposed; rules cannot say whether what is there is good."""
    shown = shown_items(given)
    missing = [item.name for item in demands(given) if item.name.lower() not in shown]
    gaps = [f"no {given.item.lower()} for {name}." for name in missing[:MAX_GAPS]]
    lines = [f"Gap: {each}" for each in gaps] or ["Nothing that was asked for is missing."]
    # An issue of its own is answered once nobody finds that gap any more.
    mine = (number for number, issue in enumerate(given.issues) if f"by {given.role}" in issue)
    return questions.Evaluation(
        reasoning=f"{len(shown)} items, {len(missing)} gaps; whether they are good, rules cannot say.",
        message=fitted(lines, given.room),
        raises=[questions.Issue(about=gap) for gap in gaps if gap not in "\n".join(given.issues)],
        answers=[number for number in mine if not any(given.issues[number].startswith(g) for g in gaps)],
    )
