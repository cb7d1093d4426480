"""A solved riddle: the thing named at once, not given away by the question, and its clues explained."""

import re

from mneme.library.agents.forms.reasoned import stems, words
from mneme.library.agents.forms.report import FormReport, report

LONGEST_NAME = 6
"""Words of the thing's name."""
SHORTEST, CLUES = 10, 2
"""Fewest words of explanation, and of the question's content words that it takes up."""


def check(question: str, answer: str) -> FormReport:
    """Say what keeps a text from being the explained answer to a riddle."""
    name, _, explanation = re.sub(r"\s+", " ", answer.strip()).partition(". ")
    return report([*_question(question), *_name(name, question), *_explanation(explanation, question)])


def _question(question: str) -> list[tuple[str, str]]:
    return [] if question.rstrip().endswith("?") else [("the question", "does not end in a question")]


def _name(name: str, question: str) -> list[tuple[str, str]]:
    if not 1 <= len(words(name)) <= LONGEST_NAME:
        return [("the start", f"does not name the thing in a sentence of at most {LONGEST_NAME} words")]
    given_away = sorted(stems(name) & stems(question))
    return [("the question", f"gives its answer away: {', '.join(given_away)}")] if given_away else []


def _explanation(explanation: str, question: str) -> list[tuple[str, str]]:
    if len(words(explanation)) < SHORTEST:
        return [("the explanation", f"is shorter than {SHORTEST} words")]
    taken_up = stems(explanation) & stems(question)
    few = f"takes up {len(taken_up)} of the question's clues, not {CLUES}"
    return [("the explanation", few)] if len(taken_up) < CLUES else []
