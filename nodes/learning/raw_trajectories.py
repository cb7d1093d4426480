"""Retrieval of raw trajectories (§1 and §9's RAG), as a baseline: whole trajectories are kept, not lessons.

Everything else is as in compound learning: the same questions, trials and number of drafts, the same embedder
and the same number retrieved. There is no monitor, no card and no status: each task's trajectory is kept,
solved or not, found by the task's text, and shown in place of a card.

Rules get from a retrieved trajectory what they get from a card: the accepted solution, instantiated for the
task at hand. That is more than raw text gives a model, so under rules this is the strongest form of the
baseline; whether a model finds the relevant part of the text, rules cannot show.
"""

import time

from mneme.nodes.context import ledger_of, team_of
from mneme.nodes.learning.compound_learning.monitor import record_of, trajectory_of
from mneme.nodes.learning.compound_learning.researcher import begin, shorten_middle
from mneme.nodes.learning.compound_learning.state import Step, Update, begins, timed
from mneme.nodes.learning.worlds import advice_of, told_of
from mneme.prompts.learning.compound_learning.task import Known
from mneme.stores.ledger.records import Change, Source
from mneme.stores.task_memories.trials import TrialRecord, Trials

TRAJECTORY_MEMORY = "raw_trajectories"
MAX_TRAJECTORY_CHARS = 3_000
"""Maximum characters of a trajectory that are shown: five of them fit into a small model's context."""


@begins
async def recall(step: Step) -> Update:
    """Retrieve the trajectories of the tasks that are most like this one."""
    began, count = time.perf_counter(), step.runtime.context.recall
    # One more than is shown: a task that was killed at its end finds its own trajectory, and must not see it.
    found = await _trials(step).nearest(_key(step), count + 1) if count else []
    others = [each for each in found if each.id != step.state.get("task_id")]
    return begin(step, [_recalled(each, step) for each in others[:count]], began)


def _trials(step: Step) -> Trials:
    return Trials(ledger_of(step.runtime), team_of(step.runtime), TRAJECTORY_MEMORY)


def _key(step: Step) -> str:
    """Return the text of a task by which its trajectory is found."""
    told = told_of(step.world, step.state["task"])
    return "\n".join(filter(None, (told["task"], told["features"], told.get("material", ""))))


def _recalled(kept: TrialRecord, step: Step) -> Known:
    """Return a trajectory in the form of a card, with the accepted solution, if there is one."""
    steps = kept.key_steps if kept.success and step.world.measures else []  # only measured success counts
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
    await step.cards.tasks.add(record_of(state, step.world, step.runtime.context))
    return {"learned": [], "answered_by": sorted(set(state["responders"]))}
