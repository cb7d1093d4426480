"""No memory: the trajectory of the task, and nothing else."""

from collections.abc import Sequence

from mneme.environments.turns import Turn
from mneme.nodes.task_memories.fitting import within
from mneme.nodes.task_memories.interface import Held, Shown, Task, TaskMemory


class NoMemory(TaskMemory):
    """Remember nothing; show the full trajectory, as far as the window goes."""

    name = "none"

    def context(self, task: Task, held: Held, turns: Sequence[Turn], agent: str) -> Shown:
        return within(self.means, task, "", turns)
