"""Forms of English words, from the dictionary of `lemminflect`."""

from functools import lru_cache
from importlib import import_module
from typing import Any

_DICTIONARY: Any = import_module("lemminflect")  # it has no types


def words_in(text: str) -> frozenset[str]:
    """Return the words of a list."""
    return frozenset(text.split())


@lru_cache(maxsize=8192)
def lemmas_of(word: str) -> dict[str, tuple[str, ...]]:
    """Return the base forms of a word by part of speech; none for a word that is not English."""
    return _DICTIONARY.getAllLemmas(word) if word.isascii() else {}


@lru_cache(maxsize=8192)
def stem(word: str) -> str:
    """Return what the forms of a word share: `smokes`, `smoking` → `smoke`."""
    word = word.lower().replace("’", "'").removesuffix("'s").rstrip("'")
    found = lemmas_of(word).get("VERB") or lemmas_of(word).get("NOUN") or ()
    return min(found, key=lambda each: (len(each), each), default=word)


THIRD_PERSON = {
    "have": "has", "do": "does", "go": "goes", "am": "is", "will": "will", "need": "needs", "was": "was",
    "don't": "doesn't", "dont": "doesn't", "haven't": "hasn't",
}  # fmt: skip


def third_person(verb: str) -> str:
    """Return the form of a verb after `the user`: `work` → `works`; a word in another form as it is."""
    if verb in THIRD_PERSON:
        return THIRD_PERSON[verb]
    lemmas = lemmas_of(verb).get("VERB", ())
    past = {form for each in lemmas for form in _DICTIONARY.getInflection(each, "VBD")}
    if verb not in lemmas or verb in past:
        return verb
    return str(_DICTIONARY.getInflection(verb, "VBZ")[0])


def base_of(verb: str) -> str:
    """Return the base form of a verb in the third person, and any other word as it is."""
    known = {"is": "are", "was": "were", "has": "have", "isn't": "aren't", "doesn't": "don't"}.get(verb)
    return known or next(
        (each for each in lemmas_of(verb).get("VERB", ()) if third_person(each) == verb), verb
    )
