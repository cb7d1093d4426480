"""Interactive learning (§3.3): agents ask and answer one another; a pool grows from as little as one record.

- take_in: add standard answers to the pool; the first need no question (§3.1).
- choose: take the next memories of the pool as standard answers, also those stored in this growth.
- ask: find a question that a standard answer answers.
- pose: give that question to the standard answer's own agent, or to all agents of the domain.
- exchange: answer, score and store, as when a person asks, except that the agent is not shown the standard
  answer. A standard answer that had no question is scored and stored with the one that was found.

Every step is checkpointed: a growth that was killed asks again only questions without an answer. In an
exchange the answer and the score are separate tasks, and the write carries the exchange's name: no model is
asked twice, and a stored pair counts once.
"""

import hashlib
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from operator import add
from typing import Annotated, Required
from uuid import uuid4

from langgraph.func import task
from langgraph.types import Overwrite, Send
from pydantic import Field
from typing_extensions import TypedDict

from mneme.core.errors import BadAnswer, BadInput, PromptTooLong
from mneme.environments.fields import described
from mneme.library.agents.agent import AGENTS, DOMAINS, Agent, agents_of
from mneme.models.asking.asking import ask as ask_model
from mneme.models.asking.asking import resolve
from mneme.models.asking.counting import NOTHING, Asked, sum_counts
from mneme.nodes.sharing import exchange as exchanging
from mneme.nodes.sharing.context import GrowthContext, GrowthRuntime
from mneme.nodes.sharing.exchange import Exchange, WrittenAnswer
from mneme.nodes.sharing.pools import agents_in, pool_of, rubric_of, threshold_of, who_answers
from mneme.nodes.workflow import Typed, Update, counted, read_input
from mneme.prompts.sharing.standard_answers import Standard, ask_for
from mneme.stores.ledger.records import Change
from mneme.stores.pools.lessons import keep
from mneme.stores.pools.memory_pool import MAX_PAIR_CHARS, MemoryPool, Pair, Pooled

VOUCHED_FOR = 100
"""The score of a standard answer that a person gave."""
PAIRS_PER_PAGE = 100
ANSWERS_EXAMPLE = [{"agent": "sonnet", "answer": "Upon the shore the evening lays its light …"}]


class Given(TypedDict):
    """A standard answer and its agent."""

    agent: Annotated[str, Field(description="Whose kind of answer it is.", examples=list(AGENTS))]
    answer: Annotated[str, described("The answer.", "A poet from Ulm wrote a line …", ...)]


class Wanted(TypedDict, total=False):
    """The domain whose pool is to grow, and standard answers to add to those in it."""

    domain: Required[
        Annotated[str, Field(description="The domain whose agents ask each other.", examples=list(DOMAINS))]
    ]
    standards: Annotated[
        list[Given],
        described(
            "Answers to which questions are looked for, beside those in the pool.", ANSWERS_EXAMPLE, []
        ),
    ]


class Failure(TypedDict):
    """A failed exchange and its reason; the others continued."""

    what: str
    why: str


class Result(TypedDict, total=False):
    """The result of a growth: new pairs, costs, and why it ended."""

    pool: str
    memories: int
    stored: Annotated[list[str], add]
    known: Annotated[int, add]
    rejected: Annotated[int, add]
    failed: Annotated[list[Failure], add]
    why: str
    asked: Annotated[Asked, sum_counts]


class Posed(TypedDict):
    """A question that was found for a standard answer."""

    key: str
    agent: str
    question: str


class Dealt(TypedDict):
    """One question to one agent, who is not shown the standard answer; or that answer is to be scored.

    `once` names this exchange of this growth, whatever is answered to it.
    """

    domain: str
    standard: str
    agent: str
    question: str
    is_standard: bool
    once: str


class State(Wanted, Result, total=False):
    """The growth's position in the pool, and this round's standard answers and questions."""

    growth: str
    position: int
    lap: int
    chosen: Annotated[list[Pooled], Typed]
    questions: Annotated[list[Posed], add]
    posed: int
    exchanges: list[Dealt]


class QuestionRequest(TypedDict):
    """A standard answer of this round, its agent, and the questions already known for it."""

    domain: str
    key: str
    agent: str
    answer: str
    known: list[str]


class GrowthReply(WrittenAnswer):
    """An answer of a growth, and the prompt kept with it; `failed` says why there is none."""

    failed: str
    prompt: str


def members_of(domain: str, context: GrowthContext) -> dict[str, Agent]:
    """Return the agents that learn from each other. Raises BadInput for a domain without any."""
    given = agents_in(context.agent)
    own = [each for each in given if each.domain == domain]
    if given and not own:
        raise BadInput(f"The agent {given[0].name} is of the domain {given[0].domain}, not of {domain}.")
    shipped = agents_of(domain) if domain in DOMAINS or not own else ()
    return {each.name: each for each in [*shipped, *own]}


async def take_in(state: State, runtime: GrowthRuntime) -> Update:
    """Add the given standard answers to the pool."""
    asked = read_input(Wanted, state)
    members, given = members_of(asked["domain"], runtime.context), asked["standards"]
    if strangers := [each["agent"] for each in given if each["agent"] not in members]:
        missing = f'The domain {state["domain"]} has no agent "{strangers[0]}".'
        raise BadInput(missing, f"It has: {', '.join(members)}.")
    pool = pool_of(runtime, state["domain"])
    failed, change = list[Failure](), Change(reason="A standard answer.", actor="user")
    for each in given:
        answer, agent = each["answer"], each["agent"]
        if not answer.strip() or len(answer) > MAX_PAIR_CHARS:
            why = f"A standard answer has 1 to {MAX_PAIR_CHARS} characters, this one {len(answer)}."
            failed.append(Failure(what=answer[:60], why=why))
            continue
        pair = Pair(answer=answer, agent=agent, domain=state["domain"], score=VOUCHED_FOR, scoring="hand")
        await keep(pool, [pair], change=change)
    if not await pool.count():
        raise BadInput(
            f"The pool {pool.pool} is empty, and no standard answer is given.",
            "Give at least one; `mneme share pool import` brings in more.",
        )
    counts = {"stored": [], "known": 0, "rejected": 0, "failed": failed, "questions": [], "asked": NOTHING}
    anew = {name: Overwrite(value) for name, value in counts.items()}
    return {"growth": uuid4().hex, "pool": pool.pool, "position": 0, "lap": 1, "why": "", **anew}


async def choose(state: State, runtime: GrowthRuntime) -> Update:
    """Choose the next memories as standard answers, as many as wanted and as the budget of calls allows."""
    members, pool = members_of(state["domain"], runtime.context), pool_of(runtime, state["domain"])
    if (wanted := runtime.context.pool_size) and (held := await pool.count()) >= wanted:
        return {"chosen": [], "why": f"The pool holds {held} memories; {wanted} were wanted."}
    budget, calls, lap = runtime.context.calls, state["asked"]["calls"], state["lap"]
    answering = len(members) if runtime.context.asked == "domain" else 1
    found, position, left, why = list[Pooled](), state["position"], budget - calls, ""
    while not (found or why) and lap <= runtime.context.laps:  # a further lap from the pool's beginning
        async for each, following in _from(pool, position, members):
            # The calls of a standard answer: its question, the answers with their scores, and its own score.
            cost = 1 + 2 * answering + (not each.pair.prompt)
            if cost > left:
                why = _too_little(budget, calls, cost)
                break
            found, position, left = [*found, each], following, left - cost
            if len(found) == runtime.context.at_once:
                break
        if not (found or why):
            lap, position = lap + 1, 0
    lap = min(lap, runtime.context.laps)  # the loop ends one beyond the last
    shown = {"step": "choose", "lap": lap, "standards": len(found), "calls": calls}
    runtime.stream_writer(shown | {"budget": budget})
    return {
        "chosen": found,
        "position": position,
        "lap": lap,
        "why": "" if found else why or "Every memory has served as a standard answer.",
        "posed": len(state["questions"]),  # questions are only appended: those of this round follow
    }


def _too_little(budget: int, calls: int, cost: int) -> str:
    """Return the reason why no further standard answer is processed."""
    if not calls:
        return f"The budget of {budget} calls is too small: the next standard answer takes {cost}."
    if calls >= budget:
        return f"The budget of {budget} calls is spent."
    return f"The budget of {budget} calls has {budget - calls} left; the next standard answer takes {cost}."


async def _from(
    pool: MemoryPool, position: int, members: dict[str, Agent]
) -> AsyncIterator[tuple[Pooled, int]]:
    """Yield these agents' memories from a position in the pool on, each with the position after it."""
    while page := await pool.first(PAIRS_PER_PAGE, start=position):
        for each in page:
            position += 1
            if each.pair.agent in members:
                yield each, position


def each_standard(state: State) -> list[Send] | str:
    """Fan out: ask for a question for each standard answer, concurrently."""
    sends = []
    for each in state["chosen"]:
        known = [posed["question"] for posed in state["questions"] if posed["key"] == each.key]
        known += filter(None, [each.pair.asks])
        told = {"domain": state["domain"], "key": each.key, "agent": each.pair.agent}
        sends.append(Send("ask", {**told, "answer": each.pair.answer, "known": known}))
    return sends or "end"


@counted
async def ask(state: QuestionRequest, runtime: GrowthRuntime) -> Update:
    """Ask for a question that a standard answer answers (§3.3)."""
    agent = members_of(state["domain"], runtime.context)[state["agent"]]
    given = Standard(does=agent.does, questions=agent.questions, answer=state["answer"], known=state["known"])
    who = runtime.context.answerer_of(agent.name)
    try:
        answered = await ask_model(ask_for, given, who, lane="background")
    except (BadAnswer, PromptTooLong) as unusable:
        failure = Failure(what=f"a question for {state['key']}", why=str(unusable))
        return {"failed": [failure]}
    question = answered.value.question
    runtime.stream_writer({"step": "ask", "agent": agent.name, "question": question})
    posed = Posed(key=state["key"], agent=agent.name, question=question)
    return {"questions": [posed]}


async def pose(state: State, runtime: GrowthRuntime) -> Update:
    """Distribute the questions to the agents."""
    members = members_of(state["domain"], runtime.context)
    pairs = {each.key: each.pair for each in state["chosen"]}
    dealt: list[Dealt] = []
    for each in state["questions"][state["posed"] :]:
        pair, question = pairs[each["key"]], each["question"]
        asked = list(members) if runtime.context.asked == "domain" else [each["agent"]]
        answering = [(name, False) for name in asked]
        for agent, is_standard in [*answering, *([] if pair.prompt else [(each["agent"], True)])]:
            exchanged = [state["growth"], each["key"], question, agent, is_standard]
            dealt.append(
                Dealt(
                    domain=state["domain"],
                    standard=pair.answer,
                    agent=agent,
                    question=question,
                    is_standard=is_standard,
                    once=hashlib.sha256(json.dumps(exchanged).encode()).hexdigest(),
                )
            )
    return {"exchanges": dealt}


def each_exchange(state: State) -> list[Send] | str:
    """Fan out: let the agents answer concurrently."""
    return [Send("exchange", each) for each in state["exchanges"]] or "choose"


@counted
async def exchange(state: Dealt, runtime: GrowthRuntime) -> Update:
    """Answer a question, score the pair, and store it if it is good."""
    context, pool, question = runtime.context, pool_of(runtime, state["domain"]), state["question"]
    rubric = await rubric_of(runtime, state["domain"])  # raises before a model is asked
    asked = Exchange(members_of(state["domain"], context)[state["agent"]], question, rubric=rubric.rubric)
    replied = await _reply(state, asked, pool, context)
    if replied["failed"]:
        return {"failed": [Failure(what=question, why=replied["failed"])]}
    asked = replace(asked, prompt=replied["prompt"])
    scored = await _score(asked, replied["text"], replied["seen"], rubric, context, "background")
    update: Update = {"failed": [Failure(what=question, why=scored["rationale"])]}
    if scored["score"] is not None:
        outcome = await exchanging.keep_good(runtime, pool, asked, replied, scored, state["once"])
        update = {"stored": [outcome.key]} if outcome.is_new else {"known": 1}
        update = update if outcome.is_good else {"rejected": 1}
        if outcome.unwoken:  # reported as a failure, though the pair is stored
            update |= {"failed": [Failure(what=f"training of {pool.pool}", why=outcome.unwoken)]}
    shown: Update = {"step": "exchange", "agent": asked.agent.name, "question": question}
    shown |= {"pool": pool.pool, "stored": "stored" in update, "known": "known" in update}
    runtime.stream_writer(shown | {"score": scored["score"], "why": scored["rationale"]})
    return update


@task
async def _reply(state: Dealt, asked: Exchange, pool: MemoryPool, context: GrowthContext) -> GrowthReply:
    """Let an agent answer; a standard answer is returned as it is, to be scored."""
    replied = GrowthReply(text=state["standard"], by="user", seen=[], retriever=0, failed="", prompt="")
    if state["is_standard"]:
        return replied
    number, found = await exchanging.examples_for(pool, asked, context, state["standard"])
    try:
        who = await who_answers(pool, context.answerer_of(asked.agent.name))
        answered, shown = await exchanging.answer(asked, found, who, "background")
    except (BadAnswer, PromptTooLong) as unusable:
        return {**replied, "failed": str(unusable)}
    return GrowthReply(
        text=answered.value,
        by=answered.responder,
        seen=[each.pair.answer for each in shown],
        retriever=number,
        failed="",
        prompt=exchanging.composed(asked.question, shown) if context.stored == "prompt" else "",
    )


_score = task(exchanging.score)
"""A separate task, so that a replay keeps the score and the version of the rubric that gave it."""


async def end(state: State, runtime: GrowthRuntime) -> Update:
    """Count the memories in the pool, and report the basis of the threshold."""
    memories = await pool_of(runtime, state["domain"]).count()
    _, basis = await threshold_of(runtime, state["domain"], await resolve(runtime.context.scorer))
    runtime.stream_writer({"step": "end", "stored": len(state["stored"]), "memories": memories})
    return {"memories": memories, "why": f"{state['why']} {basis}".strip()}
