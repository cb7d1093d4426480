"""G-Memory: a graph of tasks, their key steps or reasons of failure, and insights drawn from them.

Recall goes from the nearest task along the graph's edges to its neighbours; a model ranks them. Insights
are revised every five tasks and merged every twenty.
"""

from collections.abc import Sequence

from mneme.nodes.task_memories import insights
from mneme.nodes.task_memories.fitting import shortened
from mneme.nodes.task_memories.interface import FinishedTask, Held, Task
from mneme.nodes.task_memories.recollecting import MEMORY, Recollecting, raw
from mneme.prompts.task_memories.task_memories import explain_failure, extract_key_steps
from mneme.stores.task_memories.trials import SIMILAR, Insight, TrialRecord

SHOWN = 1
"""How many successes, and how many failures, are shown."""
INSIGHTS = 3
"""How many insights are shown, those with the highest scores."""
EDGES = 10
"""The most edges that a new task is given."""


class GMemory(Recollecting):
    """Keep a graph of tasks and a list of insights; show what is relevant of both."""

    name = "g_memory"

    async def recall(self, task: Task) -> Held:
        """Hold the relevant trials and the top insights, and which insights these were."""
        found = await self.found(task)
        used = (await self.means.trials.insights())[:INSIGHTS]
        texts = [*_insights(used), *(line for each in found for line in _telling(each))]
        return {
            MEMORY: shortened(self.means, task, texts),
            "recalled": [each.id for each in found],
            "insights": [each.id for each in used],
        }

    async def found(self, task: Task) -> list[TrialRecord]:
        """Return the most relevant success and failure among the nearest task and its neighbours."""
        nearest = await self.means.trials.nearest(task.goal, 1)
        around = [near for each in nearest for near in await self.means.trials.neighbours(each)]
        rated = [(await self.relevance(task, each), each) for each in [*nearest, *around]]
        ranked = [each for _, each in sorted(rated, key=lambda pair: -pair[0])]
        succeeded = [each for each in ranked if each.success][:SHOWN]
        return succeeded + [each for each in ranked if not each.success][:SHOWN]

    async def remember(self, trial: FinishedTask, held: Held) -> None:
        """Keep the trial, pay the insights that were used, and revise and merge them when it is time."""
        await super().remember(trial, held)
        await insights.pay(self.means.trials, held.get("insights", []), self.change(trial), trial.success)
        count = await self.means.trials.count()
        if count % insights.REVISED_EVERY == 0:
            await insights.revise(self, trial)
        if count % insights.MERGED_EVERY == 0:
            await insights.merge(self, trial)

    async def kept(self, trial: FinishedTask) -> TrialRecord:
        """Return the trajectory with its key steps or the reason why it failed, and its edges."""
        near = await self.means.trials.nearest(trial.task.goal, EDGES, min_score=SIMILAR)
        more = {"neighbours": [each.id for each in near if each.id != trial.id]}
        return raw(trial, trial.task.goal).model_copy(update={**more, **await self._lesson(trial)})

    async def _lesson(self, trial: FinishedTask) -> dict[str, object]:
        if not trial.success:
            return {"fail_reason": (await self.ask(explain_failure, self.course(trial))).reason}
        chosen = (await self.ask(extract_key_steps, self.course(trial))).steps
        return {"key_steps": [trial.turns[number].output for number in chosen]}


def _insights(used: Sequence[Insight]) -> list[str]:
    return ["What earlier tasks taught:", *(f"- {each.text}" for each in used)] if used else []


def _telling(kept: TrialRecord) -> list[str]:
    if not kept.success:
        return [f"An earlier task that failed. Its goal: {kept.goal}\nWhy it failed: {kept.fail_reason}"]
    return [
        f"An earlier task that succeeded. Its goal: {kept.goal}\nIts key steps:",
        *(f"{number}. {step}" for number, step in enumerate(kept.key_steps, 1)),
    ]
