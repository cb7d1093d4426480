"""The kinds of memory, by name."""

from typing import Literal

from mneme.core.errors import BadInput
from mneme.nodes.task_memories.chat_dev import ChatDev
from mneme.nodes.task_memories.g_memory import GMemory
from mneme.nodes.task_memories.generative import Generative
from mneme.nodes.task_memories.interface import Means, TaskMemory
from mneme.nodes.task_memories.intrinsic import Intrinsic
from mneme.nodes.task_memories.memory_bank import MemoryBank
from mneme.nodes.task_memories.meta_gpt import MetaGpt
from mneme.nodes.task_memories.none import NoMemory
from mneme.nodes.task_memories.voyager import Voyager

MemoryName = Literal[
    "none", "meta_gpt", "voyager", "generative", "memory_bank", "chat_dev", "g_memory", "intrinsic"
]
ALL: tuple[type[TaskMemory], ...] = (
    NoMemory,
    MetaGpt,
    Voyager,
    Generative,
    MemoryBank,
    ChatDev,
    GMemory,
    Intrinsic,
)
MEMORIES: dict[str, type[TaskMemory]] = {kind.name: kind for kind in ALL}


def open_memory(name: str, means: Means) -> TaskMemory:
    """Return the memory of this name, at work with these means. Raises BadInput."""
    if name not in MEMORIES:
        raise BadInput(f"There is no memory {name}.", f"Choose one of {', '.join(MEMORIES)}.")
    return MEMORIES[name](means)
