"""What the retriever learns from each memory of a pool: which other memories help its question (§3.2).

A lesson is stored together with its memory. Its shelf is its status: waiting, graded, learned, refused (the
version that learned from it was not kept, so the next one learns from it again), or skipped. Its question is
a separate record, so that its vector is in the ledger and need not be computed for each training. The
held-out questions have a shelf, too: they are the set by which versions are judged, and it grows with the
pool.
"""

import hashlib
from collections.abc import Sequence
from contextlib import suppress
from typing import Literal

from pydantic import BaseModel, Field

from mneme.core.errors import Conflict
from mneme.stores.ledger.log import retry_on_conflict
from mneme.stores.ledger.records import Change, Write
from mneme.stores.pools.memory_pool import MemoryPool, Pair, Pooled
from mneme.stores.shelf import Shelf, kind_of

HELD_OUT = 5
"""Every fifth answer, with all its questions, is held out of training, to judge retrievers by."""
HELD_SHELF = "held"
GRADE_MARGINS = {"likelihood": 0.01, "probability": 0.05, "grade": 0.05}
"""Minimum differences of meaningful grades: a likelihood is measured, a grade is a model's estimate."""
Status = Literal["waiting", "graded", "learned", "refused", "skipped"]
Measure = Literal["likelihood", "probability", "grade"]
"""The basis of eq. 1: the likelihood of the answer, or a grade; P(yes) in lessons of older versions."""


class Graded(BaseModel, frozen=True):
    """A candidate example, and the probability of an answer that contradicts the memory's (eq. 1)."""

    key: str
    contradiction: float = Field(ge=0, le=1)
    agent: str = Field("", description="Whose memory the candidate is; empty in lessons of older versions.")
    measure: Measure = "grade"


class HeldOut(BaseModel, frozen=True):
    """A memory by which versions are judged: its question and its agent, without any grade."""

    key: str
    question: str
    agent: str


class RetrieverLesson(BaseModel, frozen=True):
    """One memory's candidates with their grades, and the labels that follow from these."""

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
        return int((self.group or self.key)[:8], 16) % HELD_OUT == 0  # by content, so that it never changes


def labelled(lesson: RetrieverLesson, candidates: list[Graded], v: int) -> RetrieverLesson:
    """Label at most v/2 candidates of the lowest grades positive and v/2 of the highest negative (§3.2).

    If all grades lie within their measure's margin, none is labelled.
    """
    ordered = sorted(candidates, key=lambda each: (each.contradiction, each.key))
    graded = lesson.model_copy(update={"status": "graded", "candidates": ordered})
    half = min(v, len(ordered)) // 2  # of each end: v/2, or half of fewer candidates
    if half == 0:
        return graded.model_copy(update={"status": "skipped"})
    margin = max(GRADE_MARGINS[each.measure] for each in ordered)
    if ordered[-1].contradiction - ordered[0].contradiction < margin:
        return graded
    # The paper takes v/2 of each end. Here the order of keys decides no label: candidates of one grade are
    # labelled together or not at all, and none within half a margin of the middle.
    middle = (ordered[0].contradiction + ordered[-1].contradiction) / 2
    low, high = ordered[half].contradiction, ordered[-half - 1].contradiction
    below, above = min(low, middle - margin / 2), max(high, middle + margin / 2)
    positives = [each.key for each in ordered[:half] if each.contradiction < below]
    negatives = [each.key for each in ordered[-half:] if each.contradiction > above]
    return graded.model_copy(update={"positives": positives, "negatives": negatives})


LESSON = kind_of(RetrieverLesson, part=lambda lesson: lesson.status)
HELD_OUT_KIND = kind_of(HeldOut, text=lambda held: held.question)


class RetrieverLessons(Shelf[RetrieverLesson, RetrieverLesson]):
    """The lessons of one pool, by status, and their questions."""

    def __init__(self, pool: MemoryPool) -> None:
        super().__init__(pool.ledger, (*pool.below, "lessons"), LESSON)
        self.questions = Shelf(pool.ledger, (*pool.below, "questions"), HELD_OUT_KIND)

    async def open_all(self, pairs: Sequence[Pooled], *, change: Change) -> None:
        """Store the lessons of memories with a question, once; all questions are embedded together."""
        asked = [each for each in pairs if each.pair.prompt.strip()]
        await self.ledger.write([write for each in asked for write in self._opening(each, change)])

    def _opening(self, pair: Pooled, change: Change) -> list[Write]:
        """Return the writes of a question and of its lesson; repeated, they change nothing."""
        told = {"key": pair.key, "question": pair.pair.asked, "agent": pair.pair.agent}
        lesson = RetrieverLesson(**told, group=group_of(pair))
        question = self.questions.write(pair.key, HeldOut(**told), change, idempotency_key=pair.key)
        shelf = HELD_SHELF if lesson.is_held_out else None
        return [
            question.model_copy(update={"shelf": shelf}),
            self.write(pair.key, lesson, change, idempotency_key=pair.key),
        ]

    async def on(self, status: Status, limit: int) -> Sequence[RetrieverLesson]:
        """Return lessons with a status, oldest first."""
        return await self.all(limit, shelf=status)

    async def count_on(self, status: Status) -> int:
        """Return the number of lessons with a status."""
        return await self.ledger.count(self.namespace, shelf=status)

    async def held_out(self, limit: int) -> Sequence[HeldOut]:
        """Return the latest held-out memories, whatever the status of their lessons."""
        return await self.questions.all(limit, shelf=HELD_SHELF, newest_first=True)

    async def of(self, keys: Sequence[str]) -> list[RetrieverLesson]:
        """Return the lessons of these memories, in this order, without missing ones."""
        return self.read(await self.by_keys(keys))

    @retry_on_conflict
    async def close(self, lesson: RetrieverLesson, *, change: Change) -> None:
        """Store a lesson's grades; a lesson that another process graded meanwhile stays as it is."""
        for head in await self.by_keys([lesson.key]):
            if head.live and head.shelf == "waiting":  # else another process was first
                await self.update(lesson.key, lesson, change=change, expected_version=head.version)

    async def mark(
        self, keys: Sequence[str], status: Literal["learned", "refused"], *, change: Change
    ) -> None:
        """Mark lessons as learned if the version that learned from them was kept, else as refused.

        A lesson that another process marks meanwhile stays so; a learned lesson stays learned.
        """
        known = [each for each in await self.by_keys(keys) if each.live]
        heads = [each for each in known if each.shelf not in {status, "learned"}]
        marked = [each.model_copy(update={"status": status}) for each in self.read(heads)]
        pairs = zip(heads, marked, strict=True)
        writes = [self.write(head.key, lesson, change, head.version) for head, lesson in pairs]
        try:
            await self.ledger.write(writes)
        except Conflict:  # one of them was moved meanwhile; the others are marked all the same
            for each in writes:
                with suppress(Conflict):
                    await self.ledger.write([each])


def group_of(pair: Pooled) -> str:
    """Return the checksum of an answer: questions of one answer are held out together."""
    return hashlib.sha256(pair.pair.answer.strip().encode()).hexdigest()[:32]


async def keep(
    pool: MemoryPool, pairs: Sequence[Pair], *, change: Change, once: str | None = None
) -> list[bool]:
    """Store pairs with what the retriever is to learn from them; return which are new.

    Done again after a kill, it stores nothing twice, and opens the lessons that were missing; with the same
    `once` it also says again that they are new.
    """
    are_new = await pool.add_all(pairs, change=change, once=once)
    # Also of pairs that are not new: a kill may have come between a pair and its lesson.
    held = [Pooled(key=each.key, pair=each) for each in pairs if await pool.holds(each.key)]
    await RetrieverLessons(pool).open_all(held, change=change)
    return are_new
