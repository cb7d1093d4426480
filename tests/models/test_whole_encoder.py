"""The whole encoder of questions is fine-tuned, kept and taken up again; here a tiny one."""

from pathlib import Path

import numpy as np
import pytest

from mneme.models.retriever.retriever import Examples
from mneme.models.retriever.whole_encoder import WholeEncoder
from tests.doubles.tiny_encoder import WIDE

KINDS = {"poem": 0, "plan": 1}
THEMES = ("rain", "trains", "tea", "snow", "week", "verse", "diet")


@pytest.fixture(scope="module")
def given() -> Examples:
    """Make questions of two kinds, each right with a memory of its kind and wrong with the other."""
    chance = np.random.default_rng(0)
    kinds = chance.normal(size=(2, WIDE))
    texts, memories, labels = list[str](), list[np.ndarray](), list[float]()
    for theme in THEMES:
        for kind, number in KINDS.items():
            for label in (1, 0):
                texts.append(f"write a {kind} about {theme}")
                memories.append(kinds[number if label else 1 - number])
                labels.append(label)
    rows = np.array(memories, dtype=np.float32)
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return Examples(texts, np.zeros((len(texts), WIDE), np.float32), unit, np.array(labels, np.float32))


def test_it_learns_from_the_words_of_the_questions(
    tiny: Path, given: Examples, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "mneme.models.retriever.whole_encoder.LEARNING_RATE", 1e-2
    )  # the tiny one starts from chance
    monkeypatch.setattr("mneme.models.retriever.whole_encoder.EPOCHS", 15)
    encoder = WholeEncoder(tiny)
    losses = encoder.train(given, seed=0)
    assert losses[-1] < losses[0] / 2
    logits = encoder.logits(encoder.vectors(given.texts, given.questions), given.memories)
    assert ((logits > 0) == (given.labels == 1)).all()


def test_the_same_seed_gives_the_same_encoder(tiny: Path, given: Examples) -> None:
    first, same, other = (WholeEncoder(tiny) for _ in range(3))
    losses = [encoder.train(given, seed) for encoder, seed in ((first, 1), (same, 1), (other, 2))]
    assert losses[0] == losses[1] != losses[2]
    assert all((first.weights()[name] == value).all() for name, value in same.weights().items())


def test_what_was_learned_is_taken_up(tiny: Path, given: Examples) -> None:
    encoder = WholeEncoder(tiny)
    before = encoder.vectors(given.texts, given.questions)
    encoder.train(given, seed=1)
    again = WholeEncoder(tiny, encoder.weights())
    vectors = again.vectors(given.texts, given.questions)
    assert vectors == pytest.approx(encoder.vectors(given.texts, given.questions), abs=1e-6)
    assert np.abs(vectors - before).max() > 1e-4
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1.0, abs=1e-5)
