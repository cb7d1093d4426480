"""The retriever fine-tuned whole: an encoder of questions that starts as the embedder and learns by eq. 2.

The encoder of the memories stays as it is (query-side fine-tuning: Lee et al. 2021, DensePhrases), for the
reason that `models.projection` gives: the memories' vectors in the ledger never change.

Needs PyTorch and transformers, for training and for serving. On a GPU it trains in mixed precision.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mneme.errors import BadInput
from models.projection import SCALE, device

if TYPE_CHECKING:
    import torch

Matrix = NDArray[np.float32]
Weights = dict[str, Matrix]

EPOCHS = 3
LEARNING_RATE = 3e-5
BATCH = 32
LONGEST = 256
"""Tokens of a question, as the embedder reads them."""
CLIP = 1.0


@dataclass(frozen=True)
class Questions:
    """Labelled pairs: question i goes with row i of `memories` and with label i (eq. 2)."""

    texts: Sequence[str]
    memories: Matrix
    labels: Matrix

    def __post_init__(self) -> None:
        if not len(self.texts) == len(self.memories) == len(self.labels) or not self.texts:
            raise BadInput("Labelled pairs need as many questions as memories and labels, and at least one.")


class QueryEncoder:
    """A transformer with mean pooling; `start` holds what an earlier version learned."""

    def __init__(self, folder: Path, start: Weights | None = None) -> None:
        import torch  # noqa: PLC0415  (an extra, and slow)
        from transformers import AutoModel, AutoTokenizer  # noqa: PLC0415
        from transformers.utils import logging  # noqa: PLC0415

        logging.disable_progress_bar()  # type: ignore[no-untyped-call]
        self.device = device()
        self._tokenizer: Any = AutoTokenizer.from_pretrained(str(folder))
        self._model: Any = AutoModel.from_pretrained(str(folder)).to(self.device).eval()
        logit = np.array([SCALE, 0.0], dtype=np.float32)
        if start is not None:
            logit = start["logit"]
            tensors = {name: torch.from_numpy(value) for name, value in start.items() if name != "logit"}
            self._model.load_state_dict(tensors)
        self._logit = torch.tensor(logit, device=self.device, requires_grad=True)

    def ask_with(self, question: str) -> list[float]:
        """Return the vector to search memories with, of length 1."""
        import torch  # noqa: PLC0415  (an extra, and slow)

        with torch.inference_mode():
            vector: list[float] = self._encode([question])[0].float().cpu().tolist()
        return vector

    def logits(self, questions: Sequence[str], memories: Matrix) -> Matrix:
        """Return the logit of each question with the memory of its row."""
        vectors = np.array([self.ask_with(each) for each in questions], dtype=np.float32)
        scale, bias = self._logit.detach().cpu().numpy()
        found: Matrix = scale * (vectors * memories).sum(axis=1) + bias
        return found

    def train(self, examples: Questions, seed: int, epochs: int = EPOCHS) -> tuple[list[float], float]:
        """Minimise eq. 2; return the mean loss of each epoch, and the seconds that it took."""
        import torch  # noqa: PLC0415  (an extra, and slow)

        began = time.perf_counter()
        torch.manual_seed(seed)
        order = torch.Generator().manual_seed(seed)
        optimiser = torch.optim.AdamW([*self._model.parameters(), self._logit], lr=LEARNING_RATE)
        self._model.train()
        losses = [self._epoch(examples, optimiser, order) for _ in range(epochs)]
        self._model.eval()
        return losses, time.perf_counter() - began

    def weights(self) -> Weights:
        """Return what was learned, the scale and the bias of the logit with it."""
        learned = {name: value.cpu().numpy() for name, value in self._model.state_dict().items()}
        return {**learned, "logit": self._logit.detach().cpu().numpy()}

    def _epoch(
        self, examples: Questions, optimiser: "torch.optim.Optimizer", order: "torch.Generator"
    ) -> float:
        import torch  # noqa: PLC0415  (an extra, and slow)

        rows = torch.randperm(len(examples.texts), generator=order).tolist()
        batches = [rows[start : start + BATCH] for start in range(0, len(rows), BATCH)]
        return float(np.mean([self._step(examples, batch, optimiser) for batch in batches]))

    def _step(self, examples: Questions, rows: list[int], optimiser: "torch.optim.Optimizer") -> float:
        import torch  # noqa: PLC0415  (an extra, and slow)

        memories = torch.from_numpy(examples.memories[rows]).to(self.device)
        labels = torch.from_numpy(examples.labels[rows]).to(self.device)
        optimiser.zero_grad()
        with torch.autocast(self.device, dtype=torch.bfloat16, enabled=self.device == "cuda"):
            vectors = self._encode([examples.texts[row] for row in rows])
        logits = self._logit[0] * (vectors.float() * memories).sum(dim=1) + self._logit[1]
        loss = torch.nn.functional.binary_cross_entropy_with_logits(logits, labels)
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(self._model.parameters(), CLIP)
        optimiser.step()
        return float(loss.detach())

    def _encode(self, texts: Sequence[str]) -> "torch.Tensor":
        import torch  # noqa: PLC0415  (an extra, and slow)

        read = self._tokenizer(
            list(texts), padding=True, truncation=True, max_length=LONGEST, return_tensors="pt"
        ).to(self.device)
        hidden = self._model(**read).last_hidden_state
        mask = read["attention_mask"].unsqueeze(-1).to(hidden.dtype)
        return torch.nn.functional.normalize((hidden * mask).sum(1) / mask.sum(1), dim=1)
