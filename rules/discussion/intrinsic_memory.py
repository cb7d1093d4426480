"""How rules answer the questions of `prompts/discussion/intrinsic_memory.py`."""

from mneme.prompts.discussion import intrinsic_memory as questions
from mneme.prompts.discussion import memory_update
from mneme.prompts.discussion.intrinsic_memory import (
    Contribution,
    Delegating,
    Delegation,
    Evaluation,
    Issue,
    Speaking,
    Summary,
)
from mneme.prompts.discussion.memory_template import Slots
from mneme.prompts.discussion.memory_update import Remembering, Updated
from mneme.rules.discussion import discussion_rules, memory_rules
from mneme.rules.discussion.discussion_rules import view_of
from mneme.rules.registry import rule


@rule(memory_update.update_memory)
def update_memory(given: Remembering) -> Updated:
    """Put each statement of the output into the slot that it fits, and remove the least to make room."""
    reason, memory = memory_rules.updated(given.template.root, given.memory.root, given.output, given.limit)
    return Updated(reason=reason, memory=Slots(memory))


@rule(questions.contribute)
def contribute(given: Speaking) -> Contribution:
    """Propose what the field needs and the context does not show; accept when nothing is missing."""
    view = view_of(given)
    said = discussion_rules.contribution(view, given.room)
    return Contribution(**said._asdict(), answers=discussion_rules.answered(view, given.issues, said.message))


@rule(questions.delegate)
def delegate(given: Delegating) -> Delegation:
    """Ask the next one for the field's needs; call for the document once all is accepted and answered."""
    reasoning, message, finalize = discussion_rules.delegation(
        view_of(given), [*given.outstanding, *given.unanswered], given.following
    )
    return Delegation(reasoning=reasoning, message=message, finalize=finalize)


@rule(questions.integrate)
def integrate(given: Speaking) -> Summary:
    """List every item that memory and turns still show."""
    reasoning, message = discussion_rules.integration(view_of(given), given.room)
    return Summary(reasoning=reasoning, message=message)


@rule(questions.evaluate)
def evaluate(given: Speaking) -> Evaluation:
    """Name what the task calls for and the visible solution lacks."""
    reasoning, message, gaps = discussion_rules.evaluation(view_of(given), given.room)
    known = "\n".join(given.issues)
    raises = [Issue(about=gap) for gap in gaps if gap not in known]
    mine = (number for number, issue in enumerate(given.issues) if f"by {given.role}" in issue)
    settled = [number for number in mine if not any(given.issues[number].startswith(gap) for gap in gaps)]
    return Evaluation(reasoning=reasoning, message=message, raises=raises, answers=settled)
