"""The relation of a new statement to a remembered one: repetition, correction, possible contradiction."""

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from itertools import product

from mneme.prompts.chat.evidence import EVIDENCE_WORD, NUMBER, STEM, sentences, words
from mneme.prompts.chat.memory_agent.comparing import Relation
from mneme.rules.chat.english import DAY, ENGLISH, IS, REFERS, asks, content_of, pattern, refers_to

CORRECTING, CHANGED, ADDING = pattern("announcing", "correcting"), pattern("changed"), pattern("adding")
NOT_BUT, NOT_SO, VALUE, SUBJECT = pattern("not_but"), pattern("not_so"), pattern("value"), pattern("subject")
SUPPOSING, COMPARING, IT_IS, BE = (pattern(each) for each in ("supposing", "comparing", "it_is", "be"))
UNTYING = frozenset(words(ENGLISH["untying"]))
TOPICS, ONE_AT_A_TIME = ENGLISH["topics"], ENGLISH["one_at_a_time"]
MEASURE_STEMS = {each[:STEM] for each in words(ENGLISH["measures"])}
"""Stems of words that two statements may share without being about the same thing."""
SHARED_WORD_RATIO = 3
"""Statements about one thing share at least one in this many words of the shorter one."""
MAX_WORDS = 5  # of a value: more words may say something else, too
Correction = tuple[int, str, str]
"""The number of the memory that a correction means, its words that are wrong, and the right ones."""


def relations(
    fact: str, said: str, memories: Sequence[str], turns: Sequence[str]
) -> Iterator[tuple[int, Relation, str, str]]:
    """Yield the memories that a fact repeats, corrects (the wrong words, the new text), or may contradict."""
    meant, wrong, right = correction(fact, said, memories, turns) or (-1, "", "")
    new = [each for each in sentences(fact) if count(each, said)] or sentences(fact)  # not what they refer to
    for at, memory in enumerate(memories):
        if count(fact, memory):
            yield at, "duplicate", "", ""
        elif at == meant:
            # What stands in the turn before has a memory of its own.
            told = " ".join(each for each in sentences(fact) if each not in turns[-1])
            yield at, "correction", wrong, corrected(memory, told, wrong, right)
        elif any(_differ(one, other) for one, other in product(new, sentences(memory))):
            yield at, "unclear", "", ""


def correction(fact: str, said: str, memories: Sequence[str], turns: Sequence[str]) -> Correction | None:
    """Return the change of an explicit correction, if it can mean only one memory.

    It names the wrong words (`Y, not X`), or says again, with another value, what was said in the last turn.
    """
    named, restated, before = set[Correction](), set[Correction](), turns[-1]
    if SUPPOSING.search(said):  # a wish or a dream corrects nothing
        return None
    for sentence, (number, memory) in product(sentences(said), enumerate(memories)):
        plain = CORRECTING.sub("", sentence)
        for wrong, right in _named(plain, memory):
            is_value = words(plain)[: len(words(right))] == words(right)  # `I meant Thursday, not Tuesday`
            adds = stems(plain) - stems(f"{wrong} {right} {memory} instead rather")  # `was born in Porto`
            is_about = _is_about(plain, memory, wrong) and _shares(sentence, wrong, memory)
            is_next = count(wrong, before) == 1 and (refers_to(sentence, memory) or NOT_BUT.match(plain))
            of = re.split(rf"\bnot\b|{re.escape(right)}", plain)[0]
            is_alike = IT_IS.match(plain) or _tie(of) in ("", "is doing", _tie(memory.partition(wrong)[0]))
            if not adds and (is_value or (is_alike and (is_about or is_next))):
                named |= {(number, wrong, right)} if {*words(right)} <= {*words(fact)} else set()
        if CORRECTING.search(said):  # without such a word another value may be one more, not another one
            pairs = _restated(fact, memory)
            restated |= {(number, *pair) for pair in pairs if _is_said(pair[0], memory, before)}
    # Of words that a memory has twice, or two memories have, nobody knows which are meant: none is changed.
    found = [each for each in named or restated if count(each[1], memories[each[0]]) == 1]
    number, wrong, right = found[0] if len(found) == 1 else (-1, "", "")
    memory = memories[number] if number >= 0 else ""
    is_said = not named or _is_said(wrong, memory, "\n".join(turns))
    is_sure = number >= 0 and (is_said or _shares(said, wrong, memory))
    return (number, wrong, right) if is_sure else None


def _is_said(wrong: str, memory: str, before: str) -> bool:
    """Return whether earlier turns state, once, the memory's sentence that has the wrong words."""
    known = [stems(each) for each in sentences(memory) if count(wrong, each)]
    said = [stems(each) for each in sentences(before) if not asks(each)]
    return count(wrong, before) == 1 and any(each <= other for each, other in product(known, said))


def _is_about(sentence: str, memory: str, value: str) -> bool:
    """Return whether a sentence may have the subject of a memory's value: `Leo …` of `My brother Leo …`."""
    *_, told = "", *sentences("".join(memory.partition(value)[:2]))
    (of, verb), (known, known_verb) = opening(sentence), opening(told)
    known = opening(memory)[0] if REFERS.match(told) else known
    if of in {"it's", "that's", "the"}:
        return True
    # In `Anna thinks Bo is a nurse` another verb follows: the value is somebody else's.
    is_direct = verb[:STEM] == known_verb[:STEM]
    return is_direct and (f" {of}".endswith(f" {known}") or f" {known}".endswith(f" {of}"))


def _shares(text: str, wrong: str, memory: str) -> bool:
    return len(content_of(wrong)) > 1 or bool((stems(text) - stems(wrong)) & stems(memory))


def corrected(memory: str, fact: str, wrong: str, right: str) -> str:
    """Replace the wrong words by the right ones; append each sentence that says more than that."""
    new = re.sub(rf"(?<!\w){re.escape(wrong)}(?!\w)", lambda _: right, memory, flags=re.IGNORECASE)
    more = [each for each in sentences(fact) if stems(CORRECTING.sub("", each)) - stems(f"{new} {wrong}")]
    return " ".join([new, *more])


def _named(sentence: str, memory: str) -> Iterator[tuple[str, str]]:
    """Yield the wrong and the right words of `not X but Y` and of `Y, not X`."""
    if found := NOT_BUT.search(sentence):
        if not IS.search(found[2]):  # `not my car but my bike is red`: the right words are a sentence
            yield found[1], found[2].strip()
    elif found := NOT_SO.search(sentence):
        yield from _paired(_known(found[2], memory), found[1], memory)


def _known(text: str, memory: str) -> str:
    """Return the longest beginning of a text that occurs in a memory; else the text."""
    said = text.split()
    parts = (" ".join(said[:size]) for size in range(len(said), 0, -1))
    return next((each for each in parts if content_of(each.split()[-1]) and count(each, memory)), text)


def _paired(value: str, text: str, memory: str) -> Iterator[tuple[str, str]]:
    """Yield a memory's value and a text's for it: a similar end, the only new one of its sort, or `is X`."""
    read, size = VALUE.findall(text), len(VALUE.findall(value))
    tail = read[-size:] if size > 1 else []
    new = [each for each in read[len(read) > 1 :] if not count(each, memory) and each != value.strip()]
    same = {each for each in new if _sort(each) == _sort(value) != "word"}
    if tail and any(words(" ".join(tail))[at] == words(value)[at] for at in (0, -1)):
        yield value.strip(), " ".join(tail)
    elif size == len(same) == 1:
        yield value.strip(), same.pop()
    elif size == 1 and _sort(value) == "word" and read[-2:-1] and read[-2] in {"is", "are"}:
        yield f"{read[-2]} {value.strip()}", " ".join(read[-2:])  # `black, not grey` is of no grey couch


def _sort(value: str) -> str:
    if NUMBER.match(value):
        return "number"
    return "day" if DAY.fullmatch(value) else "name" if value[:1].isupper() else "word"


def count(part: str, text: str) -> int:
    """Return how often a sequence of words occurs in a text."""
    return f" {' '.join(words(text))} ".count(f" {' '.join(words(part))} ")


def _restated(fact: str, memory: str) -> Iterator[tuple[str, str]]:
    """Yield the words of a memory and of a fact, both of one sort, in which alone two sentences differ."""
    for sentence, known in product(sentences(fact), sentences(memory)):
        if COMPARING.search(sentence):  # one can be older than both
            continue
        if value := _revalued(sentence, known):
            yield value
            continue
        said = CORRECTING.sub("", sentence)
        new, old = ([*EVIDENCE_WORD.finditer(each)] for each in (said, known))
        now, then = ([each[0].casefold() for each in read] for read in (new, old))
        steps = [each for each in SequenceMatcher(None, then, now, False).get_opcodes() if each[0] != "equal"]
        steps = [each for each in steps if each[:2] != ("delete", 0)]  # `My dog Max`, then `Max`
        if len(steps) == 1 and (of := steps[0])[0] == "replace" and stems(" ".join(now[: of[3]])):
            wrong = known[old[of[1]].start() : old[of[2] - 1].end()]
            right = said[new[of[3]].start() : new[of[4] - 1].end()]
            is_value = _sort(right) != "word" or now[of[3] - 1] in {"a", "an", "the"}
            is_alike = (_sort(wrong) == _sort(right) and is_value) or now[of[3] - 1] in {"a", "an"}
            is_alike &= _unit(right) <= _unit(wrong)
            if is_alike and not IS.search(right) and max(of[2] - of[1], of[4] - of[3]) <= MAX_WORDS:
                yield wrong, right


def _revalued(sentence: str, known: str) -> tuple[str, str] | None:
    """Return the one number, name or day of a memory for which a sentence that adds nothing has another."""
    said = CORRECTING.sub("", sentence)
    found = [VALUE.findall(text) for text in (said, known)]
    values = [{each for each in read[len(read) > 1 :] if _sort(each) != "word"} for read in found]
    new, old = values[0] - values[1], values[1] - values[0]
    if len(new) != 1 or len(old) != 1 or ADDING.search(said):
        return None
    (right,), (wrong,) = new, old
    forms = {re.sub(r"\d+", "0", each) if _sort(each) == "number" else _sort(each) for each in (right, wrong)}
    beside, is_end = {*content_of(said)}, bool(CHANGED.search(said)) != bool(CHANGED.search(known))
    beside -= {*content_of(right)}
    is_about = refers_to(sentence, known) or (beside and _is_about(said, known, wrong))
    links = [_tie(text.partition(value)[0]) for text, value in ((said, right), (known, wrong))]
    is_alike = len(forms) == 1 and (IT_IS.match(said) or links[0] in ("", links[1]))
    return (wrong, right) if is_about and is_alike and not is_end and beside <= {*content_of(known)} else None


def _tie(text: str) -> str:
    """Return the words that link a value to the text before it: `has 2` and `is 5` differ."""
    read = [each for each in words(BE.sub(" is", text)) if each not in UNTYING]
    return " ".join(["is"] * ("is" in read[:-1]) + read[-1:])


def _unit(value: str) -> set[str]:
    """Return what a number counts: `2 floors` is not another value of `3 rooms`."""
    counted = content_of(DAY.sub(" ", value)) if _sort(value) == "number" else []
    return {each for each in counted if len(each) > 2 and not NUMBER.match(each)}


def _differ(fact: str, memory: str) -> bool:
    """Return whether sentences on one subject differ in a number, an end, or a property with one value."""
    said, known = stems(fact) - MEASURE_STEMS, stems(memory) - MEASURE_STEMS
    shared = said & known
    if SHARED_WORD_RATIO * len(shared) < min(len(said), len(known)):
        shared = set()  # one word of many is of no thing that both are about
    subjects = [opening(each)[0] for each in (fact, memory)]
    verbs = [IS.search(each) for each in (fact, memory)]
    labels = [
        NUMBER.findall(each.string[: each.start()] if each else subjects[at]) for at, each in enumerate(verbs)
    ]
    if all(labels) and labels[0] != labels[1]:
        return False  # `locker 1 is …` and `locker 2 is …` are two things
    if subjects[0] != subjects[1]:
        if all(map(stems, subjects)):  # of two others, what the one does says nothing of the other
            shared &= stems(" ".join(subjects))
        return CHANGED.search(fact) is not None and any(len(each) > 3 for each in shared)
    if any(re.search(rf"\b(?:is|are) {re.escape(wrong)}", memory) for wrong, _ in _restated(fact, memory)):
        return True  # one thing is called by two names, or has two numbers
    shared -= stems(subjects[0])
    of_one_topic = any(said & stems(topic) and known & stems(topic) for topic in TOPICS)
    if bool(CHANGED.search(fact)) != bool(CHANGED.search(memory)) and (shared or of_one_topic):
        return True
    numbers = [set(NUMBER.findall(each)) for each in (fact, memory)]
    return bool(shared & stems(ONE_AT_A_TIME)) or (bool(shared) and all(numbers) and numbers[0] != numbers[1])


def opening(sentence: str) -> tuple[str, str]:
    """Return the first words, such as `i`, `my friend ann` or `max`, and the word that follows them."""
    own = re.sub(r"(?i)^the user['’]s", "my", BE.sub(" is", sentence.strip()))
    own = re.sub(r"(?i)^i['’]\w+|^the user\b(?!['’])", "I", own)
    first = str(SUBJECT.findall(own)[0])
    after = re.sub(r"^, [^,]*,", "", own[len(first) :])  # not what else it is: `My sister Ana, a baker, …`
    return first.casefold(), next((each for each in words(after) if each not in UNTYING), "")


def stems(text: str) -> set[str]:
    """Return the common stem of the forms of each content word of a text."""
    return {each[:STEM] for each in content_of(text)}
