"""What every memory of a team's tasks can be asked, and what it works with.

A memory object lives for one step of a graph. What it must know until the next step is `Held`, plain
JSON that the graph keeps in its state; what must outlive the task is in the ledger, behind `Trials`.
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
"""The most that a recollection may take of what the task leaves of the window: turns need room, too."""
MIN_TEXT_CHARS = 20
REST_LEFT_OUT = "(The rest is left out.)"
Held = dict[str, Any]
"""A memory's state during a task: plain JSON, part of the graph's state. Empty at the start."""


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


class ShownContext(NamedTuple):
    """Content that an agent is shown beside its task: the memory's text, and the visible turns, in order."""

    memory: str
    turns: list[Turn]


@dataclass
class MemoryServices:
    """Services that a memory uses, made anew for each step of a graph.

    `who` answers the memory's own questions; `window` is the budget of a context in tokens (task, memory and
    turns together), counted by `count`, the tokenizer of the model that reads it where it is known;
    `memory_tokens` bounds a structured memory; `complaints` says which answers could be used in part only;
    `trial` names the run.
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
        """Return the memory and the newest turns that the window has room for (algorithm 1).

        A memory that fills the window by itself loses its end. Raises PromptTooLong where the task does not
        fit.
        """
        room = max(0, self.window - self.count(task.text))
        while self.count(memory) > room:
            memory = memory[: len(memory) * 9 // 10]
        window = f_context(task.text, memory, [str(turn) for turn in turns], self.window, self.count)
        return ShownContext(memory, list(turns[window.first :]))

    def shortened(self, task: Task, texts: Sequence[str]) -> str:
        """Return as many of the texts, from the first, as a recollection has room for."""
        room = max(0, self.window - self.count(task.text)) * MAX_RECOLLECTION_SHARE - self.count(
            REST_LEFT_OUT
        )
        shown = fitting(texts, room, self.count, REST_LEFT_OUT)
        return "" if shown == REST_LEFT_OUT else shown

    def condensed(self, texts: Sequence[str]) -> list[str]:
        """Return the texts for a question about them all; where they are too long, each loses its end."""
        needed = sum(self.count(text) for text in texts)
        if needed <= self.window:
            return list(texts)
        rooms = [max(MIN_TEXT_CHARS, int(len(text) * self.window / needed)) for text in texts]
        return [
            text if len(text) <= room else f"{text[:room]} …" for text, room in zip(texts, rooms, strict=True)
        ]


class TaskMemory:
    """Remember nothing; show the full trajectory, as far as the window goes: what every memory is made of.

    A graph calls `recall` once; then for each turn `prepare` and `context` before an agent acts and
    `observe` after it; `remember` once, at the end. Each returns the new `Held`; none changes the old.
    """

    name: ClassVar[str] = "none"

    def __init__(self, services: MemoryServices) -> None:
        self.services = services

    async def recall(self, task: Task) -> Held:
        """Look up what other tasks left that may help with this one."""
        return {}

    async def prepare(self, task: Task, held: Held, turns: Sequence[Turn]) -> Held:
        """Get ready for one more context."""
        return held

    def context(self, task: Task, held: Held, turns: Sequence[Turn], agent: str) -> ShownContext:
        """Return this agent's current context. Raises BadInput where task and memory fill the window."""
        return self.services.within(task, "", turns)

    async def observe(self, task: Task, held: Held, turns: Sequence[Turn]) -> Held:
        """Take in the newest turn, the last of `turns`."""
        return held

    async def remember(self, trial: FinishedTask, held: Held) -> None:
        """Keep what this task has to teach to others."""
        return
