"""The projection head learns which memories are of use, and is the same by seed."""

import math
from dataclasses import replace

import numpy as np
import pytest

from mneme.core.errors import BadInput
from mneme.models.retriever.opening import query_encoder
from mneme.models.retriever.projection import RANK, Projection
from mneme.models.retriever.retriever import Examples, Matrix, listwise

DIMENSION = 48
FORM = slice(40, 48)
"""Of the made-up embedding: most of it says what a text is about, little says its form."""


def unit(rows: Matrix) -> Matrix:
    found: Matrix = rows / np.linalg.norm(rows, axis=-1, keepdims=True)
    return found


def made_up(count: int, seed: int) -> Examples:
    """Make questions with four candidates: the first has the form that is asked for, in another way."""
    chance = np.random.default_rng(seed)
    questions = chance.normal(size=(count, DIMENSION)).astype(np.float32)
    candidates = chance.normal(size=(count, 4, DIMENSION)).astype(np.float32)
    form = np.roll(questions[:, FORM], 1, axis=1)
    candidates[:, :, FORM] = -form[:, None]
    candidates[:, 0, FORM] = form
    useful = np.tile(np.array([0.7, 0.1, 0.1, 0.1], dtype=np.float32), (count, 1))
    none = np.zeros((count, count), dtype=np.float32)
    texts = [f"q{row}" for row in range(count)]
    return Examples(texts, unit(questions), unit(candidates), useful, unit(questions), none)


def told_apart(head: Projection, given: Examples) -> float:
    """Return how often the most useful candidate is found before another one."""
    vectors = head.vectors(given.texts, given.questions)
    likeness = np.einsum("qd,qcd->qc", vectors, given.candidates)
    return float((likeness[:, :1] > likeness[:, 1:]).mean())


def test_untrained_it_searches_with_the_embedders_own_vectors() -> None:
    given = made_up(20, seed=0)
    assert Projection.untrained(DIMENSION).vectors(given.texts, given.questions) == pytest.approx(
        given.questions, abs=1e-6
    )


def test_it_tells_unseen_candidates_apart_better_than_the_embedder() -> None:
    head, unseen = Projection.untrained(DIMENSION), made_up(400, seed=2)
    before = told_apart(head, unseen)
    losses = head.train(made_up(400, seed=1), seed=0)
    assert losses[-1] < losses[0]
    assert told_apart(head, unseen) > before + 0.1


def test_grades_without_meaning_teach_it_nothing_that_holds() -> None:
    head, unseen = Projection.untrained(DIMENSION), made_up(400, seed=2)
    before, given = told_apart(head, unseen), made_up(400, seed=1)
    shuffled = np.random.default_rng(3).permuted(given.useful, axis=1)
    head.train(replace(given, useful=shuffled), seed=0)
    assert told_apart(head, unseen) < before + 0.1


def test_whose_memories_are_is_learned_from_the_batch_alone() -> None:
    """Without a single grade: the asker's own agent answers in a form of its own."""
    chance, kinds = np.random.default_rng(0), np.arange(120) % 3
    forms = 0.6 * chance.normal(size=(2, 3, DIMENSION))
    questions, batch = (
        unit((chance.normal(size=(120, DIMENSION)) + side[kinds]).astype(np.float32)) for side in forms
    )
    known = np.where(kinds[:, None] == kinds[None], 1.0, -1.0).astype(np.float32)
    np.fill_diagonal(known, 0.0)
    nothing = np.zeros((120, 1, DIMENSION), dtype=np.float32)
    given = Examples([""] * 120, questions, nothing, nothing[:, :, 0], batch, known)

    def own(head: Projection) -> float:
        likeness = head.vectors(given.texts, questions[:60]) @ batch[60:].T
        return float((kinds[60:][likeness.argmax(axis=1)] == kinds[:60]).mean())

    head, half = Projection.untrained(DIMENSION), given.of(range(60))
    before = own(head)
    head.train(replace(half, batch=batch[:60], kinds=half.kinds[:, :60]), seed=0)
    assert own(head) > before + 0.2


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


def test_the_loss_is_that_of_grades_and_that_of_kinds() -> None:
    import torch  # noqa: PLC0415  (it takes seconds, in each process that collects this file)

    vectors = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    candidates = torch.tensor([[[1.0, 0.0], [0.0, 1.0]], [[0.0, 0.0], [0.0, 0.0]]])
    useful = torch.tensor([[0.75, 0.25], [0.0, 0.0]])
    batch = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    kinds = torch.tensor([[1.0, -1.0, 0.0], [0.0, 0.0, 0.0]])
    sure, other = 1 / (1 + math.exp(-2)), 1 / (1 + math.exp(2))
    graded = -(0.75 * math.log(sure) + 0.25 * math.log(other))
    assert float(listwise(2.0, vectors, (candidates, useful, batch, kinds))) == pytest.approx(
        graded - math.log(sure)
    ), "what was not graded and whose agent is unknown does not count"
    assert float(listwise(2.0, vectors, (candidates, 0 * useful, batch, 0 * kinds))) == 0


@pytest.mark.parametrize("part", ["questions", "useful", "kinds"])
def test_examples_that_do_not_fit_together_are_refused(part: str) -> None:
    given = made_up(2, seed=0)
    with pytest.raises(BadInput, match="a question at least"):
        replace(given, **{part: getattr(given, part)[:1]})
    with pytest.raises(BadInput, match="a question at least"):
        made_up(0, seed=0)


def test_only_the_bundled_embedder_can_be_fine_tuned_whole() -> None:
    with pytest.raises(BadInput, match="cannot be fine-tuned whole") as raised:
        query_encoder("encoder", "ollama:nomic-embed-text", 768)
    assert "projection" in raised.value.hint
