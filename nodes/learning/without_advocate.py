"""The loop without the devil's advocate, as a baseline: only the trial says what is wrong with a draft.

All else is as in compound learning: cards, the same trials, as many drafts, leader and monitor. If the trial
fails, the researcher is asked for a patch in the same way, with the trial's own words as the objection. Its
remedy is the next of the world's remedies that was not tried, in the world's order, since nobody reads the
evidence. A draft that solves the task passes without objection.
"""

from mneme.nodes.learning.compound_learning.state import LoggedObjection, Step, Update, timed
from mneme.nodes.learning.worlds import attempt, made_out
from mneme.prompts.learning.compound_learning.challenge import Objection

MAX_EVIDENCE_CHARS = 300


@timed
async def try_out(step: Step) -> Update:
    """Try the latest draft; if it fails, note the trial's message as an objection."""
    drafts, log = step.state["drafts"], step.state["log"]
    trial = await attempt(step.world, step.draft(-1).solution, quick=True)
    if trial is None:
        return {}  # without a world there is nothing to object with
    tried = {each["draft"].pattern for each in drafts}
    possible = [each.pattern for each in made_out(step.world, step.world.remedies())]
    said = Objection(
        evidence=f"The trial says: {trial.problem or trial.summary}"[:MAX_EVIDENCE_CHARS],
        kind="missing_edge_case",
        remedy=next((each for each in possible if each not in tried), ""),
        severity="blocking",
    )
    step.tell("try_out", trial=trial.summary)
    raised = [] if trial.solved else [LoggedObjection(round=len(drafts), objection=said)]
    return {"drafts": [*drafts[:-1], {**drafts[-1], "trial": trial}], "log": [*log, *raised]}
