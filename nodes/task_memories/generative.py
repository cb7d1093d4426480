"""Generative agents' memory: twice as many successes as are wanted, of which a model keeps the relevant."""

from mneme.nodes.task_memories.interface import Task
from mneme.nodes.task_memories.recollecting import Recollecting
from mneme.stores.task_memories.trials import TrialRecord

SHOWN = 1
"""k: how many trials are shown; 2k are rated."""


class Generative(Recollecting):
    """Rate the relevance of the nearest successes from 1 to 10, and show the best."""

    name = "generative"

    async def found(self, task: Task) -> list[TrialRecord]:
        """Return k of the 2k nearest; of equals, the nearer."""
        nearest = await self.means.trials.nearest(task.goal, 2 * SHOWN, shelf="succeeded")
        rated = [(await self.relevance(task, each), each) for each in nearest]
        best = sorted(rated, key=lambda pair: -pair[0])
        return [each for _, each in best[:SHOWN]]
