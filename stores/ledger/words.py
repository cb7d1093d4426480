"""BM25 word weights, computed in the process, so that both engines rank alike.

The engine multiplies by the inverse document frequency at search time (IDF modifier), counted over
the searched namespace only: what other users store changes neither a ranking nor its cost.
"""

import re
from functools import lru_cache
from typing import NamedTuple

from qdrant_edge import Bm25, Bm25Config

HAN = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")
TYPICAL_LENGTH = 24  # tokens of a remembered sentence or a chat turn; BM25's avg_len


class Words(NamedTuple):
    """A sparse vector: token hashes and their weights."""

    indices: list[int]
    values: list[float]


@lru_cache(maxsize=1)
def _bm25() -> Bm25:
    return Bm25(Bm25Config(avg_len=TYPICAL_LENGTH, language="english", ascii_folding=True))


def words_of(text: str) -> Words:
    """Weigh the words of a stored text."""
    vector = _bm25().embed_document(_spaced(text))
    return Words(vector.indices, vector.values)


def words_asked(text: str) -> Words:
    """Weigh the words of a query, each once."""
    vector = _bm25().embed_query(_spaced(text))
    return Words(vector.indices, vector.values)


def _spaced(text: str) -> str:
    """Let each Chinese character be a word, as Lucene's standard analyser does: none stand between them."""
    return HAN.sub(r" \g<0> ", text)
