"""Judge a model by the loss of given answers, and by its own answers to generic questions."""

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict, Field

from mneme.models.tuning.base import Base
from mneme.models.tuning.pairs import SYSTEM_PROMPT, Pair, Progress, Question, silent, with_lessons

if TYPE_CHECKING:
    import torch

MAX_CONVERSATION_TOKENS = 1024
"""Maximum tokens of a conversation, since a machine without a GPU may have to compute them."""
GENERIC = "Answer the question."
MAX_NEW_TOKENS = 24
PROGRESS_EVERY = 20
"""Number of generic questions between two progress reports."""


class Judged(BaseModel):
    """A model's scores on held-out pairs, and on questions that have nothing to do with them."""

    model_config = ConfigDict(frozen=True)

    loss: float = Field(description="Of the held-out answers without lessons in front, in nats a token.")
    without: list[float] = Field(
        description="Of each held-out pair, whether its answer is the likeliest: 1 or 0."
    )
    with_cards: list[float] = Field(description="The same with the retrieved lessons in front.")
    generic: list[float] = Field(description="Of each generic question, whether it was answered.")

    def accuracy(self, name: str) -> float:
        """Return the mean of `without`, `with_cards` or `generic`; 0 where there is nothing to judge by."""
        scores: list[float] = getattr(self, name)
        return sum(scores) / len(scores) if scores else 0.0


def judge(
    base: Base,
    held_out: Sequence[Pair],
    others: Sequence[str],
    generic: Sequence[Question],
    progress: Progress = silent,
) -> Judged:
    """Judge a model, also by whether it prefers a held-out pair's own answer to `others`. Blocks."""
    losses = [_loss(base, each.asked, each.answer) for each in held_out]
    answered: list[float] = []
    for question in generic:
        answered.append(_answered(base, question))
        if len(answered) % PROGRESS_EVERY == 0:
            progress({"done": len(answered), "of": len(generic)})
    return Judged(
        loss=sum(losses) / len(losses) if losses else 0.0,
        without=[_chosen(base, each, each.asked, others) for each in held_out],
        with_cards=[_chosen(base, each, with_lessons(each.asked, each.shown), others) for each in held_out],
        generic=answered,
    )


ALTERNATIVES = 3


def _chosen(base: Base, pair: Pair, asked: str, others: Sequence[str]) -> float:
    """Return 1 if the right answer has the least loss per token of all; 0 for a tie too."""
    # The next ones in the order of the alphabet: the same for both models, and others for each pair.
    known = sorted({*others} - {pair.answer})
    start, own = sum(each < pair.answer for each in known), _loss(base, asked, pair.answer)
    wrong = [*known[start:], *known[:start]][:ALTERNATIVES]
    return float(all(own < _loss(base, asked, each) for each in wrong))


def _loss(base: Base, asked: str, answer: str) -> float:
    tokens, before = base.tokens(SYSTEM_PROMPT, asked, answer, MAX_CONVERSATION_TOKENS)
    with base.torch.inference_mode(), base.precision():
        return float(loss_of(base, [tokens], [before]))


def _answered(base: Base, question: Question) -> float:
    """Return 1 if the model's own answer, without sampling, contains the right one as whole words."""
    asked, _ = base.tokens(GENERIC, question.question, "", MAX_CONVERSATION_TOKENS)
    ids = base.torch.tensor([asked[:-1]], device=base.device)  # without the end of the empty answer
    with base.torch.inference_mode(), base.precision():
        said = base.model.generate(
            input_ids=ids,
            attention_mask=base.torch.ones_like(ids),
            max_new_tokens=MAX_NEW_TOKENS,
            do_sample=False,
            eos_token_id=base.tokenizer.eos_token_id,
            pad_token_id=base.tokenizer.eos_token_id,
        )
    text = base.tokenizer.decode(said[0][ids.shape[1] :], skip_special_tokens=True)
    return float(bool(re.search(rf"\b{re.escape(question.right)}\b", text, re.IGNORECASE)))


def loss_of(base: Base, batch: Sequence[Sequence[int]], before: Sequence[int]) -> "torch.Tensor":
    """Return the mean loss of the answers' tokens, in nats; the tokens of the questions do not count."""

    def padded(rows: Iterable[Sequence[int]], padding: int = 0) -> "torch.Tensor":
        tensors = [base.torch.tensor(row, device=base.device) for row in rows]
        whole: torch.Tensor = base.torch.nn.utils.rnn.pad_sequence(tensors, True, padding)
        return whole

    # -100 is the label that PyTorch's cross-entropy leaves out.
    answers = ([-100] * start + [*tokens[start:]] for tokens, start in zip(batch, before, strict=True))
    found: torch.Tensor = base.model(
        input_ids=padded(batch),
        attention_mask=padded([1] * len(tokens) for tokens in batch),
        labels=padded(answers, -100),
    ).loss
    return found
