"""What was learned from examples: is a clause worth keeping, and how do two statements stand to each other.

Linear models over the bundled embedder's vectors and the figures of `signs`; `evals/english.py` trains them.
Where the embedder is not installed, models over the figures alone answer.
"""

from collections.abc import Sequence
from functools import lru_cache
from importlib.resources import files
from typing import Literal, get_args

import numpy as np

from mneme.core.errors import MnemeError
from mneme.models.embedding.embedders import loaded_bundled
from mneme.models.embedding.minilm import MiniLM
from mneme.rules.english.signs import Figures, clause_signs, pair_signs

Relation = Literal["conflict", "addition", "duplicate", "unrelated"]
RELATIONS: tuple[Relation, ...] = get_args(Relation)
SCALE = 2.0
"""What the vectors are multiplied with, so that they weigh beside the figures."""


@lru_cache(maxsize=1)
def _weights() -> dict[str, Figures]:
    with files(__package__).joinpath("weights.npz").open("rb") as file, np.load(file) as read:
        return {name: read[name].astype(np.float32) for name in read.files}


@lru_cache(maxsize=1)
def embedder() -> MiniLM | None:
    """Return the process's embedder for the judge, kept open; nothing where it is not installed."""
    try:
        return loaded_bundled()
    except MnemeError:
        return None


@lru_cache(maxsize=4096)
def _vector(text: str) -> Figures | None:
    model = embedder()
    return np.array(model.embed([text])[0], dtype=np.float32) if model else None


def _vectors(texts: Sequence[str]) -> Figures | None:
    model = embedder()
    return np.array(model.embed(texts), dtype=np.float32) if model else None


def likeness(one: str, other: str) -> float | None:
    """Return the cosine of two texts; nothing where no embedder is installed."""
    left, right = _vector(one), _vector(other)
    return None if left is None or right is None else float(left @ right)


def chances_to_keep(clauses: Sequence[tuple[str, str]]) -> list[float]:
    """Return for each clause, trimmed and as it was said, how sure it is that it is worth keeping."""
    if not clauses:
        return []
    signs = np.array([clause_signs(*each) for each in clauses])
    vectors = _vectors([text for text, _ in clauses])
    kind, figures = ("words", signs) if vectors is None else ("full", np.hstack([vectors * SCALE, signs]))
    scores = figures @ _weights()[f"keep_{kind}"] + _weights()[f"keep_{kind}_bias"]
    return [float(each) for each in 1 / (1 + np.exp(-scores))]


def chances_of_relations(fact: str, statement: str) -> dict[Relation, float]:
    """Return how likely each relation of a new fact to a remembered statement is."""
    alike = likeness(fact, statement)
    kind = "words" if alike is None else "full"
    learned, bias = _weights()[f"relation_{kind}"], _weights()[f"relation_{kind}_bias"]
    scores = pair_signs(fact, statement, alike) @ learned + bias
    chances = np.exp(scores - scores.max())
    return dict(zip(RELATIONS, (chances / chances.sum()).tolist(), strict=True))
