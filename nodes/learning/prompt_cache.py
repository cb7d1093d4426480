"""A prompt cache (§1), to compare: a task that was asked before in the same words gets the answer of then.

Words are the same whatever the white space between them; anything else is another task, for which the team
begins without any memory. The first answer stays, good or bad, and is not tried again: what it is worth is
what was measured when it was made.
"""

import time
from collections.abc import Mapping
from typing import Any, Literal, cast

from mneme.environments.worlds import World
from mneme.nodes.context import ledger_of, team_of
from mneme.nodes.learning.compound_learning.compile import record_of
from mneme.nodes.learning.compound_learning.research import begin
from mneme.nodes.learning.compound_learning.state import (
    State,
    TriedDraft,
    Update,
    begins,
    timed,
)
from mneme.nodes.learning.context import LearningRuntime, cards_of
from mneme.nodes.learning.worlds import told_of
from mneme.prompts.learning.compound_learning.research import Draft
from mneme.stores.task_memories.prompt_cache import CachedAnswer, PromptCache

NO_COST = {"model_calls": 0, "tokens": 0}


@begins
async def look_up(state: State, runtime: LearningRuntime, world: World) -> Update:
    """Answer from the cache where the task was asked before; else begin without memory."""
    began = time.perf_counter()
    begun = await begin(state, runtime, world)
    posed = cast(State, {**state, **begun})
    found = await _cache(runtime).get(_prompt(posed, world))
    if found is None or found.task == posed["task_id"]:  # a killed task goes on as it began
        return begun
    runtime.stream_writer({"step": "look_up", "found": found.packet["answer"]})
    cost = {**found.packet["metrics"], **NO_COST, "latency_seconds": time.perf_counter() - began}
    return {
        **begun,
        "packet": {**found.packet, "metrics": cost},
        "drafts": [TriedDraft(draft=Draft(**found.draft), trial=None)],
        "iterations": 1,
        "responders": ["cache: cache"],
    }


def _cache(runtime: LearningRuntime) -> PromptCache:
    return PromptCache(ledger_of(runtime), team_of(runtime))


def _prompt(state: State, world: World) -> str:
    """Return all that a task's agents are told of it."""
    told: Mapping[str, Any] = told_of(world, state["task"])
    return "\n".join(told[name] for name in ("task", "material", "wanted", "features") if told.get(name))


def is_known(state: State) -> Literal["keep", "research"]:
    """Go to the end with an answer from the cache."""
    return "keep" if state["drafts"] else "research"


@timed
async def keep(state: State, runtime: LearningRuntime, world: World) -> Update:
    """Keep a new answer for the same words, and log the task."""
    final = state["drafts"][state["final"]]
    answer = CachedAnswer(
        task=state["task_id"], packet=dict(state["packet"]), draft=dict(final["draft"]) | {"used": []}
    )
    await _cache(runtime).add(_prompt(state, world), answer)
    await cards_of(runtime).tasks.add(record_of(state, world, runtime.context))
    return {"learned": [], "answered_by": sorted(set(state["responders"]))}
