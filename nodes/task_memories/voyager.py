"""Voyager: as MetaGPT, but a trial is found by a summary of its course in at most six sentences."""

from nodes.task_memories.interface import Trial
from nodes.task_memories.recollecting import Recollecting, raw
from prompts.task_memories import summarise_trial
from stores.trials import Kept


class Voyager(Recollecting):
    """Key trials by what they were about, and recall the success that is nearest to the goal."""

    name = "voyager"

    async def kept(self, trial: Trial) -> Kept:
        """Return the trajectory, keyed by its summary."""
        answer = await self.ask(summarise_trial, self.course(trial))
        return raw(trial, answer.summary)
