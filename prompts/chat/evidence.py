"""Compare generated text with its sources: locate quotes, notice other numbers, names and lost statements.

Only `located` decides whether an answer is accepted. Everything else here guesses about language, serves for
doubts alone, and prefers to report nothing: it has no word list of any language.
"""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher
from functools import lru_cache
from itertools import pairwise

EVIDENCE_WORD = re.compile(r"\w+(?:['’]\w+)*")
NUMBER = re.compile(r"\d+")
YEAR = re.compile(r"(?<!\d)(?:19|20)\d\d(?!\d)")
ELLIPSIS = re.compile(r"\s*(?:\.\.\.|…)\s*")
UNSPACED = re.compile("[\u0e00-\u0eff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")
"""Letters of scripts that put no space between words: Thai, Lao, Japanese, Chinese."""
# No sentence ends within `a.m.`, after a title, or after an ordinal (`am 3. Mai`); in Chinese and Japanese no
# space follows a full stop.
SENTENCE_END = re.compile(
    r"(?<=[.!?…؟।])(?<![\s.][A-Za-z]\.)(?<!Mrs\.)(?<!Prof\.)(?<!Col\.)(?<!Mr\.)(?<!Ms\.)(?<!Dr\.)(?<!St\.)"
    r"(?!(?<=\d\.)\s+(?:[^\W\dA-ZÄÖÜ_]|(?:Jan|Feb|Mär|Apr|Mai|Jun|Jul|Aug|Sep|Okt|Nov|Dez)))\s+"
    r"|\s*\n\s*|(?<=[。！？])"
)
CLAUSE_END = re.compile(r"[.;!?。！？；](?:\s+|$)|(?<=[。！？；])|,\s+(?:and|but|und|y|et|e|ve|и)\s+")
TYPING_ERRORS = 0.9  # similarity from which a mistyped quote is accepted, if its numbers are the same
MAX_AROUND = 300  # characters of the sentences around a quote
STEM = 4  # first letters, which are taken for what all forms of a word share


def folded(text: str) -> str:
    """Return a text without case, accents, vowel signs and variants of one letter."""
    # Vowel signs (Hindi, Arabic, Thai) go since `\w` does not match them, and they would part a word.
    parted = unicodedata.normalize("NFKD", text.replace("’", "'")).casefold()
    return "".join(each for each in parted if unicodedata.category(each)[0] != "M")


def words(text: str) -> list[str]:
    """Return the folded words of a text; of a script without spaces, each letter."""
    found = [each.removesuffix("'s") for each in EVIDENCE_WORD.findall(folded(text))]
    return [part for each in found for part in (each if UNSPACED.search(each) else [each])]


def sentences(text: str) -> list[str]:
    """Return the sentences of a text; a full stop in code, in `a.m.` or after a title ends none."""
    joined = [""]
    for part in SENTENCE_END.split(text):
        if joined[-1].count("`") % 2:  # the end lies within code
            joined[-1] += f" {part}"
        else:
            joined.append(part)
    return [each for part in joined if (each := part.strip().lstrip("-*•> ").strip())]


def located(quote: str, text: str) -> str:
    """Return the passage of a text that a quote matches, in the text's own form; empty if there is none.

    Unicode forms, case, quotation marks, punctuation and white space may differ, an ellipsis may leave
    something out, and small typing errors are passed over.
    """
    first = end = -1
    for part in filter(str.strip, ELLIPSIS.split(quote)):  # whole words only, each part after the last one
        (plain, places), (wanted, _) = _spaced(text, max(end, 0)), _spaced(part, 0)
        at = plain.find(wanted)
        if at < 0:
            # Align with typing errors by the longest run of letters in common. With autojunk, difflib would
            # leave out every letter that is frequent in a quote of 200 letters or more.
            match = SequenceMatcher(None, plain, wanted, autojunk=False).find_longest_match()
            at = max(match.a - match.b, 0)
        begin, after = plain.rfind(" ", 0, at + 1), plain.find(" ", at + len(wanted) - 1) + 1
        found = plain[begin:after]
        alike = 1.0 if found == wanted else SequenceMatcher(None, found, wanted, autojunk=False).ratio()
        if not wanted.strip() or alike < TYPING_ERRORS or NUMBER.findall(found) != NUMBER.findall(wanted):
            return ""
        first, end = places[begin + 1] if first < 0 else first, places[after - 2] + 1
    return text[first : end + (text[end : end + 1] in {".", "!", "?", "。"})] if first >= 0 else ""


@lru_cache(maxsize=64)  # a message is searched again for each of its quotes
def _spaced(text: str, start: int) -> tuple[str, list[int]]:
    """Return the folded words of a text with one space around each, and where each letter stands."""
    letters = [
        (letter if letter.isalnum() else " ", at)
        for at in range(start, len(text))
        for letter in (f" {text[at]} " if UNSPACED.match(text[at]) else folded(text[at]))
    ]
    spaced = [(" ", 0), *letters, (" ", 0)]
    kept = [spaced[0], *(new for old, new in pairwise(spaced) if (old[0], new[0]) != (" ", " "))]
    return "".join(letter for letter, _ in kept), [at for _, at in kept]


def rest(memory: str, outdated: str, fact: str) -> list[str]:
    """Return the words of a memory that a fact does not cover: neither outdated nor in the fact."""
    covered = {*words(outdated), *words(fact)}
    return [word for word in words(memory) if word not in covered]


def left_out(memory: str, outdated: str, content: str) -> str:
    """Return the first clause of a memory that its rewrite drops; empty if all valid content is kept.

    A clause counts as dropped where more than half of the words that it alone has are in no form in the new
    content. One that shares them with `outdated` does not count: an end may take its whole clause with it.
    """
    clauses = [each for each in map(str.strip, CLAUSE_END.split(memory)) if each]
    for clause in clauses:  # judged by the words that it alone has: the others may be kept by another clause
        own = _stems(clause) - _stems(" ".join(each for each in clauses if each is not clause))
        if _stems(outdated).isdisjoint(own) and 2 * len(own - _stems(content)) > len(own):
            return clause
    return ""


def _stems(text: str) -> set[str]:
    return {word[:STEM] for word in words(text) if len(word) > 2 or word.isdigit() or UNSPACED.search(word)}


def changed_number(content: str, quote: str, before: Sequence[str] = ()) -> str:
    """Return a number of a content that replaces another one of the quote; "" if there is none.

    Accepted are a part of the other number (98, 1998), the same hour in the afternoon, a number of a computed
    date, and a number that was said before.
    """

    def other_than(numbers: list[str], others: list[str]) -> list[str]:
        return [each for each in numbers if not any(_one_number(each, other) for other in others)]

    said, wrote = NUMBER.findall(folded(quote)), NUMBER.findall(folded(content))
    dated = YEAR.search(content) is not None and YEAR.search(quote) is None  # "tomorrow" became a date
    new = other_than(wrote, [*said, *NUMBER.findall(folded(" ".join(before)))])
    # Where all that were said are there, too, a further number replaces none of them.
    return new[0] if new and other_than(said, wrote) and not dated else ""


def _one_number(one: str, other: str) -> bool:
    shorter, longer = sorted((one.lstrip("0") or "0", other.lstrip("0") or "0"), key=len)
    return longer.startswith(shorter) or longer.endswith(shorter) or abs(int(one) - int(other)) == 12


def strange_name(entities: Iterable[str], content: str, sources: Sequence[str]) -> str:
    """Return the first capitalized entity of which no source has a word's beginning or the initials."""
    said = " ".join(map(folded, sources))
    for entity in entities:
        parts = words(entity)
        # Beginnings, since the end of a name may be inflected; initials, since it may have been spelt out.
        known = [*(each[: STEM - 1] for each in parts), "".join(each[0] for each in parts)]
        if entity[:1].isupper() and entity in content and not any(each in said for each in known):
            return entity
    return ""


def sentence_around(quote: str, message: str) -> str:
    """Return the sentences in which a quote stands; the quote where it does not, or where they are long."""
    around = " ".join(each for each in sentences(message) if quote in each or each in quote)
    return around if quote in around and len(around) <= MAX_AROUND else quote


def names(entities: Iterable[str], text: str) -> set[str]:
    """Return the entities that a text names, as their folded words."""
    said = f" {' '.join(words(text))} "
    return {each for entity in entities if (each := " ".join(words(entity))) and f" {each} " in said}
