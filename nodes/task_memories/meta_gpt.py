"""MetaGPT: the raw trajectory and its label, keyed by the goal; the nearest success is shown."""

from mneme.nodes.task_memories.recollecting import Recollecting


class MetaGpt(Recollecting):
    """Keep trials as they were, and recall the one that succeeded at the nearest goal."""

    name = "meta_gpt"
