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
    """Make questions of two kinds; of two memories, the one of the question's kind is of use."""
    directions = np.random.default_rng(0).normal(size=(2, WIDE))
    kinds = np.array([number for _ in THEMES for number in KINDS.values()])
    unit = (directions / np.linalg.norm(directions, axis=1, keepdims=True)).astype(np.float32)
    nothing = np.zeros((len(kinds), WIDE), np.float32)
    return Examples(
        texts=[f"write a {kind} about {theme}" for theme in THEMES for kind in KINDS],
        questions=nothing,
        candidates=np.broadcast_to(unit, (len(kinds), 2, WIDE)).copy(),
        useful=np.array([[0.9, 0.1], [0.1, 0.9]], np.float32)[kinds],
        batch=unit[kinds],
        kinds=np.zeros((len(kinds), len(kinds)), np.float32),
    )


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
    vectors = encoder.vectors(given.texts, given.questions)
    alike = np.einsum("qd,qcd->qc", vectors, given.candidates)
    assert (alike.argmax(axis=1) == given.useful.argmax(axis=1)).all()


def test_the_same_seed_gives_the_same_encoder(
    tiny: Path, given: Examples, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "mneme.models.retriever.whole_encoder.TEXTS_PER_BATCH", 4
    )  # in one batch no order counts
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
