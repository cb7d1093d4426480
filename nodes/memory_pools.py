"""Which pool a run of Memory Sharing works on, and which retriever asks it."""

import asyncio
from collections import OrderedDict
from threading import Lock
from typing import Literal, TypeVar

import numpy as np
from langgraph.runtime import Runtime
from pydantic import Field

from agents.agent import AGENTS, Agent, load_agent
from agents.reading import read_yaml
from agents.rubric import SINGLE_POOL
from mneme.errors import BadInput, LedgerMismatch
from mneme.settings import read_settings
from models.retriever import QuestionSide, question_side
from nodes.context import RESPONDER, OwnedByTeam, ledger_of, team_of
from stores.memory_pool import MemoryPool
from stores.retrievers import UNTRAINED, Retrievers
from stores.rubrics import Frozen, Rubrics

HELD = 4
"""Question sides of trained retrievers that a process keeps ready."""


class PoolContext(OwnedByTeam):
    """Which pools are worked on, and how their retrievers learn."""

    pools: Literal["domain", "single"] = Field(
        "domain", description="A pool for each domain, or one for all (§4.1)."
    )
    grader: str = Field("auto", description=f"Who grades candidates for the retriever (eq. 1). {RESPONDER}")
    candidates: int = Field(12, ge=2, le=100, description="n: memories that BM25 proposes for grading.")
    labels: int = Field(6, ge=2, le=100, description="v: half of them positive, half negative.")
    learning: Literal["projection", "encoder"] = Field(
        "projection", description="What learns: a matrix on the embedder, or a whole encoder of questions."
    )
    seed: int = Field(0, ge=0, description="Seed of every training.")


class ScoredContext(PoolContext):
    """Who answers and who scores, how many memories are shown, and how good a pair must be to be kept."""

    shots: int = Field(3, ge=0, le=3, description="k: memories that are shown as examples (§4.1).")
    threshold: int = Field(
        70, ge=0, le=100, description="A pair is stored where its score, of 100, is above this (§3.1)."
    )
    answerer: str = Field("auto", description=f"Who answers the questions. {RESPONDER}")
    scorer: str = Field("auto", description=f"Who scores the pairs. {RESPONDER}")


class SharingContext(ScoredContext):
    """Which agent is asked."""

    agent: str = Field(
        "sonnet",
        description=f"Who is asked: {', '.join(AGENTS)}; or the YAML text that describes another agent.",
    )


class GrowthContext(ScoredContext):
    """How a pool grows by itself (§3.3)."""

    agent: str = Field("", description="The YAML text of an agent that takes part beside the shipped ones.")
    budget: int = Field(
        100,
        ge=1,
        le=100_000,
        description="Calls to models that ask, answer and score; what a round repairs may go beyond it. The "
        "grading of examples when the retriever trains on what is stored is not in it.",
    )
    asked: Literal["own", "domain"] = Field(
        "own", description="Who gets the question asked for an answer: its own agent, or all of its domain."
    )
    at_once: int = Field(8, ge=1, le=64, description="Standard answers that are worked on together.")
    laps: int = Field(2, ge=1, le=100, description="Times that each memory may serve as a standard answer.")


class DesignContext(OwnedByTeam):
    """Who drafts rubrics."""

    designer: str = Field("auto", description=f"Who drafts the rubric. {RESPONDER}")


Pools = TypeVar("Pools", bound=PoolContext)
Sharing = TypeVar("Sharing", bound=ScoredContext)


def agent_of(named: str) -> Agent:
    """Return a shipped agent, or the one that a YAML text describes; never a file of this machine.

    Raises BadInput for an unknown name, and for a text that describes no agent.
    """
    return read_yaml(named, Agent, "The agent") if "\n" in named.strip() else load_shipped(named.strip())


def load_shipped(name: str) -> Agent:
    """Return a shipped agent by its name. Raises BadInput."""
    if name not in AGENTS:
        raise BadInput(
            f'There is no agent "{name}".', f"Agents: {', '.join(AGENTS)}; or give an agent's YAML text."
        )
    return load_agent(name)


async def rubric_of(runtime: Runtime[Pools], domain: str) -> Frozen:
    """Return what a domain's pairs are scored by: the team's own rubric, else the one that is shipped.

    Raises BadInput where there is neither.
    """
    name = domain if runtime.context.pools == "domain" else SINGLE_POOL
    return await Rubrics(ledger_of(runtime), team_of(runtime)).latest(name)


def pool_of(runtime: Runtime[Pools], domain: str) -> MemoryPool:
    """Return the pool of a domain, or the one pool of all, as the context has it."""
    return pool_named(runtime, domain if runtime.context.pools == "domain" else SINGLE_POOL)


def pool_named(runtime: Runtime[Pools], name: str) -> MemoryPool:
    """Return a pool of the run's team."""
    return MemoryPool(ledger_of(runtime), team_of(runtime), name)


async def retrievers_of(pool: MemoryPool) -> Retrievers:
    """Return a pool's retrievers; their files are in the home folder."""
    return Retrievers(pool, (await read_settings()).home / "retrievers")


async def question_vector(pool: MemoryPool, question: str) -> tuple[int, list[float]]:
    """Return the number of the retriever that serves a pool, and the vector that it makes of a question.

    Raises StorageFailure where its file is missing or damaged; the hint names the command that helps.
    """
    retrievers = await retrievers_of(pool)
    number = await retrievers.serving()
    embedded = list(await pool.ledger.vector_of(question))
    if number == UNTRAINED:
        return number, embedded
    side = await opened(pool, retrievers, number)
    given = np.array([embedded], dtype=np.float32)
    found = await asyncio.to_thread(side.vectors, [question], given)
    return number, [float(each) for each in found[0]]


async def opened(pool: MemoryPool, retrievers: Retrievers, number: int) -> QuestionSide:
    """Return the question side of a trained version, read once and kept while it is in use."""
    version, info = await retrievers.get(number), await pool.ledger.info()
    if version.embedder != info.embedder:
        raise LedgerMismatch(
            f"Retriever {number} of the pool {pool.pool} was trained on {version.embedder}, and the ledger "
            f"is embedded by {info.embedder}.",
            "`mneme share retriever rollback --to 0` lets the embedder serve as it came; then train anew.",
        )
    with _holding:
        if version.weights in _held:
            _held.move_to_end(version.weights)
            return _held[version.weights]
    weights = await retrievers.weights(number)
    side = await asyncio.to_thread(question_side, version.learning, info.embedder, info.dimension, weights)
    with _holding:
        _held[version.weights] = side
        while len(_held) > HELD:
            _held.popitem(last=False)
    return side


_held: OrderedDict[str, QuestionSide] = OrderedDict()
_holding = Lock()
