"""Rivals in the comparison: memories of other papers, and packages in use.

Packages are played where they are installed; with rules only their search is compared.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from typing import Any

from mneme.environments.turns import Turn
from mneme.evals.compare.memory import Event, Memory, Outcome, Place
from mneme.evals.packages import LangMem, Mem0, Package
from mneme.nodes.task_memories.interface import FinishedTask, Held, MemoryServices, Task
from mneme.nodes.task_memories.kinds import open_memory
from mneme.stores.task_memories.trials import Trials

MAX_TEXTS = 20
"""Number of texts that are requested from a package."""
RIVAL_WINDOW_TOKENS = 4096
"""Context in tokens of a task memory's own questions."""


class TaskMemoryRival(Memory):
    """A memory of whole tasks (`nodes/task_memories`): G-Memory, Voyager, and others."""

    def __init__(self, place: Place, kind: str) -> None:
        super().__init__(place)
        self._kind, self._turns, self._count = kind, list[Turn](), 0
        self._trials = Trials(place.ledger, place.name, kind)
        self._held: Held = {}

    def _opened(self, window: int) -> Any:
        trial = f"{self.place.name}-{self._count}"
        services = MemoryServices(
            self.place.ledger, self._trials, self.place.who, trial, window, team=self.place.name
        )
        return open_memory(self._kind, services)

    async def observe(self, event: Event) -> None:
        """Add the event as the next turn of the task."""
        self._turns.append(Turn(number=len(self._turns) + 1, agent=event.who, output=event.line))

    async def recall(self, situation: str, budget: int) -> Sequence[str]:
        """Return the context of a turn: other tasks, then this one's newest turns first."""
        memory, task = self._opened(budget), Task(id=self.place.name, goal=situation)
        self._held = await memory.prepare(task, await memory.recall(task), self._turns)
        shown = memory.context(task, self._held, self._turns, self.place.roles[0])
        return [*shown.memory.splitlines(), *(str(each) for each in reversed(shown.turns))]

    async def end_of_task(self, outcome: Outcome) -> None:
        """Store the task and its turns."""
        turns = [
            *self._turns,
            Turn(number=len(self._turns) + 1, agent=self.place.roles[0], output=outcome.lesson),
        ]
        self._count += 1
        task = Task(id=f"{self.place.name}-{self._count}", goal=outcome.task)
        reward = float(outcome.success)
        trial = FinishedTask(id=task.id, task=task, turns=turns, reward=reward, success=outcome.success)
        await self._opened(RIVAL_WINDOW_TOKENS).remember(trial, self._held)
        self._turns.clear()


class PackageRival(Memory):
    """The memory of a package."""

    def __init__(self, place: Place, package: type[Package]) -> None:
        super().__init__(place)
        self.package, self.scope = package(place.embedder, place.folder, place.who), (place.name,)

    async def observe(self, event: Event) -> None:
        """Add the event; the package decides what to infer from it."""
        await self.package.add(self.scope, event.line)

    async def recall(self, situation: str, budget: int) -> Sequence[str]:
        """Return the results of its search."""
        return [each.text for each in await self.package.found(self.scope, situation, MAX_TEXTS)]


OF_PAPERS = ("meta_gpt", "voyager", "generative", "memory_bank", "chat_dev", "g_memory")
RIVAL_MEMORIES: Mapping[str, Callable[[Place], Memory]] = {
    **{kind: partial(TaskMemoryRival, kind=kind) for kind in OF_PAPERS},
    **{made.NAME: partial(PackageRival, package=made) for made in (LangMem, Mem0) if find_spec(made.NAME)},
}
"""Rivals by the name that `--memory` takes; packages where they are installed."""
