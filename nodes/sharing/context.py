"""Context of Memory Sharing: its pools, the models that answer and score, how retrievers learn."""

from typing import Literal, TypeVar

from langgraph.runtime import Runtime
from pydantic import Field

from mneme.core.errors import BadInput
from mneme.library.agents.agent import AGENTS
from mneme.models.retriever.retriever import Learning
from mneme.nodes.context import OwnedByTeam, responder
from mneme.nodes.shared_memory import SharesMemory
from mneme.stores.ledger.records import MAX_INT
from mneme.stores.pools.thresholds import DEFAULT_THRESHOLD

Scoring = Literal["criteria", "printed"]
Stored = Literal["question", "prompt"]


class PoolContext(OwnedByTeam):
    """The pools of a run, and how their retrievers learn."""

    pools: Literal["domain", "single"] = Field(
        "domain", description="A pool for each domain, or one for all (§4.1)."
    )
    agent: str = Field(
        "",
        description="The YAML text of agents of your own whose memories the pools hold, with a line "
        "--- between two of them.",
        examples=["name: haiku\ndomain: short_poems\n…"],
    )
    grader: str = responder("Who grades candidates for the retriever (eq. 1).")
    candidates: int = Field(12, ge=2, le=100, description="n: memories that BM25 proposes for grading.")
    labels: int = Field(6, ge=2, le=100, description="v: half of them positive, half negative.")
    learning: Learning = Field(
        "reranker",
        description="What learns: a re-scorer of what the embedder finds, which asks no grader; or, by "
        "grades as in the paper, a matrix on the embedder or a whole encoder of questions.",
    )
    seed: int = Field(0, ge=0, le=MAX_INT, description="Seed of every training.")

    @property
    def by_grades(self) -> bool:
        """Whether the retriever learns from grades, with PyTorch; a re-scorer learns from agents."""
        return self.learning != "reranker"


class ScoredContext(PoolContext):
    """The models that answer and score, the number of examples, and the threshold for storing a pair."""

    shots: int = Field(3, ge=0, le=3, description="k: memories that are shown as examples (§4.1).")
    threshold: int | None = Field(
        None,
        ge=0,
        le=100,
        description="A pair is stored where its score, of 100, is above this (§3.1); none: what was "
        f"calibrated for its domain and scorer (`mneme share rubric calibrate`), else {DEFAULT_THRESHOLD}.",
        examples=[DEFAULT_THRESHOLD],
    )
    answerer: str = responder("Who answers the questions.")
    answerers: str = Field(
        "",
        description="Agents who are answered for by another model than `answerer`, so that agents of several "
        "models share a pool (§5): AGENT=MODEL, with commas between.",
        examples=["sonnet=ollama:llama3.1:8b, limerick=rules"],
    )
    scorer: str = responder("Who scores the pairs.")
    scoring: Scoring = Field(
        "criteria",
        description="How a pair is scored: by points for each criterion, or by one number of 0 to 100, "
        "with the rubric and the question of A.1 as the paper prints them.",
    )
    stored: Stored = Field(
        "question",
        description="What is scored and kept with an answer: the question, or the whole prompt with its "
        "examples, as in figure 2 and A.2.",
    )

    def answerer_of(self, agent: str) -> str:
        """Return the model that answers for an agent. Raises BadInput if `answerers` cannot be parsed."""
        given = [each.strip() for each in self.answerers.split(",") if each.strip()]
        if wrong := [each for each in given if not all(each.partition("="))]:
            raise BadInput(
                f'`answerers` names no agent and model: "{wrong[0]}".', "Write sonnet=ollama:llama3.1:8b."
            )
        own = dict(each.split("=", 1) for each in given)  # a model's name may have an = of its own
        return own.get(agent, self.answerer)


class SharingContext(ScoredContext, SharesMemory):
    """The agent that is asked."""

    agent: str = Field(
        "sonnet",
        description=f"Who is asked: {', '.join(AGENTS)}; or the YAML text that describes another agent.",
        examples=list(AGENTS),
    )


class GrowthContext(ScoredContext):
    """The agents and the limits of a pool's growth (§3.3)."""

    agent: str = Field(
        "",
        description="The YAML text of agents of your own that take part beside the shipped ones, with a line "
        "--- between two of them; those of other domains stay out.",
        examples=["name: haiku\ndomain: literary_creation\n…"],
    )
    calls: int = Field(
        100,
        ge=1,
        le=100_000,
        description="Calls to models that ask, answer and score; what a round repairs may go beyond it. "
        "The grading of examples when the retriever trains on what is stored is not in it.",
    )
    pool_size: int = Field(0, ge=0, description="Memories at which the pool is large enough; 0: no bound.")
    asked: Literal["own", "domain"] = Field(
        "own", description="Who gets the question asked for an answer: its own agent, or all of its domain."
    )
    at_once: int = Field(8, ge=1, le=64, description="Standard answers that are worked on together.")
    laps: int = Field(2, ge=1, le=100, description="Times that each memory may serve as a standard answer.")


class DesignContext(OwnedByTeam):
    """The model that drafts rubrics."""

    designer: str = responder("Who drafts the rubric.")


PoolRuntime = Runtime[PoolContext]
SharingRuntime = Runtime[SharingContext]
GrowthRuntime = Runtime[GrowthContext]
DesignRuntime = Runtime[DesignContext]
Pools = TypeVar("Pools", bound=PoolContext)
Sharing = TypeVar("Sharing", bound=ScoredContext)
