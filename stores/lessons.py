"""What each memory of a pool teaches the retriever: which other memories are of use to its question (§3.2).

A lesson stands beside its memory from the moment that the memory is stored, and waits to be graded. Its
text is the memory's question, so that the question's vector is in the ledger, ready for every training.
"""

from collections.abc import Mapping, Sequence
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from mneme.errors import Conflict
from stores.memory_pool import MemoryPool, Pooled
from stores.records import Change, Namespace, Version, make_write, record_id

SHELF = "lessons"
HELD_OUT = 5
"""Every fifth memory, by its key, is never trained on: by those a retriever is judged."""
Status = Literal["waiting", "graded", "skipped"]


class Graded(BaseModel):
    """A candidate example, and how probable it makes an answer that contradicts the memory's (eq. 1)."""

    model_config = ConfigDict(frozen=True)

    key: str
    contradiction: float = Field(ge=0, le=1)


class Lesson(BaseModel):
    """One memory's candidates with their grades; the labels follow from them."""

    model_config = ConfigDict(frozen=True)

    key: str = Field(description="The memory's key in the pool.")
    question: str
    status: Status = "waiting"
    candidates: list[Graded] = []
    positives: list[str] = []
    negatives: list[str] = []

    @property
    def is_held_out(self) -> bool:
        return int(self.key[:8], 16) % HELD_OUT == 0


def labelled(lesson: Lesson, candidates: list[Graded], v: int) -> Lesson:
    """Label the v/2 candidates of the lowest grades positive and the v/2 of the highest negative (§3.2).

    With fewer than v candidates half of them are each; with fewer than two there is nothing to tell apart.
    """
    ordered = sorted(candidates, key=lambda each: (each.contradiction, each.key))
    half = min(v, len(ordered)) // 2
    if half == 0 or ordered[0].contradiction == ordered[-1].contradiction:
        return lesson.model_copy(update={"status": "skipped", "candidates": ordered})
    told = {
        "positives": [each.key for each in ordered[:half]],
        "negatives": [each.key for each in ordered[-half:]],
    }
    return lesson.model_copy(update={"status": "graded", "candidates": ordered, **told})


class Lessons:
    """The lessons of one pool."""

    def __init__(self, pool: MemoryPool) -> None:
        self._pool, self._ledger = pool, pool.ledger
        self.namespace: Namespace = (*pool.below, "lessons")

    async def open(self, pair: Pooled, *, change: Change) -> None:
        """Let a memory wait to be learned from; one without a question teaches nothing."""
        if not pair.pair.prompt.strip():
            return
        lesson = Lesson(key=pair.key, question=pair.pair.prompt)
        write = make_write(
            event="insert",
            namespace=self.namespace,
            key=lesson.key,
            value=lesson.model_dump(),
            text=lesson.question,
            change=change,
            idempotency_key=lesson.key,
            shelf=SHELF,
        )
        await self._ledger.write([write])

    async def waiting(self, limit: int) -> list[Lesson]:
        """Return the lessons that wait longest."""
        found = await self._ledger.records(self.namespace, filter={"status": "waiting"}, limit=limit)
        return [_lesson(each) for each in found]

    async def count_waiting(self) -> int:
        """Return how many lessons wait to be graded."""
        return await self._ledger.count(self.namespace, filter={"status": "waiting"})

    async def close(self, lesson: Lesson, *, change: Change) -> None:
        """Store a lesson's grades; one that another process graded meanwhile stays as it is."""
        head = await self._ledger.get(self.namespace, lesson.key)
        if head is None or not head.live or _lesson(head).status != "waiting":
            return
        try:
            await self._ledger.update(
                self.namespace,
                lesson.key,
                lesson.model_dump(),
                text=None,
                change=change,
                expected_version=head.version,
            )
        except Conflict:
            return

    async def graded(self, latest: int) -> list[Lesson]:
        """Return the lessons that came in last, of those that have labels."""
        wanted = {"status": "graded"}
        skipped = max(0, await self._ledger.count(self.namespace, filter=wanted) - latest)
        found = await self._ledger.records(self.namespace, filter=wanted, limit=latest, offset=skipped)
        return [_lesson(each) for each in found]

    async def vectors(self) -> Mapping[str, Sequence[float]]:
        """Return the vectors of all questions, by the lessons' point ids."""
        return await self._ledger.vectors(self.namespace, SHELF)

    def point(self, key: str) -> str:
        """Return the id under which a lesson's vector is."""
        return record_id(self.namespace, key)


def _lesson(version: Version) -> Lesson:
    return Lesson.model_validate(version.value)
