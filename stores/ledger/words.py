"""BM25 word weights, computed in the process, so that both engines rank alike.

The engine multiplies by the inverse document frequency at search time (IDF modifier), counted only over the
searched namespace: other users' records change neither a ranking nor its cost.
"""

import re
import unicodedata
from functools import lru_cache
from typing import NamedTuple

from qdrant_edge import Bm25, Bm25Config

HAN = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")
KANA = re.compile("[\u3040-\u30ff]")
INDEXED_WORD = re.compile(r"\w+")
STEM_LETTERS = 5
"""Maximum letters of a stem."""
STEM_PREFIX = "zq"  # no word begins so
STOP_WORDS_LEAVE = 0.8
"""Maximum share of an English text's words that remains without its stop words."""
TYPICAL_LENGTH = 24  # tokens of a remembered sentence or a chat turn; BM25's avg_len


class Words(NamedTuple):
    """A sparse vector: token hashes and their weights."""

    indices: list[int]
    values: list[float]


@lru_cache(maxsize=1)
def _bm25() -> Bm25:
    return Bm25(Bm25Config(avg_len=TYPICAL_LENGTH, language="english", ascii_folding=True))


def words_of(text: str) -> Words:
    """Return the weights of the words of a stored text."""
    vector = _bm25().embed_document(_prepared(text))
    return Words(vector.indices, vector.values)


@lru_cache(maxsize=64)  # a message is looked up in several places
def words_asked(text: str) -> Words:
    """Return the weights of the words of a query; each word counts once."""
    vector = _bm25().embed_query(_prepared(text))
    return Words(vector.indices, vector.values)


def stems_of(text: str) -> frozenset[int]:
    """Return the English stems of a text's words, without stop words."""
    return frozenset(_bm25().embed_query(text).indices)


def is_english(text: str) -> bool:
    """Return whether many words of a text are English stop words."""
    return len(_bm25().embed_query(text).indices) <= STOP_WORDS_LEAVE * len(INDEXED_WORD.findall(text))


@lru_cache(maxsize=4096)  # the same names are on many records
def words_in(text: str) -> frozenset[str]:
    """Return the words of a text in lower case, without a possessive 's."""
    return frozenset(INDEXED_WORD.findall(re.sub("['\u2019]s\\b", "", text.casefold())))


def folded(word: str) -> str:
    """Return a word in lower case, without accents."""
    parted = unicodedata.normalize("NFKD", word.casefold())
    return "".join(each for each in parted if not unicodedata.combining(each))


def _prepared(text: str) -> str:
    """Split Chinese text into characters, as Lucene's standard analyser does; add stems for other languages.

    A text counts as English if many of its words are English stop words, which get no weight. The stem of a
    word is its beginning, with a prefix so that it only matches other stems: this serves all languages that
    inflect the ends of words, in place of one stemmer each. Kana are split into pairs of letters.
    """
    spaced = HAN.sub(r" \g<0> ", text)
    if is_english(spaced):
        return spaced
    stems: list[str] = []
    for word in INDEXED_WORD.findall(spaced):
        if KANA.search(word):
            stems += [word[at : at + 2] for at in range(max(len(word) - 1, 1))]
        elif not HAN.search(word):
            stems.append(folded(word)[:STEM_LETTERS])
    return " ".join([spaced, *(f"{STEM_PREFIX}{stem}" for stem in stems)])
