"""Answers from memories alone, for a chat without a language model."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from prompts.language import lexicon as lx
from prompts.language.claims import claims_of
from prompts.language.comparison import words_of
from prompts.language.composition import compose
from prompts.language.entities import canonical
from prompts.language.grammar import parse, sentences
from prompts.language.statements import LONGEST_READ
from prompts.language.words import Token, inflect, tokenize, verb_form, verb_lemma

MOST_TOLD = 5
_SECOND_PERSON = lx.bag("i me my mine myself you your we our us")
_ASKING = lx.bag(
    "know tell remember say remind ask anything something everything what who where when why how which "
    "can could do please list show mean think about user"
)
_ABOUT_SELF = re.compile(r"\b(?:about me|who am i|know me|remember me|my memories)\b", re.IGNORECASE)
_UNKNOWN = "I don't know: you have not told me that, as far as I can find."
_TIMES = lx.TIME_NOUNS | frozenset({"birthday"})


@dataclass(frozen=True)
class _Topic:
    """What questions ask for in many words: the attributes and words of the memories that answer them."""

    asks: re.Pattern[str]
    attributes: frozenset[str] = frozenset()
    words: frozenset[str] = frozenset()

    @property
    def known_by(self) -> frozenset[str]:
        return frozenset(canonical(word) for word in self.words)


def _topic(asks: str, attributes: str = "", words: str = "") -> _Topic:
    return _Topic(re.compile(rf"\b(?:{asks})\b", re.IGNORECASE), lx.bag(attributes), lx.bag(words))


_TOPICS = (
    _topic(r"where (?:do|does|am|is|are) .{1,40}\b(?:live|living|stay|staying|based)|address|"
           r"what (?:city|town)",
           "residence address dwelling place"),
    _topic(r"job|for a living|occupation|profession|employer|where (?:do|does) .{1,40}\bwork|"
           r"what (?:do|does) (?:i|(?:my )?\w+) do|who (?:do|does) .{1,30} work for", "occupation employer"),
    _topic(r"how old|what age|age", "age", "born birthday"),
    _topic(r"born|birthday|birthdate", "birthday", "born birthday"),
    _topic(r"pets?|animals?", "", " ".join(sorted(lx.ANIMALS))),
    _topic(r"allerg\w+|intoleran\w+", "state:allergic", "allergic allergy intolerant intolerance"),
    _topic(r"(?:can|do|should) (?:i|we) (?:not )?eat|diet", "diet",
           "allergic allergy intolerant vegetarian vegan"),
    _topic(r"married|single|husband|wife|spouse|partner|girlfriend|boyfriend", "marital",
           "husband wife partner girlfriend boyfriend married spouse fiance fiancee"),
    _topic(r"kids?|children", "", "son daughter child baby kid twin"),
    _topic(r"siblings?", "", "brother sister sibling twin"),
    _topic(r"what (?:car|vehicle)|my car", "", "drive car"),
    _topic(r"hobb(?:y|ies)|free time|for fun|what do i (?:like|love|enjoy)", "like", "hobby enjoy play love"),
    _topic(r"speak|languages?", "", "speak fluent language"),
    _topic(r"medications?|meds|medicine|pills?", "", "medication prescribe tablet pill"),
)  # fmt: skip


def answer(message: str, memories: Sequence[str]) -> str:
    """Tell what the memories say about a question; acknowledge a statement; else say what cannot be done."""
    text = message[:LONGEST_READ].strip()
    if not text:
        return "You sent an empty message."
    if _asks(text):
        return _told(text, memories)
    if compose(text, (), ""):
        return "Noted."
    return "I can only answer from what you told me before; no language model is connected."


def _asks(text: str) -> bool:
    spans = sentences(text)
    return any(_is_question(text[start:end]) for start, end in spans[:50])


def _is_question(sentence: str) -> bool:
    if sentence.rstrip("\"')”’ ").endswith("?"):
        return True
    words = tokenize(sentence[:200])
    first = [token.low for token in words[:2]]
    inverted = len(first) > 1 and first[0] in lx.BE | lx.DO | lx.MODALS and first[1] in lx.SUBJECT_PRONOUNS
    return bool(first) and (first[0] in lx.WH or inverted or first == ["tell", "me"])


def _told(question: str, memories: Sequence[str]) -> str:
    if _ABOUT_SELF.search(question) and memories:
        return _listed(memories[:MOST_TOLD])
    topic = next((topic for topic in _TOPICS if topic.asks.search(question)), None)
    whom = _asked_about(question) - (topic.known_by if topic else frozenset())
    known = [memory for memory in memories if topic is not None and _holds(memory, topic, whom)]
    if known:
        return _listed(known[:MOST_TOLD])
    return _UNKNOWN if topic is not None and not whom else _by_words(question, memories)


def _by_words(question: str, memories: Sequence[str]) -> str:
    """Tell the memories that share most words with the question, where they share enough."""
    wanted = _wanted(question)
    ranked = sorted(memories, key=lambda memory: -len(wanted & words_of(memory)))
    best = len(wanted & words_of(ranked[0])) if ranked else 0
    fitting = [memory for memory in ranked if len(wanted & words_of(memory)) == best]
    if not best or (best < min(2, len(wanted)) and not _names_only(wanted, question)):
        return _UNKNOWN
    return _listed(fitting[:MOST_TOLD])


def _asked_about(question: str) -> frozenset[str]:
    """Return the kin, animals and names that a question is about; nothing where it is the user."""
    tokens = [token for clause in parse(question) for token in clause.tokens]
    living = {canonical(token.lemma) for token in tokens if token.lemma in lx.PEOPLE | lx.ANIMALS}
    return frozenset(living | {token.low for token in tokens if token.tag == "NNP"})


def _holds(memory: str, topic: _Topic, whom: frozenset[str]) -> bool:
    """Say whether a memory answers: of whom it is asked, or of the user and what is the user's."""
    said, claims = words_of(memory), claims_of(memory)
    told = any(
        claim.attribute in topic.attributes and claim.positive and (whom or claim.subject.is_user)
        for claim in claims
    )
    mine = any(claim.subject.is_user or claim.subject.owner == "user" for claim in claims)
    worded = bool(topic.known_by & said)
    return (whom <= said and (told or worded)) if whom else (told or (worded and mine))


def _wanted(question: str) -> frozenset[str]:
    """Return the words of a question that a memory must hold to answer it."""
    return words_of(question) - _ASKING - _SECOND_PERSON


def _names_only(wanted: frozenset[str], question: str) -> bool:
    return any(
        token.tag == "NNP" and token.low in wanted for clause in parse(question) for token in clause.tokens
    )


def _listed(memories: Sequence[str]) -> str:
    told = [_to_user(memory) for memory in memories]
    return told[0] if len(told) == 1 else "\n".join(f"- {line}" for line in told)


def _to_user(memory: str) -> str:
    """Say a memory to the person it is about: `The user's sister lives` → `Your sister lives`."""
    out, position = "", 0
    tokens = [token for clause in parse(memory) for token in clause.tokens]
    address = _address(tokens)
    for start, end, words in address:
        out += memory[position:start] + (words[:1].upper() + words[1:] if start == 0 else words)
        position = end
    return out + memory[position:]


def _address(tokens: Sequence[Token]) -> list[tuple[int, int, str]]:
    """Return which stretches of a memory change when it is told to the user."""
    edits, agree = list[tuple[int, int, str]](), False
    for number, token in enumerate(tokens):
        if token.low == "user":
            start = tokens[number - 1].start if number and tokens[number - 1].low == "the" else token.start
            owns = number + 1 < len(tokens) and tokens[number + 1].tag == "POS"
            edits.append((start, tokens[number + 1].end if owns else token.end, "your" if owns else "you"))
            agree = not owns
        elif agree and token.tag == "VF":
            edits.append((token.start, token.end, _second_person(token)))
            agree = False
        elif token.tag in {"NN", "NNP"}:
            agree = False
    return edits


def _second_person(verb: Token) -> str:
    fixed = {"is": "are", "was": "were", "has": "have", "does": "do", "'s": " are"}
    if verb.low in fixed:
        return fixed[verb.low]
    return (
        verb_lemma(verb.low)
        if verb_form(verb.low) == "VBZ" and verb.low == inflect(verb_lemma(verb.low), "VBZ")
        else verb.text
    )
