"""What the retriever learns from each memory of a pool: which other memories help its question (§3.2).

A lesson is stored when its memory is. Its shelf says what has become of it: it waits, is graded, has been
learned, was refused (the version that learned from it was not kept: the next one learns from it again), or
was skipped. Its question is a record of its own, so that the question's vector is in the ledger for every
training and need not be computed again. The questions held out have a shelf, too: they are the set by which
versions are judged, and it grows with the pool.
"""

import hashlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from mneme.core.errors import Conflict
from mneme.stores.ledger.records import Change, Namespace, Version, Write, make_write, record_id
from mneme.stores.pools.memory_pool import MemoryPool, Pooled

HELD_OUT = 5
"""Every fifth answer is never trained on, with all its questions: by those a retriever is judged."""
HELD_SHELF = "held"
MARGIN = {"likelihood": 0.01, "probability": 0.05, "grade": 0.05}
"""What grades must differ by to mean something: a likelihood is measured, a grade is a guess in words."""
Status = Literal["waiting", "graded", "learned", "refused", "skipped"]
Measure = Literal["likelihood", "probability", "grade"]
"""How eq. 1 was found: how probable the answer itself is, P(yes) to the question in words, or a grade."""


class Graded(BaseModel):
    """A candidate example, and how probable it makes an answer that contradicts the memory's (eq. 1)."""

    model_config = ConfigDict(frozen=True)

    key: str
    contradiction: float = Field(ge=0, le=1)
    agent: str = Field("", description="Whose memory the candidate is; empty in lessons of older versions.")
    measure: Measure = "grade"


class HeldOut(BaseModel):
    """A memory by which versions are judged: its question, and whose it is. No grader has a say in it."""

    model_config = ConfigDict(frozen=True)

    key: str
    question: str
    agent: str


class RetrieverLesson(BaseModel):
    """One memory's candidates with their grades; the labels follow from them."""

    model_config = ConfigDict(frozen=True)

    key: str = Field(description="The memory's key in the pool.")
    question: str = Field(description="What is looked up: the question after the turns that led up to it.")
    group: str = Field(
        "", description="Its answer's checksum; questions of one answer are held out together."
    )
    agent: str = Field("", description="Whose memory it is; empty in lessons of older versions.")
    status: Status = "waiting"
    candidates: list[Graded] = []
    positives: list[str] = []
    negatives: list[str] = []
    ungraded: list[str] = Field([], description="Why candidates could not be graded.")

    @property
    def is_held_out(self) -> bool:
        return int((self.group or self.key)[:8], 16) % HELD_OUT == 0


def labelled(lesson: RetrieverLesson, candidates: list[Graded], v: int) -> RetrieverLesson:
    """Label at most v/2 candidates of the lowest grades positive and v/2 of the highest negative (§3.2).

    Grades that lie closer together than their measure's MARGIN tell nothing: none is labelled. No label
    is given by the order of keys: candidates of one grade are labelled together or not at all, and none
    that is nearer than half a margin to the middle between the lowest and the highest grade.
    """
    ordered = sorted(candidates, key=lambda each: (each.contradiction, each.key))
    graded = lesson.model_copy(update={"status": "graded", "candidates": ordered})
    half = min(v, len(ordered)) // 2
    if half == 0:
        return graded.model_copy(update={"status": "skipped"})
    margin = max(MARGIN[each.measure] for each in ordered)
    if ordered[-1].contradiction - ordered[0].contradiction < margin:
        return graded
    middle = (ordered[0].contradiction + ordered[-1].contradiction) / 2
    low, high = ordered[half].contradiction, ordered[-half - 1].contradiction
    labels = {
        "positives": [
            each.key for each in ordered[:half] if each.contradiction < min(low, middle - margin / 2)
        ],
        "negatives": [
            each.key for each in ordered[-half:] if each.contradiction > max(high, middle + margin / 2)
        ],
    }
    return graded.model_copy(update=labels)


class RetrieverLessons:
    """The lessons of one pool."""

    def __init__(self, pool: MemoryPool) -> None:
        self._ledger = pool.ledger
        self.namespace: Namespace = (*pool.below, "lessons")
        self.questions: Namespace = (*pool.below, "questions")

    async def open(self, pair: Pooled, *, change: Change) -> None:
        """Store a memory's lesson, once; a memory without a question has none."""
        await self.open_all([pair], change=change)

    async def open_all(self, pairs: Sequence[Pooled], *, change: Change) -> None:
        """Store memories' lessons; their questions are embedded together."""
        asked = [each for each in pairs if each.pair.prompt.strip()]
        await self._ledger.write([write for each in asked for write in self._opening(each, change)])

    def _opening(self, pair: Pooled, change: Change) -> list[Write]:
        """Return the writes of a question and of its lesson; done again, they change nothing."""
        question = pair.pair.asked
        agent = pair.pair.agent
        lesson = RetrieverLesson(key=pair.key, question=question, group=group_of(pair), agent=agent)
        held = HeldOut(key=pair.key, question=question, agent=agent)
        shelf = HELD_SHELF if lesson.is_held_out else None
        fields = {"event": "insert", "key": pair.key, "change": change, "idempotency_key": pair.key}
        return [
            make_write(
                namespace=self.questions, value=held.model_dump(), text=question, shelf=shelf, **fields
            ),
            make_write(
                namespace=self.namespace, value=lesson.model_dump(), text="", shelf="waiting", **fields
            ),
        ]

    async def waiting(self, limit: int) -> list[RetrieverLesson]:
        """Return the lessons that have waited longest."""
        return await self._on("waiting", limit)

    async def count_waiting(self) -> int:
        """Return how many lessons wait to be graded."""
        return await self._ledger.shelved(self.namespace, "waiting")

    async def count_graded(self) -> int:
        """Return how many lessons have labels that no retriever has learned yet."""
        return await self._ledger.shelved(self.namespace, "graded")

    async def graded(self, limit: int) -> list[RetrieverLesson]:
        """Return the lessons that have labels and that no retriever has learned yet, the oldest first."""
        return await self._on("graded", limit)

    async def refused(self, limit: int) -> list[RetrieverLesson]:
        """Return the lessons that a version learned which was not kept: the next one learns them again."""
        return await self._on("refused", limit)

    async def held_out(self, limit: int) -> list[HeldOut]:
        """Return the latest memories that no training looks at, whatever became of their lessons."""
        found = await self._ledger.records(self.questions, shelf=HELD_SHELF, limit=limit, newest_first=True)
        return [HeldOut.model_validate(each.value) for each in found]

    async def _on(self, shelf: Status, limit: int) -> list[RetrieverLesson]:
        found = await self._ledger.records(self.namespace, shelf=shelf, limit=limit)
        return [_lesson(each) for each in found]

    async def of(self, keys: Sequence[str]) -> list[RetrieverLesson]:
        """Return the lessons of these memories, in this order; those that were forgotten are left out."""
        return [_lesson(each) for each in await self._heads(keys)]

    async def _heads(self, keys: Sequence[str]) -> list[Version]:
        ids = [record_id(self.namespace, key) for key in keys]
        found = await self._ledger.by_ids(ids)
        return [found[each] for each in ids if each in found]

    async def close(self, lesson: RetrieverLesson, *, change: Change) -> None:
        """Store a lesson's grades; one that another process graded meanwhile stays as it is."""
        head = await self._ledger.get(self.namespace, lesson.key)
        if head is not None and head.live and head.shelf == "waiting":
            await self._move([(head, lesson)], change)

    async def mark(
        self, keys: Sequence[str], status: Literal["learned", "refused"], *, change: Change
    ) -> None:
        """Say of lessons that the version which learned them was kept, or that it was not."""
        heads = [each for each in await self._heads(keys) if each.live and each.shelf != status]
        moved = [_lesson(each).model_copy(update={"status": status}) for each in heads]
        await self._move(list(zip(heads, moved, strict=True)), change)

    async def _move(self, lessons: Sequence[tuple[Version, RetrieverLesson]], change: Change) -> None:
        """Write lessons onto their shelves, together; one that another process moved first stays there."""
        writes = [
            make_write(
                event="update",
                namespace=self.namespace,
                key=lesson.key,
                value=lesson.model_dump(),
                text="",
                change=change,
                expected_version=head.version,
                shelf=lesson.status,
            )
            for head, lesson in lessons
        ]
        try:
            await self._ledger.write(writes)
        except Conflict:
            for each in writes:
                with suppress(Conflict):
                    await self._ledger.write([each])

    async def vectors(self, keys: Sequence[str]) -> Mapping[str, Sequence[float]]:
        """Return the vectors of the questions of these memories, of those that are there."""
        points = {record_id(self.questions, key): key for key in keys}
        found = await self._ledger.vectors_by_ids(list(points))
        return {points[point]: vector for point, vector in found.items()}


def group_of(pair: Pooled) -> str:
    """Return the checksum of an answer: questions of one answer are held out together."""
    return hashlib.sha256(pair.pair.answer.strip().encode()).hexdigest()[:32]


def _lesson(version: Version) -> RetrieverLesson:
    return RetrieverLesson.model_validate(version.value)
