"""The retriever's projection head: one matrix on the embedder's vectors of questions.

PyTorch trains it; serving needs numpy alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

from models.retriever import SCALE, Examples, Matrix, Weights, device

if TYPE_CHECKING:
    import torch

EPOCHS = 60
LEARNING_RATE = 2e-3
TOWARDS_EMBEDDER = 1e-2
"""Weight of ‖A‖²: what few examples say nothing about stays as the embedder has it."""


@dataclass
class Projection:
    """I + A, with the scale and the bias of the logit."""

    matrix: Matrix
    scale: float
    bias: float

    @classmethod
    def untrained(cls, dimension: int) -> Self:
        """Return the head that leaves the embedder as it is."""
        return cls(np.eye(dimension, dtype=np.float32), SCALE, 0.0)

    @classmethod
    def of(cls, weights: Weights) -> Self:
        """Return the head that has learned this."""
        scale, bias = weights["logit"].tolist()
        return cls(weights["matrix"], scale, bias)

    def weights(self) -> Weights:
        return {"matrix": self.matrix, "logit": np.array([self.scale, self.bias], dtype=np.float32)}

    def vectors(self, texts: Sequence[str], embedded: Matrix) -> Matrix:
        projected = embedded @ self.matrix
        unit: Matrix = projected / np.maximum(np.linalg.norm(projected, axis=1, keepdims=True), 1e-12)
        return unit

    def logits(self, vectors: Matrix, memories: Matrix) -> Matrix:
        found: Matrix = self.scale * (vectors * memories).sum(axis=1) + self.bias
        return found

    def train(self, examples: Examples, seed: int) -> list[float]:
        """Take EPOCHS steps of Adam on all pairs at once."""
        import torch  # noqa: PLC0415  (an extra, and slow)

        torch.manual_seed(seed)
        where = device()
        given = (examples.questions, examples.memories, examples.labels)
        batch = [torch.tensor(each, dtype=torch.float32, device=where) for each in given]
        head = _Head(self, where)
        optimiser = torch.optim.Adam(head.learned, lr=LEARNING_RATE)
        losses = [_step(head, optimiser, batch) for _ in range(EPOCHS)]
        self.matrix = head.matrix.detach().cpu().numpy().astype(np.float32)
        self.scale, self.bias = float(head.scale.detach()), float(head.bias.detach())
        return losses


class _Head:
    """The same head as tensors that learn."""

    def __init__(self, start: Projection, where: str) -> None:
        import torch  # noqa: PLC0415  (an extra, and slow)

        self.matrix = torch.tensor(start.matrix, device=where, requires_grad=True)
        self.scale = torch.tensor(start.scale, device=where, requires_grad=True)
        self.bias = torch.tensor(start.bias, device=where, requires_grad=True)
        self.identity = torch.eye(len(start.matrix), device=where)
        self.learned = [self.matrix, self.scale, self.bias]


def _step(head: _Head, optimiser: "torch.optim.Optimizer", batch: "list[torch.Tensor]") -> float:
    import torch  # noqa: PLC0415  (an extra, and slow)

    questions, memories, labels = batch
    vectors = torch.nn.functional.normalize(questions @ head.matrix, dim=1)
    logits = head.scale * (vectors * memories).sum(dim=1) + head.bias
    loss = torch.nn.functional.binary_cross_entropy_with_logits(logits, labels)
    optimiser.zero_grad()
    change = (head.matrix - head.identity).square().sum()
    (loss + TOWARDS_EMBEDDER * change).backward()  # type: ignore[no-untyped-call]
    optimiser.step()
    return float(loss.detach())
