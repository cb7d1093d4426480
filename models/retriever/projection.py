"""The retriever's projection head: a matrix of low rank on the embedder's vectors of questions.

I + U·Vᵀ with RANK columns, for a whole matrix fits a few hundred labelled pairs by heart. PyTorch trains it;
serving needs numpy alone. What is fixed here was chosen on half of the shipped seed sets, by cross-validation
over memories, beside ranks 4 and 8, whole and diagonal matrices and other weights; nothing is finely tuned.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from mneme.models.retriever.retriever import SCALE, Examples, Matrix, QueryEncoder, Weights, device, listwise

RANK = 16
EPOCHS = 60
LEARNING_RATE = 5e-3
TOWARDS_EMBEDDER = 2e-2
"""Weight of ‖U‖² + ‖V‖²: what few examples say nothing about stays as the embedder has it."""


@dataclass
class Projection(QueryEncoder):
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
        """Return the head with these learned weights."""
        return cls(weights["up"], weights["down"], float(weights["logit"][0]))

    def weights(self) -> Weights:
        logit = np.array([self.scale], dtype=np.float32)
        return {"up": self.up, "down": self.down, "logit": logit}

    def vectors(self, texts: Sequence[str], embedded: Matrix) -> Matrix:
        projected = embedded + (embedded @ self.up) @ self.down.T
        unit: Matrix = projected / np.maximum(np.linalg.norm(projected, axis=1, keepdims=True), 1e-12)
        return unit

    def train(self, examples: Examples, seed: int) -> list[float]:
        """Take EPOCHS steps of Adam on all questions at once."""
        where = device()
        import torch  # noqa: PLC0415  (an extra, and slow)

        # The function, since the class `torch.optim.Adam` would load PyTorch's compiler, which takes seconds.
        from torch.optim.adam import adam  # noqa: PLC0415

        up, down = torch.tensor(self.up), torch.tensor(self.down)
        if not up.numel():
            # U = 0: the head begins as the identity. V is random: with both 0, no gradient would move them.
            shape, chance = (len(up), RANK), torch.Generator().manual_seed(seed)
            up, down = torch.zeros(shape), torch.randn(shape, generator=chance) / len(up) ** 0.5
        up, down = (each.to(where).requires_grad_() for each in (up, down))
        scale = torch.tensor(self.scale, device=where, requires_grad=True)
        learned, losses = [up, down, scale], list[float]()
        means, squares = ([torch.zeros_like(each) for each in learned] for _ in range(2))
        steps = [torch.tensor(0.0) for _ in learned]
        questions, given = torch.tensor(examples.questions, device=where), examples.tensors(where)
        for _ in range(EPOCHS):
            vectors = torch.nn.functional.normalize(questions + (questions @ up) @ down.T, dim=1)
            loss = listwise(scale, vectors, given)
            size = up.square().sum() + down.square().sum()
            gradients = list(torch.autograd.grad(loss + TOWARDS_EMBEDDER * size, learned))
            with torch.no_grad():
                adam(
                    learned, gradients, means, squares, [], steps,
                    lr=LEARNING_RATE, beta1=0.9, beta2=0.999, eps=1e-8,
                    weight_decay=0.0, amsgrad=False, maximize=False,
                )  # fmt: skip
            losses.append(float(loss.detach()))
        self.up, self.down = (each.detach().cpu().numpy().copy() for each in (up, down))
        self.scale = float(scale.detach())
        return losses
