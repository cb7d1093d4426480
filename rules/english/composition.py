"""What a message gives to remember: its own statements, said of the user, each kept or left out."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from mneme.rules.english.clauses import Clause, clauses_of, is_verb, sentences
from mneme.rules.english.judge import chances_to_keep
from mneme.rules.english.person import of_the_user
from mneme.rules.english.pronouns import Mention, joined, resolved, spoken
from mneme.rules.english.signs import content_stems
from mneme.rules.english.words import LONGEST_READ, listed, phrase, tokens

LONGEST = 1000
"""Characters a memory may have: longer ones are documents."""
NOTHING = "it states nothing lasting about the user or their world"
SURE, CONTINUING = 0.5, 0.25
"""How sure it must be that a clause is worth keeping; less where it goes on about what is kept."""

_REASONS = (
    ("injection", "it gives orders to the assistant"),
    ("quoted", "it holds pasted or quoted text"),
    ("joke", "it is a joke"),
    ("fiction", "it speaks of a text or a story"),
)
_CLAUSE_REASONS = (
    ("hypothetical", "it is hypothetical"),
    ("request", "it asks the assistant to do something"),
    ("told", "it is about the assistant"),
    ("small_talk", "it is small talk"),
)
MOST_CLAUSES = 40
"""Clauses of one message that are judged: what has more is a text, not something told."""


@dataclass(frozen=True)
class Fact:
    """One memory to be; `quote` are the words of the message that say so."""

    content: str
    quote: str
    episodic: bool


@dataclass(frozen=True)
class _Said:
    """A clause with its pronouns resolved, and whom its first word means, where that was a pronoun."""

    clause: Clause
    text: str
    subject: Mention | None
    chance: float = 0.0

    @property
    def is_vague(self) -> bool:
        """Say whether it begins with `it` or `she`, and there is no saying what or who that is."""
        first = tokens(self.text)[:1]
        return bool(first) and first[0].low.split("'")[0] in listed("vague")

    @property
    def points_back(self) -> bool:
        first = tokens(self.clause.text)[:1]
        return self.subject is not None or (
            bool(first) and first[0].low.split("'")[0] in listed("third_person")
        )


def worth_storing(message: str, preceding: Sequence[str], time: str) -> tuple[bool, str]:
    """Say whether a message holds anything to remember, and why."""
    facts, reason = _read(message, tuple(preceding))
    return bool(facts), "It states something to remember." if facts else f"Nothing to remember: {reason}."


def compose(message: str, preceding: Sequence[str], time: str) -> list[Fact]:
    """Return the statements of a message that are worth keeping, each as one memory to be."""
    return list(_read(message, tuple(preceding))[0])


@lru_cache(maxsize=64)
def _read(message: str, preceding: tuple[str, ...]) -> tuple[tuple[Fact, ...], str]:
    text = message[:LONGEST_READ]
    reason = next((why for name, why in _REASONS if phrase(name).search(text)), "")
    if reason:
        return (), reason
    if not is_english(text):
        return tuple(_foreign(text)), NOTHING
    said = _judged(_resolved(clauses_of(text), preceding))
    facts = _facts(text, said)
    return tuple(facts), _reason(said)


def _resolved(clauses: Sequence[Clause], preceding: Sequence[str]) -> list[_Said]:
    known, found, before = list[Mention](), list[_Said](), ""
    for turn in spoken(preceding):
        known, before = joined(known, turn), turn
    for clause in clauses:
        text, subject = resolved(f"I {clause.text}" if clause.shares else clause.text, known, before)
        found.append(_Said(clause, text, subject))
        known, before = joined(known, clause.text), clause.text
    return found


def _judged(said: Sequence[_Said]) -> list[_Said]:
    """Give each clause that may state something its chance to be kept; it is sure where it was asked for."""
    stating = [each for each in said if _may_state(each)][:MOST_CLAUSES]
    chances = chances_to_keep([(each.text, each.clause.said) for each in stating])
    judged = {id(each): chance for each, chance in zip(stating, chances, strict=True)}
    asked_for = {id(each) for each in stating if phrase("remember").search(each.clause.said)}
    return [
        replace(each, chance=1.0 if id(each) in asked_for else judged.get(id(each), 0.0)) for each in said
    ]


def _may_state(said: _Said) -> bool:
    """Say whether a clause is no question and no hypothesis, and has a verb."""
    supposed = phrase("hypothetical", "^(?:{})").match(said.clause.text)
    if said.clause.asks or supposed or len(said.text) > LONGEST:
        return False
    read = tokens(said.text)
    return any(is_verb(read, n) for n in range(len(read)))


def _facts(message: str, said: Sequence[_Said]) -> list[Fact]:
    found, at, last = list[Fact](), 0, None
    for each in said:
        at = max(message.find(each.clause.quote, at), 0)
        goes_on = last is not None and found and _goes_on(last, each)
        unclear = each.is_vague and not goes_on
        if unclear or each.chance < (CONTINUING if goes_on and not each.is_vague else SURE):
            last = None
            continue
        is_event = bool(phrase("event").search(each.clause.text))
        fact = Fact(f"{of_the_user(each.text)}.", each.clause.quote, is_event)
        if any(fact.content in known.content for known in found):
            continue
        if goes_on and len(found[-1].content) + len(fact.content) < LONGEST:
            found[-1] = _and(found[-1], each, message[: at + len(fact.quote)])
        else:
            found.append(fact)
        last = each
    return found


def _and(fact: Fact, said: _Said, read: str) -> Fact:
    """Let a memory go on with a further statement; in it a name is enough."""
    text = said.text
    if said.subject and said.subject.name:
        text = resolved(said.clause.text, [replace(said.subject, words=said.subject.name)])[0]
    quote = read[read.rfind(fact.quote) :]
    return replace(fact, content=f"{fact.content} {of_the_user(text)}.", quote=quote)


def _goes_on(last: _Said, said: _Said) -> bool:
    """Say whether a clause is about what the one before it, which is kept, is about."""
    if said.points_back:
        subject = said.subject
        return subject is None or (subject.name or subject.words) in last.text or subject == last.subject
    if phrase("ended").search(last.text) and last.clause.sentence != said.clause.sentence:
        return _restates(last, said)
    first, names = tokens(said.text)[:1], {each.text for each in tokens(last.text)[:4] if each.is_name}
    return bool(first) and first[0].is_name and first[0].text in names


def _restates(last: _Said, said: _Said) -> bool:
    """Say whether a clause tells what is so, after one that told what is not."""
    one, other = (content_stems(tokens(each.text)) for each in (last, said))
    return bool(one & other) and tokens(last.text)[0].low == tokens(said.text)[0].low


def _reason(said: Sequence[_Said]) -> str:
    """Say why nothing of a message is kept, by its last clause."""
    if not said:
        return NOTHING
    if any(each.clause.asks for each in said):
        return "it asks a question"
    text = said[-1].clause.text
    return next((why for name, why in _CLAUSE_REASONS if phrase(name, "^(?:{})").match(text)), NOTHING)


def is_english(text: str) -> bool:
    """Say whether a text is read as English: it has some of its commonest words, or is too short to say."""
    words = [each.low for each in tokens(text) if each.is_word]
    if not text.isascii() and sum(each.isascii() for each in text) < len(text) / 2:
        return False
    common = sum(each in listed("function_words") for each in words)
    foreign = sum(each in listed("first_person_elsewhere") for each in words)
    return common > foreign or (not foreign and (len(words) < 5 or text.isascii()))


def _foreign(text: str) -> list[Fact]:
    """Keep the sentences of another language as they stand, where they speak of who writes."""
    kept = [each for each in sentences(text) if _speaks_of_self(each) and len(each) <= LONGEST]
    return [Fact(each, each, episodic=False) for each in kept]


def _speaks_of_self(sentence: str) -> bool:
    words = {each.low for each in tokens(sentence)}
    has_sign = bool(words & listed("first_person_elsewhere")) or bool(set(sentence) & set("我私僕俺나내"))
    return has_sign and sentence[-1] not in "?？" and len(sentence) > 8
