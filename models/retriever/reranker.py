"""A re-scorer: it predicts the agent of a question, whose memories then come first among those found.

Only the order of the embedder's hits is learned: a softmax regression over the embedder's vector of a
question and its words gives the probability of each agent. A memory's score is then cos(question, memory) +
AGENT_WEIGHT·log p(its agent | question). The regression is convex, so a training needs neither a seed nor
the version before.

AGENT_WEIGHT, DECAY and WORD_BUCKETS were chosen by cross-validation on the shipped pairs.
"""

import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from mneme.models.retriever.retriever import Examples, Matrix, QueryEncoder, Weights

AGENT_WEIGHT = 0.2
MIN_PROBABILITY = 1e-3
"""Lower bound of an agent's probability in a score."""
WORD_BUCKETS = 1024
"""Number of hash buckets for words and pairs of words."""
DECAY = 0.1
"""Weight of the squared weights, added to the summed loss."""
TRAINING_STEPS, LOSS_EVERY = 300, 10
"""Steps of a training, and steps between two reports of its loss."""
FEATURE_WORD = re.compile(r"[\u3400-\u9fff]|[^\W_\u3400-\u9fff]+|[?!.,;:\"]")
KIND_PREFIX = "kind/"
UNSEEN_AGENT = ""
"""The key for agents that no training has seen."""


@dataclass
class Reranker(QueryEncoder):
    """The weights of each agent, a row of dimension + WORD_BUCKETS + 1; empty if nothing was learned."""

    dimension: int
    kinds: dict[str, Matrix] = field(default_factory=dict)

    @classmethod
    def of(cls, dimension: int, weights: Weights) -> "Reranker":
        """Return the re-scorer with these learned weights."""
        return cls(dimension, {name.removeprefix(KIND_PREFIX): row for name, row in weights.items()})

    def weights(self) -> Weights:
        return {f"{KIND_PREFIX}{name}": row for name, row in self.kinds.items()}

    def vectors(self, texts: Sequence[str], embedded: Matrix) -> Matrix:
        """Return the embedder's vectors unchanged."""
        return embedded

    def favours(self, texts: Sequence[str], embedded: Matrix) -> list[Mapping[str, float]]:
        if not self.kinds:
            return [{} for _ in texts]
        shares = self._shares(texts, embedded)
        worth = AGENT_WEIGHT * np.log(np.maximum(shares, MIN_PROBABILITY))
        unknown = {UNSEEN_AGENT: AGENT_WEIGHT * float(np.log(1 / len(self.kinds)))}  # as likely as by chance
        return [unknown | dict(zip(self.kinds, map(float, row), strict=True)) for row in worth]

    def loss(self, vectors: Matrix, examples: Examples) -> float:
        """Return the mean cross-entropy of the questions' agents, in nats."""
        known = [row for row, agent in enumerate(examples.agents) if agent in self.kinds]
        if not known:
            return 0.0
        names = [*self.kinds]
        wanted = [names.index(examples.agents[row]) for row in known]
        texts = [examples.texts[row] for row in known]
        shares = self._shares(texts, vectors[known])
        return float(-np.log(np.maximum(shares[range(len(known)), wanted], 1e-12)).mean())

    def _shares(self, texts: Sequence[str], embedded: Matrix) -> Matrix:
        """Return the probability of each agent, one row per question."""
        return _softmax(_features(texts, embedded) @ np.array([*self.kinds.values()]).T)

    def train(self, examples: Examples, seed: int) -> list[float]:
        """Take TRAINING_STEPS accelerated steps (Nesterov) down the regression's loss."""
        known = [row for row, agent in enumerate(examples.agents) if agent]  # older lessons name none
        agents = [examples.agents[row] for row in known]
        names = sorted({*agents})
        features = _features([examples.texts[row] for row in known], examples.questions[known])
        wanted = np.array([[agent == name for name in names] for agent in agents], dtype=np.float32)
        learned, losses = _regression(features, wanted)
        self.kinds = dict(zip(names, learned, strict=True))
        return losses


def _features(texts: Sequence[str], embedded: Matrix) -> Matrix:
    """Return for each question its vector, its words as a vector of length 1, and the constant 1."""
    words = np.zeros((len(texts), WORD_BUCKETS), dtype=np.float32)
    for row, text in enumerate(texts):
        said = FEATURE_WORD.findall(text.casefold())
        # "^" stands before the first word: how a question begins tells much of its kind.
        pairs = (f"{a} {b}" for a, b in zip(["^", *said], said, strict=False))
        for each in {*said, *pairs}:
            words[row, zlib.crc32(each.encode()) % WORD_BUCKETS] = 1
    words /= np.maximum(np.linalg.norm(words, axis=1, keepdims=True), 1e-9)
    return np.hstack([embedded, words, np.ones((len(texts), 1), dtype=np.float32)])


def _regression(features: Matrix, wanted: Matrix) -> tuple[Matrix, list[float]]:
    """Return the weights, one row per agent, and the reported mean losses."""
    # A bound on the curvature of the loss: steps of its inverse never overshoot.
    steepest = 0.5 * float(np.linalg.norm(features, 2)) ** 2 + 2 * DECAY
    now = before = np.zeros((wanted.shape[1], features.shape[1]), dtype=np.float32)
    losses = list[float]()
    for step in range(TRAINING_STEPS):
        # Nesterov: the gradient is taken ahead, along the last step; this momentum grows towards 1.
        ahead = now + step / (step + 3) * (now - before)
        shares = _softmax(features @ ahead.T)
        if step % LOSS_EVERY == 0:
            losses.append(float(-np.log(np.maximum((shares * wanted).sum(axis=1), 1e-12)).mean()))
        slope = (shares - wanted).T @ features + 2 * DECAY * ahead
        before, now = now, (ahead - slope / steepest).astype(np.float32)
    return now, losses


def _softmax(logits: Matrix) -> Matrix:
    raised = np.exp(logits - logits.max(axis=1, keepdims=True))  # no power overflows
    shares: Matrix = raised / raised.sum(axis=1, keepdims=True)
    return shares
