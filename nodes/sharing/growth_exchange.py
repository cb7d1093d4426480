"""One exchange of a growth (§3.3): an agent answers, the pair is scored, and stored where it is good.

The answer and the score are tasks of their own in the checkpoint, and the write carries the exchange's name:
a growth that was killed asks no model again for what it has, and counts what it stored once.
"""

from dataclasses import replace
from typing import Any, NotRequired

from langgraph.func import task
from typing_extensions import TypedDict

from mneme.core.errors import BadAnswer, BadInput, MnemeError, PromptTooLong
from mneme.library.agents.agent import DOMAINS, Agent, agents_of
from mneme.nodes.counted import counted
from mneme.nodes.sharing import exchange as exchanging
from mneme.nodes.sharing.context import GrowthContext, GrowthRuntime
from mneme.nodes.sharing.exchange import Exchange, Scored, Scorer
from mneme.nodes.sharing.live import watch
from mneme.nodes.sharing.pools import agents_in, pool_of, rubric_of, who_answers
from mneme.prompts.prompt import REPAIRS
from mneme.stores.pools.memory_pool import MemoryPool


class Failure(TypedDict):
    """What did not work; the rest went on."""

    what: str
    why: str


class Dealt(TypedDict):
    """One question to one agent, who is not shown the standard answer; or that answer is to be scored."""

    domain: str
    standard: str
    agent: str
    question: str
    is_standard: bool
    once: str


class Replied(TypedDict):
    """An answer, what it was written after, what it cost; `failed` says why there is none."""

    text: str
    seen: list[str]
    retriever: int
    calls: int
    by: str
    failed: str
    prompt: NotRequired[str]


class Judged(TypedDict):
    """What a pair is worth, and by which version of the rubric."""

    points: dict[str, int]
    rationale: str
    faults: list[str]
    by: str
    calls: int
    rubric: int
    most: NotRequired[int]


Update = dict[str, Any]


def members_of(domain: str, context: GrowthContext) -> dict[str, Agent]:
    """Return the agents that learn from one another. Raises BadInput for a domain without any."""
    given = agents_in(context.agent)
    own = [each for each in given if each.domain == domain]
    if given and not own:
        raise BadInput(f"The agent {given[0].name} is of the domain {given[0].domain}, not of {domain}.")
    shipped = agents_of(domain) if domain in DOMAINS or not own else ()
    return {each.name: each for each in [*shipped, *own]}


@counted
async def exchange(state: Dealt, runtime: GrowthRuntime) -> Update:
    """Answer a question, score the pair, store it where it is good.

    The answer and the score are tasks, so that a replay finds them and asks no model again.
    """
    agent = members_of(state["domain"], runtime.context)[state["agent"]]
    rubric, pool = await rubric_of(runtime, state["domain"]), pool_of(runtime, state["domain"])
    asked = Exchange(agent, state["question"], rubric=rubric.rubric)
    replied = await _reply(state, asked, pool, runtime.context)
    if replied["failed"]:
        return {"calls": replied["calls"], "failed": [Failure(what=asked.question, why=replied["failed"])]}
    asked = replace(asked, prompt=replied.get("prompt", ""))
    context = runtime.context
    judged = await _judge(asked, replied, Scorer(rubric, context.scorer, "background", context.scoring))
    return await _kept(state, asked, replied, judged, runtime)


@task
async def _reply(state: Dealt, asked: Exchange, pool: MemoryPool, context: GrowthContext) -> Replied:
    """Let an agent answer; the standard answer itself is only to be scored."""
    if state["is_standard"]:
        return Replied(text=state["standard"], seen=[], retriever=0, calls=0, by="user", failed="")
    number, found = await exchanging.examples_for(pool, asked, context, state["standard"])
    try:
        who = await who_answers(pool, context.answerer_of(asked.agent.name))
        answered, shown = await exchanging.answer(asked, found, who, "background")
    except (BadAnswer, PromptTooLong) as unusable:
        calls = calls_of(unusable)
        return Replied(text="", seen=[], retriever=number, calls=calls, by="", failed=str(unusable))
    return Replied(
        text=answered.value,
        seen=[each.pair.answer for each in shown],
        retriever=number,
        calls=answered.attempts,
        by=answered.responder,
        failed="",
        prompt=exchanging.composed(asked.question, shown) if context.stored == "prompt" else "",
    )


@task
async def _judge(asked: Exchange, replied: Replied, scorer: Scorer) -> Judged:
    """Score an answer; the version of the rubric is that of the score, also after a replay."""
    scored = await exchanging.score(asked, replied["text"], replied["seen"], scorer)
    return Judged(
        points=scored.points,
        rationale=scored.rationale,
        faults=list(scored.faults),
        by=scored.by,
        calls=scored.calls,
        rubric=scorer.rubric.version,
        most=scored.most,
    )


async def _kept(
    state: Dealt, asked: Exchange, replied: Replied, judged: Judged, runtime: GrowthRuntime
) -> Update:
    """Store a pair above the threshold, and wake the training, also for one that the pool has already."""
    scored = _scored(judged)
    update: Update = {"calls": replied["calls"] + scored.calls}
    pool = pool_of(runtime, state["domain"])
    if scored.score is None:
        update |= {"failed": [Failure(what=asked.question, why=scored.rationale)]}
    elif await _watched(pool, replied, scored.score) <= runtime.context.threshold:
        update |= {"rejected": 1}
    else:
        update |= await _stored(state, asked, replied, judged, runtime)
    runtime.stream_writer(_progress(asked, scored, update, pool.pool))
    return update


async def _watched(pool: MemoryPool, replied: Replied, score: int) -> int:
    """Count a live score for the retriever that chose the examples; return it."""
    if replied["seen"]:
        await watch(pool, replied["retriever"], score)
    return score


async def _stored(
    state: Dealt, asked: Exchange, replied: Replied, judged: Judged, runtime: GrowthRuntime
) -> Update:
    pool, scored = pool_of(runtime, state["domain"]), _scored(judged)
    pair = exchanging.pair_of(asked, replied["text"], scored, replied["retriever"], judged["rubric"])
    change = exchanging.change_of(runtime, asked, scored, replied["by"])
    is_new, key = await exchanging.remember(pool, pair, change=change, once=state["once"])
    update: Update = {"stored": [key]} if is_new else {"known": 1}
    if unwoken := await exchanging.wake(runtime, pool.pool):
        update |= {"failed": [Failure(what=f"training of {pool.pool}", why=unwoken)]}
    return update


def _scored(judged: Judged) -> Scored:
    points, most = judged["points"], judged.get("most", 100)
    return Scored(points, judged["rationale"], judged["faults"], judged["by"], judged["calls"], most)


def calls_of(unusable: MnemeError) -> int:
    """Return the calls that a question took which nobody could answer."""
    return 1 + REPAIRS if isinstance(unusable, BadAnswer) else 0


def _progress(asked: Exchange, scored: Scored, found: Update, pool: str) -> dict[str, Any]:
    shown = {"step": "exchange", "agent": asked.agent.name, "question": asked.question, "pool": pool}
    state = {"stored": "stored" in found, "known": "known" in found}
    return shown | state | {"score": scored.score, "why": scored.rationale}
