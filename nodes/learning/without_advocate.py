"""The loop without the devil's advocate, to compare: the trial alone says what is wrong with a draft.

All else is as in compound learning: cards, the same trials, as many drafts, leader and monitor. Where the
trial fails, the researcher is asked for a patch as it is there, with the trial's own words as the objection;
as its remedy stands the next of the world's remedies that was not tried, in the world's order, since nobody
reads the evidence. A draft that does passes, whatever might be said against it.
"""

from mneme.environments.worlds import World
from mneme.nodes.learning.compound_learning.state import (
    LoggedObjection,
    State,
    Update,
    draft_of,
    timed,
)
from mneme.nodes.learning.context import LearningRuntime
from mneme.nodes.learning.worlds import attempt, remedies
from mneme.prompts.learning.compound_learning.challenge import Objection

MAX_CHARS = 300


@timed
async def try_out(state: State, runtime: LearningRuntime, world: World) -> Update:
    """Try the latest draft; where it fails, note what the trial says."""
    trial = await attempt(world, draft_of(state, -1).made, quick=True)
    if trial is None:
        return {}
    tried = [each["draft"].pattern for each in state["drafts"]]
    left = [each for each in remedies(world) if each not in tried]
    said = Objection(
        evidence=f"The trial says: {trial.problem or trial.summary}"[:MAX_CHARS],
        kind="missing_edge_case",
        remedy=left[0] if left else "",
        severity="blocking",
    )
    noted = LoggedObjection(round=len(state["drafts"]), objection=said)
    runtime.stream_writer({"step": "try_out", "trial": trial.summary})
    return {
        "drafts": [*state["drafts"][:-1], {**state["drafts"][-1], "trial": trial}],
        "log": state["log"] if trial.solved else [*state["log"], noted],
    }
