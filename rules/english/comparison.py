"""How a new fact stands to one memory, statement by statement."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from mneme.rules.english.clauses import sentences
from mneme.rules.english.composition import is_english
from mneme.rules.english.judge import RELATIONS, Relation, chances_of_relations, likeness
from mneme.rules.english.signs import TOPICS, content_stems, numbers_in, subject_stems
from mneme.rules.english.words import Token, base_of, listed, phrase, stem, stems, tokens, verb_of

_UNSURE, _LEAST, _ALIKE = 0.5, 0.15, 0.7
_IS = re.compile(
    r"(?:\b(?:is|are|was|were)|['’]s(?= an? )) (?!\w+ing\b)(?!(?:on|off|in|at|away|back|not|being|sick)\b)"
)
_CALLED = re.compile(r"\b(?:called|named)\b")
_FURTHER = re.compile(r"(?:,? and|,) (\w+)")
_ROLE = re.compile(r"^\S+ (?:is|was|became) the user's (\w+(?: \w+)?)")
_POINTING = frozenset(("it", "that", "this", "there"))


class Comparison(NamedTuple):
    """How a fact stands to a memory, and why."""

    relation: Relation
    rationale: str


def statements_of(memory: str) -> list[str]:
    """Return the statements that a memory is a list of; `The user lives here and works there` is two."""
    return [part for each in sentences(memory) for part in _parts(each)]


def _parts(sentence: str) -> list[str]:
    """Part a sentence where the user does a further thing."""
    joined = next((each for each in _FURTHER.finditer(sentence) if _is_done(each[1])), None)
    if not joined or not sentence.startswith("The user ") or not _is_done(sentence.split()[2]):
        return [sentence]
    return [f"{sentence[: joined.start()]}.", *_parts(f"The user {sentence[joined.start(1) :]}")]


def _is_done(verb: str) -> bool:
    return verb in {"is", "has", "does"} or (bool(verb_of(verb)) and base_of(verb) != verb)


def compare(fact: str, memory: str, message: str) -> Comparison:
    """Say how a fact stands to a memory: by the strongest relation between two of their statements."""
    found = [
        [relation(each, known, message) for known in statements_of(memory)] for each in statements_of(fact)
    ]
    if any("conflict" in row for row in found):
        return Comparison("conflict", "It says something else of what the memory says.")
    if found and all("duplicate" in row for row in found):
        return Comparison("duplicate", "The memory says so already.")
    if any("addition" in row for row in found):
        return Comparison("addition", "It says one more thing of what the memory describes.")
    return Comparison("unrelated", "It is about somebody or something else.")


def relation(fact: str, statement: str, message: str) -> Relation:
    """Say how one statement stands to another; where that is not sure they are unrelated.

    What a correction says that something is replaces what it was said to be.
    """
    if _bare(fact) == _bare(statement):
        return "duplicate"
    if not (is_english(fact) and is_english(statement)) or not may_be_of_one(fact, statement):
        return "unrelated"
    chances = chances_of_relations(fact, statement)
    if chances["unrelated"] > _UNSURE:
        return "unrelated"
    likely = [each for each in RELATIONS[:3] if chances[each] > _LEAST and _may_be(each, fact, statement)]
    found: Relation = max(likely, key=lambda each: chances[each], default="unrelated")
    corrected = found == "addition" and phrase("correcting").search(message)
    return "conflict" if corrected and _says_what_it_is(tokens(fact), tokens(statement)) else found


def _may_be(likely: Relation, fact: str, statement: str) -> bool:
    """Hold the judge to what the words show, e.g. that an end repeats nothing."""
    a, b = tokens(fact), tokens(statement)
    one, other = content_stems(a), content_stems(b)
    ends, ended = (bool(phrase("ended").search(each)) for each in (fact, statement))
    if likely == "duplicate":
        numbers = {each for each in one - other if each[0].isdigit()}
        repeats = 2 * len(one & other) >= len(one) or (likeness(fact, statement) or 0) >= _ALIKE
        return repeats and not numbers and ends == ended
    if likely == "addition":
        described = _IS.search(statement) or _CALLED.search(statement)
        return bool(_IS.search(fact) and described) and subject_stems(a) != {"user"}
    shared = (one & other) - (subject_stems(a) & subject_stems(b))
    told = any(one & stems(name) and other & stems(name) for name in TOPICS)
    return bool(shared) or told or bool(one & stems("life")) or _says_what_it_is(a, b)


def _says_what_it_is(one: Sequence[Token], other: Sequence[Token]) -> bool:
    """Say whether both statements tell what something is, both in figures, or neither."""
    told = {"is", "are", "was", "were", ","}
    is_so = [bool(told & {each.low for each in read}) for read in (one, other)]
    counted = [bool(numbers_in(read)) for read in (one, other)]
    return all(counted) or (all(is_so) and not any(counted))


def _bare(text: str) -> str:
    return text.strip(" .!").casefold()


def may_be_of_one(fact: str, statement: str) -> bool:
    """Say whether two statements can be of the same: who is said to be in one must be named in the other."""
    one, other = _Subject.of(fact), _Subject.of(statement)
    if one.owners != other.owners or one.former != other.former:
        return False
    if one.people and other.people and not one.people & other.people:
        return False
    return _is_named(one, other) and _is_named(other, one)


@dataclass(frozen=True)
class _Subject:
    """Whom a statement is of: its words, who of them are people, and whose it is; `said` is all it says."""

    words: frozenset[str]
    people: frozenset[str]
    owners: frozenset[str]
    former: bool
    names: frozenset[str]
    said: frozenset[str]

    @classmethod
    def of(cls, text: str) -> "_Subject":
        read = tokens(text)
        subject, persons = subject_stems(read), people()
        owned = [
            one
            for one, other in pairwise(read[:8])
            if one.low.endswith("'s") and other.low not in listed("own")
        ]
        owners = {stem(each.low) for each in owned}
        named = read[:1] + [each for before, each in pairwise(read) if before.low in listed("naming")]
        names = frozenset(
            stem(each.low) for each in read if each.is_name and (stem(each.low) in subject or each in named)
        )
        owners &= subject & (persons | names | {stem(read[0].low)})
        role = _ROLE.search(text)
        called = frozenset(stem(each.low) for each in tokens(role[1])) if role else subject
        words = called - listed("users") - listed("former")
        former = bool(subject & listed("former") - {"new"})
        return cls(words, words & persons, frozenset(owners), former, names, content_stems(read))


def _is_named(one: _Subject, other: _Subject) -> bool:
    """Say whether whom one is of is named in the other: every person, or one of the names; else any word."""
    if one.words and one.words <= listed("unnamed"):
        return False
    if not one.words or one.words <= _POINTING or one.names & other.said:
        return True
    return one.people <= other.said if one.people else bool(one.words & other.said)


@lru_cache(maxsize=1)
def people() -> frozenset[str]:
    """Return the stems of words for people."""
    return stems("male") | stems("female") | stems("people") | stems("plural")
