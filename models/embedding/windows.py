"""Embed a text over an embedder's limit: cut it into pieces, and take the mean of their vectors."""

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def pieces(texts: Sequence[str], chars: int) -> list[tuple[int, str]]:
    """Cut texts into pieces of at most so many characters, between words where there are any.

    Each stands behind the index of its text.
    """
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
