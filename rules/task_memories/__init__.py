"""How rules keep a team's memories."""

from mneme.rules.task_memories import task_memories

__all__ = ["task_memories"]
