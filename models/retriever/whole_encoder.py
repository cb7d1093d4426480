"""The retriever's query encoder as a whole encoder, fine-tuned from the bundled embedder.

Needs PyTorch and transformers, for training and for serving. On a GPU it trains in mixed precision.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mneme.core.errors import needs
from mneme.models.retriever.retriever import SCALE, Examples, Matrix, QueryEncoder, Weights, device, listwise

if TYPE_CHECKING:
    import torch

EPOCHS = 3
LEARNING_RATE = 3e-5
TEXTS_PER_BATCH = 32
MAX_QUESTION_TOKENS = 256
"""Tokens of a question, as the embedder reads them."""
CLIP = 1.0


class WholeEncoder(QueryEncoder):
    """A transformer with mean pooling; `start` holds what an earlier version learned."""

    def __init__(self, folder: Path, start: Weights | None = None) -> None:
        with needs("A retriever that is a whole encoder", "train"):
            import torch  # noqa: PLC0415  (an extra, and slow)
            from transformers import AutoModel, AutoTokenizer  # noqa: PLC0415
            from transformers.utils import logging  # noqa: PLC0415

        logging.disable_progress_bar()
        self._torch = torch
        self.device = device()
        self._tokenizer: Any = AutoTokenizer.from_pretrained(str(folder))
        # In evaluation mode, in training too: dropout draws from the process's one source of chance, so that
        # two trainings at the same time would not be the same by seed.
        self._model: Any = AutoModel.from_pretrained(str(folder)).to(self.device).eval()
        logit = np.array([SCALE], dtype=np.float32)
        if start is not None:
            logit = start["logit"][:1]
            tensors = {name: torch.from_numpy(value) for name, value in start.items() if name != "logit"}
            self._model.load_state_dict(tensors)
        self.scale = float(logit[0])
        self._logit = torch.tensor(logit, device=self.device, requires_grad=True)

    def vectors(self, texts: Sequence[str], embedded: Matrix) -> Matrix:
        with self._torch.inference_mode():
            batches = [
                self._encode(texts[start : start + TEXTS_PER_BATCH])
                for start in range(0, len(texts), TEXTS_PER_BATCH)
            ]
            found: Matrix = self._torch.cat(batches).float().cpu().numpy()
        return found

    def weights(self) -> Weights:
        learned = {name: value.cpu().numpy() for name, value in self._model.state_dict().items()}
        return {**learned, "logit": self._logit.detach().cpu().numpy()}

    def train(self, examples: Examples, seed: int) -> list[float]:
        """Take EPOCHS rounds of AdamW through the questions, in an order of the seed's."""
        order = self._torch.Generator().manual_seed(seed)
        optimiser = self._torch.optim.AdamW([*self._model.parameters(), self._logit], lr=LEARNING_RATE)
        losses = list[float]()
        for _ in range(EPOCHS):
            rows = self._torch.randperm(len(examples.texts), generator=order).tolist()
            batches = [
                rows[start : start + TEXTS_PER_BATCH] for start in range(0, len(rows), TEXTS_PER_BATCH)
            ]
            losses.append(float(np.mean([self._step(examples, batch, optimiser) for batch in batches])))
        self.scale = float(self._logit[0].detach())
        return losses

    def _step(self, examples: Examples, rows: list[int], optimiser: "torch.optim.Optimizer") -> float:
        some = examples.of(rows)
        optimiser.zero_grad()
        with self._torch.autocast(self.device, dtype=self._torch.bfloat16, enabled=self.device == "cuda"):
            vectors = self._encode(some.texts)
        loss = listwise(self._logit[0], vectors.float(), some.tensors(self.device))
        loss.backward()  # type: ignore[no-untyped-call]
        self._torch.nn.utils.clip_grad_norm_(self._model.parameters(), CLIP)
        optimiser.step()
        return float(loss.detach())

    def _encode(self, texts: Sequence[str]) -> "torch.Tensor":
        read = self._tokenizer(
            list(texts), padding=True, truncation=True, max_length=MAX_QUESTION_TOKENS, return_tensors="pt"
        ).to(self.device)
        hidden = self._model(**read).last_hidden_state
        mask = read["attention_mask"].unsqueeze(-1).to(hidden.dtype)
        return self._torch.nn.functional.normalize((hidden * mask).sum(1) / mask.sum(1), dim=1)
