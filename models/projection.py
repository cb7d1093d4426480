"""The retriever's projection head: a matrix on the question's side of the embedder in use.

The retriever is a dense bi-encoder. A linear head on each of its towers makes the logit of a question q
and a memory m the bilinear form s·qᵀ(I + A)m + b; the matrix can as well stand wholly on the question's
side, where it does the same. So the memories' vectors in the ledger never change: what is stored is found
at once, what is forgotten is gone at once, and a new version serves from the moment that its number does.

PyTorch trains it; serving needs numpy alone.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mneme.errors import BadInput

if TYPE_CHECKING:
    import torch

Matrix = NDArray[np.float32]

EPOCHS = 60
LEARNING_RATE = 2e-3
TOWARDS_START = 1e-2
"""Weight of ‖A‖²: what few examples say nothing about stays as the embedder has it."""
SCALE = 10.0
"""The logit's first scale: cosines of MiniLM lie close together."""


@dataclass(frozen=True)
class Examples:
    """Labelled pairs: row i of `questions` goes with row i of `memories` and with label i (eq. 2)."""

    questions: Matrix
    memories: Matrix
    labels: Matrix

    def __post_init__(self) -> None:
        rows = {len(self.questions), len(self.memories), len(self.labels)}
        if len(rows) != 1 or not rows.pop():
            raise BadInput("Labelled pairs need as many questions as memories and labels, and at least one.")


@dataclass(frozen=True)
class Projection:
    """I + A, with the scale and the bias of the logit."""

    matrix: Matrix
    scale: float
    bias: float

    @classmethod
    def untrained(cls, dimension: int) -> "Projection":
        """Return the head that leaves the embedder as it is."""
        return cls(np.eye(dimension, dtype=np.float32), SCALE, 0.0)

    def ask_with(self, question: Sequence[float]) -> list[float]:
        """Return the vector to search memories with, of length 1."""
        projected = np.asarray(question, dtype=np.float32) @ self.matrix
        unit: list[float] = (projected / max(float(np.linalg.norm(projected)), 1e-12)).tolist()
        return unit

    def logits(self, questions: Matrix, memories: Matrix) -> Matrix:
        """Return the logit of each pair of rows."""
        found: Matrix = self.scale * ((questions @ self.matrix) * memories).sum(axis=1) + self.bias
        return found


@dataclass(frozen=True)
class Trained:
    """A new head, and how its training went."""

    head: Projection
    losses: list[float]
    seconds: float
    device: str


def binary_cross_entropy(logits: Matrix, labels: Matrix) -> float:
    """Return eq. 2: the mean over the pairs, in nats."""
    return float(np.mean(np.logaddexp(0.0, logits) - labels * logits))


def device() -> str:
    """Return where PyTorch trains: on the GPU where there is one."""
    import torch  # noqa: PLC0415  (an extra, and slow)

    return "cuda" if torch.cuda.is_available() else "cpu"


def train(examples: Examples, start: Projection, seed: int, epochs: int = EPOCHS) -> Trained:
    """Minimise eq. 2 from a head onwards; the same seed gives the same head on the same device."""
    import torch  # noqa: PLC0415  (an extra, and slow)

    began, where = time.perf_counter(), device()
    torch.manual_seed(seed)
    head = _Head(start, where)
    optimiser = torch.optim.Adam(head.parameters, lr=LEARNING_RATE)
    batch = [torch.from_numpy(each).to(where) for each in _float32(examples)]
    losses = [_step(head, optimiser, batch) for _ in range(epochs)]
    return Trained(head.projection(), losses, time.perf_counter() - began, where)


class _Head:
    """The same head as tensors that learn."""

    def __init__(self, start: Projection, where: str) -> None:
        import torch  # noqa: PLC0415  (an extra, and slow)

        self.start = torch.from_numpy(start.matrix.copy()).to(where)
        self.change = torch.zeros_like(self.start, requires_grad=True)
        self.scale = torch.tensor(start.scale, device=where, requires_grad=True)
        self.bias = torch.tensor(start.bias, device=where, requires_grad=True)
        self.identity = torch.eye(len(start.matrix), device=where)

    @property
    def parameters(self) -> "list[torch.Tensor]":
        return [self.change, self.scale, self.bias]

    def projection(self) -> Projection:
        matrix = (self.start + self.change).detach().cpu().numpy().astype(np.float32)
        return Projection(matrix, float(self.scale.detach()), float(self.bias.detach()))


def _step(head: _Head, optimiser: "torch.optim.Optimizer", batch: "list[torch.Tensor]") -> float:
    import torch  # noqa: PLC0415  (an extra, and slow)

    questions, memories, labels = batch
    matrix = head.start + head.change
    logits = head.scale * ((questions @ matrix) * memories).sum(dim=1) + head.bias
    loss = torch.nn.functional.binary_cross_entropy_with_logits(logits, labels)
    optimiser.zero_grad()
    (loss + TOWARDS_START * (matrix - head.identity).square().sum()).backward()  # type: ignore[no-untyped-call]
    optimiser.step()
    return float(loss.detach())


def _float32(examples: Examples) -> list[Matrix]:
    return [
        np.ascontiguousarray(each, dtype=np.float32)
        for each in (examples.questions, examples.memories, examples.labels)
    ]
