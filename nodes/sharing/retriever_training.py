"""Memory training (§3.2): new memories train the retriever, while the last version serves.

- grade: BM25 proposes candidates for each new memory; a candidate's grade is the probability that, shown as
  the example, it leads to an answer other than the memory's (eq. 1). If the grader's server returns
  log-probabilities, it is measured: 1 - the likelihood of the memory's answer after the example. Else the
  grader estimates it. Grades within a margin of one another give no label.
- train: start from the serving version, on all memories except those held out.
- keep: a version serves, by one write, if it is shown to retrieve no worse than the untrained embedder and is
  not behind the serving one; else it is refused with the reason, and the next one learns from its lessons.

Nothing is indexed anew: only the query encoder is trained (models/retriever/retriever.py).

Deviations from the paper: a training takes all waiting memories, since one pair cannot judge a version; the
latest lessons are repeated with the new ones, so that these do not displace them; and the loss learns from
grades and from the agents of the memories (models/retriever/retriever.py), not from eq. 2's labels.
"""

import asyncio
import time
from collections.abc import Sequence
from itertools import chain
from typing import Annotated, Any, Literal

from langgraph.managed import RemainingSteps
from langgraph.types import Send
from pydantic import Field
from typing_extensions import TypedDict

from mneme.core.errors import BadAnswer, BadInput, Conflict, PromptTooLong
from mneme.library.agents.agent import AGENTS, DOMAINS, load_agent
from mneme.library.agents.rubric import SINGLE_POOL
from mneme.models.asking.asking import ask
from mneme.models.asking.probability import ask_likelihood
from mneme.models.retriever.opening import query_encoder
from mneme.models.retriever.retriever import Learning, device, load
from mneme.nodes.sharing.context import PoolContext, PoolRuntime
from mneme.nodes.sharing.exchange import Exchange, example_of, question_of
from mneme.nodes.sharing.pools import agents_in, opened, pool_named, retrievers_of, rubric_of
from mneme.nodes.sharing.retriever_judging import HELD_OUT_MOST, Material, better, judge
from mneme.nodes.workflow import Plain, Typed, Update
from mneme.prompts.sharing.answering import AskedQuestion, answer
from mneme.prompts.sharing.grading import Comparison, grade_contradiction
from mneme.stores.ledger.records import Change
from mneme.stores.pools.lessons import HELD_OUT, Graded, Measure, RetrieverLesson, RetrieverLessons, labelled
from mneme.stores.pools.memory_pool import MemoryPool, Pooled
from mneme.stores.pools.retrievers import UNTRAINED, Retriever, Retrievers

MAX_GRADED_PER_TRAINING = 32
"""Maximum memories that one training grades; if more wait, another training follows."""
STEPS_PER_TRAINING = 5
"""Number of steps from the beginning of a training to the end of the graph."""
REPLAYED_LESSONS = 256
"""Maximum latest lessons in a training, so that its time does not grow with the pool."""
MIN_HELD_OUT = 8
"""Minimum held-out memories for judging a version."""
TOO_FEW = (
    f"{{held}} held-out memories cannot judge a version; {MIN_HELD_OUT} can. Every fifth answer is held out: "
    f"nothing is graded below some {MIN_HELD_OUT * HELD_OUT} answers."
)


class Wanted(TypedDict):
    """The pool whose retriever is trained."""

    pool: Annotated[
        str, Field(description="The pool whose retriever is trained.", examples=[*DOMAINS, SINGLE_POOL])
    ]


class Result(TypedDict, total=False):
    """Result of the last training: the last version made, if any, and why it serves or not."""

    retriever: Annotated[dict[str, Any] | None, Plain]
    why: str


class State(Wanted, Result, total=False):
    """The waiting memories, the number graded before, the new version, and the number still waiting."""

    lessons: Annotated[list[RetrieverLesson], Typed]
    left_over: int
    fresh: Annotated[Retriever | None, Typed]
    still: int
    remaining_steps: RemainingSteps


class Waiting(TypedDict):
    """One memory to be graded, by its key."""

    pool: str
    key: str


async def begin(state: State) -> Update:
    """Clear the result of an earlier run on this thread."""
    if not state.get("pool", "").strip():
        raise BadInput("Which pool?", "Give the pool whose retriever is to learn.")
    return {"retriever": None, "why": "No memory is new."}


async def gather(state: State, runtime: PoolRuntime) -> Update:
    """Take the memories that have waited longest, and count those that a killed training left graded."""
    lessons = RetrieverLessons(pool_named(runtime, state["pool"]))
    waiting, left_over = (
        await lessons.on("waiting", MAX_GRADED_PER_TRAINING),
        await lessons.count_on("graded"),
    )
    # Without enough held-out memories no version can be judged: nothing is graded in vain.
    if waiting and (held := len(await lessons.held_out(MIN_HELD_OUT))) < MIN_HELD_OUT:
        return {"lessons": [], "left_over": 0, "why": TOO_FEW.format(held=held)}
    return {"lessons": waiting, "left_over": left_over}


def each_lesson(state: State) -> list[Send] | str:
    """Fan out: grade each memory separately, all concurrently."""
    if state["lessons"]:  # by key: the memory is read when its turn comes, since it may be removed before
        return [Send("grade", Waiting(pool=state["pool"], key=each.key)) for each in state["lessons"]]
    return "train" if state["left_over"] else "__end__"


async def grade(state: Waiting, runtime: PoolRuntime) -> None:
    """Grade and label the candidates of one memory (eq. 1), if the retriever learns from grades."""
    pool, who = pool_named(runtime, state["pool"]), runtime.context.grader
    lessons = RetrieverLessons(pool)
    known = await lessons.of([state["key"]])
    lesson = next((each for each in known if each.status == "waiting"), None)
    if lesson is None:
        return  # graded before this step was killed
    memory = await pool.find(lesson.key)  # None if it was removed while it waited
    closed = lesson.model_copy(update={"status": "graded" if memory else "skipped"})
    if memory and runtime.context.by_grades:
        closed, who = await _graded(lesson, memory, pool, runtime)
        shown = {"step": "grade", "memory": lesson.key, "candidates": len(closed.candidates), "by": who}
        runtime.stream_writer(shown)
    why = Change(reason="Its candidates were graded (eq. 1).", actor="grader", model=who)
    await lessons.close(closed, change=why)


async def _graded(
    lesson: RetrieverLesson, memory: Pooled, pool: MemoryPool, runtime: PoolRuntime
) -> tuple[RetrieverLesson, str]:
    """Return the lesson with its candidates' grades and labels, and the grader."""
    who = runtime.context.grader
    found = await pool.candidates(memory, runtime.context.candidates)
    asked = await _asked(memory, runtime)
    answers = (contradiction_probability(memory, asked, each, who) for each in found)
    graded, failed = list[Graded](), list[str]()
    # Exceptions are returned, so that one bad candidate does not cost the grades of the others.
    for each, said in zip(found, await asyncio.gather(*answers, return_exceptions=True), strict=True):
        if isinstance(said, BadAnswer | PromptTooLong):
            failed.append(f"{each.key}: {said}")
        elif isinstance(said, BaseException):
            raise said
        else:
            p, measure, who = said
            graded.append(Graded(key=each.key, contradiction=p, agent=each.pair.agent, measure=measure))
    return labelled(lesson.model_copy(update={"ungraded": failed}), graded, runtime.context.labels), who


async def _asked(memory: Pooled, runtime: PoolRuntime) -> AskedQuestion | None:
    """Return the memory's question as its agent's prompt input; None if that agent is unknown here."""
    pair = memory.pair
    own = {each.name: each for each in agents_in(runtime.context.agent)}
    agent = load_agent(pair.agent) if pair.agent in AGENTS else own.get(pair.agent)
    if agent is None:
        return None
    try:
        rubric = (await rubric_of(runtime, pair.domain)).rubric
    except BadInput:  # the domain has no rubric any more
        rubric = None
    return question_of(Exchange(agent, pair.asks, pair.leading, rubric), [])


async def contradiction_probability(
    memory: Pooled, asked: AskedQuestion | None, candidate: Pooled, who: str
) -> tuple[float, Measure, str]:
    """Return p(¬Y) of eq. 1, the probability that an answer does not follow from an example."""
    pair, example = memory.pair, example_of(candidate.pair)
    if asked is not None:
        shown = asked.model_copy(update={"examples": [example]})
        measured = await ask_likelihood(answer, shown, pair.answer, who, lane="background")
        if measured is not None:
            return 1 - measured.probability, "likelihood", measured.responder
    given = Comparison(example=example, leading=pair.leading, question=pair.asks, answer=pair.answer)
    answered = await ask(grade_contradiction, given, who, lane="background")
    return answered.value.percent / 100, "grade", answered.responder


async def train(state: State, runtime: PoolRuntime) -> Update:
    """Retriever training: learn from graded memories; judge the new version by those held out."""
    pool = pool_named(runtime, state["pool"])
    retrievers, lessons = await retrievers_of(pool), RetrieverLessons(pool)
    waiting = [*await lessons.on("graded", REPLAYED_LESSONS), *await lessons.on("refused", REPLAYED_LESSONS)]
    new, why = [each.key for each in waiting], "No new memory has candidates."
    if new:
        material = await _material(pool, retrievers, waiting)
        if len(material.judged_by) < MIN_HELD_OUT:
            why = (
                f"{len(material.judged_by)} held-out memories cannot judge a version; {MIN_HELD_OUT} can. "
                "Those whose questions are nearly trained on do not count."
            )
        elif not material.teaches:
            why = "What is new tells nothing: no grades apart, and one agent's memories alone."
        else:
            return {"fresh": await _trained(pool, retrievers, material, new, runtime.context)}
    return {"fresh": None} | ({} if state.get("retriever") else {"why": why})


async def _material(pool: MemoryPool, retrievers: Retrievers, new: Sequence[RetrieverLesson]) -> Material:
    """Collect the new lessons, and the latest that earlier versions learned."""
    lessons, known = RetrieverLessons(pool), {each.key: each for each in reversed(new)}
    learned = await retrievers.learned(REPLAYED_LESSONS)
    keys = list(dict.fromkeys([*known, *learned]))[:REPLAYED_LESSONS]
    known |= {each.key: each for each in await lessons.of([key for key in keys if key not in known])}
    held = await lessons.held_out(HELD_OUT_MOST)
    questions = await lessons.questions.vectors([*dict.fromkeys([*keys, *(each.key for each in held)])])
    trained = [known[key] for key in keys if key in known]
    spoken = [[each.key, *(one.key for one in each.candidates)] for each in trained]
    return Material(trained, questions, await pool.vectors(chain.from_iterable(spoken)), held)


async def _trained(
    pool: MemoryPool, retrievers: Retrievers, material: Material, new: Sequence[str], context: PoolContext
) -> Retriever:
    parent, info, onwards = await retrievers.serving(), await pool.ledger.info(), None
    learning: Learning = "projection" if context.by_grades else "reranker"
    encoder = await asyncio.to_thread(query_encoder, learning, info.embedder, info.dimension)
    plain = await judge(encoder, material, pool)
    old = (
        plain if parent == UNTRAINED else await judge(await opened(pool, retrievers, parent), material, pool)
    )
    if parent != UNTRAINED and (await retrievers.get(parent)).learning == context.learning:
        onwards = await retrievers.weights(parent)
    # A new encoder, since the serving one stays in use unchanged.
    kind = (context.learning, info.embedder, info.dimension)
    encoder = await asyncio.to_thread(query_encoder, *kind, onwards)
    if context.by_grades:
        await asyncio.to_thread(load)  # so that loading PyTorch is not timed
    began = time.perf_counter()
    losses = await asyncio.to_thread(encoder.train, material.examples, context.seed)
    seconds = time.perf_counter() - began
    weights = encoder.weights()
    name = await asyncio.to_thread(retrievers.name_of, weights)
    fresh = await judge(encoder, material, pool)  # in the same pool as the two others, as it is now
    kept, reason, gains = better(fresh, old, plain)
    if kept:
        await asyncio.to_thread(retrievers.store, weights)
    return Retriever(
        number=await retrievers.count() + 1,
        parent=parent,
        learning=context.learning,
        weights=name,
        embedder=info.embedder,
        memories=list(new),
        positives=material.count(1),
        negatives=material.count(0),
        losses=losses,
        before=old.figures,
        after=fresh.figures,
        gains=gains,
        kept=kept,
        reason=reason,
        seconds=seconds,
        device=device() if context.by_grades else "cpu",
        seed=context.seed,
    )


async def keep(state: State, runtime: PoolRuntime) -> Update:
    """Log the version, let it serve if it retrieves no worse than the one before; count what still waits."""
    pool, fresh = pool_named(runtime, state["pool"]), state.get("fresh")
    outcome = await _kept(fresh, pool) if fresh else {}
    return outcome | {"fresh": None, "still": await RetrieverLessons(pool).count_on("waiting")}


async def _kept(retriever: Retriever, pool: MemoryPool) -> Update:
    retrievers, change = await retrievers_of(pool), Change(reason=retriever.reason, actor="training")
    # `number`: this step wrote it before a kill.
    if await retrievers.serving() not in {retriever.parent, retriever.number}:
        return {"why": f"Another training was first: {retriever.parent} serves no more."}
    try:
        await retrievers.record(retriever, change=change)
        if retriever.kept and await retrievers.serving() != retriever.number:
            await retrievers.serve(retriever.number, instead_of=retriever.parent, change=change)
    except Conflict as other:  # its lessons stay graded, for the next training
        return {"why": f"Another training was first: {other}"}
    status: Literal["learned", "refused"] = "learned" if retriever.kept else "refused"
    # After the version serves: a lesson that is marked would be lost to the next one if a kill came between.
    await RetrieverLessons(pool).mark(retriever.memories, status, change=change)
    await retrievers.prune()
    return {"retriever": retriever, "why": retriever.reason}


def more(state: State) -> str:
    """Continue while memories wait, so that a pool that grew quickly is learned completely."""
    return "gather" if state["still"] and state["remaining_steps"] > STEPS_PER_TRAINING else "__end__"
