"""What can be used of a turn that its speaker answered wrongly: what it says, and nothing that it decides."""

from typing import Any

from mneme.core.errors import BadAnswer
from mneme.library.teams.selection import part_of
from mneme.nodes.costs import CostCounter
from mneme.nodes.discussion.context import Table
from mneme.nodes.discussion.state import Update, spent
from mneme.nodes.task_memories.memory_merge import object_in
from mneme.prompts.discussion.intrinsic_memory import Speaking, fits_the_room, integrate
from mneme.prompts.prompt import Prompt
from mneme.stores.discussions.discussions import Turn

PASSED = "(no usable reply)"
MOST_PASSES = 2
"""Turns in a row that may be passed: after more of them the discussion stops, since its model is too weak."""


async def words_alone(
    turn: Turn, question: Prompt[Any, Any], given: Speaking, bad: BadAnswer, table: Table
) -> Update:
    """Return what a turn keeps of an unusable reply: its message, or that its speaker passes.

    What it would have accepted, raised or answered is not known. So of an expert's message it is assumed that
    it changes the solution, and others are asked anew. Raises the error where the last turns were passed too.
    """
    tally, message = CostCounter(), _message(given, bad.raw)
    tally.failed(question, given, bad)
    if not message and await _too_many_passed(turn.number, table):
        raise bad
    kept = "only its words were taken" if message else f"the {turn.title} passes"
    return {
        "message": message or PASSED,
        "passed": not message,
        "changes": bool(message) and part_of(table.team, turn.speaker) == "contribute",
        "tokens": spent(tally),
        "complaint": f"Turn {turn.number}: {bad} Of this turn {kept}.",
    }


def _message(given: Speaking, raw: str) -> str:
    """Return the message of a reply where it is whole and fits into its room; else nothing."""
    message = object_in(raw).get("message")
    if not isinstance(message, str):
        return ""
    try:
        fits_the_room(given, integrate.answer(reasoning="", message=message))
    except ValueError:
        return ""
    return message


async def _too_many_passed(number: int, table: Table) -> bool:
    """Say whether so many turns before this one were passed that no further one may be."""
    before = await table.conversation.between(max(number - MOST_PASSES, 1), number - 1)
    return len(before) == MOST_PASSES and all(turn.passed for turn in before)
