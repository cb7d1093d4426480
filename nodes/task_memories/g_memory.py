"""G-Memory: a graph of tasks, their key steps or reasons of failure, and insights drawn from them.

As in the authors' program: recall goes from the nearest task along the graph's edges to its neighbours; where
these hold too few successes, the nearest successes of all stand in. A model ranks them; the best is shown
with its key steps and its detailed trajectory, without the steps that had no effect. Failures are withheld:
they only teach insights. Of these, the ones that related tasks confirm are shown, which a model may word for
each role (`project_insights`). They are revised every five tasks and merged every twenty.
"""

from collections import Counter
from collections.abc import Sequence

from mneme.environments.turns import Turn
from mneme.nodes.task_memories import insights
from mneme.nodes.task_memories.fitting import shortened, within
from mneme.nodes.task_memories.interface import FinishedTask, Held, Role, Shown, Task
from mneme.nodes.task_memories.recollecting import MEMORY, Recollecting, raw
from mneme.prompts.task_memories.task_memories import (
    Projecting,
    explain_failure,
    extract_key_steps,
    project_insights,
)
from mneme.stores.task_memories.trials import SIMILAR, Insight, TrialRecord

SHOWN = 1
"""k: how many successes are shown; 2k are ranked."""
INSIGHTS = 3
"""How many insights are shown."""
RELATED = {"succeeded": 4, "failed": 2}
"""Trials near to a task whose insights are for it."""
EDGES = 10
"""The most edges that a new task is given."""


class GMemory(Recollecting):
    """Keep a graph of tasks and a list of insights; show what is relevant of both."""

    name = "g_memory"

    async def recall(self, task: Task) -> Held:
        """Hold the relevant trials and the insights of related tasks, for each role, and which these were."""
        found = await self.found(task)
        used = (await self.related(task))[:INSIGHTS]
        told = [line for each in found for line in _telling(each)]
        rules = [each.text for each in used]
        projected = await self._projected(rules)
        return {
            MEMORY: shortened(self.means, task, [*_told(rules), *told]),
            "by_role": {
                role: shortened(self.means, task, [*_told(own), *told]) for role, own in projected.items()
            },
            "recalled": [each.id for each in found],
            "insights": [each.id for each in used],
        }

    def context(self, task: Task, held: Held, turns: Sequence[Turn], agent: str) -> Shown:
        """Show what was recalled, in the agent's own words where it has some, then the newest turns."""
        memory = held.get("by_role", {}).get(agent) or held.get(MEMORY, "")
        return within(self.means, task, str(memory), turns)

    async def found(self, task: Task) -> list[TrialRecord]:
        """Return the most relevant success of the nearest task and its neighbours, else of all."""
        trials = self.means.trials
        nearest = await trials.nearest(task.goal, 1)
        around = [near for each in nearest for near in await trials.neighbours(each)]
        ids = {each.id for each in (*nearest, *around)}
        ranked = await trials.nearest(task.goal, max(1, await trials.count()), shelf="succeeded")
        inside = [each for each in ranked if each.id in ids]
        candidates = (inside if len(inside) >= 2 * SHOWN else ranked)[: 2 * SHOWN]
        rated = [(await self.relevance(task, each), each) for each in candidates]
        return [each for _, each in sorted(rated, key=lambda pair: -pair[0])[:SHOWN]]

    async def related(self, task: Task) -> list[Insight]:
        """Return the insights that the trials nearest to a task confirm, those of most of them first."""
        near = [
            trial
            for shelf, most in RELATED.items()
            for trial in await self.means.trials.nearest(task.goal, most, shelf=shelf)  # type: ignore[arg-type]
        ]
        standing = await self.means.trials.insights()
        borne = Counter({each.id: sum(trial.id in each.trials for trial in near) for each in standing})
        return sorted((each for each in standing if borne[each.id]), key=lambda each: -borne[each.id])

    async def _projected(self, rules: list[str]) -> dict[str, list[str]]:
        if not (rules and self.means.project_insights):
            return {}
        return {name: await self._projected_to(role, rules) for name, role in self.means.roles.items()}

    async def _projected_to(self, role: Role, rules: list[str]) -> list[str]:
        answer = await self.ask(project_insights, Projecting(role=role.description, insights=rules))
        return [str(each) for each in answer.insights][:INSIGHTS]

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
        led_on = [turn for turn in trial.turns if not (turn.failed or turn.thought)]
        sparse = trial.model_copy(update={"turns": led_on or trial.turns})
        record = raw(sparse if trial.success else trial, trial.task.goal)
        return record.model_copy(update={**more, **await self._lesson(sparse, trial)})

    async def _lesson(self, sparse: FinishedTask, trial: FinishedTask) -> dict[str, object]:
        if not trial.success:
            return {"fail_reason": (await self.ask(explain_failure, self.course(trial))).reason}
        chosen = (await self.ask(extract_key_steps, self.course(sparse))).steps
        return {"key_steps": [sparse.turns[number].output for number in chosen]}


def _told(rules: Sequence[str]) -> list[str]:
    return ["What earlier tasks taught:", *(f"- {each}" for each in rules)] if rules else []


def _telling(kept: TrialRecord) -> list[str]:
    return [
        f"An earlier task that succeeded. Its goal: {kept.goal}\nIts key steps:",
        *(f"{number}. {step}" for number, step in enumerate(kept.key_steps, 1)),
        "Its detailed trajectory:",
        *kept.trajectory,
    ]
