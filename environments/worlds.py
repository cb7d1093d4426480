"""A world: an environment that tries solutions, so that their value is measured, not judged.

A world of your own is a class of three methods::

    class Riddles(World):
        scope = "riddles"

        def material(self) -> str: ...                    # what the task is about
        def wanted(self) -> str: ...                      # what counts as solved, and what is allowed
        def attempt(self, solution, *, quick=False) -> Trial: ...

and a kind that opens it for a task::

    class RiddleKind(WorldKind):
        name = "riddles"

        def open(self, task: Task) -> World: ...

which an entry point of the group `mneme.worlds` names, its class or a function that makes one::

    [project.entry-points."mneme.worlds"]
    riddles = "my_package.riddles:RiddleKind"

Methods of a world may block for as long as a trial takes: they are called off the event loop. A world is
opened again for each step of a task, also after a kill, from the task alone; it caches expensive results,
such as the baseline, for the process.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import entry_points
from pathlib import Path
from pkgutil import resolve_name
from typing import Annotated, Any, Protocol

from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from mneme.core.errors import BadInput
from mneme.environments.fields import described
from mneme.environments.trial import Metric, Solution, Trial, failed

__all__ = [
    "SHIPPED_WORLDS",
    "SQL_TUNING",
    "WORKSPACE",
    "WORLD_PLUGINS",
    "InWords",
    "Language",
    "Metric",
    "Solution",
    "Task",
    "TaskInput",
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


class TaskInput(TypedDict, total=False):
    """A task's input for its world: the one declaration for the command line, the graphs and the worlds."""

    query: Annotated[
        str,
        described(
            "sql_tuning: the slow query, which is run and measured.",
            "SELECT user_id, COUNT(*) FROM user_events GROUP BY user_id",
        ),
    ]
    wanted_speed_up: Annotated[
        float, described("sql_tuning: how many times as fast is fast enough.", 2.0, 2.0, ge=1)
    ]
    index_budget: Annotated[
        float,
        described("sql_tuning: largest size of all new indexes, as a share of the tables'.", 0.3, 0.3, ge=0),
    ]
    database: Annotated[
        str,
        described(
            "sql_tuning: an own database, a SQLite file or a postgresql:// address; only read.",
            "/home/ada/shop.sqlite",
        ),
    ]
    ddl: Annotated[
        str,
        described(
            "sql_tuning: CREATE TABLE statements of an own database, filled with made rows.",
            "CREATE TABLE orders (id INTEGER PRIMARY KEY, city TEXT)",
        ),
    ]
    case: Annotated[str, described("A task of the world's own, by its id.", "common-customers")]
    workspace: Annotated[
        str,
        described("workspace: the folder whose files a solution may change, on a copy.", "/home/ada/shop"),
    ]
    check: Annotated[
        str, described("workspace: the command that must end with 0, run in the folder.", "pytest -q")
    ]
    metrics: Annotated[
        list[str],
        described(
            "workspace: what is to become better, as NAME:lower|higher:TIMES.", ["cpu_seconds:lower:2"], []
        ),
    ]
    may_change: Annotated[
        list[str], described("workspace: patterns of the files that may change.", ["src/*.py"], [])
    ]


def stated(told: Mapping[str, Any]) -> dict[str, Any]:
    """Return the non-empty fields of a task; a number may be 0, such as an index budget."""
    return {name: value for name, value in told.items() if value or value == 0}


class Task(BaseModel, frozen=True):
    """One task: its text, and its input for the world (a query, a folder, …)."""

    id: str = "task"
    text: str = ""
    given: dict[str, Any] = Field({}, description="What the world reads: fields of `TaskInput`, settings.")
    group: str = Field("", description="Of similar tasks, each group comes once before any comes again.")


class InWords(BadInput):
    """A pattern is plain words for an agent; no program can carry it out."""


class Language(Protocol):
    """Short texts (patterns) that name an approach for every task of a world, such as `INDEX (filter)`."""

    definition: str
    """Description of the possible patterns, for agents."""

    def check(self, pattern: str) -> str:
        """Return the pattern in its canonical form. Raises BadInput if it is not one of the language."""
        ...


class World(ABC):
    """A world with one task, in which its solutions are tried."""

    measures: bool = True
    """Whether solutions are measured here; else the leader judges them."""
    scope: str = ""
    """Domain of this world's lessons: cards of another scope are not shown here."""
    noun: str = "tasks"
    """Noun for its tasks."""
    form: str = "The answer is the solution in words; statements, query, files and diff stay empty."
    """Format of a solution, described for agents."""
    parts: Sequence[str] = ("answer",)
    """The parts of a solution that this world takes."""
    snapshot: str = ""
    """Name of the state in which the task's material was read: later steps of the task are given it."""
    language: Language | None = None
    """The language of its patterns; without one, a rule is text that an agent reads."""

    @abstractmethod
    def material(self) -> str:
        """Return the material of the task: the query, the files, the baseline's output."""

    @abstractmethod
    def wanted(self) -> str:
        """Return the success criteria, what may change, and where the solution is run."""

    @abstractmethod
    def attempt(self, solution: Solution, *, quick: bool = False) -> Trial:
        """Try a solution; a `quick` trial may be less exact. Whatever the solution is, it returns a Trial."""

    def probe(self, solution: Solution, command: str) -> str:
        """Run a hidden check on a solution; say what is wrong, or nothing where it passes or proves none."""
        return ""

    @property
    def versions(self) -> Mapping[str, str]:
        """Return the versions of the task's software, by name: cards for other versions are not shown."""
        return {}

    @property
    def wanted_gain(self) -> float:
        """Return the factor of improvement that is wanted; 0 if the task gives no number."""
        return 0.0

    @property
    def features(self) -> Sequence[str]:
        """Name what matters in the task, in words that a card's condition can use."""
        return ()

    @property
    def general(self) -> Sequence[str]:
        """Name the features without what is particular to this one task."""
        return self.features

    def applies(self, condition: str) -> bool | None:
        """Return whether a condition holds here; None if the world cannot decide it."""
        return None

    def specificity(self, condition: str) -> int:
        """Return how specific a condition is."""
        return len(parts_of(condition))

    def carry_out(self, pattern: str) -> Solution:
        """Turn a pattern into a solution of this task. Raises BadInput if it cannot be applied here."""
        raise NotImplementedError  # only a world with a language is asked

    def first_ideas(self) -> Sequence[str]:
        """Return the patterns that a textbook would begin with."""
        return ()

    def remedies(self) -> Sequence[str]:
        """Return the patterns that are worth a try in this world, in no order of merit."""
        return ()

    def describe(self, solution: Solution) -> str:
        """Describe a solution as a pattern; return "" if no pattern fits."""
        return ""

    def looks(self) -> Sequence[Callable[..., str]]:
        """Return functions that a researcher can call for information; their docstrings describe them."""
        return ()


class WorldKind(ABC):
    """A kind of world: it opens a task, and knows tasks like it."""

    name: str
    vocabulary: str = ""
    """Words of its patterns and features: they reveal nothing about the tasks' owner."""

    def names(self, material: str) -> Sequence[str]:
        """Return the names in a task's material that reveal its owner, such as tables and columns."""
        return ()

    @abstractmethod
    def open(self, task: Task) -> World:
        """Open a task. Raises BadInput where it lacks what the world needs."""

    def cases(self) -> Sequence[Task]:
        """Return the tasks that come with this kind of world; none where every task comes from outside."""
        return ()

    def similar(self, task: Task, seed: int) -> Sequence[Task]:
        """Return other tasks of this kind, to try two disputed approaches on; none where there are none."""
        return ()


def parts_of(condition: str) -> list[str]:
    """Return the parts of a condition: features with `;` between them."""
    return [part.strip() for part in condition.split(";") if part.strip()]


WORLD_PLUGINS = "mneme.worlds"
SQL_TUNING = "sql_tuning"
WORKSPACE = "workspace"
"""A folder with a check command, both given by the task."""
SHIPPED_WORLDS = ("python_functions", "shell_pipelines")
BUILT_IN_KINDS: Mapping[str, str] = {
    SQL_TUNING: "sql_tuning.world:SqlTuningKind",
    WORKSPACE: "workspace.kind:WorkspaceKind",
}
BUILT_IN = (*BUILT_IN_KINDS, *SHIPPED_WORLDS)
WORLD_SUFFIXES = (".yaml", ".yml")


def find_world(name: str) -> WorldKind:
    """Return the kind of world with this name. Raises BadInput for an unknown one."""
    shipped = Path(__file__).parent / "workspace" / "worlds" / f"{name}.yaml"
    if (file := str(shipped) if name in SHIPPED_WORLDS else name).endswith(WORLD_SUFFIXES):
        described: WorldKind = resolve_name(f"{__package__}.{BUILT_IN_KINDS[WORKSPACE]}").of(Path(file))
        return described
    made: object
    if built_in := BUILT_IN_KINDS.get(name):  # imported only when asked for, like a plugin: it is slow
        made = resolve_name(f"{__package__}.{built_in}")
    elif name in (points := entry_points(group=WORLD_PLUGINS)).names:
        made = points[name].load()
    else:
        raise BadInput(f"There is no world {name!r}.", f"There are: {', '.join(world_names())}.")
    kind = made() if callable(made) else made  # a class, a function that makes one, or the kind itself
    if not isinstance(kind, WorldKind):
        raise BadInput(
            f"The entry point {name!r} of {WORLD_PLUGINS} is not a WorldKind.",
            "docs/how-to/learn-in-your-own-world.md shows one.",
        )
    return kind


def world_names() -> list[str]:
    """Return the names of the built-in and installed worlds."""
    return sorted({*BUILT_IN, *entry_points(group=WORLD_PLUGINS).names})


def runs_commands(name: str) -> bool:
    """Return whether the task gives the world commands to run or folders to open, beside its solutions."""
    return name == WORKSPACE or name.endswith(WORLD_SUFFIXES)
