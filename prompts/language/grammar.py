"""Sentences and clauses: a shallow parse that never fails and never looks back far."""

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from prompts.language import lexicon as lx
from prompts.language.tagging import NOUNISH, tag
from prompts.language.words import Token, parts_of_speech, tokenize, verb_form

_NP_TAGS = {"DT", "PRP$", "POS", "JJ", "NN", "NNP", "CD", "PRP"}


_PHRASE = {"DT", "PRP$", "POS", "JJ", "NN", "NNP", "CD"}


LONGEST_SENTENCE = 400


_SENTENCE_END = re.compile(r"[.!?…]+[\"'”’)]*(?=\s|$)|\n+|;\s")


_ABBREVIATION = re.compile(
    r"\b(?:Dr|Mr|Mrs|Ms|Prof|St|Jr|Sr|vs|etc|e\.g|i\.e|a\.m|p\.m|approx|No)\.$", re.IGNORECASE
)


@dataclass(frozen=True)
class Clause:
    """One clause of a sentence. `subject` is empty where it is shared with the clause before it."""

    tokens: tuple[Token, ...]
    lead: tuple[Token, ...]
    subject: tuple[Token, ...]
    group: tuple[Token, ...]
    rest: tuple[Token, ...]

    @property
    def verbs(self) -> list[Token]:
        return [token for token in self.group if token.tag in {"VF", "V"}]

    @property
    def start(self) -> int:
        return min(token.start for token in self.tokens)

    @property
    def end(self) -> int:
        return max(token.end for token in self.tokens)


def sentences(text: str) -> list[tuple[int, int]]:
    """Return where the sentences of a text start and end, ending signs included."""
    spans, start = list[tuple[int, int]](), 0
    for match in _SENTENCE_END.finditer(text):
        if _ABBREVIATION.search(text, max(0, match.end() - 8), match.end()) and text[match.end() :].strip():
            continue
        spans.append((start, match.end()))
        start = match.end()
    spans.append((start, len(text)))
    return [trimmed for span in spans if (trimmed := _trim(text, *span))[0] < trimmed[1]]


def _trim(text: str, start: int, end: int) -> tuple[int, int]:
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    return start, end


def clauses(tokens: list[Token]) -> list[Clause]:
    """Cut one tagged sentence where a clause with a verb of its own starts."""
    cuts, has_verb = [0], False
    for number, token in enumerate(tokens):
        if has_verb and _cuts_here(tokens, number) and number > cuts[-1]:
            cuts.append(number)
            has_verb = False
        has_verb = has_verb or token.tag == "VF"
    pieces = [tokens[a:b] for a, b in zip(cuts, [*cuts[1:], len(tokens)], strict=True)]
    return [clause for piece in pieces if (clause := clause_of(piece)) is not None]


def _cuts_here(tokens: list[Token], number: int) -> bool:
    token = tokens[number]
    coordinated = token.tag == "CC" and token.low not in {"nor"}
    if not coordinated and token.text not in {",", ";", "—", "–", "-", ":", "...", "…", "."}:
        return False
    if not coordinated and number + 1 < len(tokens) and tokens[number + 1].tag == "CC":
        return False
    if not coordinated and _is_relative(tokens, number + 1):
        return False
    return _clause_follows(tokens[number + 1 : number + 15], coordinated, token.low)


def _is_relative(tokens: list[Token], number: int) -> bool:
    """Say whether `, who is …` describes the noun before it rather than asks."""
    if number + 1 >= len(tokens) or tokens[number].low not in {"who", "which", "whose"}:
        return False
    return tokens[number - 2].tag in {"NN", "NNP"} and tokens[number + 1].low not in lx.MODALS | lx.DO


def _clause_follows(ahead: list[Token], coordinated: bool, by: str) -> bool:
    words = 0
    for number, token in enumerate(ahead):
        if token.low in {"called", "named"} and words:
            return False
        if token.tag == "VF":
            return (
                _lists_verbs(ahead, number)
                or words > 0
                or coordinated
                or (number > 0 and ahead[0].tag in {"UH", "RB", "CC"})
                or _inverted(ahead)
            )
        if token.tag in {"PUNCT", "V", "TO", "COMP", "SUB"} and not _parenthetical(ahead, number):
            return False
        if token.tag == "WH":
            return words == 0 and len(ahead) > number + 1
        if token.tag == "IN" and words == 0 and by != "so":
            return _fronted(ahead[number:])
        words += token.tag in _NP_TAGS
    return False


def _lists_verbs(ahead: list[Token], number: int) -> bool:
    """Say whether a verb after a comma is one of several (`born in A, grew up in B and live in C`)."""
    if (
        verb_form(ahead[number].low) not in {"VBD", "VBZ"}
        or parts_of_speech(ahead[number].low) != {"VERB"}
        or number > 1
    ):
        return False
    later = ahead[number + 1 :]
    return any(one.tag == "CC" and two.tag in {"VF", "RB"} for one, two in itertools.pairwise(later))


def _parenthetical(ahead: list[Token], number: int) -> bool:
    return ahead[number].text == "," and number <= 1


def _inverted(ahead: list[Token]) -> bool:
    if len(ahead) < 2:
        return False
    if ahead[1].tag in {"NN", "NNP"} and any(token.text == "?" for token in ahead):
        return True
    return ahead[1].tag in {"PRP", "DT", "PRP$", "NEG"} or ahead[1].low in {"that", "this", "there"}


def _fronted(ahead: list[Token]) -> bool:
    """Say whether a prepositional phrase is followed by a pronoun subject and its verb, or asks."""
    if len(ahead) > 1 and ahead[1].low in {"what", "which", "whose"}:
        return True
    for token, following in itertools.pairwise(ahead):
        if token.tag == "PRP" and following.tag in {"VF", "RB"}:
            return True
        if token.tag in {"PUNCT", "VF", "V", "CC"}:
            return False
    return False


def clause_of(piece: list[Token]) -> Clause | None:
    """Read tagged tokens as one clause; nothing where only signs are left."""
    while piece and piece[-1].tag == "PUNCT":
        piece = piece[:-1]
    verb = _first_main_verb(piece)
    if verb is None:
        return Clause(tuple(piece), (), (), (), tuple(piece)) if piece else None
    start = _subject_start(piece[:verb])
    group_start = verb
    while group_start > start and piece[group_start - 1].tag in {"RB", "NEG"}:
        group_start -= 1
    end = _group_end(piece, verb)
    return Clause(
        tuple(piece),
        tuple(piece[:start]),
        tuple(_strip_punctuation(piece[start:group_start])),
        tuple(piece[group_start:end]),
        tuple(piece[end:]),
    )


def _first_main_verb(piece: list[Token]) -> int | None:
    """Return the finite verb that no relative word or subordinator before it claims."""
    claimed = False
    found = None
    for number, token in enumerate(piece):
        if token.tag in {"SUB", "COMP"} or (token.tag == "WH" and number > 0):
            claimed = True
        elif token.tag == "VF" and claimed:
            claimed, found = False, number if found is None else found
        elif token.tag == "VF":
            return number
    return found


def _strip_punctuation(tokens: list[Token]) -> list[Token]:
    while tokens and tokens[-1].tag == "PUNCT":
        tokens = tokens[:-1]
    return tokens


def _subject_start(before: list[Token]) -> int:
    """Return where the subject starts among the tokens before the finite verb."""
    commas = [number for number, token in enumerate(before) if token.text in {",", "—", "–", ":", "-"}]
    if commas and not _is_apposition(before, commas):
        last = commas[-1] + 1
        return last + _subject_start(before[last:]) if last < len(before) else _skip_lead(before)
    return _skip_lead(before)


def _is_apposition(before: list[Token], commas: list[int]) -> bool:
    head = before[: commas[0]]
    if not head or head[0].tag in {"IN", "SUB", "RB", "UH", "CC", "WH", "V", "PUNCT"}:
        return False
    closes = commas[-1] >= len(before) - 2
    return closes and len(commas) >= 2 and any(token.tag in {"NN", "NNP"} for token in head)


def _skip_lead(before: list[Token]) -> int:
    number = 0
    while number < len(before) and before[number].tag in {"RB", "UH", "CC", "PUNCT", "NEG", "COMP"}:
        number += 1
    if number >= len(before):
        return len(before)
    first = before[number]
    if first.tag in {"IN", "SUB"} or _opens_time(before[number:]):
        return _after_adjunct(before, number)
    return number


def _opens_time(tokens: list[Token]) -> bool:
    if len(tokens) < 3 or tokens[0].low not in {
        "last",
        "next",
        "this",
        "every",
        "each",
        "one",
        "these",
        "some",
        "the",
    }:
        return False
    time = next((n for n, token in enumerate(tokens[:4]) if token.low.rstrip("s") in lx.TIME_NOUNS), None)
    return (
        time is not None and time + 1 < len(tokens) and tokens[time + 1].tag in {"PRP", "PRP$", "DT", "NNP"}
    )


def _after_adjunct(before: list[Token], number: int) -> int:
    """Return the first subject word after a fronted adjunct without comma."""
    noun = False
    for index in range(number + 1, len(before)):
        tag_here = before[index].tag
        if tag_here == "PRP" or (noun and tag_here in {"PRP$", "DT"}):
            return index
        if noun and tag_here == "NNP" and before[index - 1].tag != "NNP":
            return index
        noun = noun or tag_here in NOUNISH
    return number


def _group_end(piece: list[Token], verb: int) -> int:
    """Return where the verb group ends: auxiliaries, negation, adverbs, main verb."""
    end = verb + 1
    for number in range(verb + 1, len(piece)):
        token = piece[number]
        if token.tag in {"V", "NEG"} or (token.tag == "VF" and piece[number - 1].tag in {"VF", "NEG", "RB"}):
            end = number + 1
            if token.tag == "V" and not _is_auxiliary(token):
                break
        elif token.tag != "RB" or not _is_auxiliary(piece[verb]):
            break
    return end


def _is_auxiliary(token: Token) -> bool:
    return token.low in lx.BE | lx.HAVE | lx.DO | lx.MODALS | {"'s", "'d"}


def parse(text: str) -> list[Clause]:
    """Return the clauses of a text, sentence by sentence, with places in that text."""
    return [clause for span in sentences(text) for clause in parse_sentence(text, *span)]


def parse_sentence(text: str, start: int, end: int) -> list[Clause]:
    """Return the clauses of the sentence that stands there."""
    tokens = tokenize(text[start:end])[:LONGEST_SENTENCE]
    return clauses(
        tag([replace(token, start=token.start + start, end=token.end + start) for token in tokens])
    )


def phrase_before(tokens: Sequence[Token], number: int) -> list[Token]:
    """Return the noun phrase that ends before a token (a comma between them aside)."""
    start = number - 1
    if start >= 0 and tokens[start].text == ",":
        start -= 1
    end = start + 1
    while start >= 0 and (tokens[start].tag in _PHRASE or tokens[start].low in {"named", "called"}):
        start -= 1
    return list(tokens[start + 1 : end])
