"""Sentences to measure with, and their vectors.

Up to EMBEDDED texts are embedded by the embedder. The vectors of the others are those of the first ones, each
moved a little at random and normalised, which keeps the structure of real embeddings.
"""

import random
from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mneme.models.embedding.embedders import Embedder

EMBEDDED = 2_000
WHO = ["Anna", "Ben", "Chiara", "David", "Elif", "Farid", "Greta", "Hana", "Igor", "Jun", "Katya", "Liam"]
DOES = ["loves", "bought", "lost", "talks about", "gave up", "dreams of", "repaired", "was given", "misses"]
WHAT = ["a red bicycle", "the violin", "green tea", "a cabin by the lake", "an old Volvo", "the chess club"]
WHERE = ["in Lisbon", "near the station", "at work", "in the mountains", "on Sundays", "before breakfast"]
WHY = [
    "because a friend asked",
    "although it rains",
    "to save money",
    "for the children",
    "against all advice",
]


def sentences(count: int) -> list[str]:
    """Return so many different sentences about different people."""
    known = [f"{' '.join(parts)}." for parts in product(WHO, DOES, WHAT, WHERE, WHY)]
    random.Random(0).shuffle(known)  # noqa: S311  (sentences, no secrets)
    more = (f"{known[n % len(known)]} ({n})" for n in range(len(known), count))
    return [*known[:count], *more]


class Corpus:
    """Texts and questions whose vectors are known; an embedder whose work is in no time that is measured."""

    def __init__(self, name: str, texts: Sequence[str], asked: Sequence[str], vectors: NDArray[Any]) -> None:
        self.name, self.dimension = name, vectors.shape[1]
        self.texts, self.asked, self.vectors = list(texts), list(asked), vectors
        self._known = dict(zip([*texts, *asked], vectors, strict=True))

    async def embed_documents(self, texts: Sequence[str]) -> list[list[float]]:
        """Return the vectors of texts, or of their last lines."""
        known = (text if text in self._known else text.splitlines()[-1] for text in texts)
        return [await self.embed_query(text) for text in known]

    async def embed_query(self, text: str) -> list[float]:
        """Return the vector of a text or a question."""
        vector: list[float] = self._known[text].tolist()
        return vector


async def with_vectors(texts: Sequence[str], asked: Sequence[str], embedder: Embedder) -> Corpus:
    """Embed the questions and the first texts, and move the vectors of these for the others."""
    real = np.array(await embedder.embed_documents(list(texts[:EMBEDDED])), dtype=np.float32)
    noise = np.random.default_rng(0).normal(0, 0.02, (len(texts), real.shape[1])).astype(np.float32)
    moved = real[np.arange(len(texts)) % len(real)] + noise
    moved[: len(real)] = real
    moved /= np.linalg.norm(moved, axis=1, keepdims=True)
    queries = np.array([await embedder.embed_query(text) for text in asked], dtype=np.float32)
    return Corpus(embedder.name, texts, asked, np.vstack([moved, queries]))
