"""The memories that keep trials and show one or some of them to a later task, and what they share.

- MetaGPT: the raw trajectory and its label, keyed by the goal; the nearest success is shown.
- Voyager: as MetaGPT, but a trial is found by a summary of its course in at most six sentences.
- MemoryBank: recalls as Voyager does; within a task, turns fade with time (Ebbinghaus). A turn that is Δt
  turns old is still seen while exp(-Δt / 5) ≥ 0.3: the last seven.
- Generative agents' memory: twice as many successes as are wanted, of which a model keeps the relevant.
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
FADING = 5.0
MIN_RETENTION = 0.3
SUCCESSES_PER_TASK = 1
"""k: how many successes are shown; 2k are rated."""


class Recollecting(TaskMemory):
    """Keep each trial by a key; show what is recalled in every context of a task, before its turns."""

    decided_by = ""
    """The model that answered the memory's last question, if it had one."""

    async def recall(self, task: Task) -> Held:
        """Look up trials that may help, and hold what is shown of them."""
        found = await self.found(task)
        texts = [line for each in found for line in telling(each)]
        return {MEMORY_FIELD: self.services.shortened(task, texts), "recalled": [each.id for each in found]}

    def context(self, task: Task, held: Held, turns: Sequence[Turn], agent: str) -> ShownContext:
        """Show what was recalled, then the newest turns that fit."""
        return self.services.within(task, str(held.get(MEMORY_FIELD, "")), turns)

    async def remember(self, trial: FinishedTask, held: Held) -> None:
        """Keep the raw trajectory and its label."""
        await self.services.trials.keep(await self.kept(trial), self.change(trial))

    async def found(self, task: Task) -> list[TrialRecord]:
        """Return the nearest trial that succeeded."""
        return await self.services.trials.nearest(task.goal, 1, shelf="succeeded")

    async def kept(self, trial: FinishedTask) -> TrialRecord:
        """Return the record of a trial: its trajectory, keyed by the goal."""
        return raw(trial, trial.task.goal)

    def course(self, trial: FinishedTask) -> Course:
        """Return a trial as the memory's questions take it."""
        ended = "succeeded" if trial.success else "failed"
        result = f"{ended} after {len(trial.turns)} turns with {trial.reward:.0%} of the goal reached"
        steps = self.services.condensed([str(turn) for turn in trial.turns])
        return Course(goal=trial.task.goal, result=result, steps=steps)

    async def most_relevant(self, task: Task, trials: Sequence[TrialRecord]) -> list[TrialRecord]:
        """Ask how much each trial helps with the task, from 1 to 10, and return the best; k of them."""
        rated = []
        for each in trials:
            steps = self.services.condensed(each.key_steps or each.trajectory)
            given = Comparison(goal=task.goal, other_goal=each.goal, steps=steps)
            rated.append((int((await self.ask(rate_relevance, given)).score), each))
        return [each for _, each in sorted(rated, key=lambda pair: -pair[0])[:SUCCESSES_PER_TASK]]

    def change(self, trial: FinishedTask) -> Change:
        """Return the reason of a write: a trial ended."""
        ended = "a task was done" if trial.success else "a task was not done"
        return Change(reason=ended, actor=self.name, model=self.decided_by, source=Source(tasks=[trial.id]))

    async def ask(self, question: Prompt[Any, Any], given: Any) -> Any:
        """Put one of the memory's own questions."""
        answered = await ask(question, given, self.services.who, lane="background")
        self.decided_by = answered.responder
        return answered.value


def raw(trial: FinishedTask, key: str) -> TrialRecord:
    """Return a trial as it was, to be found by this key."""
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
    """Say a trial, one text for its heading and one a turn."""
    ended = "succeeded" if kept.success else "failed"
    return [f"An earlier task that {ended}. Its goal: {kept.goal}\nWhat was done:", *kept.trajectory]


class MetaGpt(Recollecting):
    """Keep trials as they were, and recall the one that succeeded at the nearest goal."""

    name = "meta_gpt"


class Voyager(Recollecting):
    """Key trials by what they were about, and recall the success that is nearest to the goal."""

    name = "voyager"

    async def kept(self, trial: FinishedTask) -> TrialRecord:
        """Return the trajectory, keyed by its summary."""
        answer = await self.ask(summarise_trial, self.course(trial))
        return raw(trial, answer.summary)


class MemoryBank(Voyager):
    """Show only the turns that have not faded yet."""

    name = "memory_bank"

    def context(self, task: Task, held: Held, turns: Sequence[Turn], agent: str) -> ShownContext:
        """Show what was recalled, and the turns whose retention is above the threshold."""
        fresh = [turn for age, turn in enumerate(reversed(turns)) if retention(age) >= MIN_RETENTION]
        return super().context(task, held, fresh[::-1], agent)


def retention(age: int) -> float:
    """Return the share of a turn that is left after a number of others."""
    return math.exp(-age / FADING)


class Generative(Recollecting):
    """Rate the relevance of the nearest successes from 1 to 10, and show the best."""

    name = "generative"

    async def found(self, task: Task) -> list[TrialRecord]:
        """Return k of the 2k nearest; of equals, the nearer."""
        return await self.most_relevant(
            task, await self.services.trials.nearest(task.goal, 2 * SUCCESSES_PER_TASK, shelf="succeeded")
        )
