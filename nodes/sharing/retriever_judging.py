"""What a retriever is trained on and judged by: labelled pairs as matrices, and what it finds in its pool.

Two figures on the held-out memories decide whether a version may serve; where either fell, it may not:

- told apart: how many of their positives stand in the better half of their labelled candidates. All of these
  were graded, so the figure favours nobody.
- recall: how many of their positives are among the first K of the whole pool. What BM25 did not propose was
  never graded and counts as wrong, so a version that brings up other memories, as good, looks worse than it
  is. That keeps good ones out at times, and then what served before goes on serving.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

import numpy as np

from mneme.models.retriever.retriever import Examples, Matrix, QueryEncoder, binary_cross_entropy
from mneme.stores.pools.lessons import RetrieverLesson
from mneme.stores.pools.memory_pool import MemoryPool
from mneme.stores.pools.retrievers import Judged

K = 10
"""Retrieved memories among which a positive counts as found."""
DIGITS = 6
"""Decimals to which figures are compared: the same shares in another order differ in the last bits."""

Vectors = Mapping[str, Sequence[float]]


@dataclass(frozen=True)
class Material:
    """The lessons, with the vectors of their questions and of their labelled candidates."""

    lessons: Sequence[RetrieverLesson]
    questions: Vectors
    memories: Matrix
    rows: Mapping[str, int]

    @classmethod
    def of(cls, lessons: Sequence[RetrieverLesson], questions: Vectors, memories: Vectors) -> "Material":
        """Lay out what is still there: a memory that was removed is no example any more."""
        rows = {key: row for row, key in enumerate(memories)}
        whole = [each for each in lessons if each.key in questions]
        return cls(whole, questions, np.array(list(memories.values()), dtype=np.float32), rows)

    @property
    def held_out(self) -> list[RetrieverLesson]:
        return [each for each in self.lessons if each.is_held_out and self.labels(each)]

    @property
    def trained_on(self) -> list[RetrieverLesson]:
        return [each for each in self.lessons if not each.is_held_out and self.labels(each)]

    def count(self, label: int) -> int:
        """Return the pairs of a label that are trained on."""
        return sum(each == label for lesson in self.trained_on for _, each in self.labels(lesson))

    def examples(self, lessons: Sequence[RetrieverLesson]) -> Examples:
        """Return the labelled pairs of lessons."""
        pairs = [(each, row, label) for each in lessons for row, label in self.labels(each)]
        return Examples(
            texts=[lesson.question for lesson, _, _ in pairs],
            questions=self.embedded([lesson for lesson, _, _ in pairs]),
            memories=self.memories[[row for _, row, _ in pairs]],
            labels=np.array([label for _, _, label in pairs], dtype=np.float32),
        )

    def embedded(self, lessons: Sequence[RetrieverLesson]) -> Matrix:
        """Return the embedder's vectors of the questions, a row a lesson."""
        return np.array([self.questions[each.key] for each in lessons], dtype=np.float32)

    def labels(self, lesson: RetrieverLesson) -> list[tuple[int, int]]:
        """Return (row of the memory, label) for each of a lesson's labelled candidates."""
        labelled = [(key, 1) for key in lesson.positives] + [(key, 0) for key in lesson.negatives]
        return [(self.rows[key], label) for key, label in labelled if key in self.rows]


async def material_of(pool: MemoryPool, lessons: Sequence[RetrieverLesson], questions: Vectors) -> Material:
    """Read the vectors that lessons speak of, and lay them out."""
    labelled = chain.from_iterable((*each.positives, *each.negatives) for each in lessons)
    points = {pool.point(key): key for key in dict.fromkeys(labelled)}
    found = await pool.ledger.vectors_by_ids(list(points))
    memories = {points[point]: vector for point, vector in found.items()}
    return await asyncio.to_thread(Material.of, lessons, questions, memories)


class Judging(NamedTuple):
    """How a retriever does on each held-out memory, and eq. 2 on all their pairs."""

    told_apart: Matrix
    recall: Matrix
    loss: float

    @property
    def figures(self) -> Judged:
        return Judged(
            held_out=len(self.recall),
            recall=_mean(self.recall),
            told_apart=_mean(self.told_apart),
            loss=self.loss,
            k=K,
        )


async def judge(encoder: QueryEncoder, material: Material, pool: MemoryPool) -> Judging:
    """Measure a retriever on the held-out memories, in the pool as it is."""
    lessons = material.held_out
    vectors = await asyncio.to_thread(
        encoder.vectors, [each.question for each in lessons], material.embedded(lessons)
    )
    found = await asyncio.gather(
        *(_found(each, vector, pool) for each, vector in zip(lessons, vectors, strict=True))
    )
    recall = [_recall(each, keys, material) for each, keys in zip(lessons, found, strict=True)]
    apart, loss = await asyncio.to_thread(_labelled, encoder, material, lessons, vectors)
    return Judging(apart, np.array(recall, dtype=np.float32), loss)


async def _found(lesson: RetrieverLesson, vector: Matrix, pool: MemoryPool) -> list[str]:
    """Return the K memories that are retrieved; a memory does not answer its own question."""
    hits = await pool.retrieve(lesson.question, K + 1, vector=[float(each) for each in vector])
    return [each.key for each in hits if each.key != lesson.key][:K]


def _recall(lesson: RetrieverLesson, found: Sequence[str], material: Material) -> float:
    positives = {key for key in lesson.positives if key in material.rows}
    return len(positives & {*found}) / len(positives) if positives else 1.0


def _labelled(
    encoder: QueryEncoder, material: Material, lessons: Sequence[RetrieverLesson], vectors: Matrix
) -> tuple[Matrix, float]:
    """Return the share of positives in the better half of each lesson's candidates, and eq. 2."""
    apart = [_told_apart(material, each, vector) for each, vector in zip(lessons, vectors, strict=True)]
    rows = np.repeat(np.arange(len(lessons)), [len(material.labels(each)) for each in lessons])
    examples = material.examples(lessons)
    loss = binary_cross_entropy(encoder.logits(vectors[rows], examples.memories), examples.labels)
    return np.array(apart, dtype=np.float32), loss


def _told_apart(material: Material, lesson: RetrieverLesson, vector: Matrix) -> float:
    rows, labels = (np.array(each) for each in zip(*material.labels(lesson), strict=True))
    first = np.argsort(-(material.memories[rows] @ vector), kind="stable")[: int(labels.sum())]
    return float(labels[first].mean()) if len(first) else 1.0


def better(fresh: Judging, old: Judging) -> tuple[bool, str]:
    """Say whether a new version may serve, and why: no figure may fall, nor the loss rise for nothing."""
    now, then = fresh.figures, old.figures
    figures = ", ".join(
        f"{name} {getattr(then, field):.3f} → {getattr(now, field):.3f}"
        for name, field in (("told apart", "told_apart"), (f"recall@{K}", "recall"), ("loss", "loss"))
    )
    measured = f"on {now.held_out} held-out memories ({figures})"
    if now.told_apart < then.told_apart:
        return False, f"Kept out: it tells useful examples apart worse {measured}."
    if now.recall < then.recall:
        return False, f"Kept out: it retrieves worse from the whole pool {measured}."
    if (now.told_apart, now.recall) == (then.told_apart, then.recall):
        alike = "it tells apart and retrieves as before"
        if now.loss > then.loss:
            return False, f"Kept out: {alike}, at a higher loss, {measured}."
        return True, f"Kept: {alike}, at no higher loss, {measured}."
    return True, f"Kept: it is better by one figure at least and worse by none {measured}."


def _mean(shares: Matrix) -> float:
    return round(float(shares.mean(dtype=np.float64)), DIGITS)
