"""The sonnet: fourteen lines of iambic pentameter in an English, Italian or Spenserian scheme of rhymes.

Tolerated, as by every poet of the form: a light syllable after the last beat, and a reversed foot at the
start of a line or after a pause, two in a line at most. A content word and then a light one make such a foot.
"""

from collections.abc import Sequence
from itertools import combinations, product

from mneme.library.agents.forms import Faults
from mneme.library.agents.forms.verse import EITHER, LIGHT_WORDS, Word, check_poem, scans, stress

LINES, FEET, MAX_REVERSED = 14, 5, 2
SCHEMES = {
    "English": "ABABCDCDEFEFGG",
    "Spenserian": "ABABBCBCCDCDEE",
    **{
        f"Italian ({sestet.lower()})": "ABBAABBA" + sestet
        for sestet in ("CDECDE", "CDCDCD", "CDEDCE", "CDDCEE", "CDCDEE", "CDDECE", "CCDCCD", "CDCEDE")
    },
}


PENTAMETERS = tuple(
    "".join("/x" if foot in turned else "x/" for foot in range(FEET)) + ending
    for count in range(MAX_REVERSED + 1)
    for turned in combinations(range(FEET - 1), count)  # the last foot is never reversed: it has the rhyme
    for ending in ("", "x")
)


def check(answer: str) -> Faults:
    """Return where a text is not a sonnet."""
    return check_poem(
        answer,
        LINES,
        lambda _, words: tuple(each for each in scans(words, PENTAMETERS) if _sound(words, each.measure)),
        lambda _: "is not an iambic pentameter",
        SCHEMES.values(),
    )


def _sound(words: Sequence[Word], measure: str) -> bool:
    """Return whether reversed feet, by the measure or the words' weight, follow a pause or start the line."""
    places = _syllables(words, len(measure))
    if places is None:
        return False
    turned = [foot for foot in range(FEET) if measure[2 * foot] == "/" or _heavy_light(places, foot)]
    return len(turned) <= MAX_REVERSED and all(
        places[2 * foot][0].after_pause and places[2 * foot][1] == 0 for foot in turned
    )


def _heavy_light(places: Sequence[tuple[Word, int, int]], foot: int) -> bool:
    (first, _, size), (second, _, other) = places[2 * foot], places[2 * foot + 1]
    heavy = size == 1 and first.spelling not in LIGHT_WORDS | EITHER
    return heavy and other == 1 and second.spelling in LIGHT_WORDS and not second.after_pause


def _syllables(words: Sequence[Word], length: int) -> list[tuple[Word, int, int]] | None:
    """Return (word, which of its syllables, how many it has) for each syllable of a line of that length."""
    counts = [sorted({len(stress(reading)) for reading in word.readings}) for word in words]
    sizes = next((each for each in product(*counts) if sum(each) == length), None)
    if sizes is None:
        return None
    return [(word, index, size) for word, size in zip(words, sizes, strict=True) for index in range(size)]
