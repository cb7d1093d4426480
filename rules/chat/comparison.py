"""How a new statement stands to a remembered one: repetition, correction, perhaps contradiction."""

import re
from collections.abc import Iterator, Sequence
from itertools import product, takewhile

from mneme.prompts.chat.evidence import NUMBER, WORD, sentences, words
from mneme.prompts.chat.memory_agent.comparing import Relation
from mneme.rules.chat.english import content_of, of_the_user
from mneme.rules.words import stem, words_in

CORRECTING = re.compile(
    r"(?i)^\W*(?:no|sorry|oops)\b\W*|\b(?:actually|i meant?|correction|my mistake|i was wrong)\b\W*"
)
NOT_BUT = re.compile(r"(?i)\bnot ([^,.;!?]{1,60}?),? but ([^,.;!?]{1,60})")
NOT_SO = re.compile(r"(?i)([^.;!?]{1,200}?),? (?:not|rather than|instead of) ([^,.;!?]{1,60})")
MEANT = re.compile(r"(?i)\bi meant? ([^,.;!?]{1,60})[.!]*$")
VALUE = re.compile(r"[\w'’.:/-]*\w")  # a word, or a number with its signs: `10-3`, `18:30`, `2.5`
SUBJECT = re.compile(r"(?i)the user's \w+(?: (?-i:[A-Z])\w*)?|the user|\S*")
CHANGED = re.compile(  # what tells that something is no longer as it was
    r"(?i)n['’]?t\b|\b(?:no|never|not|none|used to|any ?more|quit|stopped|gave up|left|sold|lost|former|ex|"
    r"died|moved|now|instead|as of|changed?|switched|renamed|raised|increased|delayed|(?:up|down) to)\b"
)
TOPICS = [  # words of which two may contradict one another without being the same
    words_in("vegan vegetarian eat meat fish dairy diet pescatarian"),
    words_in("drink smoke alcohol coffee beer wine sober"),
    words_in("work employ employer company hire retire resign unemployed freelance teach study"),
    words_in("live move home house flat apartment rent relocate"),
    words_in("marry wife husband boyfriend girlfriend divorce single"),
]
ONE_AT_A_TIME = words_in("live work move turn weigh cost drive rent marry study earn commute")
BEFORE_VALUES = words_in("the at in on for to of by from with")
Correction = tuple[int, str, str]
"""The number of the memory that a correction means, its words that are wrong, and the right ones."""


def relations(
    fact: str, said: str, memories: Sequence[str], before: str
) -> Iterator[tuple[int, Relation, str, str]]:
    """Yield the memories that a fact repeats, corrects (the wrong words, the new text), or may contradict."""
    meant, wrong, right = correction(fact, said, memories, before) or (-1, "", "")
    for at, memory in enumerate(memories):
        if count(fact, memory):
            yield at, "duplicate", "", ""
        elif at == meant:
            yield at, "correction", wrong, corrected(memory, fact, wrong, right)
        elif any(_differ(one, other) for one in sentences(fact) for other in sentences(memory)):
            yield at, "unclear", "", ""


def correction(fact: str, said: str, memories: Sequence[str], before: str) -> Correction | None:
    """Return what an explicit correction changes, where one memory alone can be meant.

    It names the wrong words (`Y, not X`), or says again, with another end, what was said just `before`.
    """
    exchanged, restated = set[Correction](), set[Correction]()
    for sentence, (number, memory) in product(sentences(said), enumerate(memories)):
        for wrong, right in _exchanged(sentence, before):
            subject = _subject(CORRECTING.sub("", of_the_user(sentence)))
            is_about = subject in {_subject(memory), "it's", "that's"} or (
                subject != "the user" and count(subject, memory) > 0
            )
            is_meant = count(wrong, before) == 1 or (is_about and _shares(sentence, wrong, memory))
            if is_meant and count(wrong, memory) == 1 and {*words(right)} <= {*words(fact)}:
                exchanged.add((number, wrong, right))
        if CORRECTING.search(said):
            restated |= {(number, *pair) for pair in _restated(fact, memory) if count(pair[0], before) == 1}
    found = exchanged or restated
    number, wrong, right = found.pop() if len(found) == 1 else (-1, "", "")
    is_sure = number >= 0 and _shares(f"{said} {before}", wrong, memories[number])
    return (number, wrong, right) if is_sure else None


def _shares(text: str, wrong: str, memory: str) -> bool:
    return len(words(wrong)) > 1 or bool((stems(text) - stems(wrong)) & stems(memory))


def corrected(memory: str, fact: str, wrong: str, right: str) -> str:
    """Put the right words in place of the wrong ones; add each sentence that says more than that."""
    new = re.sub(rf"(?<!\w){re.escape(wrong)}(?!\w)", lambda _: right, memory, flags=re.IGNORECASE)
    more = [each for each in sentences(fact) if stems(CORRECTING.sub("", each)) - stems(f"{new} {wrong}")]
    return " ".join([new, *more])


def _exchanged(sentence: str, before: str) -> Iterator[tuple[str, str]]:
    """Yield the wrong and the right words of `not X but Y`, `Y, not X`, and `I meant Y` just after X."""
    if found := NOT_BUT.search(sentence):
        yield found[1], found[2].strip()
    elif found := NOT_SO.search(sentence):
        yield from _paired(found[2], found[1])
    elif found := MEANT.search(sentence):
        yield from (pair[::-1] for pair in _paired(found[1], before))


def _paired(value: str, text: str) -> Iterator[tuple[str, str]]:
    """Yield a value and what stands for it in a text: the end alike, or the only number or name."""
    read, size = VALUE.findall(text), len(VALUE.findall(value))
    tail = read[-size:] if size > 1 else []
    same = {each for each in read[1:] if _sort(each) == _sort(value) != "word" and each != value.strip()}
    if tail and any(words(" ".join(tail))[at] == words(value)[at] for at in (0, -1)):
        yield value.strip(), " ".join(tail)
    elif size == len(same) == 1:
        yield value.strip(), same.pop()


def _sort(value: str) -> str:
    return "number" if NUMBER.search(value) else "name" if value[:1].isupper() else "word"


def count(part: str, text: str) -> int:
    """Return how often a text has some words, one after the other."""
    return f" {' '.join(words(text))} ".count(f" {' '.join(words(part))} ")


def _restated(fact: str, memory: str) -> Iterator[tuple[str, str]]:
    """Yield the ends in which a sentence of a memory and of a fact alone differ, if they are of one sort."""
    for said, known in product(sentences(CORRECTING.sub("", fact)), sentences(memory)):
        new, old = ([*WORD.finditer(each)] for each in (said, known))
        now, then = ([each[0].casefold() for each in read] for read in (new, old))
        start = then.index(now[0]) if now and now[0] in then else len(then)
        size = len([*takewhile(lambda pair: pair[0] == pair[1], zip(now, then[start:], strict=False))])
        if not stems(" ".join(now[:size])) or size == len(now) or start + size == len(then):
            continue
        wrong = known[old[start + size].start() :].rstrip(".! ")
        right = said[new[size].start() :].rstrip(".! ")
        is_one_sort = _sort(wrong) == _sort(right)
        is_value = _sort(right) != "word" or now[size - 1] in BEFORE_VALUES
        if (is_one_sort and is_value) or now[size - 1] in {"a", "an"}:
            yield wrong, right


def _differ(fact: str, memory: str) -> bool:
    """Tell whether sentences of one subject differ in a number, an end, or what is one at a time."""
    shared = stems(fact) & stems(memory)
    if _subject(fact) != _subject(memory):
        return CHANGED.search(fact) is not None and any(len(each) > 3 for each in shared)
    shared -= stems(_subject(fact))
    of_one_topic = any(stems(fact) & topic and stems(memory) & topic for topic in TOPICS)
    if bool(CHANGED.search(fact)) != bool(CHANGED.search(memory)) and (shared or of_one_topic):
        return True
    numbers = [set(NUMBER.findall(each)) for each in (fact, memory)]
    return bool(shared & ONE_AT_A_TIME) or (bool(shared) and all(numbers) and numbers[0] != numbers[1])


def _subject(sentence: str) -> str:
    """Return the first words: `the user`, `the user's friend Ann`, `max`."""
    return str(SUBJECT.findall(sentence)[0]).casefold()


def stems(text: str) -> set[str]:
    """Return what the forms of each content word of a text share."""
    return {stem(each) for each in content_of(text)}
