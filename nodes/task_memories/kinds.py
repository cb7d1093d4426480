"""The kinds of memory, by name; `none` has the trajectory of the task, and nothing else."""

from collections.abc import Sequence
from typing import Literal

from mneme.core.errors import BadInput
from mneme.environments.turns import Turn
from mneme.nodes.task_memories.chat_dev import ChatDev
from mneme.nodes.task_memories.g_memory import GMemory
from mneme.nodes.task_memories.interface import Held, MemoryServices, Shown, Task, TaskMemory
from mneme.nodes.task_memories.intrinsic import Intrinsic
from mneme.nodes.task_memories.recollecting import Generative, MemoryBank, MetaGpt, Voyager

MemoryName = Literal[
    "none", "meta_gpt", "voyager", "generative", "memory_bank", "chat_dev", "g_memory", "intrinsic"
]


class NoMemory(TaskMemory):
    """Remember nothing; show the full trajectory, as far as the window goes."""

    name = "none"

    def context(self, task: Task, held: Held, turns: Sequence[Turn], agent: str) -> Shown:
        return self.services.within(task, "", turns)


KINDS = (NoMemory, MetaGpt, Voyager, Generative, MemoryBank, ChatDev, GMemory, Intrinsic)
MEMORIES: dict[str, type[TaskMemory]] = {kind.name: kind for kind in KINDS}


def open_memory(name: str, services: MemoryServices) -> TaskMemory:
    """Return the memory of this name, with these services. Raises BadInput."""
    if name not in MEMORIES:
        raise BadInput(f"There is no memory {name}.", f"Choose one of {', '.join(MEMORIES)}.")
    return MEMORIES[name](services)
