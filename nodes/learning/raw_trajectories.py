"""Retrieval of raw trajectories (§1 and §9's RAG), to compare: what happened is kept, not what it taught.

Everything else is compound learning's: the same questions, trials and number of drafts, the same embedder
and as many retrieved. There is no monitor, no card and no standing: each task's whole trajectory is kept,
solved or not, found by the task as it was asked, and shown in the place of a card.

Rules read of a retrieved trajectory what they read of a card: the solution that was accepted, made out for
the task at hand. That is more than raw text gives a model, so under rules this is the strongest form of the
rival; whether a model finds what matters in the text, rules cannot show.
"""

import time

from mneme.nodes.context import ledger_of, team_of
from mneme.nodes.learning.compound_learning.monitor import log_task, trajectory_of
from mneme.nodes.learning.compound_learning.researcher import begin, shorten_middle
from mneme.nodes.learning.compound_learning.state import Step, Update, begins, timed
from mneme.nodes.learning.worlds import advice_of, told_of
from mneme.prompts.learning.compound_learning.task import Known
from mneme.stores.ledger.records import Change, Source
from mneme.stores.task_memories.trials import TrialRecord, Trials

TRAJECTORY_MEMORY = "raw_trajectories"
MAX_TRAJECTORY_CHARS = 3_000
"""As much of a trajectory as is shown: five of them fit into a small model's context."""


@begins
async def recall(step: Step) -> Update:
    """Retrieve the trajectories of the tasks that are most like this one."""
    began = time.perf_counter()
    return begin(step, await _nearest(step), began)


async def _nearest(step: Step) -> list[Known]:
    count = step.runtime.context.recall
    found = await _trials(step).nearest(_key(step), count + 1) if count else []
    # A killed task goes on as it began.
    others = [each for each in found if each.id != step.state.get("task_id")]
    return [_recalled(each, step) for each in others[:count]]


def _trials(step: Step) -> Trials:
    return Trials(ledger_of(step.runtime), team_of(step.runtime), TRAJECTORY_MEMORY)


def _key(step: Step) -> str:
    """Return the task as it was asked, with all that its agents are told of it."""
    told = told_of(step.world, step.state["task"])
    return "\n".join(filter(None, (told["task"], told["features"], told.get("material", ""))))


def _recalled(kept: TrialRecord, step: Step) -> Known:
    """Show a trajectory in the place of a card, with the solution that was accepted, if one was."""
    steps = kept.key_steps if kept.success and step.world.measures else []
    made = [advice_of(step.world, "", each) for each in steps]
    return Known(
        id=kept.id,
        tasks=[kept.id],
        claim=f"An earlier task, as it went: {kept.goal}",
        status="solved" if kept.success else "not solved",
        confidence=kept.reward,
        advice=[each.model_copy(update={"applies": True}) for each in made],
        rationale=shorten_middle("\n".join(kept.trajectory), MAX_TRAJECTORY_CHARS),
    )


@timed
async def keep(step: Step) -> Update:
    """Keep the whole trajectory, whatever its result, and log the task."""
    state, packet = step.state, step.state["packet"]
    pattern = step.draft(state["final"]).pattern
    kept = TrialRecord(
        id=state["task_id"],
        key=_key(step),
        goal=state["task"],
        trajectory=[*trajectory_of(state), f"answer: {packet['answer']}", f"outcome: {packet['rationale']}"],
        reward=packet["confidence"],
        success=packet["solved"],
        domain=step.world.scope,
        key_steps=[pattern] if pattern else [],
    )
    source = Source(tasks=[state["task_id"]])
    await _trials(step).keep(kept, Change(reason="finished", actor=TRAJECTORY_MEMORY, source=source))
    await log_task(step)
    return {"learned": [], "answered_by": sorted(set(state["responders"]))}
