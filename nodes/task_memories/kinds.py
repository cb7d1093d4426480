"""The kinds of memory by name; `none` shows only the trajectory of the task."""

from typing import Literal

from mneme.core.errors import BadInput
from mneme.nodes.task_memories.chat_dev import ChatDev
from mneme.nodes.task_memories.g_memory import GMemory
from mneme.nodes.task_memories.interface import MemoryServices, TaskMemory
from mneme.nodes.task_memories.intrinsic import Intrinsic
from mneme.nodes.task_memories.recollecting import Generative, MemoryBank, MetaGpt, Voyager

MemoryName = Literal[
    "none", "meta_gpt", "voyager", "generative", "memory_bank", "chat_dev", "g_memory", "intrinsic"
]


MEMORY_CLASSES = (TaskMemory, MetaGpt, Voyager, Generative, MemoryBank, ChatDev, GMemory, Intrinsic)
MEMORIES_BY_NAME: dict[str, type[TaskMemory]] = {kind.name: kind for kind in MEMORY_CLASSES}


def open_memory(name: str, services: MemoryServices) -> TaskMemory:
    """Return the memory of a name. Raises BadInput for an unknown name."""
    if name not in MEMORIES_BY_NAME:
        raise BadInput(f"There is no memory {name}.", f"Choose one of {', '.join(MEMORIES_BY_NAME)}.")
    return MEMORIES_BY_NAME[name](services)
