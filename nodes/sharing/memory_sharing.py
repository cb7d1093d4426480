"""Memory Sharing (§3, figure 2): an agent answers after memories of others, and good pairs are stored.

- retrieve: the k memories most similar to the question, by the retriever that serves (§3.2).
- answer: the examples, then the question; the answer streams.
- score: by the rubric of the agent's domain, 0 to 100 (§3.1).
- store: above the threshold the pair goes into the pool, and the retriever is woken to learn from it, in the
  background.

Beyond the paper, which names this as a limitation, a memory has the turns that led up to its question: on a
thread those of the same conversation, or those that are given with the question.
"""

from dataclasses import replace
from typing import Annotated

from langgraph.channels import EphemeralValue
from langgraph.types import Overwrite
from pydantic import Field
from typing_extensions import TypedDict

from mneme.core.errors import BadInput
from mneme.environments.fields import described
from mneme.models.asking.counting import NOTHING, Asked, sum_counts
from mneme.nodes.messages import ChatMessages, said_in
from mneme.nodes.shared_memory import lines_of, look_up
from mneme.nodes.sharing import exchange
from mneme.nodes.sharing.context import SharingRuntime
from mneme.nodes.sharing.exchange import Exchange, PairScores, WrittenAnswer
from mneme.nodes.sharing.pools import agent_of, pool_of, rubric_of, who_answers
from mneme.nodes.workflow import Typed, Update, counted, read_input
from mneme.stores.pools.memory_pool import MAX_PAIR_CHARS, MAX_TURNS, Pooled


class Question(TypedDict, total=False):
    """A question to an agent, and the turns that led up to it, oldest first; else those of the thread."""

    question: Annotated[str, described("What the agent should write.", "Write a sonnet about the sea.")]
    leading: Annotated[
        list[Annotated[str, Field(max_length=MAX_PAIR_CHARS)]],
        described(
            "The turns that led up to it, oldest first; none: those of the thread.",
            ["user: I live by the sea."],
            [],
            max_length=MAX_TURNS,
        ),
    ]
    messages: Annotated[ChatMessages, EphemeralValue]


class Shown(TypedDict):
    """A memory that was shown as an example."""

    key: str
    agent: str
    prompt: str
    similarity: float


class Result(PairScores, total=False):
    """The answer, the pair's score, and whether the pair is stored."""

    answer: str
    stored: bool
    why: str
    key: str
    pool: str
    shown: list[Shown]
    retriever: int
    answered_by: str
    asked: Annotated[Asked, sum_counts]


class State(Question, Result, total=False):
    """The question, the turns before it, what is kept in its place, and the examples."""

    turns: list[str]
    prompt: str
    shared: list[str]
    examples: Annotated[list[Pooled], Typed]


async def retrieve(state: State, runtime: SharingRuntime) -> Update:
    """Find the memories that are most similar to the question (§3.2)."""
    agent = agent_of(runtime.context.agent)
    given = read_input(Question, state)
    question, leading = given["question"], given["leading"]
    if state.get("messages"):
        said = said_in(state["messages"])
        question, leading = said.text, [each[:MAX_PAIR_CHARS] for each in said.before[-MAX_TURNS:]]
    if not question.strip():
        raise BadInput("The question is empty.", "Say what you want the agent to write.")
    if len(question) > MAX_PAIR_CHARS:
        raise BadInput(f"The question has {len(question)} characters.", f"Give at most {MAX_PAIR_CHARS}.")
    await rubric_of(runtime, agent.domain)  # without one, no model is asked
    turns = list(leading or [each[:MAX_PAIR_CHARS] for each in state.get("turns") or []])
    pool = pool_of(runtime, agent.domain)
    asked = Exchange(agent, question, turns)
    number, found = await exchange.examples_for(pool, asked, runtime.context)
    told = {"pool": pool.pool, "retriever": number}
    runtime.stream_writer({"step": "retrieve", **told, "shown": _shown(found)})
    return {
        "question": question,
        "turns": turns,
        "prompt": "",
        "leading": [],  # of this question alone: else the next one on the thread would have the same
        "examples": found,
        **told,
        "shared": await look_up(runtime, question, "pool", but=["pair"]),
        "stored": False,
        "score": None,
        "key": "",
        "asked": Overwrite(NOTHING),
    }


def _shown(found: list[Pooled]) -> list[Shown]:
    return [
        Shown(key=each.key, agent=each.pair.agent, prompt=each.pair.prompt, similarity=each.similarity or 0.0)
        for each in found
    ]


@counted
async def answer(state: State, runtime: SharingRuntime) -> Update:
    """Answer the question after the examples."""
    asked, context, pool = _exchange(state, runtime), runtime.context, pool_of(runtime, state["pool"])
    rubric, shared = await rubric_of(runtime, asked.agent.domain), state.get("shared", [])
    # With the rubric, or only the scorer would know, for example, that a plan should name owners.
    asked = replace(asked, rubric=rubric.rubric, shared=await lines_of(runtime, shared))
    who = await who_answers(pool, context.answerer_of(asked.agent.name))
    answered, shown = await exchange.answer(asked, state["examples"], who)
    return {
        "answer": answered.value,
        "answered_by": answered.responder,
        "shown": _shown(shown),
        "prompt": exchange.composed(asked.question, shown) if context.stored == "prompt" else "",
    }


def _exchange(state: State, runtime: SharingRuntime) -> Exchange:
    agent = agent_of(runtime.context.agent)
    return Exchange(agent, state["question"], state["turns"], prompt=state.get("prompt", ""))


@counted
async def score(state: State, runtime: SharingRuntime) -> Update:
    """Score the pair by the rubric of its domain (§3.1)."""
    asked = _exchange(state, runtime)
    rubric = await rubric_of(runtime, asked.agent.domain)
    seen = [each.pair.answer for each in state["examples"]]
    scored = await exchange.score(asked, state["answer"], seen, rubric, runtime.context)
    runtime.stream_writer({"step": "score", "score": scored["score"], "why": scored["rationale"]})
    return dict(scored)


async def store(state: State, runtime: SharingRuntime) -> Update:
    """Store a pair above the threshold, and wake the retriever's training."""
    said = [*state["turns"], f"user: {state['question']}", f"assistant: {state['answer']}"]
    update: Update = {
        "turns": [each[:MAX_PAIR_CHARS] for each in said[-MAX_TURNS:]],
        "stored": False,
        "key": "",
    }
    if state["score"] is None:
        return update | {"why": f"Not stored: {state['rationale']}"}
    written = WrittenAnswer(
        text=state["answer"],
        by=state["answered_by"],
        seen=[each.pair.answer for each in state.get("examples") or []],
        retriever=state["retriever"],
        shared=state.get("shared", []),
    )
    pool, asked = pool_of(runtime, state["pool"]), _exchange(state, runtime)
    outcome = await exchange.keep_good(runtime, pool, asked, written, state)
    kept = "Stored." if outcome.is_new else "The pool has it, or nearly it, already."
    why = kept if outcome.is_good else f"Not stored: {outcome.why}"
    notes = filter(None, [why, outcome.basis, outcome.rolled_back, outcome.unwoken])
    return update | {"stored": outcome.is_new, "key": outcome.key, "why": " ".join(notes)}
