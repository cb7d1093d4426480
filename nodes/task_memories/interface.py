"""What every memory of a team's tasks can be asked, and what it works with.

A memory object lives for one step of a graph. What it must know until the next step is `Held`, plain
JSON that the graph keeps in its state; what must outlive the task is in the ledger, behind `Trials`.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

from pydantic import BaseModel, ConfigDict

from mneme.environments.turns import Turn
from mneme.models.asking.budget import tokens
from mneme.nodes.costs import CostCounter
from mneme.nodes.task_memories.f_context import Count
from mneme.stores.ledger.ledger import Ledger
from mneme.stores.task_memories.trials import Trials

Held = dict[str, Any]
"""What a memory knows during a task: plain JSON, part of the graph's state. Empty at the start."""


class Task(BaseModel):
    """What the team has to do. `goal` is what memories of other tasks are found by."""

    model_config = ConfigDict(frozen=True)

    id: str
    goal: str
    text: str = ""
    """The whole of what is pinned in every context: goal, rules, first observation."""
    domain: str = ""


class FinishedTask(BaseModel):
    """A task that has ended: everything that happened, and how well it went (reward 0 to 1)."""

    model_config = ConfigDict(frozen=True)

    id: str
    """The same when the same run of the same task is replayed, so that nothing is remembered twice."""
    task: Task
    turns: list[Turn]
    reward: float
    success: bool


@dataclass(frozen=True)
class Role:
    """An agent as its memory sees it: what it is for, and the slots of its structured memory."""

    description: str
    template: Mapping[str, Any] = field(default_factory=dict)


@dataclass
class Means:
    """What a memory works with, made anew for each step of a graph.

    `who` answers the memory's own questions; `window` is the budget of a context in tokens (task,
    memory and turns together), counted by `count`, the tokenizer of the model that reads it where it is
    known; `memory_tokens` bounds a structured memory; `tally` counts what the memory's questions cost;
    `complaints` says which answers could be used in part only; `trial` names the run; `project_insights` has
    G-Memory word its insights for each role.
    """

    ledger: Ledger
    trials: Trials
    who: str
    trial: str
    window: int
    memory_tokens: int = 600
    count: Count = tokens
    team: str = "local"
    roles: Mapping[str, Role] = field(default_factory=dict)
    tally: CostCounter = field(default_factory=CostCounter)
    complaints: list[str] = field(default_factory=list)
    project_insights: bool = False


class Shown(NamedTuple):
    """What an agent is shown beside its task: the memory's text, and the turns it still sees, in order."""

    memory: str
    turns: list[Turn]


class TaskMemory(ABC):
    """A memory. The defaults remember nothing and show the full trajectory, as far as the window goes.

    A graph calls `recall` once; then for each turn `prepare` and `context` before an agent acts and
    `observe` after it; `remember` once, at the end. Each returns the new `Held`; none changes the old.
    """

    name: ClassVar[str]

    def __init__(self, means: Means) -> None:
        self.means = means

    async def recall(self, task: Task) -> Held:
        """Look up what other tasks left that may help with this one."""
        return {}

    async def prepare(self, task: Task, held: Held, turns: Sequence[Turn]) -> Held:
        """Get ready for one more context."""
        return held

    @abstractmethod
    def context(self, task: Task, held: Held, turns: Sequence[Turn], agent: str) -> Shown:
        """Return what this agent is shown now. Raises BadInput where task and memory fill the window."""

    async def observe(self, task: Task, held: Held, turns: Sequence[Turn]) -> Held:
        """Take in the newest turn, the last of `turns`."""
        return held

    async def remember(self, trial: FinishedTask, held: Held) -> None:
        """Keep what this task has to teach to others."""
        return
