"""Tokens, lemmas, parts of speech and inflection of single words."""

import importlib
import re
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Protocol, cast

from prompts.language.lexicon import COLLOQUIAL, IRREGULAR_PARTS_OF_SPEECH, ITS_IS, ITS_OBJECTS, NUMBER_WORDS


class _Lexicon(Protocol):
    """The part of `lemminflect` (a dictionary in the package, no model) that is used here."""

    def getAllLemmas(self, word: str) -> dict[str, tuple[str, ...]]: ...  # noqa: N802
    def getInflection(self, lemma: str, tag: str) -> tuple[str, ...]: ...  # noqa: N802


_LEXICON = cast(_Lexicon, cast(Any, importlib.import_module("lemminflect")))

_TOKEN = re.compile(
    r"https?://\S{1,500}|[\w.+-]{1,64}@[\w-]{1,64}(?:\.[\w-]{1,64}){1,5}"
    r"|[A-Za-z]{1,20}\d[\w-]{0,20}|\d{1,6}(?:-[a-z]{2,12}){1,3}|\d'\d{1,2}(?!\d)|[$€£]?\d{1,30}(?:[.,:/-]\d{1,30}){0,10}(?:%|(?:st|nd|rd|th|am|pm|kg|km|cm|lbs|lb|k|m|h|ft|mg|s)\b)?"
    r"|(?i:dr|mr|mrs|ms|prof|st|jr|sr)\.(?=\s)"
    r"|[^\W\d_]{1,60}(?:['’-][^\W\d_]{1,60}){0,6}|\S"
)
_CLITIC = re.compile(r"(.+?)(n['’]?t|['’](?:s|re|m|ve|ll|d)|['’])$", re.IGNORECASE)
_NEGATED_WHOLE = {"can't": "can", "won't": "will", "shan't": "shall", "ain't": "is"}


@dataclass(frozen=True)
class Token:
    """One word, sign or clitic; `start` and `end` are its place in the text it came from."""

    text: str
    start: int
    end: int
    tag: str = ""

    @property
    def low(self) -> str:
        return self.text.lower()

    @property
    def lemma(self) -> str:
        return lemma(self.low, self.tag)

    def tagged(self, tag: str) -> "Token":
        return replace(self, tag=tag)


def tokenize(text: str) -> list[Token]:
    """Cut a text into tokens, clitics apart (`doesn't` → `does`, `n't`), colloquial forms spelt out."""
    return _with_its([token for match in _TOKEN.finditer(text) for token in _expanded(match)])


def _with_its(tokens: list[Token]) -> list[Token]:
    """Read `its` as `it's` where no noun phrase follows, and a closing `any more` as `anymore`."""
    found, skip = list[Token](), False
    for number, token in enumerate(tokens):
        following, after = (_low(tokens, number + 1), _low(tokens, number + 2))
        if skip:
            skip = False
        elif token.low == "its" and (
            following in ITS_IS or (following.endswith("ing") and after in ITS_OBJECTS)
        ):
            found += [Token("it", token.start, token.end), Token("'s", token.start, token.end)]
        elif token.low == "any" and following in {"more", "longer"} and not after.isalpha():
            found.append(Token("anymore", token.start, tokens[number + 1].end))
            skip = True
        else:
            found.append(token)
    return found


def _expanded(match: re.Match[str]) -> list[Token]:
    word, start, end = match.group(), match.start(), match.end()
    low = word.lower().replace("’", "'")
    if low in COLLOQUIAL:
        return [Token(part, start, end) for part in COLLOQUIAL[low].split()]
    if low in _NEGATED_WHOLE:
        return [Token(_NEGATED_WHOLE[low], start, end), Token("n't", start, end)]
    clitic = _CLITIC.match(word) if "'" in low and not low[0].isdigit() else None
    if clitic is None or low in {"o'clock", "ma'am"}:
        return [Token(word, start, end)]
    middle = start + len(clitic.group(1))
    return [Token(clitic.group(1), start, middle), Token(clitic.group(2).replace("’", "'"), middle, end)]


@lru_cache(maxsize=50_000)
def parts_of_speech(word: str) -> frozenset[str]:
    """Return what a lower-case word can be: NOUN, VERB, ADJ, ADV; empty when the dictionary lacks it."""
    if word in IRREGULAR_PARTS_OF_SPEECH:
        return frozenset(IRREGULAR_PARTS_OF_SPEECH[word].split())
    if not word.isascii() or not word.isalpha():
        return frozenset()
    found = _LEXICON.getAllLemmas(word)
    return frozenset("VERB" if tag == "AUX" else tag for tag in found if tag != "PROPN")


@lru_cache(maxsize=50_000)
def lemma(word: str, tag: str = "") -> str:
    """Return the base form of a lower-case word, as a verb where its tag says so."""
    if word in NUMBER_WORDS:
        return NUMBER_WORDS[word]
    if "-" in word.strip("-") and word.isascii():
        first, _, last = word.rpartition("-")
        return f"{first}-{lemma(last)}" if last.isalpha() else word
    if not word.isascii() or not word.isalpha():
        return word
    found = _LEXICON.getAllLemmas(word)
    wanted = ("VERB", "AUX") if tag.startswith("V") else ("NOUN", "ADJ", "VERB", "ADV", "AUX")
    for part in wanted:
        if part in found:
            return found[part][0]
    return next(iter(found.values()))[0] if found else _unknown(word)


def _unknown(word: str) -> str:
    return (
        word[:-1] if word.endswith("s") and not word.endswith(("ss", "us", "is")) and len(word) > 4 else word
    )


@lru_cache(maxsize=20_000)
def verb_lemma(word: str) -> str:
    """Return the infinitive of a verb form; the word itself where it is no known verb form."""
    found = _LEXICON.getAllLemmas(word) if word.isascii() and word.isalpha() else {}
    for part in ("VERB", "AUX"):
        if part in found:
            return min(found[part], key=len) if word not in found[part] else word
    if word.endswith("ed") and len(word) > 4:
        return word[:-1] if word[-3] in "vszcgu" else word[:-2]
    return word[:-3] if word.endswith("ing") and len(word) > 5 else word


@lru_cache(maxsize=20_000)
def inflect(infinitive: str, tag: str) -> str:
    """Return an infinitive in the form a Penn tag names: VBZ, VBD, VBN, VBG."""
    found = _LEXICON.getInflection(infinitive, tag) if infinitive.isascii() and infinitive.isalpha() else ()
    return found[0] if found else infinitive + {"VBZ": "s", "VBG": "ing"}.get(tag, "ed")


@lru_cache(maxsize=20_000)
def verb_form(word: str) -> str:
    """Return VB, VBZ, VBD, VBN or VBG, the form a verb's spelling shows; VB for the bare form."""
    base = verb_lemma(word)
    if word == base:
        return "VBD" if inflect(base, "VBD") == word and word != "read" else "VB"
    if word.endswith("ing"):
        return "VBG"
    if word == inflect(base, "VBZ"):
        return "VBZ"
    return "VBN" if word == inflect(base, "VBN") != inflect(base, "VBD") else "VBD"


def _low(tokens: list[Token], number: int) -> str:
    return tokens[number].low if number < len(tokens) else ""
