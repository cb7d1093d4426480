"""The interface of all task memories, and the services that they use.

A memory object lives for one step of a graph. Its state until the next step is `Held`, plain JSON in the
graph's state; what outlives the task is in the ledger, behind `Trials`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

from pydantic import BaseModel, ConfigDict

from mneme.environments.turns import Turn
from mneme.models.asking.counting import tokens
from mneme.nodes.task_memories.f_context import Count, f_context, fitting
from mneme.stores.ledger.ledger import Ledger
from mneme.stores.task_memories.trials import Trials

MAX_RECOLLECTION_SHARE = 0.5
"""Maximum share of a recollection in the tokens that the task leaves: turns need room, too."""
MIN_TEXT_CHARS = 20
REST_LEFT_OUT = "(The rest is left out.)"
Held = dict[str, Any]
"""A memory's state during a task: plain JSON, part of the graph's state. Empty at the start."""


class Task(BaseModel):
    """A task of the team; memories of other tasks are found by its `goal`."""

    model_config = ConfigDict(frozen=True)

    id: str
    goal: str
    text: str = ""
    """The text pinned in every context: goal, rules, first observation."""
    domain: str = ""


class FinishedTask(BaseModel):
    """A task that has ended, with all turns and its reward (0 to 1)."""

    model_config = ConfigDict(frozen=True)

    id: str
    """The id of the run: the same in a replay, so that nothing is remembered twice."""
    task: Task
    turns: list[Turn]
    reward: float
    success: bool


@dataclass(frozen=True)
class Role:
    """An agent: the description of its role, and the template of its structured memory."""

    description: str
    template: dict[str, Any] = field(default_factory=dict)


class ShownContext(NamedTuple):
    """Content shown to an agent beside its task: the memory's text, and the visible turns, oldest first."""

    memory: str
    turns: list[Turn]


@dataclass
class MemoryServices:
    """Services that a memory uses, made anew for each step of a graph.

    `who` answers the memory's own questions; `window` is the budget of a context in tokens (task, memory and
    turns together), counted by `count`, the tokenizer of the reading model if known; `memory_tokens` bounds a
    structured memory; `complaints` lists answers that were usable only in part; `trial` is the run's id.
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
    complaints: list[str] = field(default_factory=list)

    def within(self, task: Task, memory: str, turns: Sequence[Turn]) -> ShownContext:
        """Return the memory and the newest turns that fit into the window (algorithm 1).

        A memory that is larger than the window loses its end. Raises PromptTooLong if the task does not fit.
        """
        room = max(0, self.window - self.count(task.text))
        while self.count(memory) > room:
            memory = memory[: len(memory) * 9 // 10]  # tokens of a part are not known before it is counted
        window = f_context(task.text, memory, [str(turn) for turn in turns], self.window, self.count)
        return ShownContext(memory, list(turns[window.first :]))

    def shortened(self, task: Task, texts: Sequence[str]) -> str:
        """Join as many of the texts, from the first, as fit into a recollection."""
        room = max(0, self.window - self.count(task.text)) * MAX_RECOLLECTION_SHARE - self.count(
            REST_LEFT_OUT
        )
        shown = fitting(texts, room, self.count, REST_LEFT_OUT)
        return "" if shown == REST_LEFT_OUT else shown

    def condensed(self, texts: Sequence[str]) -> list[str]:
        """Return the texts for a question about all of them; if they are too long, each loses its end."""
        needed = sum(self.count(text) for text in texts)
        if needed <= self.window:
            return list(texts)
        rooms = [max(MIN_TEXT_CHARS, int(len(text) * self.window / needed)) for text in texts]
        return [
            text if len(text) <= room else f"{text[:room]} …" for text, room in zip(texts, rooms, strict=True)
        ]


class TaskMemory:
    """Remember nothing, and show as much of the trajectory as fits: the base of all memories.

    A graph calls `recall` once; for each turn `prepare` and `context` before an agent acts and `observe`
    after it; `remember` once at the end. Each returns the new `Held` and does not change the old one.
    """

    name: ClassVar[str] = "none"

    def __init__(self, services: MemoryServices) -> None:
        self.services = services

    async def recall(self, task: Task) -> Held:
        """Recall memories of other tasks that may help with this one."""
        return {}

    async def prepare(self, task: Task, held: Held, turns: Sequence[Turn]) -> Held:
        """Prepare for one more context."""
        return held

    def context(self, task: Task, held: Held, turns: Sequence[Turn], agent: str) -> ShownContext:
        """Return this agent's current context. Raises PromptTooLong if the task does not fit."""
        return self.services.within(task, "", turns)

    async def observe(self, task: Task, held: Held, turns: Sequence[Turn]) -> Held:
        """Update the memory with the newest turn, the last of `turns`."""
        return held

    async def remember(self, trial: FinishedTask, held: Held) -> None:
        """Store what this task teaches for later tasks."""
        return
