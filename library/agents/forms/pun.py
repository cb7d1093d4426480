"""An explained pun: a question, a punchline, and after "Wordplay:" the word that it turns on, quoted.

What is said to sound like something must sound like it: the two are compared by their sounds in the CMU
pronouncing dictionary, where a difference of a sound or two is part of the joke. A word with two meanings
cannot be checked by sound; it must stand in the joke, and both meanings be told.
"""

import re
from difflib import SequenceMatcher
from itertools import islice, product

from mneme.library.agents.forms.reasoned import words
from mneme.library.agents.forms.report import FormReport, report
from mneme.library.agents.forms.verse import readings

MARK = "Wordplay:"
QUOTED = re.compile(r'["“]([^"”]+)["”]')
SOUNDS_LIKE = re.compile(r'["“]([^"”]+)["”][^"“”]*?\bsounds? (?:\w+ )?like ["“]([^"”]+)["”]')
ALIKE = 0.6
"""Least share of sounds in common."""
LONGEST_PHRASE, MOST_READINGS = 6, 8
"""Words of a phrase that is compared by sound, and the ways to say it that are tried."""
SHORTEST = 8
"""Words that tell two meanings."""


def check(question: str, answer: str) -> FormReport:
    """Say what keeps a text from being an explained pun."""
    punchline, mark, explanation = answer.partition(MARK)
    if not mark or not words(punchline):
        return report([("the whole", f'is not a punchline followed by "{MARK}"')])
    asked = [] if question.rstrip().endswith("?") else [("the question", "does not end in a question")]
    return report([*asked, *_quoted(explanation, f"{question} {punchline}"), *_sounds(explanation)])


def _quoted(explanation: str, joke: str) -> list[tuple[str, str]]:
    quoted = QUOTED.findall(explanation)
    if not quoted:
        return [("the explanation", "quotes no word")]
    if len(words(explanation)) < SHORTEST:
        return [("the explanation", f"is shorter than {SHORTEST} words")]
    said = " ".join(words(joke))
    if not any(re.search(rf"\b{re.escape(' '.join(words(each)))}\b", said) for each in quoted):
        return [("the explanation", f'"{quoted[0]}" does not occur in the joke')]
    if not SOUNDS_LIKE.search(explanation) and not re.search(r"\b(and|or|but)\b", explanation):
        return [("the explanation", "tells neither two meanings nor what the word sounds like")]
    return []


def _sounds(explanation: str) -> list[tuple[str, str]]:
    faults = [_unlike(one, other) for one, other in SOUNDS_LIKE.findall(explanation)]
    return [("the explanation", fault) for fault in faults if fault]


def _unlike(one: str, other: str) -> str:
    """Say why two phrases cannot be said to sound alike, or nothing."""
    if max(len(words(one)), len(words(other))) > LONGEST_PHRASE:
        return f"compares phrases of over {LONGEST_PHRASE} words"
    mute = [word for word in [*words(one), *words(other)] if not readings(word)]
    if mute:
        return ""  # a gap in the dictionary, no fault of the pun
    return "" if likeness(one, other) >= ALIKE else f'"{one}" does not sound like "{other}"'


def likeness(one: str, other: str) -> float:
    """Give the share of sounds that two phrases have in common, 0 to 1, in their most alike readings."""
    return max(
        SequenceMatcher(a=a, b=b, autojunk=False).ratio()
        for a, b in product(_sounds_of(one), _sounds_of(other))
    )


def _sounds_of(phrase: str) -> list[list[str]]:
    ways = islice(product(*(readings(word) for word in words(phrase))), MOST_READINGS)
    return [[sound.rstrip("012") for word in way for sound in word] for way in ways]
