"""The projection head learns which memories are of use, and is the same by seed."""

import numpy as np
import pytest

from mneme.core.errors import BadInput
from mneme.models.retriever.opening import query_encoder
from mneme.models.retriever.projection import RANK, Projection
from mneme.models.retriever.retriever import Examples, Matrix, binary_cross_entropy

DIMENSION = 48
FORM = slice(40, 48)
"""Of the made-up embedding: most of it says what a text is about, little says its form."""


def unit(rows: Matrix) -> Matrix:
    found: Matrix = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return found


def made_up(count: int, seed: int) -> Examples:
    """Make pairs that are right where a memory has the form that its question asks for in another way."""
    chance = np.random.default_rng(seed)
    questions = chance.normal(size=(count, DIMENSION)).astype(np.float32)
    memories = chance.normal(size=(count, DIMENSION)).astype(np.float32)
    labels = (np.arange(count) % 2).astype(np.float32)
    memories[:, FORM] = np.where(labels[:, None] == 1, 1, -1) * np.roll(questions[:, FORM], 1, axis=1)
    return Examples([f"q{row}" for row in range(count)], unit(questions), unit(memories), labels)


def told_apart(head: Projection, given: Examples) -> float:
    """Return how often a useful pair has a higher logit than a useless one."""
    logits = head.logits(head.vectors(given.texts, given.questions), given.memories)
    useful, useless = logits[given.labels == 1], logits[given.labels == 0]
    return float((useful[:, None] > useless[None]).mean())


def test_untrained_it_searches_with_the_embedders_own_vectors() -> None:
    given = made_up(20, seed=0)
    assert Projection.untrained(DIMENSION).vectors(given.texts, given.questions) == pytest.approx(
        given.questions, abs=1e-6
    )


def test_it_tells_unseen_pairs_apart_better_than_the_embedder() -> None:
    head, unseen = Projection.untrained(DIMENSION), made_up(400, seed=2)
    before = told_apart(head, unseen)
    losses = head.train(made_up(400, seed=1), seed=0)
    assert losses[-1] < losses[0]
    assert told_apart(head, unseen) > before + 0.1


def test_labels_without_meaning_teach_it_nothing_that_holds() -> None:
    head, unseen = Projection.untrained(DIMENSION), made_up(400, seed=2)
    before, given = told_apart(head, unseen), made_up(400, seed=1)
    shuffled = np.random.default_rng(3).permutation(given.labels)
    head.train(Examples(given.texts, given.questions, given.memories, shuffled), seed=0)
    assert told_apart(head, unseen) < before + 0.1


def test_the_same_seed_gives_the_same_head_and_another_gives_another() -> None:
    heads = [Projection.untrained(DIMENSION) for _ in range(3)]
    for head, seed in zip(heads, (5, 5, 6), strict=True):
        head.train(made_up(60, seed=1), seed=seed)
    first, same, other = (head.weights() for head in heads)
    assert all((first[name] == same[name]).all() for name in first)
    assert any((first[name] != other[name]).any() for name in first)
    assert first["up"].shape == (DIMENSION, RANK)


def test_what_was_learned_is_taken_up_and_learned_further() -> None:
    given, head = made_up(200, seed=1), Projection.untrained(DIMENSION)
    first = head.train(given, seed=0)
    again = query_encoder("projection", "any", DIMENSION, head.weights())
    assert again.vectors(given.texts, given.questions) == pytest.approx(
        head.vectors(given.texts, given.questions)
    )
    assert again.train(given, seed=0)[0] < first[0]


def test_the_loss_is_equation_2() -> None:
    logits = np.array([-2.0, 0.0, 3.0, 40.0, -40.0], dtype=np.float32)
    labels = np.array([0.0, 1.0, 1.0, 1.0, 0.0], dtype=np.float32)
    p = 1 / (1 + np.exp(-logits[:3].astype(float)))
    written_out = -(labels[:3] * np.log(p) + (1 - labels[:3]) * np.log(1 - p)).sum() / 5
    assert binary_cross_entropy(logits, labels) == pytest.approx(written_out)
    assert binary_cross_entropy(-logits, labels) > 16


@pytest.mark.parametrize("rows", [(), (0,)])
def test_pairs_that_do_not_fit_together_are_refused(rows: tuple[int, ...]) -> None:
    given = made_up(2, seed=0)
    with pytest.raises(BadInput, match="as many questions as memories"):
        Examples(given.texts[: len(rows)], given.questions, given.memories, given.labels)
    with pytest.raises(BadInput, match="at least one"):
        Examples([], given.questions[:0], given.memories[:0], given.labels[:0])


def test_only_the_bundled_embedder_can_be_fine_tuned_whole() -> None:
    with pytest.raises(BadInput, match="cannot be fine-tuned whole") as raised:
        query_encoder("encoder", "ollama:nomic-embed-text", 768)
    assert "projection" in raised.value.hint
