"""What a retriever is trained on and judged by: labelled pairs as matrices, and recall over its pool."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from models.retriever import Examples, Matrix, QuestionSide, binary_cross_entropy
from stores.lessons import Lesson
from stores.retrievers import Judged

K = 10
"""Retrieved memories among which a positive counts as found."""


@dataclass(frozen=True)
class Material:
    """The lessons with the vectors of their questions, and of every memory of the pool."""

    lessons: Sequence[Lesson]
    questions: Mapping[str, Sequence[float]]
    memories: Matrix
    rows: Mapping[str, int]

    @classmethod
    def of(
        cls,
        lessons: Sequence[Lesson],
        questions: Mapping[str, Sequence[float]],
        memories: Mapping[str, Sequence[float]],
        point: Callable[[str], str],
    ) -> "Material":
        """Lay out what is still there: a memory that was removed is no example any more."""
        rows = {id_: row for row, id_ in enumerate(memories)}
        named = {key: rows[point(key)] for key in _keys(lessons) if point(key) in rows}
        whole = [each for each in lessons if each.key in questions and each.key in named]
        return cls(whole, questions, np.array(list(memories.values()), dtype=np.float32), named)

    @property
    def held_out(self) -> list[Lesson]:
        return [each for each in self.lessons if each.is_held_out and self._labels(each)]

    @property
    def trained_on(self) -> list[Lesson]:
        return [each for each in self.lessons if not each.is_held_out and self._labels(each)]

    @property
    def positives(self) -> int:
        return sum(label == 1 for each in self.trained_on for _, label in self._labels(each))

    @property
    def negatives(self) -> int:
        return sum(label == 0 for each in self.trained_on for _, label in self._labels(each))

    def examples(self, lessons: Sequence[Lesson] | None = None) -> Examples:
        """Return the labelled pairs of lessons: of those that are trained on."""
        pairs = [
            (each, row, label)
            for each in (self.trained_on if lessons is None else lessons)
            for row, label in self._labels(each)
        ]
        return Examples(
            texts=[lesson.question for lesson, _, _ in pairs],
            questions=np.array([self.questions[lesson.key] for lesson, _, _ in pairs], dtype=np.float32),
            memories=self.memories[[row for _, row, _ in pairs]],
            labels=np.array([label for _, _, label in pairs], dtype=np.float32),
        )

    def _labels(self, lesson: Lesson) -> list[tuple[int, int]]:
        """Return (row of the memory, label) for each of a lesson's labelled candidates."""
        labelled = [(key, 1) for key in lesson.positives] + [(key, 0) for key in lesson.negatives]
        return [(self.rows[key], label) for key, label in labelled if key in self.rows]


def _keys(lessons: Sequence[Lesson]) -> set[str]:
    return set(chain.from_iterable([each.key, *each.positives, *each.negatives] for each in lessons))


def judge(side: QuestionSide, material: Material) -> Judged:
    """Measure recall over the whole pool, and eq. 2, on the held-out memories."""
    lessons = material.held_out
    embedded = np.array([material.questions[each.key] for each in lessons], dtype=np.float32)
    vectors = side.vectors([each.question for each in lessons], embedded)
    scores = vectors @ material.memories.T
    found = [_recall(scores[row], each, material) for row, each in enumerate(lessons)]
    examples = material.examples(lessons)
    asked = side.vectors(examples.texts, examples.questions)
    loss = binary_cross_entropy(side.logits(asked, examples.memories), examples.labels)
    return Judged(held_out=len(lessons), recall=float(np.mean(found)), loss=loss, k=K)


def _recall(scores: Matrix, lesson: Lesson, material: Material) -> float:
    """Return the share of a lesson's positives among the K that are retrieved for its question."""
    positives = {material.rows[key] for key in lesson.positives if key in material.rows}
    if not positives:
        return 1.0
    others = scores.copy()
    others[material.rows[lesson.key]] = -np.inf  # a memory does not answer its own question
    first = set(np.argpartition(-others, min(K, len(others) - 1))[:K].tolist())
    return len(positives & first) / min(len(positives), K)


def better(fresh: Judged, old: Judged) -> tuple[bool, str]:
    """Say whether a new version may serve: it must not retrieve worse, nor as well at a higher loss."""
    told = f"recall@{K} {old.recall:.3f} → {fresh.recall:.3f}, loss {old.loss:.3f} → {fresh.loss:.3f}"
    on = f"on {fresh.held_out} held-out memories"
    if fresh.recall < old.recall:
        return False, f"Kept out: it retrieves worse {on} ({told})."
    if fresh.recall == old.recall and fresh.loss > old.loss:
        return False, f"Kept out: it retrieves no better at a higher loss {on} ({told})."
    return True, f"Kept: it retrieves no worse {on} ({told})."
