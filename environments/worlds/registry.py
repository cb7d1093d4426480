"""Find a world by name: one that comes with Mneme, a YAML file, or another package's by entry point.

An entry point of the group `mneme.worlds` names a `WorldKind`, its class or a function that makes one::

    [project.entry-points."mneme.worlds"]
    riddles = "my_package.riddles:RiddleKind"
"""

from collections.abc import Mapping
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

from mneme.core.errors import BadInput
from mneme.environments.worlds.world import WorldKind

PLUGGED = "mneme.worlds"
SQL_TUNING = "sql_tuning"
WORKSPACE = "workspace"
"""A folder that is held to a command: what the task itself says."""
SHIPPED = ("python_functions", "shell_pipelines")
KINDS: Mapping[str, str] = {
    SQL_TUNING: "sql_tuning.world:SqlTuningKind",
    WORKSPACE: "workspace.kind:WorkspaceKind",
}
ENVIRONMENTS = __name__.rpartition(".worlds.")[0]
BUILT_IN = (*KINDS, *SHIPPED)
ENDINGS = (".yaml", ".yml")


def find_world(name: str) -> WorldKind:
    """Return the kind of world of a name. Raises BadInput for one that there is not."""
    if name.endswith(ENDINGS):
        return _described(Path(name))
    if name in BUILT_IN:
        return _built_in(name)
    points = entry_points(group=PLUGGED)
    if name not in points.names:
        raise BadInput(f"There is no world {name!r}.", f"There are: {', '.join(world_names())}.")
    made: object = points[name].load()
    kind = made() if callable(made) else made
    if not isinstance(kind, WorldKind):
        raise BadInput(
            f"The entry point {name!r} of {PLUGGED} is not a WorldKind.",
            "docs/how-to/learn-in-your-own-world.md shows one.",
        )
    return kind


def world_names() -> list[str]:
    """Return the names of the worlds that are there, without files."""
    return sorted({*BUILT_IN, *entry_points(group=PLUGGED).names})


def runs_commands(name: str) -> bool:
    """Say whether a world is told by the task what to run or open, beside its solutions."""
    return name == WORKSPACE or name.endswith(ENDINGS)


def _described(file: Path) -> WorldKind:
    kind: WorldKind = _loaded(WORKSPACE).of(file)
    return kind


@cache
def _built_in(name: str) -> WorldKind:
    if name in SHIPPED:
        return _described(Path(__file__).parent.parent / "workspace" / "worlds" / f"{name}.yaml")
    made: WorldKind = _loaded(name)()
    return made


def _loaded(name: str) -> Any:
    """Load the class of a built-in kind by name, as another package's is: only when it is asked for."""
    return resolve_name(f"{ENVIRONMENTS}.{KINDS[name]}")
