"""A plan for study, travel or fitness: all its days or weeks are there, its budget adds up, and it says why.

What must be spoken of is the domain's rubric put into words: reviews and breaks; ways, beds and food; warming
up, rest and when to stop. Whether the advice is good is for a reader.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from mneme.library.agents.forms.reasoned import words
from mneme.library.agents.forms.report import FormReport, report

_WORDS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
NUMBERS = {word: number for number, word in enumerate(_WORDS, 1)}
ASKED = re.compile(
    rf"\b(\d+|{'|'.join(NUMBERS)})(?: (?!(?:per|a|an|each|every)\b)[a-z]+)?[ -](day|week)s?\b"
    r"(?! (?:a|per|each|every|ago|pregnant|old)\b)(?!-old)",
    re.IGNORECASE,
)
"""A number of days or weeks, "two free days" too, but neither "three days a week" nor "two weeks ago"."""
HEADING = re.compile(r"(Day|Week)s? (\d+)(?:\s?(?:-|–|to|and)\s?(\d+))?[^:]{0,60}:(.*)", re.IGNORECASE)
MONEY = re.compile(r"[€£$](\d[\d,]*)")
WHY, TOTAL = "Why:", "Total:"
SHORTEST, REASON = 8, 8
"""Fewest words of a day or week, and of the reasons."""
SPOKEN_OF = {
    "study": {
        "a review or test": r"review|revis|test|quiz|recall|mock|exam|check",
        "a break or free time": r"break|rest|free|off\b|pause|sleep",
    },
    "travel": {
        "how to get about": r"train|tram|bus|ferry|boat|walk|drive|cycle|bike|metro|funicular|car\b|taxi",
        "where to sleep": r"hotel|hostel|guesthouse|pension|inn\b|huts?\b|camp|flat|cabin|farmhouse"
        r"|ryokan|riad|room|beds?\b",
        "something to eat": r"breakfast|lunch|dinner|supper|eat|picnic|food|soup|cake|meal|café|restaurant",
    },
    "fitness": {
        "warming up": r"warm",
        "rest": r"\brest|recover|easy day|day off",
        "when to stop or ease off": r"pain|stop|doctor|physio|hurt|ease off|skip|dizz|midwife",
    },
}


@dataclass(frozen=True)
class Span:
    """A stretch of the plan: its unit, first and last number, and what is to be done."""

    unit: str
    first: int
    last: int
    text: str


def check(kind: str, question: str, answer: str) -> FormReport:
    """Say what keeps a text from being a whole plan of that kind ("study", "travel" or "fitness")."""
    lines = [line.strip() for line in answer.splitlines() if line.strip()]
    spans = [span for line in lines if (span := _span(line))]
    return report(
        [
            *_covered(question, spans),
            *_filled(spans),
            *_missing_topics(kind, answer),
            *_budget(question, lines),
            *_why(lines),
        ]
    )


def asked_for(question: str) -> tuple[str, int] | None:
    """Give the unit and the number of days or weeks that a question asks for, if it does."""
    match = ASKED.search(question)
    if match is None:
        return None
    number = match[1].lower()
    return match[2].lower(), int(number) if number.isdigit() else NUMBERS[number]


def _span(line: str) -> Span | None:
    match = HEADING.match(line)
    if match is None:
        return None
    return Span(match[1].lower(), int(match[2]), int(match[3] or match[2]), match[4])


def _covered(question: str, spans: Sequence[Span]) -> list[tuple[str, str]]:
    if not spans:
        return [("the whole", 'names no day or week ("Day 1: …", "Weeks 2-3: …")')]
    unit, asked = asked_for(question) or (spans[0].unit, spans[-1].last)
    days = 7 if unit == "week" and spans[0].unit == "day" else 1
    faults, expected = [], 1
    for span in spans:
        if span.first != expected or span.last < span.first or span.unit != spans[0].unit:
            faults.append((f"{span.unit} {span.first}", f"follows where {spans[0].unit} {expected} belongs"))
        expected = span.last + 1
    if expected - 1 != asked * days or (unit == "day" and spans[0].unit == "week"):
        faults.append(
            ("the whole", f"plans {expected - 1} {spans[0].unit}s where {asked} {unit}s are asked for")
        )
    return faults


def _filled(spans: Sequence[Span]) -> list[tuple[str, str]]:
    return [
        (f"{span.unit} {span.first}", f"has fewer than {SHORTEST} words")
        for span in spans
        if len(words(span.text)) < SHORTEST
    ]


def _missing_topics(kind: str, answer: str) -> list[tuple[str, str]]:
    return [
        ("the whole", f"does not speak of {what}")
        for what, how in SPOKEN_OF[kind].items()
        if not re.search(rf"\b(?:{how})", answer, re.IGNORECASE)
    ]


def _budget(question: str, lines: Sequence[str]) -> list[tuple[str, str]]:
    """Compare the sum of all amounts with the stated total, and that with the budget."""
    limit = MONEY.search(question)
    if limit is None:
        return []
    stated = [_amounts(line)[0] for line in lines if line.startswith(TOTAL) and _amounts(line)]
    if len(stated) != 1:
        return [("the budget", f'one line must say "{TOTAL}" with an amount')]
    spent = sum(amount for line in lines if not line.startswith((TOTAL, WHY)) for amount in _amounts(line))
    faults = (
        [("the budget", f"the parts cost {spent}, the total says {stated[0]}")] if spent != stated[0] else []
    )
    over = stated[0] > int(limit[1].replace(",", ""))
    return [*faults, ("the budget", f"{stated[0]} is over {limit[0]}")] if over else faults


def _amounts(line: str) -> list[int]:
    return [int(amount.replace(",", "")) for amount in MONEY.findall(line)]


def _why(lines: Sequence[str]) -> list[tuple[str, str]]:
    reasons = [line for line in lines if line.startswith(WHY)]
    enough = reasons and reasons[-1] == lines[-1] and len(words(reasons[-1])) > REASON
    return [] if enough else [("the end", f'the last line must begin with "{WHY}" and give reasons')]
