"""The retriever's projection head: a matrix of low rank on the embedder's vectors of questions.

I + U·Vᵀ with RANK columns, for a whole matrix fits a few hundred labelled pairs by heart. PyTorch trains it;
serving needs numpy alone. What is fixed here was chosen on half of the shipped seed sets, by cross-validation
over memories, beside ranks 4 and 8, whole and diagonal matrices and other weights; nothing is finely tuned.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

from mneme.models.retriever.retriever import SCALE, Examples, Matrix, Weights, device, listwise

if TYPE_CHECKING:
    import torch

RANK = 16
EPOCHS = 60
LEARNING_RATE = 5e-3
TOWARDS_EMBEDDER = 2e-2
"""Weight of ‖U‖² + ‖V‖²: what few examples say nothing about stays as the embedder has it."""


@dataclass
class Projection:
    """U and V, with the scale of the logit; U is empty where nothing was learned."""

    up: Matrix
    down: Matrix
    scale: float

    @classmethod
    def untrained(cls, dimension: int) -> Self:
        """Return the head that leaves the embedder as it is."""
        nothing = np.zeros((dimension, 0), dtype=np.float32)
        return cls(nothing, nothing, SCALE)

    @classmethod
    def of(cls, weights: Weights) -> Self:
        """Return the head that has learned this."""
        return cls(weights["up"], weights["down"], float(weights["logit"][0]))

    def weights(self) -> Weights:
        logit = np.array([self.scale], dtype=np.float32)
        return {"up": self.up, "down": self.down, "logit": logit}

    def vectors(self, texts: Sequence[str], embedded: Matrix) -> Matrix:
        projected = embedded + (embedded @ self.up) @ self.down.T
        unit: Matrix = projected / np.maximum(np.linalg.norm(projected, axis=1, keepdims=True), 1e-12)
        return unit

    def favours(self, texts: Sequence[str], embedded: Matrix) -> list[Mapping[str, float]]:
        return [{} for _ in texts]

    def loss(self, vectors: Matrix, examples: Examples) -> float:
        import torch  # noqa: PLC0415  (an extra, and slow)

        return float(listwise(self.scale, torch.tensor(vectors), examples.tensors()))

    def train(self, examples: Examples, seed: int) -> list[float]:
        """Take EPOCHS steps of Adam on all questions at once."""
        where = device()
        import torch  # noqa: PLC0415  (an extra, and slow)

        batch = [torch.tensor(examples.questions, device=where), *examples.tensors(where)]
        head = _Head(self, seed, where)
        adam = _Adam(head.learned)
        losses = [_step(head, adam, batch) for _ in range(EPOCHS)]
        self.up, self.down = (each.detach().cpu().numpy().copy() for each in (head.up, head.down))
        self.scale = float(head.scale.detach())
        return losses


class _Head:
    """The same head as tensors that learn; it begins as the identity, with a V of the seed's."""

    def __init__(self, start: Projection, seed: int, where: str) -> None:
        import torch  # noqa: PLC0415  (an extra, and slow)

        up, down = torch.tensor(start.up), torch.tensor(start.down)
        if not up.numel():
            shape, chance = (len(start.up), RANK), torch.Generator().manual_seed(seed)
            up, down = torch.zeros(shape), torch.randn(shape, generator=chance) / len(start.up) ** 0.5
        self.up, self.down = (each.to(where).requires_grad_() for each in (up, down))
        self.scale = torch.tensor(start.scale, device=where, requires_grad=True)
        self.learned = [self.up, self.down, self.scale]


class _Adam:
    """Adam as PyTorch computes it; `torch.optim.Adam` would load PyTorch's compiler, which takes seconds."""

    def __init__(self, learned: "list[torch.Tensor]") -> None:
        import torch  # noqa: PLC0415  (an extra, and slow)

        self._learned = learned
        self._means, self._squares = ([torch.zeros_like(each) for each in learned] for _ in range(2))
        self._steps = [torch.tensor(0.0) for _ in learned]

    def step(self, loss: "torch.Tensor") -> None:
        """Take one step down this loss."""
        import torch  # noqa: PLC0415  (an extra, and slow)
        from torch.optim.adam import adam  # noqa: PLC0415

        gradients = list(torch.autograd.grad(loss, self._learned))
        with torch.no_grad():
            adam(
                self._learned, gradients, self._means, self._squares, [], self._steps,
                lr=LEARNING_RATE, beta1=0.9, beta2=0.999, eps=1e-8,
                weight_decay=0.0, amsgrad=False, maximize=False,
            )  # fmt: skip


def _step(head: _Head, adam: _Adam, batch: "list[torch.Tensor]") -> float:
    import torch  # noqa: PLC0415  (an extra, and slow)

    questions, *given = batch
    vectors = torch.nn.functional.normalize(questions + (questions @ head.up) @ head.down.T, dim=1)
    loss = listwise(head.scale, vectors, given)
    size = head.up.square().sum() + head.down.square().sum()
    adam.step(loss + TOWARDS_EMBEDDER * size)
    return float(loss.detach())
