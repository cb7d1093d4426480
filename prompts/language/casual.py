"""Casual writing made plain: particles blanked, names given their capitals, every place kept as it was."""

import itertools
import re
from collections.abc import Sequence

from prompts.language import lexicon as lx
from prompts.language.tagging import tag
from prompts.language.words import parts_of_speech, tokenize

_PARTICLES = re.compile(
    r"(?<![\w'’-])(?:lol+|lmf?ao+|rofl|tbh|btw|imh?o|ngl|smh|xd|(?:a?ha){2,}h*|hehe+|omf?g|fyi|tho|"
    r"tysm|iirc|afaik|"
    r"ikr|istg|obvs|obviously|lowkey|highkey|legit|by the way|you know what|as they say|idk(?! (?:if|"
    r"what|how|why|whether|where|when))|"
    r"(?:just )?saying|not gonna lie|believe it or not|to be fair|knock on wood|needless to say|"
    r"(?:i |you )?(?:swear to god|kid you not)|(?:sad|happy) to say|thank god|thankfully|luckily|"
    r"i know,? i know|(?:also )?unrelated(?: but)?|up and(?= (?:\w+ed|left|went|quit)\b)|"
    r"don'?t judge(?: me)?|of course|"
    r"(?:as|like) (?:you|u|i) (?:know|said|mentioned|told (?:you|u))(?=\s*[.!,]|\s*$))(?![\w'’-])"
    r"|(?<=,)\s*(?:i guess|i suppose|i think|you know|i know|i mean|and all|and everything|and stuff|"
    r"or whatever|"
    r"please remember (?:that|this)|remember (?:that|this)|though)(?=\s*(?:[.!,?]|$))"
    r"|\b(?:and all|and everything|and stuff|or something|or whatever|i guess|though|you know|"
    r"yk)(?=\s*(?:[.!,?]|$))"
    r"|[\U0001F300-\U0001FAFF\u2600-\u27BF\uFE0F]|(?<!\w)[:;]-?[)(DPp](?!\w)|(?<!\w)<3(?!\w)|"
    r"\*[^*\n]{1,40}\*",
    re.IGNORECASE,
)
_HEDGES = re.compile(
    r"(?<![\w'’-])(?:like (?=(?:[$€£]?\d|a (?:month|week|year)|super\b|really\b|so\b|way\b|next level))|"
    r"like,\s|(?<=,)\s*like (?=\w))",
    re.IGNORECASE,
)
_WORD = re.compile(r"(?<![\w'’@./-])[a-z][a-zé]+(?![\w@/-])")


def plain(message: str, preceding: Sequence[str] = ()) -> str:
    """Blank what only colours the talk and give names their capitals; the length stays the same."""
    blanked = _HEDGES.sub(_blank, _PARTICLES.sub(_blank, message))
    names = lx.SMALL_NAMES | _names_of(preceding)
    return _WORD.sub(lambda found: _capital(found.group(), names), blanked)


def _blank(found: re.Match[str]) -> str:
    return " " * len(found.group())


def _capital(word: str, names: frozenset[str]) -> str:
    stem = word[:-1] if word.endswith("s") and word not in names else word
    return word.capitalize() if stem in names and len(word.capitalize()) == len(word) else word


def _names_of(preceding: Sequence[str]) -> frozenset[str]:
    """Return, in small letters, what earlier turns write as names inside a sentence."""
    found = set[str]()
    for turn in preceding[-12:]:
        tokens = tag(tokenize(turn.partition(":")[2][:2000]))
        for before, token in itertools.pairwise(tokens):
            inside = before.tag != "PUNCT" or before.text == ","
            if inside and token.text[0].isupper() and token.low.isalpha() and _can_be_name(token.low):
                found.add(token.low)
    return frozenset(found)


def _can_be_name(word: str) -> bool:
    return len(word) > 2 and word not in lx.ADVERBS | lx.MODALS and parts_of_speech(word) <= {"NOUN"}
