"""Voyager: as MetaGPT, but a trial is found by a summary of its course in at most six sentences."""

from mneme.nodes.task_memories.interface import FinishedTask
from mneme.nodes.task_memories.recollecting import Recollecting, raw
from mneme.prompts.task_memories.task_memories import summarise_trial
from mneme.stores.task_memories.trials import TrialRecord


class Voyager(Recollecting):
    """Key trials by what they were about, and recall the success that is nearest to the goal."""

    name = "voyager"

    async def kept(self, trial: FinishedTask) -> TrialRecord:
        """Return the trajectory, keyed by its summary."""
        answer = await self.ask(summarise_trial, self.course(trial))
        return raw(trial, answer.summary)
