"""Memories that store trials and show the relevant ones in a later task.

- MetaGPT: the raw trajectory and its label, keyed by the goal; the nearest success is shown.
- Voyager: as MetaGPT, but a trial is found by a summary of its course in at most six sentences.
- MemoryBank: recalls as Voyager does; within a task, turns fade with time (Ebbinghaus). A turn that is Δt
  turns old is shown while exp(-Δt / 5) ≥ 0.3: the last seven.
- Generative agents' memory: of the 2k nearest successes a model chooses the k most relevant.
"""

import math
from collections.abc import Sequence
from typing import Any

from mneme.environments.turns import Turn
from mneme.models.asking.asking import ask
from mneme.nodes.task_memories.interface import FinishedTask, Held, ShownContext, Task, TaskMemory
from mneme.prompts.prompt import Prompt
from mneme.prompts.task_memories.task_memories import Comparison, Course, rate_relevance, summarise_trial
from mneme.stores.ledger.records import Change, Source
from mneme.stores.task_memories.trials import TrialRecord

MEMORY_FIELD = "memory"
FADING = 5.0  # turns, Δt / 5
MIN_RETENTION = 0.3
SUCCESSES_PER_TASK = 1
"""k: number of successes shown; 2k are rated."""


class Recollecting(TaskMemory):
    """Store each trial by a key; show the recalled trials in every context of a task, before its turns."""

    decided_by = ""
    """The model that answered the memory's last question; empty if none was asked."""

    async def recall(self, task: Task) -> Held:
        """Recall trials that may help, as text, with their ids."""
        found = await self.found(task)
        texts = [line for each in found for line in telling(each)]
        return {MEMORY_FIELD: self.services.shortened(task, texts), "recalled": [each.id for each in found]}

    def context(self, task: Task, held: Held, turns: Sequence[Turn], agent: str) -> ShownContext:
        """Return the recalled trials, then the newest turns that fit."""
        return self.services.within(task, str(held.get(MEMORY_FIELD, "")), turns)

    async def remember(self, trial: FinishedTask, held: Held) -> None:
        """Store the raw trajectory and its label."""
        await self.services.trials.keep(await self.kept(trial), self.change(trial))

    async def found(self, task: Task) -> list[TrialRecord]:
        """Return the nearest trial that succeeded."""
        return await self.services.trials.nearest(task.goal, 1, shelf="succeeded")

    async def kept(self, trial: FinishedTask) -> TrialRecord:
        """Return the record of a trial: its trajectory, keyed by the goal."""
        return raw(trial, trial.task.goal)

    def course(self, trial: FinishedTask) -> Course:
        """Return a trial as the input of the memory's questions."""
        ended = "succeeded" if trial.success else "failed"
        result = f"{ended} after {len(trial.turns)} turns with {trial.reward:.0%} of the goal reached"
        steps = self.services.condensed([str(turn) for turn in trial.turns])
        return Course(goal=trial.task.goal, result=result, steps=steps)

    async def most_relevant(self, task: Task, trials: Sequence[TrialRecord]) -> list[TrialRecord]:
        """Rate how much each trial helps with the task, from 1 to 10, and return the k best."""
        rated = []
        for each in trials:
            steps = self.services.condensed(each.key_steps or each.trajectory)
            given = Comparison(goal=task.goal, other_goal=each.goal, steps=steps)
            rated.append((int((await self.ask(rate_relevance, given)).score), each))
        return [each for _, each in sorted(rated, key=lambda pair: -pair[0])[:SUCCESSES_PER_TASK]]

    def change(self, trial: FinishedTask) -> Change:
        """Return the change of a write at the end of a trial."""
        ended = "a task was done" if trial.success else "a task was not done"
        return Change(reason=ended, actor=self.name, model=self.decided_by, source=Source(tasks=[trial.id]))

    async def ask(self, question: Prompt[Any, Any], given: Any) -> Any:
        """Ask one of the memory's own questions, and note who answered."""
        answered = await ask(question, given, self.services.who, lane="background")
        self.decided_by = answered.responder
        return answered.value


def raw(trial: FinishedTask, key: str) -> TrialRecord:
    """Return the record of a trial, to be found by this key."""
    return TrialRecord(
        id=trial.id,
        key=key,
        goal=trial.task.goal,
        trajectory=[str(turn) for turn in trial.turns],
        reward=trial.reward,
        success=trial.success,
        domain=trial.task.domain,
    )


def telling(kept: TrialRecord) -> list[str]:
    """Describe a trial: one text for its heading, and one for each turn."""
    ended = "succeeded" if kept.success else "failed"
    return [f"An earlier task that {ended}. Its goal: {kept.goal}\nWhat was done:", *kept.trajectory]


class MetaGpt(Recollecting):
    """Store raw trials, and recall the success with the nearest goal."""

    name = "meta_gpt"


class Voyager(Recollecting):
    """Key trials by a summary of their course, and recall the success nearest to the goal."""

    name = "voyager"

    async def kept(self, trial: FinishedTask) -> TrialRecord:
        """Return the trajectory, keyed by its summary."""
        answer = await self.ask(summarise_trial, self.course(trial))
        return raw(trial, answer.summary)


class MemoryBank(Voyager):
    """Recall as Voyager does, and show only the turns that have not faded."""

    name = "memory_bank"

    def context(self, task: Task, held: Held, turns: Sequence[Turn], agent: str) -> ShownContext:
        """Return the recalled trials, and the turns whose retention is at least MIN_RETENTION."""
        fresh = [turn for age, turn in enumerate(reversed(turns)) if retention(age) >= MIN_RETENTION]
        return super().context(task, held, fresh[::-1], agent)


def retention(age: int) -> float:
    """Return the retention of a turn that is `age` turns old, from 1 down to 0 (Ebbinghaus' curve)."""
    return math.exp(-age / FADING)


class Generative(Recollecting):
    """Rate the relevance of the nearest successes from 1 to 10, and show the best."""

    name = "generative"

    async def found(self, task: Task) -> list[TrialRecord]:
        """Return the k best of the 2k nearest successes; of equals, the nearer one."""
        return await self.most_relevant(
            task, await self.services.trials.nearest(task.goal, 2 * SUCCESSES_PER_TASK, shelf="succeeded")
        )
