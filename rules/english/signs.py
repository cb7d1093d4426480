"""What words alone tell about a clause, and about a statement beside another: figures for the judge."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mneme.rules.english.clauses import is_verb
from mneme.rules.english.words import Token, is_base, listed, phrase, stem, stems, tokens, verb_of

Figures = NDArray[np.float32]

_OPENING = ("question", "request", "hypothetical", "told", "small_talk", "opinion")
_INSIDE = ("moment", "feeling", "lasting", "event", "change", "ended")
TOPICS = ("home", "job", "couple", "diet", "school", "ride", "drink", "body", "life")


def clause_signs(text: str, said: str = "") -> Figures:
    """Return what the words of a clause tell of whether it is to be remembered; `said` is it untrimmed."""
    read = [each for each in tokens(text) if each.is_word]
    lows = [each.low for each in read]
    own = listed("first_person") | {"i'm", "i've", "i'll", "i'd", "we're", "we've", "we'll"}
    first, second = (*lows, "", "")[:2]
    flags = [
        *(bool(phrase(name, r"\W*(?:{})").match(text)) for name in _OPENING),
        *(bool(phrase(name).search(text)) for name in _INSIDE), first in own, first in {"my", "our"},
        bool(own & set(lows)), first in {"we", "we're", "we've"}, first in listed("pointing"),
        first in listed("third_person"), bool(listed("third_person") & set(lows)),
        first in {"you", "your", "you're"}, bool({"you", "your"} & set(lows)),
        any(each.is_name for each in read[1:]),
        any(low[0].isdigit() or low in listed("numbers") for low in lows),
        any(is_verb(read, n) for n in range(len(read))), bool(listed("negations") & set(lows)),
        is_base(first) and first not in {"like", "love", "hate"}, first in {"the", "a", "an"},
        read[:1] != [] and read[0].is_name, bool(verb_of(second)) and first in {"i", "we"},
        first.endswith("ing"), second in {"am", "was", "will"} or first in {"i'm", "im"},
        bool(said) and bool(phrase("remember").search(said)),
        bool((listed("male") | listed("female") | listed("people")) & set(lows)),
        text.rstrip().endswith("?"), "!" in said, len(read) < 3, len(read) < 5, len(read) > 12,
    ]  # fmt: skip
    return np.array([*map(float, flags), min(len(read), 30) / 10], dtype=np.float32)


def content_stems(read: Sequence[Token]) -> frozenset[str]:
    """Return the stems of the words that mean something."""
    return frozenset(
        stem(each.low) for each in read if each.is_word and each.low not in listed("function_words")
    )


def subject_stems(read: Sequence[Token]) -> frozenset[str]:
    """Return the stems of the words before the verb, without articles: of whom a statement is."""
    if [each.low for each in read[:2]] == ["the", "user"] or (read and read[0].low == "we"):
        return frozenset(("user",))
    if read and is_verb(read, 0):
        return frozenset((read[0].low.split("'")[0],))
    end = next((n for n in range(1, len(read)) if is_verb(read, n) and read[n].low != "user's"), len(read))
    return frozenset(
        stem(each.low) for each in read[:end] if each.is_word and each.low not in {"the", "a", "an"}
    )


def pair_signs(fact: str, statement: str, alike: float | None) -> Figures:
    """Return what the words of a fact and of a statement tell of how they stand to each other."""
    a, b = tokens(fact), tokens(statement)
    one, other = content_stems(a), content_stems(b)
    subject, known = subject_stems(a), subject_stems(b)
    shared = len(one & other)
    numbers, known_numbers = numbers_in(a), numbers_in(b)
    names, known_names = _names(a), _names(b)
    denies, denied = _denies(a), _denies(b)
    verbs, known_verbs = _verbs(a), _verbs(b)
    changes, ends = bool(phrase("change").search(fact)), bool(phrase("ended").search(fact))
    same, mine = subject == known, subject == known == {"user"}
    topics = [(bool(one & stems(name)), bool(other & stems(name))) for name in TOPICS]
    told = any(left and right for left, right in topics)
    is_so, was_so = (any(each.low in listed("copulas") for each in read) for read in (a, b))
    cos = alike or 0.0
    flags = [
        one <= other, other <= one, one <= other and denies == denied, same,
        bool(subject & known - {"user"}), subject == {"user"}, known == {"user"}, mine, subject <= known,
        known <= subject, not subject & known, bool(numbers), bool(known_numbers),
        bool(numbers and known_numbers and numbers != known_numbers), bool(numbers & known_numbers),
        bool(names - known_names), bool(known_names - names), bool(names & known_names), changes, ends,
        denies, denied, denies != denied, bool(verbs & known_verbs), same and bool(verbs & known_verbs),
        bool(verbs & known_verbs & listed("single")), bool(verbs & known_verbs & listed("many")), is_so,
        was_so, is_so and was_so, same and is_so and was_so, mine and is_so and was_so, ends and shared > 1,
        denies and not verbs & known_verbs and not told, denies and bool(verbs & known_verbs),
        ends and not denies, told, told and mine, told and changes, told and ends,
        ends and bool(subject & other), bool(numbers) and not known_numbers,
        denies != denied and one - listed("denying") <= other,
        bool(names - known_names) and bool(known_names - names), changes and bool(verbs & known_verbs),
        changes and same, mine and changes, ends and same,
        bool(subject - {"user"}) and bool(subject & other), bool(known - {"user"}) and bool(known & one),
        bool(subject & other) and is_so,
    ]  # fmt: skip
    figures = [
        shared / max(1, len(one)), shared / max(1, len(other)), len(one - other) / 5, len(other - one) / 5,
        len(a) / 10, len(b) / 10, cos, cos * cos, cos * changes, cos * ends, cos * same, cos * mine,
    ]  # fmt: skip
    return np.array([*map(float, flags), *figures], dtype=np.float32)


def numbers_in(read: Sequence[Token]) -> frozenset[str]:
    """Return the numbers, in figures or in words."""
    return frozenset(each.low for each in read if each.text[0].isdigit() or each.low in listed("numbers"))


def _names(read: Sequence[Token]) -> frozenset[str]:
    return frozenset(stem(each.low) for each in read[1:] if each.is_name)


def _denies(read: Sequence[Token]) -> bool:
    return any(each.low in listed("negations") for each in read)


def _verbs(read: Sequence[Token]) -> frozenset[str]:
    return frozenset(filter(None, (verb_of(each.low) for each in read)))
