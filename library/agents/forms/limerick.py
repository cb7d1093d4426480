"""The limerick: five lines in anapaests, three beats, three, two, two and three, rhymed AABBA.

The first foot may be an iamb and one or two light syllables may follow the last beat, as they always might;
every other foot has both its light syllables. Words as light as "of" take no beat.
"""

from mneme.library.agents.forms import Faults
from mneme.library.agents.forms.verse import check_poem, scans

SCHEME = "AABBA"
STARTS, TAILS = ("x/", "xx/"), ("", "x", "xx")
FEET = {"A": 2, "B": 1}
LINE_MEASURES = {
    letter: tuple(start + "xx/" * feet + tail for start in STARTS for tail in TAILS)
    for letter, feet in FEET.items()
}
BEATS = {"A": "three", "B": "two"}


def check(answer: str) -> Faults:
    """Return where a text is not a limerick."""
    return check_poem(
        answer,
        len(SCHEME),
        lambda number, words: scans(words, LINE_MEASURES[SCHEME[number]], strict_beats=True),
        lambda number: f"does not scan in anapaests with {BEATS[SCHEME[number]]} beats",
        [SCHEME],
    )
