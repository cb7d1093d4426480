"""An embedder for tests: quick, deterministic, without a model, and still about meaning's shadow, words."""

import math
import random
from collections.abc import Sequence
from functools import lru_cache

from mneme.stores.ledger.words import words_of


class WordEmbedder:
    """Give every word stem a direction of its own; texts that share words point the same way."""

    def __init__(self, name: str = "test:words", dimension: int = 64) -> None:
        self.name, self.dimension = name, dimension

    async def embed_documents(self, texts: Sequence[str]) -> list[list[float]]:
        return [self._embed(text) for text in texts]

    async def embed_query(self, text: str) -> list[float]:
        return self._embed(text)

    def _embed(self, text: str) -> list[float]:
        words = words_of(text)
        total = list(_direction(0, self.dimension))  # texts without words share one corner
        for index, weight in zip(words.indices, words.values, strict=True):
            direction = _direction(index, self.dimension)
            total = [sum_ + 4 * weight * part for sum_, part in zip(total, direction, strict=True)]
        length = math.hypot(*total)
        return [part / length for part in total]


@lru_cache(maxsize=100_000)
def _direction(seed: int, dimension: int) -> tuple[float, ...]:
    source = random.Random(seed)
    return tuple(source.gauss() / math.sqrt(dimension) for _ in range(dimension))
