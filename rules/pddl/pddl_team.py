"""How rules answer the questions of `prompts/pddl/pddl_team.py`."""

from mneme.prompts.pddl import pddl_team as questions
from mneme.prompts.pddl.pddl_team import Move, Repetition, Situation
from mneme.rules.pddl.pddl_reading import read
from mneme.rules.pddl.pddl_solving import next_action
from mneme.rules.registry import rule


@rule(questions.choose_action)
def choose_action(given: Situation) -> Move:
    """Look two actions ahead, at what the context shows."""
    return Move(action=next_action(read(given.task, given.memory, given.turns)))


@rule(questions.choose_otherwise)
def choose_otherwise(given: Repetition) -> Move:
    """Choose as the solver does, with the repeated action out of the question."""
    return Move(action=next_action(read(given.task, given.memory, given.turns), [given.repeated]))
