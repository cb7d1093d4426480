"""The word lists of this folder, and single words: tokens, stems, the forms of verbs."""

import re
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from importlib.resources import files
from typing import Protocol, cast

import yaml

LONGEST_READ = 8_000
"""Characters of a message that are read; what follows is a document, and nothing to remember."""

_TOKEN = re.compile(r"\d+(?:[.,:/]\d+)*[^\W_]*|[^\W\d_][^\W_]*(?:['’&-][^\W_]+)*['’]?|[^\w\s]|_")


class _Dictionary(Protocol):
    """The part of `lemminflect` that is used; the package has no types."""

    def getAllLemmas(self, word: str) -> dict[str, tuple[str, ...]]: ...  # noqa: N802
    def getInflection(self, lemma: str, tag: str) -> tuple[str, ...]: ...  # noqa: N802


_DICTIONARY = cast(_Dictionary, import_module("lemminflect"))


@dataclass(frozen=True)
class Token:
    """A word, a number or a sign, and where it stands in its text."""

    text: str
    start: int
    end: int

    @property
    def low(self) -> str:
        return self.text.lower().replace("’", "'")

    @property
    def is_word(self) -> bool:
        return self.text[0].isalnum()

    @property
    def is_name(self) -> bool:
        return self.text[0].isupper() and self.low not in listed("function_words")


def bag(text: str) -> frozenset[str]:
    """Return the words of a text as a set."""
    return frozenset(text.split())


def pairs(text: str) -> dict[str, str]:
    """Return what `have>has do>does` maps."""
    return dict(each.split(">") for each in text.split())


@lru_cache(maxsize=1)
def _lists() -> dict[str, frozenset[str]]:
    text = files(__package__).joinpath("words.yaml").read_text(encoding="utf-8")
    return {name: frozenset(each.split()) for name, each in yaml.safe_load(text).items()}


@lru_cache(maxsize=1)
def _phrases() -> dict[str, str]:
    text = files(__package__).joinpath("phrases.yaml").read_text(encoding="utf-8")
    read: dict[str, str] = yaml.safe_load(text)
    return {name: each.replace("| ", "|") for name, each in read.items()}


def listed(name: str) -> frozenset[str]:
    """Return the words of a list of `words.yaml`."""
    return _lists()[name]


@lru_cache(maxsize=64)
def phrase(name: str, frame: str = "(?:{})") -> re.Pattern[str]:
    """Return an expression of `phrases.yaml`, set into a frame."""
    return re.compile(frame.format(_phrases()[name]), re.IGNORECASE)


def tokens(text: str) -> list[Token]:
    """Cut a text into words, numbers and signs."""
    return [Token(found[0], found.start(), found.end()) for found in _TOKEN.finditer(text)]


@lru_cache(maxsize=8192)
def lemmas_of(word: str) -> dict[str, tuple[str, ...]]:
    return _DICTIONARY.getAllLemmas(word) if word.isascii() else {}


@lru_cache(maxsize=8192)
def stem(word: str) -> str:
    """Return what the forms of a word share: `smokes`, `smoking` → `smoke`."""
    word = word.lower().replace("’", "'").removesuffix("'s").rstrip("'")
    found = lemmas_of(word).get("VERB") or lemmas_of(word).get("NOUN") or ()
    shortest = min(found, key=lambda each: (len(each), each), default=word)
    return _same().get(word) or _same().get(shortest, shortest)


@lru_cache(maxsize=1)
def _same() -> dict[str, str]:
    return dict(each.split("=", 1) for each in listed("same"))


@lru_cache(maxsize=32)
def stems(name: str) -> frozenset[str]:
    """Return the stems of a list of `words.yaml`."""
    return frozenset(map(stem, listed(name)))


def verb_of(word: str) -> str:
    """Return the listed verb that a word is a form of; nothing where it is of none."""
    found = lemmas_of(word).get("VERB", ())
    return next((each for each in (word, *found) if each in listed("verbs")), "")


def is_past(word: str) -> bool:
    """Say whether a word can only be a verb, in another form than the base: `fought`, `introduced`."""
    lemmas = lemmas_of(word)
    return "NOUN" not in lemmas and bool(lemmas.get("VERB")) and word not in lemmas["VERB"]


def is_only_verb(word: str) -> bool:
    lemmas = lemmas_of(word)
    return bool(lemmas.get("VERB")) and not {"NOUN", "ADJ"} & lemmas.keys()


def is_base(word: str) -> bool:
    """Say whether a verb stands in the form it has after `I` in the present, and in no past form."""
    lemmas = lemmas_of(word).get("VERB", ())
    pasts = {form for each in lemmas for form in (_DICTIONARY.getInflection(each, "VBD") or ())}
    return word in lemmas and word not in pasts


def third_person(verb: str) -> str:
    """Return the form of a base verb after `the user`: `work` → `works`."""
    return {"have": "has", "do": "does", "go": "goes"}.get(verb) or (
        (_DICTIONARY.getInflection(verb, "VBZ") or (verb,))[0]
    )


@lru_cache(maxsize=2048)
def base_of(verb: str) -> str:
    """Return the base form of a verb in the third person, and any other word as it is."""
    found = [each for each in lemmas_of(verb).get("VERB", ()) if third_person(each) == verb]
    return found[0] if found else verb
