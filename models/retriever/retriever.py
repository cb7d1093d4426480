"""The trained retriever: it changes a question's vector before memories are searched with it (§3.2).

The retriever is a dense bi-encoder that starts as the embedder in use. Only its query encoder learns. A
linear head on both sides would make the logit of a question q and a memory m the bilinear form
s·qᵀ(I + A)m, which a matrix on one encoder expresses as well; and a whole encoder of questions is
query-encoder fine-tuning (Lee et al. 2021). So the memories' vectors in the ledger never change: what is
stored is found at once, what is forgotten is gone at once, and a new version goes live with one write.

Instead of eq. 2, which needs labels of 0 and 1, it learns from the grades themselves, and from the memories'
agents; see `listwise`.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from mneme.core.errors import BadInput, needs

if TYPE_CHECKING:
    import torch

Matrix = NDArray[np.float32]
Weights = dict[str, Matrix]
Learning = Literal["projection", "encoder", "reranker"]
SCALE = 10.0
"""The initial scale of the logit, since the cosines of sentences lie close together."""


@dataclass(frozen=True)
class Examples:
    """Questions, the candidates that were graded for each, and the memories of the whole batch.

    `candidates` are (questions, candidates, dimension); `useful` shares the weight of a question's grades, 1
    at most, among its candidates, the more the more useful they are: 0 where there is none, and everywhere
    where they could not be told apart.
    `kinds` is 1 where a question and a memory of the batch are of one agent, -1 where they are of two, 0
    where that is not known, and between a question and its own memory. `agents` says whose each question is;
    empty where that is not known.
    """

    texts: Sequence[str]
    questions: Matrix
    candidates: Matrix
    useful: Matrix
    batch: Matrix
    kinds: Matrix
    agents: Sequence[str] = ()

    def __post_init__(self) -> None:
        count = len(self.texts)
        graded = self.candidates.shape[:2]
        shapes = (len(self.questions), *self.useful.shape, *self.kinds.shape)
        if not count or shapes != (count, count, *graded[1:], count, len(self.batch)) or graded[0] != count:
            raise BadInput("Examples need a question at least, and what is known of each with each memory.")

    def of(self, rows: Sequence[int]) -> "Examples":
        """Return the examples of some questions, with the whole batch."""
        some = list(rows)
        own = (self.questions[some], self.candidates[some], self.useful[some], self.batch, self.kinds[some])
        agents = [self.agents[row] for row in some] if self.agents else ()
        return Examples([self.texts[row] for row in some], *own, agents)

    def tensors(self, device: str = "cpu") -> "list[torch.Tensor]":
        """Return the candidates, their usefulness, the batch, and the kinds."""
        import torch  # noqa: PLC0415  (an extra, and slow)

        given = (self.candidates, self.useful, self.batch, self.kinds)
        return [torch.tensor(each, dtype=torch.float32, device=device) for each in given]


class QueryEncoder(ABC):
    """The half of a retriever that learns; thread-safe once it is trained."""

    scale = SCALE

    @abstractmethod
    def vectors(self, texts: Sequence[str], embedded: Matrix) -> Matrix:
        """Return the search vectors of questions, of length 1, one row per question."""

    @abstractmethod
    def train(self, examples: Examples, seed: int) -> list[float]:
        """Minimise the loss from the current weights; return it for each epoch. All chance is the seed's."""

    @abstractmethod
    def weights(self) -> Weights:
        """Return the learned weights."""

    def favours(self, texts: Sequence[str], embedded: Matrix) -> Sequence[Mapping[str, float]]:
        """Return by how much each question favours memories, by agent; empty: their order is unchanged."""
        return [{} for _ in texts]

    def loss(self, vectors: Matrix, examples: Examples) -> float:
        """Return the loss of these examples, in nats, with these vectors of their questions."""
        import torch  # noqa: PLC0415  (an extra, and slow)

        return float(listwise(self.scale, torch.tensor(vectors), examples.tensors()))


def listwise(scale: Any, vectors: "torch.Tensor", given: "Sequence[torch.Tensor]") -> "torch.Tensor":
    """Return the loss, in nats: of grades within a question's candidates, and of kinds within the batch.

    - Graded: the cross-entropy of a question's candidates with how useful each is (ListNet, Cao et al. 2007).
      So a grade counts by its size, and two of one grade are not told apart.
    - In-batch: the mean of -log p of the memories of the question's own agent among those of the batch
      (SupCon, Khosla et al. 2020, eq. 2). The other agents' memories are the negatives.
    """
    import torch  # noqa: PLC0415  (an extra, and slow)

    candidates, useful, batch, kinds = given
    graded, own, other = useful > 0, kinds > 0, kinds < 0
    shares = _log_shares(scale * torch.einsum("qd,qcd->qc", vectors, candidates), graded)
    of_grades = -(useful * shares).sum(dim=1)[graded.any(dim=1)]
    mass = _log_shares(scale * (vectors @ batch.T), own | other)
    told = own.any(dim=1) & other.any(dim=1)  # of one agent alone nothing can be told apart
    of_kinds = (-(mass * own).sum(dim=1) / own.sum(dim=1).clamp(min=1))[told]
    # The sum times 0: where nothing is told, the loss is 0 and still has a gradient.
    return sum((each.mean() for each in (of_grades, of_kinds) if len(each)), vectors.sum() * 0.0)


def _log_shares(logits: "torch.Tensor", among: "torch.Tensor") -> "torch.Tensor":
    return logits.masked_fill(~among, MASKED_LOGIT).log_softmax(dim=1)


MASKED_LOGIT = -1e4
"""The logit of candidates that are masked out; -∞ would make a row without any candidate NaN."""


def load() -> None:
    """Load what the first training of a process needs, so that loading is not timed."""
    where = device()
    import torch  # noqa: PLC0415  (an extra, and slow)

    weight = torch.zeros(1, device=where, requires_grad=True)
    weight.square().sum().backward()  # type: ignore[no-untyped-call]


def device() -> str:
    """Return PyTorch's device: the GPU if there is one. Raises MnemeError without PyTorch."""
    with needs("Training a retriever", "train"):
        import torch  # noqa: PLC0415  (an extra, and slow)
    return "cuda" if torch.cuda.is_available() else "cpu"
