"""MemoryBank: recalls as Voyager does; within a task, turns fade with time (Ebbinghaus).

A turn that is Δt turns old is still seen while exp(-Δt / 5) ≥ 0.3: the last seven.
"""

import math
from collections.abc import Sequence

from mneme.environments.turns import Turn
from mneme.nodes.task_memories.interface import Held, Shown, Task
from mneme.nodes.task_memories.voyager import Voyager

FADING = 5.0
THRESHOLD = 0.3


class MemoryBank(Voyager):
    """Show only the turns that are not forgotten yet."""

    name = "memory_bank"

    def context(self, task: Task, held: Held, turns: Sequence[Turn], agent: str) -> Shown:
        """Show what was recalled, and the turns whose retention is above the threshold."""
        fresh = [turn for age, turn in enumerate(reversed(turns)) if retention(age) >= THRESHOLD]
        return super().context(task, held, fresh[::-1], agent)


def retention(age: int) -> float:
    """Return how much is left of a turn after so many others."""
    return math.exp(-age / FADING)
