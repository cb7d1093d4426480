"""A prompt cache (§1), as a baseline: a task in the same words as an earlier one gets the earlier answer.

White space between the words does not count; any other difference makes another task, which the team begins
without memory. The first answer stays, good or bad, and is not tried again: its measured result is the one
from when it was made.
"""

import time
from dataclasses import replace
from typing import Literal, cast

from mneme.nodes.context import ledger_of, team_of
from mneme.nodes.learning.compound_learning.monitor import record_of
from mneme.nodes.learning.compound_learning.researcher import begin
from mneme.nodes.learning.compound_learning.state import State, Step, TriedDraft, Update, begins, timed
from mneme.nodes.learning.worlds import told_of
from mneme.prompts.learning.compound_learning.research import Draft
from mneme.stores.task_memories.prompt_cache import CachedAnswer, PromptCache

NO_COST = {"model_calls": 0, "tokens": 0}


@begins
async def look_up(step: Step) -> Update:
    """Answer from the cache if the task was asked before; else begin without memory."""
    began = time.perf_counter()
    begun = begin(step, [], began)
    posed = replace(step, state=cast(State, {**step.state, **begun}))  # an update has some fields only
    found = await _cache(step).get(_prompt(posed))
    if found is None or found.task == begun["task_id"]:  # a replayed task must not answer itself
        return begun
    step.tell("look_up", found=found.packet["answer"])
    cost = {**found.packet["metrics"], **NO_COST, "latency_seconds": time.perf_counter() - began}
    return {
        **begun,
        "packet": {**found.packet, "metrics": cost},
        "drafts": [TriedDraft(draft=Draft(**found.draft), trial=None)],
        "iterations": 1,
        "responders": ["cache: cache"],
    }


def _cache(step: Step) -> PromptCache:
    return PromptCache(ledger_of(step.runtime), team_of(step.runtime))


def _prompt(step: Step) -> str:
    """Return the text of a task, with all that its agents are shown."""
    told = told_of(step.world, step.state["task"])
    return "\n".join(told[name] for name in ("task", "material", "wanted", "features") if told.get(name))


def is_known(state: State) -> Literal["keep", "research"]:
    """Go to the end with an answer from the cache."""
    return "keep" if state["drafts"] else "research"


@timed
async def keep(step: Step) -> Update:
    """Keep a new answer for the same words, and log the task."""
    # The numbers of used cards mean nothing in another task.
    state, draft = step.state, dict(step.draft(step.state["final"])) | {"used": []}
    answer = CachedAnswer(task=state["task_id"], packet=dict(state["packet"]), draft=draft)
    await _cache(step).add(_prompt(step), answer)
    await step.cards.tasks.add(record_of(state, step.world, step.runtime.context))
    return {"learned": [], "answered_by": sorted(set(state["responders"]))}
