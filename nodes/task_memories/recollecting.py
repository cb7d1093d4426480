"""What the memories share that keep trials and show one or some of them to a later task."""

from collections.abc import Sequence
from typing import Any

from mneme.environments.turns import Turn
from mneme.models.asking.asking import ask
from mneme.nodes.task_memories.fitting import condensed, shortened, within
from mneme.nodes.task_memories.interface import FinishedTask, Held, Shown, Task, TaskMemory
from mneme.prompts.prompt import Prompt
from mneme.prompts.task_memories.task_memories import Comparison, Course, rate_relevance
from mneme.stores.ledger.records import Change, Source
from mneme.stores.task_memories.trials import TrialRecord

MEMORY = "memory"


class Recollecting(TaskMemory):
    """Keep each trial by a key; show what is recalled in every context of a task, before its turns."""

    decided_by = ""
    """The model that answered the memory's last question, if it had one."""

    async def recall(self, task: Task) -> Held:
        """Look up trials that may help, and hold what is shown of them."""
        found = await self.found(task)
        return {MEMORY: self.shown(task, found), "recalled": [each.id for each in found]}

    def context(self, task: Task, held: Held, turns: Sequence[Turn], agent: str) -> Shown:
        """Show what was recalled, then the newest turns that fit."""
        return within(self.means, task, str(held.get(MEMORY, "")), turns)

    async def remember(self, trial: FinishedTask, held: Held) -> None:
        """Keep the raw trajectory and its label."""
        await self.means.trials.keep(await self.kept(trial), self.change(trial))

    async def found(self, task: Task) -> list[TrialRecord]:
        """Return the nearest trial that succeeded."""
        return await self.means.trials.nearest(task.goal, 1, shelf="succeeded")

    async def kept(self, trial: FinishedTask) -> TrialRecord:
        """Return what is kept of a trial: its trajectory, keyed by the goal."""
        return raw(trial, trial.task.goal)

    def shown(self, task: Task, found: Sequence[TrialRecord]) -> str:
        """Say what was recalled."""
        texts = [line for each in found for line in telling(each)]
        return shortened(self.means, task, texts)

    def course(self, trial: FinishedTask) -> Course:
        """Return a trial as the memory's questions take it."""
        ended = "succeeded" if trial.success else "failed"
        result = f"{ended} after {len(trial.turns)} turns with {trial.reward:.0%} of the goal reached"
        steps = condensed(self.means, [str(turn) for turn in trial.turns])
        return Course(goal=trial.task.goal, result=result, steps=steps)

    async def relevance(self, task: Task, kept: TrialRecord) -> int:
        """Ask how much a trial helps with the task, from 1 to 10."""
        steps = condensed(self.means, kept.key_steps or kept.trajectory)
        given = Comparison(goal=task.goal, other_goal=kept.goal, steps=steps)
        return int((await self.ask(rate_relevance, given)).score)

    def change(self, trial: FinishedTask) -> Change:
        """Say why something is written: a trial ended."""
        ended = "a task was done" if trial.success else "a task was not done"
        return Change(reason=ended, actor=self.name, model=self.decided_by, source=Source(tasks=[trial.id]))

    async def ask(self, question: Prompt[Any, Any], given: Any) -> Any:
        """Put one of the memory's own questions, and count what it costs."""
        answered = await ask(question, given, self.means.who, lane="background")
        self.decided_by = answered.responder
        return self.means.tally.add(question, given, answered)


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
