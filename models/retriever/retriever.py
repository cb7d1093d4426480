"""The trained retriever: what a question becomes before memories are searched with it (§3.2).

The retriever is a dense bi-encoder that starts as the embedder in use. Only its query encoder learns. A
linear head on both sides would make the logit of a question q and a memory m the bilinear form
s·qᵀ(I + A)m + b, which a matrix on one encoder expresses as well; and a whole encoder of questions is
query-encoder fine-tuning (Lee et al. 2021). So the memories' vectors in the ledger never change: what is
stored is found at once, what is forgotten is gone at once, and a new version goes live with one write.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from mneme.core.errors import BadInput, needs

Matrix = NDArray[np.float32]
Weights = dict[str, Matrix]
Learning = Literal["projection", "encoder"]
SCALE = 10.0
"""The logit's first scale: cosines of sentences lie close together."""


@dataclass(frozen=True)
class Examples:
    """Labelled pairs: question i, with its vector of the embedder, goes with memory i and with label i."""

    texts: Sequence[str]
    questions: Matrix
    memories: Matrix
    labels: Matrix

    def __post_init__(self) -> None:
        rows = {len(self.texts), len(self.questions), len(self.memories), len(self.labels)}
        if len(rows) != 1 or not rows.pop():
            raise BadInput("Labelled pairs need as many questions as memories and labels, and at least one.")


class QueryEncoder(Protocol):
    """The half of a retriever that learns; safe under threads once it is trained."""

    def vectors(self, texts: Sequence[str], embedded: Matrix) -> Matrix:
        """Return what to search memories with, of length 1, a row a question."""
        ...

    def logits(self, vectors: Matrix, memories: Matrix) -> Matrix:
        """Return the logit of each pair of rows."""
        ...

    def train(self, examples: Examples, seed: int) -> list[float]:
        """Minimise eq. 2 from here onwards; return the loss of each epoch. The same seed, the same end."""
        ...

    def weights(self) -> Weights:
        """Return what was learned."""
        ...


def binary_cross_entropy(logits: Matrix, labels: Matrix) -> float:
    """Return eq. 2: the mean over the pairs, in nats."""
    return float(np.mean(np.logaddexp(0.0, logits) - labels * logits))


def load() -> None:
    """Load what a process's first training needs, so that no training is timed with it."""
    where = device()
    import torch  # noqa: PLC0415  (an extra, and slow)

    weight = torch.zeros(1, device=where, requires_grad=True)
    weight.square().sum().backward()  # type: ignore[no-untyped-call]


def device() -> str:
    """Return where PyTorch trains: on the GPU where there is one. Raises MnemeError without PyTorch."""
    with needs("Training a retriever", "train"):
        import torch  # noqa: PLC0415  (an extra, and slow)
    return "cuda" if torch.cuda.is_available() else "cpu"
