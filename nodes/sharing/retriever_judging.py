"""Training and test data of a retriever: grades and kinds as matrices, and its finds in its pool.

Versions are judged by the latest held-out memories, at most HELD_OUT_MOST, so the set grows with the pool.
The measure needs no grader: the share of the asker's own agent among the first EXAMPLES_PER_PROMPT memories
found for a held-out question. Near-duplicates would make this too easy: questions that nearly repeat a
training question are left out, and memories nearly the same as the held-out one do not count.

A version is compared with the serving one and with the untrained embedder, pair by pair, by a bootstrap
interval of 95 %. It serves if it is shown to lose at most MAY_LOSE against the untrained embedder, and is no
worse than the serving one. So small regressions cannot accumulate, and noise cannot decide: if the held-out
memories cannot show the former, it is kept out. A second figure, `told_apart` (the positives in the better
half of a question's labelled candidates), depends on the grader and can only veto: a version that is
significantly worse by it is kept out.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean
from typing import NamedTuple

import numpy as np

from mneme.models.retriever.retriever import Examples, Matrix, QueryEncoder
from mneme.nodes.sharing.choosing import found_by
from mneme.nodes.sharing.pools import LookUp
from mneme.stores.pools.lessons import GRADE_MARGINS, HeldOut, RetrieverLesson
from mneme.stores.pools.memory_pool import MemoryPool, Pooled
from mneme.stores.pools.retrievers import Gain, Judged
from mneme.stores.write_gate import near, near_to_any

K = 10
"""Number of retrieved memories among which a positive counts as found."""
EXAMPLES_PER_PROMPT = 3
"""Number of retrieved memories whose agent is compared: the maximum that an agent is shown."""
HELD_OUT_MOST = 128
MAY_LOSE = 0.02
"""Share of the first three that a version may lose where it is not shown to gain."""
MEASURE_WEIGHTS = {"likelihood": 1.0, "probability": 0.3, "grade": 0.1}
"""Weight of a question's grades in the loss: estimates weigh less than measurements."""
SHARPNESS = 3.0
"""Difference of the target logits of a question's best and worst candidate, in nats."""
BOOTSTRAP_SAMPLES = 2000
"""Number of bootstrap samples for an interval."""

Vectors = Mapping[str, Sequence[float]]


@dataclass(frozen=True)
class Material:
    """The lessons, with the vectors of their questions, their candidates and their own memories."""

    lessons: Sequence[RetrieverLesson]
    questions: Vectors
    memories: Vectors
    held_out: Sequence[HeldOut]

    @cached_property
    def trained_on(self) -> list[RetrieverLesson]:
        """Return the lessons that are not held out and whose question and memory still exist."""
        there = (each for each in self.lessons if each.key in self.questions and each.key in self.memories)
        return [each for each in there if not each.is_held_out]

    @cached_property
    def judged_by(self) -> list[HeldOut]:
        """Return the held-out memories, except those whose question nearly repeats a training question."""
        asked = [each.question for each in self.trained_on]
        there = [each for each in self.held_out if each.key in self.questions]
        return [each for each in there if not near_to_any(each.question, asked)]

    @property
    def teaches(self) -> bool:
        """Return whether there is anything to learn: grades that differ, or memories of two agents."""
        lessons = self.trained_on
        return len({each.agent for each in lessons}) > 1 or any(self._graded(each) for each in lessons)

    def count(self, label: int) -> int:
        """Return the number of training candidates with this label."""
        return sum(each == label for lesson in self.trained_on for _, each in self.labels(lesson))

    @cached_property
    def examples(self) -> Examples:
        """Return the training examples."""
        lessons = self.trained_on
        graded = [self._graded(each) for each in lessons]
        width = max(1, *(len(each) for each in graded))  # shorter rows are padded with useless candidates
        dimension = len(self.memories[lessons[0].key])
        candidates = np.zeros((len(lessons), width, dimension), dtype=np.float32)
        useful = np.zeros((len(lessons), width), dtype=np.float32)
        for row, found in enumerate(graded):
            for column, (key, share) in enumerate(found):
                candidates[row, column], useful[row, column] = self.memories[key], share
        batch = np.array([self.memories[each.key] for each in lessons], dtype=np.float32)
        questions = self.embedded([each.key for each in lessons])
        texts, agents = [each.question for each in lessons], [each.agent for each in lessons]
        names = np.array(agents)  # kinds: 1 for two lessons of one agent, -1 of two, 0 unknown and for itself
        known = (names != "")[:, None] & (names != "")[None, :]
        kinds = (np.where(names[:, None] == names[None, :], 1.0, -1.0) * known).astype(np.float32)
        np.fill_diagonal(kinds, 0.0)
        return Examples(texts, questions, candidates, useful, batch, kinds, agents)

    def _graded(self, lesson: RetrieverLesson) -> list[tuple[str, float]]:
        """Return a lesson's candidates with their share of usefulness; none where grades tell nothing."""
        there = [each for each in lesson.candidates if each.key in self.memories]
        grades = np.array([each.contradiction for each in there])
        margin = max((GRADE_MARGINS[each.measure] for each in there), default=0.0)
        if len(there) <= 1 or np.ptp(grades) < margin:
            return []
        # Softmax of the grades, scaled to one range for all questions.
        weights = np.exp(-SHARPNESS * (grades - grades.min()) / np.ptp(grades))
        weights *= min(MEASURE_WEIGHTS[each.measure] for each in there) / weights.sum()
        return [(each.key, float(w)) for each, w in zip(there, weights, strict=True)]

    def embedded(self, keys: Sequence[str]) -> Matrix:
        """Return the embedder's vectors of the questions with these keys, one row per key."""
        return np.array([self.questions[each] for each in keys], dtype=np.float32)

    def labels(self, lesson: RetrieverLesson) -> list[tuple[str, int]]:
        """Return (key of the memory, label) for each of a lesson's labelled candidates."""
        labelled = [(key, 1) for key in lesson.positives] + [(key, 0) for key in lesson.negatives]
        return [(key, label) for key, label in labelled if key in self.memories]


class Judging(NamedTuple):
    """The result of a retriever on each held-out memory, and on each that has labels."""

    kind: Sequence[float]
    told_apart: Sequence[float]
    recall: Sequence[float]
    loss: float

    @property
    def figures(self) -> Judged:
        means = {name: fmean(getattr(self, name) or [0.0]) for name in ("kind", "recall", "told_apart")}
        return Judged(held_out=len(self.kind), loss=self.loss, k=K, **means)


async def judge(encoder: QueryEncoder, material: Material, pool: MemoryPool) -> Judging:
    """Measure a retriever on the held-out memories, in the pool as it is."""
    held = material.judged_by
    embedded = material.embedded([each.key for each in held])
    asked = [each.question for each in held]
    vectors = await asyncio.to_thread(encoder.vectors, asked, embedded)
    favours = await asyncio.to_thread(encoder.favours, asked, embedded)
    asking = zip(held, vectors, favours, strict=True)
    hits = await asyncio.gather(*(_found(*each, pool) for each in asking))
    kind, apart, recall = list[float](), list[float](), list[float]()
    labelled = {each.key: each for each in material.lessons if material.labels(each)}
    for each, vector, found in zip(held, vectors, hits, strict=True):
        of_kind = [hit.pair.agent == each.agent for hit in found[:EXAMPLES_PER_PROMPT]]
        kind.append(sum(of_kind) / len(of_kind) if of_kind else 0.0)
        if lesson := labelled.get(each.key):
            keys, labels = zip(*material.labels(lesson), strict=True)
            likeness = np.array([material.memories[key] for key in keys]) @ vector
            first = np.argsort(-likeness, kind="stable")[: sum(labels)]
            apart.append(float(np.array(labels)[first].mean()) if len(first) else 1.0)
            # What was never graded is unknown, not wrong.
            wanted = {*lesson.positives}
            recall.append(len(wanted & {hit.key for hit in found}) / len(wanted) if wanted else 1.0)

    def loss() -> float:
        examples = material.examples
        return encoder.loss(encoder.vectors(examples.texts, examples.questions), examples)

    return Judging(kind, apart, recall, await asyncio.to_thread(loss))


async def _found(
    held: HeldOut, vector: Matrix, favours: Mapping[str, float], pool: MemoryPool
) -> list[Pooled]:
    """Return the K nearest memories, without the held-out one and its near-duplicates."""
    asked = LookUp(vector=[float(each) for each in vector], favours=favours)
    # More than K, since the held-out memory itself and near-duplicates of it are dropped.
    hits = await found_by(pool, held.question, K + 1 + EXAMPLES_PER_PROMPT, asked)
    itself = next((each.pair.answer for each in hits if each.key == held.key), None)
    others = [each for each in hits if each.key != held.key]
    return [each for each in others if itself is None or not near(each.pair.answer, itself)][:K]


def gain(fresh: Sequence[float], old: Sequence[float]) -> Gain:
    """Return the mean of paired differences with its bootstrap interval of 95 %."""
    differences = np.array(fresh) - np.array(old)
    if not differences.size:
        return Gain(mean=0.0, low=0.0, high=0.0)
    chance = np.random.default_rng(0)  # the same verdict for the same figures
    drawn = chance.choice(differences, size=(BOOTSTRAP_SAMPLES, differences.size)).mean(axis=1)
    low, high = np.percentile(drawn, (2.5, 97.5))
    return Gain(mean=float(differences.mean()), low=float(low), high=float(high))


def better(fresh: Judging, serving: Judging, untrained: Judging) -> tuple[bool, str, dict[str, Gain]]:
    """Return whether a new version may serve, the reason, and its differences from the two others."""
    others = {"serving": serving, "untrained": untrained}
    gains = {name: gain(fresh.kind, each.kind) for name, each in others.items()}
    told = ", ".join(f"{each} than {name}" for name, each in gains.items())
    measured = f"on {len(fresh.kind)} held-out memories: of the asker's kind {told}"
    for name, each in gains.items():
        if each.high < 0:
            return False, f"Kept out: it finds fewer than {name}, {measured}.", gains
        # The serving version refuses only one that is behind it; the untrained one bounds the sum of losses.
        if each.low < -MAY_LOSE and (name == "untrained" or each.mean < 0):
            return False, f"Kept out: that it is no worse than {name} is not shown {measured}.", gains
    apart = gain(fresh.told_apart, serving.told_apart)
    if apart.high < 0:
        return False, f"Kept out: it tells useful examples apart worse, {apart}; {measured}.", gains
    shown = "no worse" if gains["serving"].low >= -MAY_LOSE else "no worse than untrained"
    return True, f"Kept: {'better' if gains['serving'].low > 0 else shown} {measured}.", gains
