"""The limerick: five lines in anapaests, three beats, three, two, two and three, rhymed AABBA.

The first foot may be an iamb and one or two light syllables may follow the last beat, as they always might;
every other foot has both its light syllables. Words as light as "of" take no beat.
"""

from collections.abc import Sequence

from mneme.library.agents.forms.report import FormReport, report
from mneme.library.agents.forms.verse import Scan, Word, rhyme_faults, scans, unheard, unknown, words_of

SCHEME = "AABBA"
STARTS, TAILS = ("x/", "xx/"), ("", "x", "xx")
FEET = {"A": 2, "B": 1}
MEASURES = {
    letter: tuple(start + "xx/" * feet + tail for start in STARTS for tail in TAILS)
    for letter, feet in FEET.items()
}
BEATS = {"A": "three", "B": "two"}


def check(answer: str) -> FormReport:
    """Say where a text is no limerick; a line with a word of unknown sound is noted, not measured."""
    lines = [line for line in answer.splitlines() if line.strip()]
    if len(lines) != len(SCHEME):
        return report([("the whole", f"{len(lines)} lines instead of 5")])
    words = [words_of(line) for line in lines]
    measured = zip(words, SCHEME, strict=True)
    scanned = [scans(each, MEASURES[letter], strict_beats=True) for each, letter in measured]
    faults = [fault for line in range(len(lines)) for fault in _metre(line, words[line], scanned[line])]
    return report(faults or rhyme_faults(SCHEME, scanned, words), unheard(words))


def _metre(number: int, words: Sequence[Word], scanned: Sequence[Scan]) -> list[tuple[str, str]]:
    where = f"line {number + 1}"
    if unknown(words):  # a gap in the dictionary, no fault of the poem
        return []
    if not scanned:
        return [(where, f"does not scan in anapaests with {BEATS[SCHEME[number]]} beats")]
    return []
