"""Any world: the protocol by which a task's solutions are tried, and where worlds are found by name."""

from mneme.core.trial import Metric, Solution, Trial, failed
from mneme.environments.worlds.registry import SQL_TUNING, find_world, runs_commands, world_names
from mneme.environments.worlds.world import InWords, Language, Task, Told, World, WorldKind, parts_of, stated

__all__ = [
    "SQL_TUNING",
    "InWords",
    "Language",
    "Metric",
    "Solution",
    "Task",
    "Told",
    "Trial",
    "World",
    "WorldKind",
    "failed",
    "find_world",
    "parts_of",
    "runs_commands",
    "stated",
    "world_names",
]
