"""Elliptical corrections: `Sorry, I meant Thursday`, `Monday, not Sunday`, read upon what was said before."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from prompts.language import lexicon as lx
from prompts.language.statements import without_openers
from prompts.language.tagging import tag
from prompts.language.words import Token, tokenize

LONGEST_FRAGMENT = 200
"""Characters that an elliptical correction may have."""

_CORRECTING = re.compile(
    r"\b(?:no|nope|nah|not|sorry|sry|meant|mean|typo|correction|actually|wait|oops|rather|wrong)\b|^\s*\*",
    re.IGNORECASE,
)
_SIGNS = ".,!?:;* \n-—"
_LIGHT = frozenset(
    ["it", "'s", "is", "was", "the", "a", "an", "on", "at", "in", "to", "for", "by", "but", "be", "its"]
)


@dataclass(frozen=True)
class Corrected:
    """An earlier turn as the user wants it to read.

    `value` is the new part, `quote` the words that ask for it, `exact` that they name the old part.
    """

    said: str
    value: str
    quote: str
    turn: int
    exact: bool


def corrected(message: str, preceding: Sequence[str]) -> Corrected | None:
    """Return the user's latest turn that a fragment corrects, with the new value in the old one's place."""
    if len(message) > LONGEST_FRAGMENT or not _CORRECTING.search(message):
        return None
    start, _ = without_openers(message, 0, len(message))
    new, old = _values(message, start)
    if not new:
        return None
    value = message[new[0].start : new[-1].end]
    for turn in range(len(preceding) - 1, max(-1, len(preceding) - 5), -1):
        speaker, _, said = preceding[turn].partition(":")
        place = _place(said, new, old) if speaker.strip().lower() == "user" else None
        if place is not None:
            return Corrected(
                said[: place[0]].lstrip() + value + said[place[1] :],
                value,
                message.strip(_SIGNS),
                turn,
                bool(old),
            )
    return None


def _said(said: str, old: Sequence[Token]) -> bool:
    return " ".join(token.text for token in old).lower() in said.lower()


def _values(message: str, start: int) -> tuple[list[Token], list[Token]]:
    """Return the new value's tokens and the old one's (`X, not Y`; `not Y but X`; `not Y, X`)."""
    tokens = [t for t in tag(tokenize(message)) if t.start >= start and t.text not in {"*", ".", "!"}]
    denied = next((number for number, token in enumerate(tokens) if token.tag == "NEG"), None)
    if denied is None:
        return _core(tokens), []
    if _core(tokens[:denied]):
        return _core(tokens[:denied]), _core(tokens[denied + 1 :])
    rest = tokens[denied + 1 :]
    cut = next(
        (n for n, token in enumerate(rest) if token.text in {",", "-", "—"} or token.low == "but"), None
    )
    return ([], []) if cut is None else (_core(rest[cut + 1 :]), _core(rest[:cut]))


def _core(tokens: Sequence[Token]) -> list[Token]:
    core = list(tokens)
    while core and (core[0].tag in {"PUNCT", "UH", "CC"} or core[0].low in _LIGHT):
        core.pop(0)
    while core and core[-1].tag in {"PUNCT", "UH"}:
        core.pop()
    return core if len(core) <= 6 and not any(token.tag in {"VF", "PRP"} for token in core) else []


def _place(said: str, new: Sequence[Token], old: Sequence[Token]) -> tuple[int, int] | None:
    """Return where the old value stands: the words denied, or the last of the new one's type."""
    words = " ".join(token.text for token in old)
    at = said.lower().rfind(words.lower()) if words else -1
    if at >= 0:
        return at, at + len(words)
    tokens = tag(tokenize(said))
    for token in reversed(tokens):
        if _alike(token, new[-1] if new[-1].tag != "CD" else new[0]):
            return token.start, token.end
    return None


def _alike(one: Token, other: Token) -> bool:
    """Say whether two words are of one type: weekdays, months, numbers, colours, names, spellings."""
    if one.low == other.low:
        return False
    for members in (lx.WEEKDAYS, lx.MONTHS, *lx.VALUE_CLASSES.values()):
        if one.low in members or other.low in members:
            return one.low in members and other.low in members
    if one.tag == "CD" or other.tag == "CD":
        return one.tag == other.tag
    if SequenceMatcher(None, one.low, other.low).ratio() > 0.7:
        return True
    return one.tag == other.tag == "NNP"
