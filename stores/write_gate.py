"""The write gate: checks of a card, a pair or a text for a team, and when two texts count as one.

What a model writes into a user's own memory is checked in `prompts/chat/memory_agent/reading.py` and
`prompts/chat/evidence.py`; `nodes/chat/compared.py` finds what a text written by hand repeats.

One check finds texts that read like instructions to agents instead of knowledge (memory poisoning). A lesson
may be in the imperative ("Use a composite index", "Always answer 400 for malformed bodies"), but it does not
say how an agent should behave. The check looks for what an injection needs, whatever its subject: taking back
earlier instructions, telling a reader how to answer or judge, addressing a role, imitating a turn of a
conversation or a tool call, sending the reader to an address or running what comes from there, asking for
secrets, hiding text. Another finds secrets that a text tells. Both read normalised text (compatibility forms
folded, invisible characters taken out), so that spacing, case and look-alike width do not hide a phrase. They
know words, most of them English, and prove nothing; what is kept is shown to agents as data in any case. A
person looks at each doubt.

The other half finds duplicate texts. Texts that are nearly the same share four fifths of their words; a
Chinese character counts as a word. Another wording of a pair shares a fifth of the answer's words and its
numbers, and has similar vectors. None of the 2,484 combinations of two shipped pairs by one agent counts as a
duplicate. Facts are short, and one word can change their meaning: rules or a model compare similar ones.
"""

import re
import tomllib
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import NamedTuple

_FILE = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))


@cache
def _checks() -> Mapping[str, re.Pattern[str]]:
    """Return the pattern of each check; compiled on demand, since most processes check no text."""
    words: dict[str, str] = {}
    filled = partial(re.compile(r"<([A-Z]+)>").sub, lambda name: words[name[1]])
    for name, pattern in _FILE["words"].items():  # a list of words may use those before it
        words[name] = filled(pattern)
    return {what: re.compile(filled("|".join(patterns))) for what, patterns in _FILE["checks"].items()}


SECRET, MAYBE_SECRET = "tells a secret", "may tell a secret"
"""The form of a key is known; of a password only that one is told, not which word it is."""
INVISIBLE = re.compile(  # of no width, for directions, a soft hyphen, and tags, which only models read
    "[\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff\u00ad\U000e0000-\U000e007f]"
)
QUOTED_CHARS = 80
DUPLICATE_SHARE = 0.8
"""Share of common words, of all words of two texts, from which on they count as duplicates."""
COPIED_SHARE, COPIED_WORDS = 0.9, 12
"""Share of words, and number, from which on a text is another's copy: short answers may be alike by right."""
REWORDED_SHARE = 0.2
"""Share of words of two answers from which on they may be wordings of one."""
SAME_QUESTION, SAME_ANSWER = 0.7, 0.85
"""Cosines of two questions and of their answers from which on they are."""
NUMBER_WORDS = ("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
SAME_FACT = 0.8
"""Cosine from which two facts may repeat or contradict one another, in any language."""
COMPARED_WORD = re.compile(r"[\u3400-\u9fff]|[^\W_\u3400-\u9fff]+")


class Gate(NamedTuple):
    """The write gate for one kind of text: its maximum length, and the checks that are left out."""

    max_chars: int
    without: frozenset[str] = frozenset()

    def doubts(self, text: str) -> Iterator[str]:
        """Yield the reasons why a person should review a text, with the words found, except secrets."""
        if len(text) > self.max_chars:
            yield f"has more than {self.max_chars} characters"
        if INVISIBLE.search(text):
            yield "hides characters"
        # Spacing, case and look-alike forms must not hide a phrase.
        folded = unicodedata.normalize("NFKC", INVISIBLE.sub("", text)).casefold()
        straight = re.sub("[‘’`´]", "'", folded).replace("“", '"').replace("”", '"')
        plain = re.sub(r"[^\S\n]+", " ", straight)
        for what, pattern in _checks().items():
            if what not in self.without and (found := pattern.search(plain)):
                quoted = f": {' '.join(found[0].split())[:QUOTED_CHARS]}"
                yield what if what in {SECRET, MAYBE_SECRET} else what + quoted


FACT_GATE = Gate(8_000)
CARD_GATE = Gate(100_000, frozenset({MAYBE_SECRET}))
PAIR_GATE = Gate(20_000, frozenset({MAYBE_SECRET}))
"""The gates for one text of each kind; a lesson and a pair have several texts."""


def near(one: str, other: str) -> bool:
    """Return whether two texts are nearly the same."""
    return _share(_words(one), _words(other), DUPLICATE_SHARE)


def may_be_reworded(one: str, other: str) -> bool:
    """Return whether two answers may be wordings of one, by their words: `25 minutes` is not `50 minutes`.

    Each number in figures must also occur in the other answer, in figures or spelt out.
    """
    said = [_words(each) for each in (one, other)]
    figures = [{word for word in each if word.isnumeric()} for each in said]
    spelt = [{str(n) for n, word in enumerate(NUMBER_WORDS, 2) if word in each} for each in said]
    same = figures[0] <= figures[1] | spelt[1] and figures[1] <= figures[0] | spelt[0]
    return same and _share(said[0], said[1], REWORDED_SHARE)


def near_to_any(text: str, others: Iterable[str], share: float = DUPLICATE_SHARE) -> bool:
    """Return whether a text is nearly the same as one of others, by that share of common words."""
    said = _words(text)
    return any(_share(said, _words(each), share) for each in others)


def copies(text: str, others: Iterable[str]) -> bool:
    """Return whether a text of some length consists almost only of another text's words."""
    return len(COMPARED_WORD.findall(text)) >= COPIED_WORDS and near_to_any(text, others, COPIED_SHARE)


def _share(one: frozenset[str], other: frozenset[str], least: float) -> bool:
    if not one or not other:
        return one == other
    if min(len(one), len(other)) < least * max(len(one), len(other)):
        return False  # spares the intersection: with these lengths the share cannot be reached
    shared = len(one & other)
    return shared >= least * (len(one) + len(other) - shared)


@lru_cache(maxsize=8192)
def _words(text: str) -> frozenset[str]:
    return frozenset(word.casefold() for word in COMPARED_WORD.findall(text))
