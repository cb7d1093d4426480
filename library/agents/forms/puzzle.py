"""A solved puzzle: it asks something, reasons, and ends in one conclusion that the reasoning speaks of.

Whether the conclusion is right, code cannot see from the words; a rubric judges it, and the tests solve
the shipped puzzles by trying everything.
"""

import re

from mneme.library.agents.forms.reasoned import stems, words
from mneme.library.agents.forms.report import FormReport, report

MARK = "Answer:"
SHORTEST, LONGEST = 12, 25
"""Fewest words of reasoning, most words of a conclusion."""
TRUTH = frozenset({"yes", "no"})


def check(question: str, answer: str) -> FormReport:
    """Say what keeps a text from being the worked answer to a puzzle."""
    lines = [line.strip() for line in answer.splitlines() if line.strip()]
    marked = [line for line in lines if line.startswith(MARK)]
    if len(marked) != 1 or lines[-1] != marked[0]:
        return report([("the end", f'the last line, and no other, must begin with "{MARK}"')])
    reasoning, conclusion = " ".join(lines[:-1]), marked[0].removeprefix(MARK).strip()
    return report(
        [*_question(question), *_reasoning(reasoning), *_conclusion(conclusion, question, reasoning)]
    )


def _question(question: str) -> list[tuple[str, str]]:
    return [] if question.rstrip().endswith("?") else [("the question", "does not end in a question")]


def _reasoning(reasoning: str) -> list[tuple[str, str]]:
    enough = len(words(reasoning)) >= SHORTEST and len(re.findall(r"[.!?](?:\s|$)", reasoning)) >= 2
    return [] if enough else [("the reasoning", f"is shorter than two sentences of {SHORTEST} words")]


def _conclusion(conclusion: str, question: str, reasoning: str) -> list[tuple[str, str]]:
    said = words(conclusion)
    if not said:
        return [("the end", "nothing is concluded")]
    if len(said) > LONGEST:
        return [("the end", f"the conclusion is longer than {LONGEST} words")]
    known = stems(question) | stems(reasoning) | TRUTH
    if any(word.isdigit() for word in said) or stems(conclusion) & known:
        return []
    return [("the end", f'concludes "{conclusion}", of which neither question nor reasoning speaks')]
