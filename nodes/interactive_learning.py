"""Interactive learning (§3.3): agents ask and answer one another; a pool grows from as little as one record.

- take_in: standard answers go into the pool; the first need no question (§3.1).
- choose: the next memories of the pool are standard answers, those that came of this growth too.
- ask: for a standard answer, ask for a question that it answers.
- pose: that question goes to the standard answer's own agent, or to all agents of the domain.
- exchange: answer, score, store: as when a person asks, except that the standard answer is not shown to whom
  is asked. A standard answer that had no question is scored and stored with the one that was found.

Every step is checkpointed: a growth that was killed goes on, and asks again only what had no answer yet.
"""

import hashlib
import json
from operator import add
from typing import Annotated, Any, NotRequired
from uuid import uuid4

from langgraph.func import task
from langgraph.runtime import Runtime
from langgraph.types import Overwrite, Send
from pydantic import TypeAdapter, ValidationError
from typing_extensions import TypedDict

from agents.agent import DOMAINS, Agent, agents_of
from mneme.errors import BadAnswer, BadInput, MnemeError, PromptTooLong
from models.asking import ask as ask_model
from models.attempts import REPAIRS
from nodes import memory_exchange as exchanging
from nodes.memory_exchange import Exchange, Scored, Scorer
from nodes.memory_pools import GrowthContext, agent_of, pool_of, rubric_of
from prompts.memory_sharing import Standard, ask_for
from stores.memory_pool import LONGEST, MemoryPool, Pair, Pooled
from stores.records import Change

VOUCHED_FOR = 100
"""The score of a standard answer that a person gives."""
PAGE = 100


class Given(TypedDict):
    """A standard answer, and whose kind it is."""

    agent: str
    answer: str


STANDARDS = TypeAdapter(list[Given])


class Wanted(TypedDict):
    """Which domain's pool is to grow, and standard answers to begin with beside those that it holds."""

    domain: str
    standards: NotRequired[list[Given]]


class Failure(TypedDict):
    """What did not work; the rest went on."""

    what: str
    why: str


class Result(TypedDict, total=False):
    """What a growth brought, what it cost, and why it ended."""

    pool: str
    memories: int
    calls: Annotated[int, add]
    stored: Annotated[list[str], add]
    known: Annotated[int, add]
    rejected: Annotated[int, add]
    failed: Annotated[list[Failure], add]
    why: str


class Posed(TypedDict):
    """A question that was asked for a standard answer."""

    key: str
    agent: str
    question: str


class State(Wanted, Result, total=False):
    """How far the growth has come in the pool, and this round's standard answers and questions."""

    growth: str
    position: int
    lap: int
    chosen: list[dict[str, Any]]
    questions: Annotated[list[Posed], add]
    posed: int
    exchanges: list[dict[str, Any]]


class Chosen(TypedDict):
    """One standard answer of this round, and the questions that were asked for it before."""

    domain: str
    standard: dict[str, Any]
    known: list[str]


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


class Judged(TypedDict):
    """What a pair is worth, and by which version of the rubric."""

    points: dict[str, int]
    rationale: str
    faults: list[str]
    by: str
    calls: int
    rubric: int


Update = dict[str, Any]
Context = Runtime[GrowthContext]


async def take_in(state: State, runtime: Context) -> Update:
    """Put the given standard answers into the pool."""
    members = _members(exchanging.domain_named(state.get("domain")), runtime.context)
    given = _standards(state.get("standards") or [])
    for each in given:
        if each["agent"] not in members:
            raise BadInput(
                f'The domain {state["domain"]} has no agent "{each["agent"]}".',
                f"It has: {', '.join(members)}.",
            )
    pool = pool_of(runtime, state["domain"])
    failed = [failure for each in given if (failure := await _taken(pool, state["domain"], each))]
    if not await pool.count():
        raise BadInput(
            f"The pool {pool.pool} is empty, and no standard answer is given.",
            "Give at least one; `mneme share pool import` brings in more.",
        )
    return {
        "growth": uuid4().hex,
        "pool": pool.pool,
        "position": 0,
        "lap": 1,
        "questions": Overwrite([]),
        "calls": Overwrite(0),
        "stored": Overwrite([]),
        "known": Overwrite(0),
        "rejected": Overwrite(0),
        "failed": Overwrite(failed),
        "why": "",
    }


def _standards(given: object) -> list[Given]:
    """Return the standard answers that a client gave. Raises BadInput naming the field."""
    try:
        return STANDARDS.validate_python(given)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        field = ".".join(["standards", *map(str, first["loc"])])
        told = f"`{field}`: {first['msg']}."
        raise BadInput(told, 'Each standard is like {"agent": "sonnet", "answer": "…"}.') from error


def _members(domain: str, context: GrowthContext) -> dict[str, Agent]:
    """Return the agents that learn from one another. Raises BadInput for a domain without any."""
    own = [agent_of(context.agent)] if context.agent else []
    if own and own[0].domain != domain:
        raise BadInput(f"The agent {own[0].name} is of the domain {own[0].domain}, not of {domain}.")
    shipped = agents_of(domain) if domain in DOMAINS or not own else ()
    return {each.name: each for each in [*shipped, *own]}


async def _taken(pool: MemoryPool, domain: str, given: Given) -> Failure | None:
    length = len(given["answer"])
    if not given["answer"].strip() or length > LONGEST:
        why = f"A standard answer has 1 to {LONGEST} characters, this one {length}."
        return Failure(what=given["answer"][:60], why=why)
    pair = Pair(answer=given["answer"], agent=given["agent"], domain=domain, score=VOUCHED_FOR)
    await exchanging.keep(pool, [pair], change=Change(reason="A standard answer.", actor="user"))
    return None


async def choose(state: State, runtime: Context) -> Update:
    """Take the next memories as standard answers, as many as the budget has calls for."""
    members, pool = _members(state["domain"], runtime.context), pool_of(runtime, state["domain"])
    left = runtime.context.budget - state["calls"]
    wanted = min(runtime.context.at_once, left // _cost(members, runtime.context))
    if wanted < 1:
        return {"chosen": [], "why": f"The budget of {runtime.context.budget} calls is spent."}
    found, position = await _next(pool, state["position"], wanted, members)
    lap = state["lap"]
    if not found and lap < runtime.context.laps:
        found, position = await _next(pool, 0, wanted, members)
        lap += 1
    why = "" if found else "Every memory has served as a standard answer."
    chosen = [each.model_dump() for each in found]
    told = {"step": "choose", "lap": lap, "standards": len(found), "calls": state["calls"]}
    runtime.stream_writer(told | {"budget": runtime.context.budget})
    posed = len(state["questions"])
    return {"chosen": chosen, "position": position, "lap": lap, "why": why, "posed": posed}


def _cost(members: dict[str, Agent], context: GrowthContext) -> int:
    """Return the calls that a standard answer takes: its question, its score, answers and their scores."""
    return 2 + 2 * (len(members) if context.asked == "domain" else 1)


async def _next(
    pool: MemoryPool, position: int, wanted: int, members: dict[str, Agent]
) -> tuple[list[Pooled], int]:
    """Return so many memories of these agents from a place in the pool's order on, and the next place."""
    found: list[Pooled] = []
    while page := await pool.first(PAGE, start=position):
        for each in page:
            position += 1
            if each.pair.agent in members:
                found.append(each)
            if len(found) == wanted:
                return found, position
    return found, position


def each_standard(state: State) -> list[Send] | str:
    """Ask for a question for each standard answer, at the same time."""
    if not state["chosen"]:
        return "end"
    return [
        Send("ask", Chosen(domain=state["domain"], standard=each, known=_known(state, each["key"])))
        for each in state["chosen"]
    ]


def _known(state: State, key: str) -> list[str]:
    return [each["question"] for each in state["questions"] if each["key"] == key]


async def ask(state: Chosen, runtime: Context) -> Update:
    """Ask for a question that a standard answer answers (§3.3)."""
    standard = Pooled.model_validate(state["standard"])
    agent = _members(state["domain"], runtime.context)[standard.pair.agent]
    known = [*state["known"], *filter(None, [standard.pair.prompt])]
    given = Standard(does=agent.does, questions=agent.questions, answer=standard.pair.answer, known=known)
    try:
        answered = await ask_model(ask_for, given, runtime.context.answerer, lane="background")
    except (BadAnswer, PromptTooLong) as unusable:
        failure = Failure(what=f"a question for {standard.key}", why=str(unusable))
        return {"calls": _spent(unusable), "failed": [failure]}
    question = answered.value.question
    runtime.stream_writer({"step": "ask", "agent": agent.name, "question": question})
    return {
        "calls": answered.attempts,
        "questions": [Posed(key=standard.key, agent=agent.name, question=question)],
    }


async def pose(state: State, runtime: Context) -> Update:
    """Say which agent gets which question."""
    members = _members(state["domain"], runtime.context)
    standards = {each["key"]: Pooled.model_validate(each) for each in state["chosen"]}
    dealt: list[Dealt] = []
    for each in state["questions"][state["posed"] :]:
        asked = list(members) if runtime.context.asked == "domain" else [each["agent"]]
        standard = standards[each["key"]].pair
        dealt += [_dealt(state, each, name, standard) for name in asked]
        if not standard.prompt:
            dealt.append(_dealt(state, each, each["agent"], standard, is_standard=True))
    return {"exchanges": dealt}


def _dealt(state: State, posed: Posed, agent: str, standard: Pair, *, is_standard: bool = False) -> Dealt:
    """Deal a question; `once` names this exchange of this growth, whatever is answered to it."""
    exchanged = [state["growth"], posed["key"], posed["question"], agent, is_standard]
    return Dealt(
        domain=state["domain"],
        standard=standard.answer,
        agent=agent,
        question=posed["question"],
        is_standard=is_standard,
        once=hashlib.sha256(json.dumps(exchanged).encode()).hexdigest(),
    )


def each_exchange(state: State) -> list[Send] | str:
    """Let the agents answer at the same time."""
    return [Send("exchange", each) for each in state["exchanges"]] or "choose"


async def exchange(state: Dealt, runtime: Context) -> Update:
    """Answer a question, score the pair, store it where it is good.

    The answer and the score are tasks, so that a replay finds them and asks no model again.
    """
    agent = _members(state["domain"], runtime.context)[state["agent"]]
    asked, pool = Exchange(agent, state["question"]), pool_of(runtime, state["domain"])
    replied = await _reply(state, asked, pool, runtime.context)
    if replied["failed"]:
        return {"calls": replied["calls"], "failed": [Failure(what=asked.question, why=replied["failed"])]}
    rubric = await rubric_of(runtime, state["domain"])
    judged = await _judge(asked, replied, Scorer(rubric, runtime.context.scorer, "background"))
    return await _kept(state, asked, replied, judged, runtime)


@task
async def _reply(state: Dealt, asked: Exchange, pool: MemoryPool, context: GrowthContext) -> Replied:
    """Let an agent answer; the standard answer itself is only to be scored."""
    if state["is_standard"]:
        return Replied(text=state["standard"], seen=[], retriever=0, calls=0, by="user", failed="")
    number, found = await exchanging.examples_for(pool, asked, context.shots, state["standard"])
    try:
        answered, shown = await exchanging.answer(asked, found, context.answerer, "background")
    except (BadAnswer, PromptTooLong) as unusable:
        calls = _spent(unusable)
        return Replied(text="", seen=[], retriever=number, calls=calls, by="", failed=str(unusable))
    return Replied(
        text=answered.value,
        seen=[each.pair.answer for each in shown],
        retriever=number,
        calls=answered.attempts,
        by=answered.responder,
        failed="",
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
    )


async def _kept(state: Dealt, asked: Exchange, replied: Replied, judged: Judged, runtime: Context) -> Update:
    """Store a pair above the threshold, and wake the training, also for one that the pool has already."""
    scored = _scored(judged)
    told: Update = {"calls": replied["calls"] + scored.calls}
    pool = pool_of(runtime, state["domain"]).pool
    if scored.score is None:
        told |= {"failed": [Failure(what=asked.question, why=scored.rationale)]}
    elif scored.score <= runtime.context.threshold:
        told |= {"rejected": 1}
    else:
        told |= await _stored(state, asked, replied, judged, runtime)
    runtime.stream_writer(_told(asked, scored, told, pool))
    return told


async def _stored(
    state: Dealt, asked: Exchange, replied: Replied, judged: Judged, runtime: Context
) -> Update:
    pool, scored = pool_of(runtime, state["domain"]), _scored(judged)
    pair = exchanging.pair_of(asked, replied["text"], scored, replied["retriever"], judged["rubric"])
    change = exchanging.change_of(runtime, asked, scored, replied["by"])
    (is_new,) = await exchanging.keep(pool, [pair], change=change, once=state["once"])
    told: Update = {"stored": [pair.key]} if is_new else {"known": 1}
    if unwoken := await exchanging.wake(runtime, pool.pool):
        told |= {"failed": [Failure(what=f"training of {pool.pool}", why=unwoken)]}
    return told


def _scored(judged: Judged) -> Scored:
    return Scored(judged["points"], judged["rationale"], judged["faults"], judged["by"], judged["calls"])


def _spent(unusable: MnemeError) -> int:
    """Return the calls that a question took which nobody could answer."""
    return 1 + REPAIRS if isinstance(unusable, BadAnswer) else 0


def _told(asked: Exchange, scored: Scored, found: Update, pool: str) -> dict[str, Any]:
    told = {"step": "exchange", "agent": asked.agent.name, "question": asked.question, "pool": pool}
    state = {"stored": "stored" in found, "known": "known" in found}
    return told | state | {"score": scored.score, "why": scored.rationale}


async def end(state: State, runtime: Context) -> Update:
    """Count what the pool holds now."""
    memories = await pool_of(runtime, state["domain"]).count()
    runtime.stream_writer({"step": "end", "stored": len(state["stored"]), "memories": memories})
    return {"memories": memories}
