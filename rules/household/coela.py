"""Rules that answer the questions of `prompts/household/coela.py`: they send no messages.

What a message saves its step costs: with messages of what was found, checked and intended, teams needed 36.7
steps in 30 episodes, without any 37.3 (paired +0.5 ± 2.9). Whether talking helps is for models to show.
"""

from mneme.prompts.household import coela as questions
from mneme.prompts.household.coela import Choice, Draft, Planning, Situation
from mneme.rules.household.judgement import best
from mneme.rules.registry import rule


@rule(questions.draft_message)
def draft_message(given: Situation) -> Draft:
    """Draft nothing."""
    return Draft(reason="Rules send no messages.", message="")


@rule(questions.choose_action)
def choose_action(given: Planning) -> Choice:
    """Choose the option that is worth most by the member's own view."""
    return Choice(reason="It seems to be worth most.", option=best(given))
