"""A message cut into clauses, each in the words of the message."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mneme.rules.english.words import LONGEST_READ, Token, is_base, is_past, listed, phrase, tokens, verb_of

_END = re.compile(r"[.!?…]+[\"'”’)]*(?=\s|$)|[。！？]+|\n+|[\U0001F300-\U0001FAFF☀-➿️]+")
_ABBREVIATED = re.compile(
    r"(?:\b(?:dr|mr|mrs|ms|st|prof|vs|jr|sr|approx|e\.g|i\.e)|\b[A-Z])\.$", re.IGNORECASE
)
_CONTRACTED = re.compile(
    r"(?:'(?:m|re|ve|ll|d)|n't|^(?:he|she|it|that|there|who)'s|^(?:im|ive|hes|shes|theyre|weve))$"
)
_ADJOINED = re.compile(
    r"(?:a|an|the|in|at|on|not|now|been|called|named|got|very|my|also|allergic|into|from|with|of|to|\d.*|[a-z]+ing)$"
)
_WHO = re.compile(
    r"\b((?:my|our) [\w'’-]+(?: [\w'’-]+){0,2}),? who(?:(['’]s) | (?=\w+))([^,?!.;]+)", re.IGNORECASE
)
_FORGOTTEN = re.compile(r"^forget (?:that|about the fact that) i (?!said|told|mentioned)", re.IGNORECASE)
_SIGNS = frozenset(",;:–—-()")
_AHEAD = 6


@dataclass(frozen=True)
class Clause:
    """What is stated in one go; `quote` is how the message has it, letter for letter.

    `said` is the same with the words that open or close it; `shares` says that its subject is the `I` of the
    clause before it; `asks` that it is a question.
    """

    text: str
    quote: str
    said: str
    sentence: int
    shares: bool = False
    asks: bool = False


def clauses_of(message: str) -> list[Clause]:
    """Return the clauses of a message in order, without the words that only open or close them."""
    found = list[Clause]()
    for number, sentence in enumerate(sentences(message[:LONGEST_READ])):
        described = _WHO.search(sentence) if sentence.endswith("?") else None
        if described:
            text = described[1] + (" is " if described[2] else " ") + described[3]
            found.append(Clause(text.strip(), described[0].strip(), sentence, number))
        found += [each for each in _clauses(sentence, number) if each.text]
    return found


def sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a text, each with its sign."""
    start = 0
    for end in _END.finditer(text):
        if not _ABBREVIATED.search(text[max(start, end.start() - 8) : end.end()]):
            if sentence := text[start : end.end()].strip():
                yield sentence
            start = end.end()
    if rest := text[start:].strip():
        yield rest


def _clauses(sentence: str, number: int) -> Iterator[Clause]:
    asked = sentence.rstrip("\"'”’)").endswith("?")
    opening = sentence[: len(sentence) - len(_opened(sentence))]
    pieces = list(_pieces(sentence[len(opening) :]))
    for at, (piece, shares) in enumerate(pieces):
        text = trimmed(piece)
        asks = bool(phrase("question", "^(?:{})").match(text)) or (asked and at == len(pieces) - 1)
        first = tokens(text)[:1]
        told = bool(not asks and first and verb_of(first[0].low) and _is_told(first[0].low))
        quote = piece if at else opening + piece
        yield Clause(_FORGOTTEN.sub("I no longer ", text), text, quote, number, shares or told, asks)


def _is_told(verb: str) -> bool:
    """Say whether a verb that opens a clause can only tell of who writes: `sold the car`."""
    return verb in {"quit", "left"} or (is_past(verb) and not verb.endswith(("ing", "s")) and verb != "used")


def trimmed(text: str) -> str:
    """Cut what only opens or closes a clause (`btw`, `please remember that`)."""
    text = _opened(text)
    for _ in range(3):
        text = phrase("tail", r"[\s,;–—-]+(?:{})\W*$").sub("", text)
    return text.strip(' \t\r\n,;:–—-.!?…*()"“”')


def _opened(text: str) -> str:
    free = phrase("lead", r"\W*(?:{})(?![\w'’-])[\s,.:;!–—-]*")
    signed = phrase("lead_with_sign", r"\W*(?:{})(?:\s*[,.:;!–—-]+)+\s*")
    for _ in range(6):
        opening = free.match(text) or signed.match(text)
        if not opening or opening.end() == len(text):
            break
        text = text[opening.end() :]
    return text


def _pieces(sentence: str) -> Iterator[tuple[str, bool]]:
    """Part a sentence where a new clause begins; say of each whether it shares the subject before it."""
    read = tokens(sentence)
    start, shares, verbal = 0, False, False
    left = list[Token]()
    for at, token in enumerate(read):
        cut = _cut(read, at, left) if (shares or verbal) and left and _may_part(token) else None
        if cut is None:
            left.append(token)
            verbal = verbal or is_verb([*left[-2:], *read[at + 1 : at + 2]], min(len(left), 2) - 1)
            continue
        yield sentence[start : token.start], shares
        start, shares, verbal, left = token.end, cut, False, []
    yield sentence[start:], shares


def _may_part(token: Token) -> bool:
    return token.text in _SIGNS or token.low in listed("joiners")


def _cut(read: Sequence[Token], at: int, left: Sequence[Token]) -> bool | None:
    """Say whether what begins here shares its subject; nothing where no clause begins."""
    following = at + 1
    while following < len(read) and (_may_part(read[following]) or read[following].low in {"now", "then"}):
        following += 1
    right = read[following : following + _AHEAD]
    if not right or left[0].low in listed("openers"):
        return None
    if phrase("question", "^(?:{})").match(" ".join(each.text for each in right)):
        return False
    bare = read[at].text not in _SIGNS
    purpose = read[at].low == "so" and len(right) > 1 and right[1].low in {"can", "could", "will", "won't"}
    if purpose or (bare and any(each.low in listed("subordinators") for each in left)):
        return None
    if not bare and _contrasts(left, read[following:]):
        return None
    if _begins(right):
        return False
    return True if _goes_on(left, right) else None


def _contrasts(left: Sequence[Token], rest: Sequence[Token]) -> bool:
    """Say whether what follows a sign tells what came instead: `I no longer smoke, I vape`."""
    end = next((n for n, each in enumerate(rest) if each.text in _SIGNS), len(rest))
    people = listed("male") | listed("female") | listed("people") | listed("plural")
    other = any(each.low in people for each in rest[:3]) or (rest[0].is_name and len(rest[0].text) > 2)
    said = " ".join(each.low for each in (*left, *rest[:end]))
    return not other and bool(phrase("switch").search(said))


def _begins(right: Sequence[Token]) -> bool:
    """Say whether a clause with a subject of its own begins here."""
    low = right[0].low
    if low in listed("subjects") or _CONTRACTED.search(low):
        return True
    if low in listed("prepositions") and any(each.low in {"i", "we"} for each in right[2:4]):
        return True
    people = listed("male") | listed("female")
    named = right[0].is_name or low in listed("possessives") | people | {"the", "a"}
    verb = next((n for n in range(1, len(right)) if is_verb(right, n) or right[n].text in _SIGNS), 0)
    return named and bool(verb) and right[verb].is_word


def _goes_on(left: Sequence[Token], right: Sequence[Token]) -> bool:
    """Say whether a further verb of the user's begins here: `I love hiking, hate camping`."""
    lows = [each.low for each in left]
    verb, further = next((low for low in lows[1:] if verb_of(low)), ""), right[0].low
    if lows[0] != "i" or not verb or not verb_of(further) or further.endswith("ing") or len(right) < 2:
        return False
    helped = any(low in listed("auxiliaries") or low == "to" for low in lows)
    return not helped and is_base(verb) == is_base(further) and right[1].low not in listed("joiners")


def is_verb(read: Sequence[Token], at: int) -> bool:
    """Say whether a token is a finite verb, as far as lists and its neighbours tell."""
    low, before = read[at].low, read[at - 1].low if at else ""
    if low in listed("auxiliaries") or _CONTRACTED.search(low):
        return True
    if low.endswith("'s"):
        return at + 1 < len(read) and bool(_ADJOINED.match(read[at + 1].low))
    modified = before in listed("determiners") | listed("prepositions") or before.endswith("'s")
    return bool(at and not modified and not low.endswith("ing") and (verb_of(low) or is_past(low)))
