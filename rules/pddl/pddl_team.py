"""How rules answer the questions of `prompts/pddl/pddl_team.py`."""

from mneme.prompts.pddl import pddl_team as questions
from mneme.prompts.pddl.pddl_team import Move, Repetition, Situation
from mneme.rules.pddl.pddl_planning import next_action, read
from mneme.rules.registry import rule


@rule(questions.choose_action)
def choose_action(given: Situation) -> Move:
    """Plan from what the context tells."""
    return Move(action=next_action(given.task, read(given.task, given.memory, given.turns)))


@rule(questions.choose_otherwise)
def choose_otherwise(given: Repetition) -> Move:
    """Plan without the repeated action."""
    known = read(given.task, given.memory, given.turns)
    return Move(action=next_action(given.task, known, given.repeated))
