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

from langgraph.types import Overwrite, Send
from pydantic import Field, TypeAdapter, ValidationError
from typing_extensions import TypedDict

from mneme.core.errors import BadAnswer, BadInput, PromptTooLong
from mneme.library.agents.agent import AGENTS, DOMAINS, Agent
from mneme.models.asking.asking import ask as ask_model
from mneme.models.asking.counting import NOTHING, Asked, added
from mneme.nodes.channels import Plain
from mneme.nodes.counted import counted
from mneme.nodes.sharing import exchange as exchanging
from mneme.nodes.sharing.context import GrowthContext, GrowthRuntime
from mneme.nodes.sharing.growth_exchange import Dealt, Failure, calls_of, members_of
from mneme.nodes.sharing.pools import pool_of
from mneme.prompts.sharing.standard_answers import Standard, ask_for
from mneme.stores.ledger.records import Change
from mneme.stores.pools.memory_pool import LONGEST, MemoryPool, Pair, Pooled

VOUCHED_FOR = 100
"""The score of a standard answer that a person gives."""
PAGE = 100


class Given(TypedDict):
    """A standard answer, and whose kind it is."""

    agent: Annotated[str, Field(description="Whose kind of answer it is.", examples=list(AGENTS))]
    answer: Annotated[str, Field(description="The answer.", examples=["A poet from Ulm wrote a line …"])]


STANDARDS = TypeAdapter(list[Given])


class Wanted(TypedDict):
    """Which domain's pool is to grow, and standard answers to begin with beside those that it holds."""

    domain: Annotated[
        str, Field(description="The domain whose agents ask each other.", examples=list(DOMAINS))
    ]
    standards: NotRequired[
        Annotated[
            list[Given],
            Field(
                [],
                description="Answers to which questions are looked for, beside those in the pool.",
                examples=[[{"agent": "sonnet", "answer": "Upon the shore the evening lays its light …"}]],
            ),
        ]
    ]


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
    asked: Annotated[Asked, added]


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
    chosen: Annotated[list[dict[str, Any]], Plain]
    questions: Annotated[list[Posed], add]
    posed: int
    exchanges: list[dict[str, Any]]


class Chosen(TypedDict):
    """One standard answer of this round, and the questions that were asked for it before."""

    domain: str
    standard: dict[str, Any]
    known: list[str]


Update = dict[str, Any]


async def take_in(state: State, runtime: GrowthRuntime) -> Update:
    """Put the given standard answers into the pool."""
    members = members_of(exchanging.domain_named(state.get("domain")), runtime.context)
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
        "asked": Overwrite(NOTHING),
        "why": "",
    }


def _standards(given: object) -> list[Given]:
    """Return the standard answers that a client gave. Raises BadInput naming the field."""
    try:
        return STANDARDS.validate_python(given)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        field = ".".join(["standards", *map(str, first["loc"])])
        message = f"`{field}`: {first['msg']}."
        raise BadInput(message, 'Each standard is like {"agent": "sonnet", "answer": "…"}.') from error


async def _taken(pool: MemoryPool, domain: str, given: Given) -> Failure | None:
    length = len(given["answer"])
    if not given["answer"].strip() or length > LONGEST:
        why = f"A standard answer has 1 to {LONGEST} characters, this one {length}."
        return Failure(what=given["answer"][:60], why=why)
    pair = Pair(
        answer=given["answer"], agent=given["agent"], domain=domain, score=VOUCHED_FOR, scoring="hand"
    )
    await exchanging.keep(pool, [pair], change=Change(reason="A standard answer.", actor="user"))
    return None


async def choose(state: State, runtime: GrowthRuntime) -> Update:
    """Take the next memories as standard answers, as many as are wanted and the budget has calls for."""
    members, pool = members_of(state["domain"], runtime.context), pool_of(runtime, state["domain"])
    if (until := runtime.context.until) and (held := await pool.count()) >= until:
        return {"chosen": [], "why": f"The pool holds {held} memories; {until} were wanted."}
    budget, cost = runtime.context.budget, _cost(members, runtime.context)
    wanted = min(runtime.context.at_once, (budget - state["calls"]) // cost)
    if wanted < 1:
        return {"chosen": [], "why": _too_little(budget, state["calls"], cost)}
    found, position = await _next(pool, state["position"], wanted, members)
    lap = state["lap"]
    if not found and lap < runtime.context.laps:
        found, position = await _next(pool, 0, wanted, members)
        lap += 1
    why = "" if found else "Every memory has served as a standard answer."
    shown = {"step": "choose", "lap": lap, "standards": len(found), "calls": state["calls"]}
    runtime.stream_writer(shown | {"budget": runtime.context.budget})
    posed = len(state["questions"])
    return {"chosen": found, "position": position, "lap": lap, "why": why, "posed": posed}


def _too_little(budget: int, calls: int, cost: int) -> str:
    """Say why no further standard answer is worked on."""
    if not calls:
        return f"The budget of {budget} calls is too small: one standard answer takes {cost}."
    if calls >= budget:
        return f"The budget of {budget} calls is spent."
    return f"The budget of {budget} calls has {budget - calls} left; one standard answer takes {cost}."


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


@counted
async def ask(state: Chosen, runtime: GrowthRuntime) -> Update:
    """Ask for a question that a standard answer answers (§3.3)."""
    key, pair = state["standard"]["key"], state["standard"]["pair"]
    agent = members_of(state["domain"], runtime.context)[pair["agent"]]
    known = [*state["known"], *filter(None, [Pair.model_validate(pair).asks])]
    given = Standard(does=agent.does, questions=agent.questions, answer=pair["answer"], known=known)
    who = runtime.context.answerer_of(agent.name)
    try:
        answered = await ask_model(ask_for, given, who, lane="background")
    except (BadAnswer, PromptTooLong) as unusable:
        failure = Failure(what=f"a question for {key}", why=str(unusable))
        return {"calls": calls_of(unusable), "failed": [failure]}
    question = answered.value.question
    runtime.stream_writer({"step": "ask", "agent": agent.name, "question": question})
    return {
        "calls": answered.attempts,
        "questions": [Posed(key=key, agent=agent.name, question=question)],
    }


async def pose(state: State, runtime: GrowthRuntime) -> Update:
    """Say which agent gets which question."""
    members = members_of(state["domain"], runtime.context)
    pairs = {each["key"]: each["pair"] for each in state["chosen"]}
    dealt: list[Dealt] = []
    for each in state["questions"][state["posed"] :]:
        asked = list(members) if runtime.context.asked == "domain" else [each["agent"]]
        pair = pairs[each["key"]]
        dealt += [_dealt(state, each, name, pair["answer"]) for name in asked]
        if not pair["prompt"]:
            dealt.append(_dealt(state, each, each["agent"], pair["answer"], is_standard=True))
    return {"exchanges": dealt}


def _dealt(state: State, posed: Posed, agent: str, standard: str, *, is_standard: bool = False) -> Dealt:
    """Deal a question; `once` names this exchange of this growth, whatever is answered to it."""
    exchanged = [state["growth"], posed["key"], posed["question"], agent, is_standard]
    return Dealt(
        domain=state["domain"],
        standard=standard,
        agent=agent,
        question=posed["question"],
        is_standard=is_standard,
        once=hashlib.sha256(json.dumps(exchanged).encode()).hexdigest(),
    )


def each_exchange(state: State) -> list[Send] | str:
    """Let the agents answer at the same time."""
    return [Send("exchange", each) for each in state["exchanges"]] or "choose"


async def end(state: State, runtime: GrowthRuntime) -> Update:
    """Count what the pool holds now."""
    memories = await pool_of(runtime, state["domain"]).count()
    runtime.stream_writer({"step": "end", "stored": len(state["stored"]), "memories": memories})
    return {"memories": memories}
