"""Whom a statement is said of: `I work` → `The user works` → `You work`."""

import re
from collections.abc import Sequence

from mneme.rules.english import words
from mneme.rules.english.words import Token, base_of, is_base, listed, third_person, tokens, verb_of

_TURNED = {
    "i": "the user", "me": "the user", "my": "the user's", "mine": "the user's", "myself": "themself",
    "im": "the user is", "i'm": "the user is", "ive": "the user has", "i've": "the user has",
    "i'll": "the user will", "am": "is",
}  # fmt: skip
_VERBS = words.pairs("have>has haven't>hasn't do>does don't>doesn't dont>doesn't")
_TOLD = words.pairs(
    "is>are was>were has>have does>do isn't>aren't wasn't>weren't hasn't>haven't doesn't>don't"
)
_AFTER_OTHERS = words.bag("and or nor do did can will could")
"""Words after which `I` is no subject of the verb that follows, or of its base form."""
_USER = re.compile(r"\b(the user(?:['’]s)?|themself)(?![\w'’])", re.IGNORECASE)
_NEXT = re.compile(r"((?:\s+(?:\w+ly|{}))*)\s+([\w'’]+)".format("|".join(sorted(listed("adverbs")))))


def of_the_user(text: str) -> str:
    """Say of the user what the user says of themself."""
    read, out, done = tokens(text), "", 0
    for at, token in enumerate(read):
        out += text[done : token.start] + _turned(read, at)
        done = token.end
    return capitalised(out + text[done:])


def capitalised(text: str) -> str:
    return text[:1].upper() + text[1:]


def _turned(read: Sequence[Token], at: int) -> str:
    low = read[at].low
    if low == "i'd":
        following = next((each.low for each in read[at + 1 :] if not _is_adverb(each.low)), "")
        return "the user would" if following in listed("rather") or is_base(following) else "the user had"
    if low in _TURNED:
        return _TURNED[low]
    if _said_by_user(read, at):
        fixed = low in listed("auxiliaries") | {"wanna", "gotta", "gonna"} or not is_base(low)
        return _VERBS.get(low) or (read[at].text if fixed else third_person(low))
    return read[at].text


def _said_by_user(read: Sequence[Token], at: int) -> bool:
    """Say whether a token is the verb that `I` is the subject of, or a further one after `and`."""
    before = at - 1
    while before > 0 and _is_adverb(read[before].low):
        before -= 1
    if at == 0 or _is_adverb(read[at].low):
        return False
    if read[before].low == "i":
        return before == 0 or read[before - 1].low not in _AFTER_OTHERS
    return read[before].low in {"and", "but"} and read[0].low == "i" and _runs_on(read, before, at)


def _runs_on(read: Sequence[Token], joiner: int, at: int) -> bool:
    """Say whether `I live there and work from home` goes on with a verb, not with a noun."""
    first = next((each.low for each in read[1:joiner] if not _is_adverb(each.low)), "")
    helped = any(each.low in listed("auxiliaries") or each.low == "to" for each in read[1:joiner])
    further = at + 1 < len(read) and read[at + 1].low in listed("determiners") | listed("prepositions")
    present = is_base(first) and not helped and bool(verb_of(read[at].low))
    return present and is_base(read[at].low) and further


def _is_adverb(low: str) -> bool:
    return low in listed("adverbs") or (low.endswith("ly") and low not in {"fly", "rely", "apply", "reply"})


def to_the_user(text: str) -> str:
    """Tell the user what is remembered of them: `The user's sister lives` → `Your sister lives`."""
    parts = _USER.split(text)
    out = parts[0]
    for named, rest in zip(parts[1::2], parts[2::2], strict=True):
        owns, own = named.lower().endswith("s"), named.lower() == "themself"
        said = "yourself" if own else "your" if owns else "you"
        told = rest if owns or own else _NEXT.sub(_second_person, rest, count=1)
        out += (capitalised(said) if named[0].isupper() else said) + told
    return out


def _second_person(found: re.Match[str]) -> str:
    verb = found[2]
    return found[0][: -len(verb)] + (_TOLD.get(verb) or base_of(verb)) if found.start() == 0 else found[0]
