"""The sonnet: fourteen lines of iambic pentameter in an English, Italian or Spenserian scheme of rhymes.

Tolerated, as by every poet of the form: a light syllable after the last beat, and a reversed foot at the
start of a line or after a pause, two in a line at most. A content word and then a light one make such a foot.
"""

from collections.abc import Iterator, Sequence
from itertools import combinations

from mneme.library.agents.forms import FormReport
from mneme.library.agents.forms.verse import EITHER, LIGHT, Scan, Word, check_poem, scans, stress

LINES, FEET, MAX_REVERSED = 14, 5, 2
SCHEMES = {
    "English": "ABABCDCDEFEFGG",
    "Spenserian": "ABABBCBCCDCDEE",
    **{
        f"Italian ({sestet.lower()})": "ABBAABBA" + sestet
        for sestet in ("CDECDE", "CDCDCD", "CDEDCE", "CDDCEE", "CDCDEE", "CDDECE", "CCDCCD", "CDCEDE")
    },
}


def _measures() -> Iterator[str]:
    for count in range(MAX_REVERSED + 1):
        for reversed_feet in combinations(range(FEET - 1), count):
            feet = "".join("/x" if foot in reversed_feet else "x/" for foot in range(FEET))
            yield from (feet, feet + "x")


MEASURES = tuple(_measures())


def check(answer: str) -> FormReport:
    """Say where a text is no sonnet."""
    return check_poem(
        answer,
        LINES,
        lambda _, words: pentameters(words),
        lambda _: "is not an iambic pentameter",
        SCHEMES.values(),
    )


def pentameters(words: Sequence[Word]) -> tuple[Scan, ...]:
    """Give the ways to read a line as iambic pentameter."""
    return tuple(scan for scan in scans(words, MEASURES) if _sound(words, scan.measure))


def _sound(words: Sequence[Word], measure: str) -> bool:
    """Whether reversed feet, by the measure or by the weight of words, follow a pause or start the line."""
    places = _syllables(words, len(measure))
    if places is None:
        return False
    turned = [foot for foot in range(FEET) if measure[2 * foot] == "/" or _heavy_light(places, foot)]
    return len(turned) <= MAX_REVERSED and all(
        places[2 * foot][0].after_pause and places[2 * foot][1] == 0 for foot in turned
    )


def _heavy_light(places: Sequence[tuple[Word, int, int]], foot: int) -> bool:
    (first, _, size), (second, _, other) = places[2 * foot], places[2 * foot + 1]
    heavy = size == 1 and first.spelling not in LIGHT | EITHER
    return heavy and other == 1 and second.spelling in LIGHT and not second.after_pause


def _syllables(words: Sequence[Word], length: int) -> list[tuple[Word, int, int]] | None:
    """Give (word, which of its syllables, how many it has) for each syllable of a line of that length."""
    for sizes in _sizes(words, length):
        return [(word, index, size) for word, size in zip(words, sizes, strict=True) for index in range(size)]
    return None


def _sizes(words: Sequence[Word], length: int) -> Iterator[tuple[int, ...]]:
    if not words:
        if length == 0:
            yield ()
        return
    for size in sorted({len(stress(reading)) for reading in words[0].readings}):
        yield from ((size, *later) for later in _sizes(words[1:], length - size))
