"""How rules answer the questions of `prompts/discussion/intrinsic_memory.py`."""

from mneme.prompts.discussion import intrinsic_memory as questions
from mneme.prompts.discussion import memory_update
from mneme.prompts.discussion.intrinsic_memory import (
    Contribution,
    Delegating,
    Delegation,
    Evaluation,
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
    return Contribution(**discussion_rules.contribution(view_of(given), given.room)._asdict())


@rule(questions.delegate)
def delegate(given: Delegating) -> Delegation:
    """Ask the next one for the field's needs; call for the document once all have accepted."""
    reasoning, message, finalize = discussion_rules.delegation(
        view_of(given), given.outstanding, given.following
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
    reasoning, message = discussion_rules.evaluation(view_of(given), given.room)
    return Evaluation(reasoning=reasoning, message=message)
