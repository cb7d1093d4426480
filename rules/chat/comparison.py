"""How a new statement stands to a remembered one: repetition, correction, perhaps contradiction."""

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from itertools import product
from typing import NamedTuple

from mneme.prompts.chat.evidence import NUMBER, WORD, words
from mneme.rules.chat.english import sentences
from mneme.rules.words import stem, words_in

CORRECTING = re.compile(
    r"\b(?:actually|i mean|i meant|correction|scratch that|my mistake|my bad|i was wrong|typo)\b"
    r"|^\W*(?:no|sorry|oops)\b",
    re.IGNORECASE,
)
NOT_BUT = re.compile(r"\bnot (?P<wrong>[^,.;!?]{1,60}?),? but (?P<right>[^,.;!?]{1,60})", re.IGNORECASE)
RATHER_THAN = re.compile(
    r"(?P<before>[^.;!?]{1,200}?),? (?:and )?(?:not|rather than|instead of) (?P<wrong>[^,.;!?]{1,60})",
    re.IGNORECASE,
)
MEANT = re.compile(r"\bi mean(?:t)? (?P<right>[^,.;!?]{1,60})[.!]*$", re.IGNORECASE)
ENDED = re.compile(
    r"n['’]?t\b|\b(?:no|never|not|none|used to|any ?more|quit|quits|stopped|gave up|left|sold|lost|former|ex|"
    r"died|moved)\b",
    re.IGNORECASE,
)
CHANGED = re.compile(
    r"\b(?:now|instead|from now on|as of|at the moment|changed?|switched|moved|renamed|raised|increased|"
    r"delayed|(?:up|down) to|turned)\b",
    re.IGNORECASE,
)
"""What tells that something is no longer as it was."""
VALUE = re.compile(r"[\w'’.:/-]*\w")
"""A word, or a number with its signs: `10-3`, `18:30`, `2.5`."""
TOPICS = {
    word: topic
    for topic, listed in {
        "diet": "vegan vegetarian eat meat fish dairy gluten diet pescatarian",
        "work": "work job employ employer company hire fire retire resign unemployed freelance teach",
        "home": "live move home house flat apartment rent reside relocate",
        "couple": "marry wife husband girlfriend boyfriend divorce single partner engage",
        "habit": "drink smoke alcohol coffee beer wine sober",
    }.items()
    for word in listed.split()
}
"""Words of which two may contradict one another without being the same."""
ONE_AT_A_TIME = words_in("live work move turn weigh cost drive rent marry study earn commute")
PLAIN = words_in("a an the user is was are has have be not of and i at in on for to its it it's he she they")


class Correction(NamedTuple):
    """Which memory a correction means, its words that are wrong, and the right ones."""

    memory: int
    wrong: str
    right: str


def is_repetition(fact: str, memory: str) -> bool:
    """Tell whether a memory holds a statement already, word for word."""
    return f" {' '.join(words(fact))} " in f" {' '.join(words(memory))} "


def correction(fact: str, said: str, memories: Sequence[str], before: str) -> Correction | None:
    """Return what an explicit correction changes, where one memory alone can be meant.

    It names the wrong words (`Y, not X`), or says again, with another end, what was said just `before`.
    """
    exchanged = {
        Correction(number, *pair)
        for sentence in sentences(said)
        for pair in _exchanged(sentence, before)
        if {*words(pair[1])} <= {*words(fact)}
        for number, memory in enumerate(memories)
        if _once(pair[0], memory) and (_is_about(sentence, memory, pair[0]) or _once(pair[0], before))
    }
    restated = {
        Correction(number, *pair)
        for number, memory in enumerate(memories)
        if CORRECTING.search(said) and not exchanged
        for pair in _restated(fact, memory)
        if _once(pair[0], before)
    }
    found = exchanged or restated
    return found.pop() if len(found) == 1 else None


def corrected(memory: str, fact: str, change: Correction) -> str:
    """Put the right words in place of the wrong ones; add each sentence that says more than that."""
    new = re.sub(
        rf"(?<!\w){re.escape(change.wrong)}(?!\w)", lambda _: change.right, memory, flags=re.IGNORECASE
    )
    known = {*words(new), *words(change.wrong), "actually", "sorry", "mean", "meant", "correction"}
    more = [each for each in sentences(fact) if any(len(word) > 3 for word in {*words(each)} - known)]
    return " ".join([new, *more])


def _exchanged(sentence: str, before: str) -> Iterator[tuple[str, str]]:
    """Yield the wrong and the right words of `not X but Y`, `Y, not X`, and `I meant Y` just after X."""
    if meant := MEANT.search(sentence):
        wrong = _counterpart(meant["right"], before)
        yield from [(wrong, meant["right"])] if wrong else []
    pattern = NOT_BUT if NOT_BUT.search(sentence) else RATHER_THAN
    for found in pattern.finditer(sentence):
        wrong, given = found["wrong"].strip(), found.groupdict()
        right = given.get("right") or _counterpart(wrong, given["before"])
        if right and words(right) != words(wrong):
            yield wrong, right.strip()


def _counterpart(value: str, text: str) -> str:
    """Return the only word of a text of a value's sort, or those at its end that begin or end alike."""
    read, size = VALUE.findall(text), len(VALUE.findall(value))
    if size == 1 and (sort := _sort(value)) != "word":
        same = {each for each in read[1:] if _sort(each) == sort}
        return same.pop() if len(same) == 1 else ""
    tail = " ".join(read[-size:])
    is_alike = size > 1 and any(words(tail)[at] == words(value)[at] for at in (0, -1))
    return tail if is_alike else ""


def _sort(value: str) -> str:
    return "number" if NUMBER.search(value) else "name" if value[:1].isupper() else "word"


def _once(part: str, text: str) -> bool:
    return f" {' '.join(words(text))} ".count(f" {' '.join(words(part))} ") == 1


def _is_about(sentence: str, memory: str, wrong: str) -> bool:
    """Tell whether more than the wrong word points to the memory."""
    others = _stems(sentence) - _stems(wrong) - PLAIN
    return len(words(wrong)) > 1 or bool(others & _stems(memory))


def _restated(fact: str, memory: str) -> Iterator[tuple[str, str]]:
    """Yield the ends in which a sentence of a memory and of a fact alone differ, if they are of one sort."""
    for said, known in product(sentences(fact), sentences(memory)):
        new, old = list(WORD.finditer(said)), list(WORD.finditer(known))
        folded = [[each[0].casefold() for each in read] for read in (old, new)]
        steps = SequenceMatcher(None, folded[0], folded[1], autojunk=False).get_opcodes()
        inside = steps[1:] if steps[0][0] in {"insert", "delete", "replace"} else steps
        if [each[0] for each in inside] != ["equal", "replace"]:
            continue
        (_, start, end, *_), (_, _, _, first, _) = inside
        wrong, right = known[old[end].start() :].rstrip(".! "), said[new[first].start() :].rstrip(".! ")
        is_one_sort = _sort(wrong) == _sort(right) != "word" or folded[1][first - 1] in PLAIN - {"is", "was"}
        if is_one_sort and not PLAIN.issuperset(folded[0][start:end]):
            yield wrong, right


def may_contradict(fact: str, memory: str) -> bool:
    """Tell whether sentences are of one subject, and differ in a number, an end, or what is one at a time."""
    return any(_differ(one, other) for one in sentences(fact) for other in sentences(memory))


def _differ(fact: str, memory: str) -> bool:
    one, other = _stems(fact), _stems(memory)
    if _subject(fact) != _subject(memory):
        return CHANGED.search(fact) is not None and any(len(each) > 3 for each in (one & other) - PLAIN)
    shared = (one & other) - PLAIN - set(_subject(fact))
    numbers = set(NUMBER.findall(fact)), set(NUMBER.findall(memory))
    has_ended = bool(ENDED.search(fact)) != bool(ENDED.search(memory))
    same_topic = {TOPICS.get(each) for each in one} & {TOPICS.get(each) for each in other} - {None}
    if has_ended and (shared or same_topic):
        return True
    differ = all(numbers) and numbers[0] != numbers[1]
    return bool(shared & ONE_AT_A_TIME) or (bool(shared) and differ)


def _subject(sentence: str) -> list[str]:
    """Return the first words: `the user`, `the user's friend Ann`, `Max`."""
    read = [each.casefold() for each in WORD.findall(sentence)]
    if read[:2] == ["the", "user's"]:
        return read[: 4 if WORD.findall(sentence)[3:4] and WORD.findall(sentence)[3][0].isupper() else 3]
    return read[: 2 if read[:2] == ["the", "user"] else 1]


def _stems(text: str) -> set[str]:
    return {stem(each) for each in words(text)}
