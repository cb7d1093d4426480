"""Memory training (§3.2): what was stored lately teaches the retriever, while the last version serves.

- grade: BM25 names candidates for each new memory; the grader says how far each, shown as the example, leads
  to an answer that contradicts the memory's (eq. 1); the lowest grades are positive, the highest negative.
- train: from the version that serves onwards, on the graded memories (eq. 2) but those held out.
- keep: a version that retrieves worse for the held-out memories is kept out, with the reason; another serves
  from one write on.

Deviations from the paper: a training takes all memories that wait, not one alone, since by one nothing can be
judged; and the latest lessons are repeated with the new ones, or these would push them out.
"""

import asyncio
import time
from collections.abc import Sequence
from operator import add
from typing import Annotated, Any

from langgraph.runtime import Runtime
from langgraph.types import Overwrite, Send
from typing_extensions import TypedDict

from mneme.errors import BadInput, Conflict, NotFound
from models.asking import ask
from models.retriever import device, question_side
from nodes.memory_pools import PoolContext, opened, pool_named, retrievers_of
from nodes.retriever_judging import Material, better, judge
from prompts.memory_sharing import Comparison, Example, grade_contradiction
from stores.lessons import Graded, Lesson, Lessons, labelled
from stores.memory_pool import MemoryPool, Pooled
from stores.records import Change
from stores.retrievers import UNTRAINED, Retriever

AT_ONCE = 32
"""Memories that one training grades anew."""
REPLAYED = 400
"""Latest lessons that a training goes through; so its time does not grow with the pool."""
ENOUGH = 4
"""Held-out memories below which no version can be judged."""


class Wanted(TypedDict):
    """Whose retriever learns."""

    pool: str


class Result(TypedDict, total=False):
    """What became of a training: the version, None where none was made, and why."""

    retriever: dict[str, Any] | None
    why: str


class State(Wanted, Result, total=False):
    """The memories that wait, and those that were graded."""

    lessons: list[dict[str, Any]]
    graded: Annotated[list[str], add]


class Waiting(TypedDict):
    """One memory to be graded."""

    pool: str
    lesson: dict[str, Any]


Update = dict[str, Any]
Context = Runtime[PoolContext]


async def gather(state: State, runtime: Context) -> Update:
    """Take the memories that wait longest."""
    if not state.get("pool", "").strip():
        raise BadInput("Which pool?", "Give the pool whose retriever is to learn.")
    waiting = await Lessons(pool_named(runtime, state["pool"])).waiting(AT_ONCE)
    return {
        "lessons": [each.model_dump() for each in waiting],
        "graded": Overwrite([]),
        "retriever": None,
        "why": "" if waiting else "No memory is new.",
    }


def each_lesson(state: State) -> list[Send] | str:
    """Grade the memories by themselves, at the same time."""
    if not state["lessons"]:
        return "__end__"
    return [Send("grade", Waiting(pool=state["pool"], lesson=each)) for each in state["lessons"]]


async def grade(state: Waiting, runtime: Context) -> Update:
    """Grade the candidates of one memory (eq. 1) and label them."""
    pool, lesson = pool_named(runtime, state["pool"]), Lesson.model_validate(state["lesson"])
    try:
        memory = await pool.get(lesson.key)
    except NotFound:  # it was removed while it waited
        closed = lesson.model_copy(update={"status": "skipped"})
        who = "rules"
    else:
        found = await pool.candidates(memory, runtime.context.candidates)
        grades, who = await _graded(memory, found, runtime.context.grader)
        closed = labelled(lesson, grades, runtime.context.labels)
    why = Change(reason="Its candidates were graded (eq. 1).", actor="grader", model=who)
    await Lessons(pool).close(closed, change=why)
    return {"graded": [lesson.key] if closed.status == "graded" else []}


async def _graded(memory: Pooled, found: Sequence[Pooled], who: str) -> tuple[list[Graded], str]:
    asked = [_comparison(memory, candidate) for candidate in found]
    answers = await asyncio.gather(
        *(ask(grade_contradiction, each, who, lane="background") for each in asked)
    )
    grades = [
        Graded(key=candidate.key, contradiction=answered.value.percent / 100)
        for candidate, answered in zip(found, answers, strict=True)
    ]
    return grades, answers[0].responder if answers else who


def _comparison(memory: Pooled, candidate: Pooled) -> Comparison:
    shown = candidate.pair
    example = Example(question=shown.prompt, answer=shown.answer, leading=shown.leading)
    return Comparison(example=example, question=memory.pair.prompt, answer=memory.pair.answer)


async def train(state: State, runtime: Context) -> Update:
    """Learn from the graded memories; judge the new version and the one that serves by those held out."""
    if not state["graded"]:
        return {"why": "No new memory has candidates that can be told apart."}
    pool = pool_named(runtime, state["pool"])
    material = await _material(pool)
    if len(material.held_out) < ENOUGH:
        return {"why": f"{len(material.held_out)} held-out memories cannot judge a version; {ENOUGH} can."}
    if not material.trained_on:
        return {"why": "All graded memories are held out; the next ones will not be."}
    return {"retriever": (await _trained(pool, material, state["graded"], runtime.context)).model_dump()}


async def _material(pool: MemoryPool) -> Material:
    lessons = Lessons(pool)
    graded = await lessons.graded(REPLAYED)
    questions, memories = await lessons.vectors(), await pool.vectors()
    return await asyncio.to_thread(
        Material.of,
        graded,
        {
            each.key: questions[lessons.point(each.key)]
            for each in graded
            if lessons.point(each.key) in questions
        },
        memories,
        pool.point,
    )


async def _trained(
    pool: MemoryPool, material: Material, new: Sequence[str], context: PoolContext
) -> Retriever:
    retrievers, info = await retrievers_of(pool), await pool.ledger.info()
    parent = await retrievers.serving()
    numbers = [each.number for each in await retrievers.all()]
    now = None if parent == UNTRAINED else await opened(pool, retrievers, parent)

    def learn() -> Retriever:
        before = now or question_side("projection", info.embedder, info.dimension)
        onwards = before.weights() if now and parent_learning == context.learning else None
        side = question_side(context.learning, info.embedder, info.dimension, onwards)
        began = time.perf_counter()
        losses = side.train(material.examples(), context.seed)
        seconds = time.perf_counter() - began
        old, fresh = judge(before, material), judge(side, material)
        kept, reason = better(fresh, old)
        return Retriever(
            number=max(numbers, default=0) + 1,
            parent=parent,
            learning=context.learning,
            weights=retrievers.store(side.weights()),
            embedder=info.embedder,
            memories=list(new),
            positives=material.positives,
            negatives=material.negatives,
            losses=losses,
            before=old,
            after=fresh,
            kept=kept,
            reason=reason,
            seconds=seconds,
            device=device(),
            seed=context.seed,
        )

    parent_learning = "" if parent == UNTRAINED else (await retrievers.get(parent)).learning
    return await asyncio.to_thread(learn)


async def keep(state: State, runtime: Context) -> Update:
    """Log the version; let it serve where it retrieves no worse than the one before."""
    told = state.get("retriever")
    if told is None:
        return {}
    retriever = Retriever.model_validate(told)
    retrievers = await retrievers_of(pool_named(runtime, state["pool"]))
    change = Change(reason=retriever.reason, actor="training")
    try:
        await retrievers.record(retriever, change=change)
        if retriever.kept and await retrievers.serving() != retriever.number:
            await retrievers.serve(retriever.number, instead_of=retriever.parent, change=change)
    except Conflict as other:
        return {"retriever": None, "why": f"Another training was first: {other}"}
    return {"why": retriever.reason}
