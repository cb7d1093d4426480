"""ChatDev: nothing across tasks; every tenth prompt, the trajectory so far becomes a phase's summary.

From then on the summary stands in the place of those turns; the next one goes on from it.
"""

from collections.abc import Sequence

from mneme.environments.turns import Turn
from mneme.models.asking.asking import ask
from mneme.nodes.task_memories.fitting import condensed, within
from mneme.nodes.task_memories.interface import Held, Shown, Task, TaskMemory
from mneme.prompts.task_memories.task_memories import Phase, summarise_phase

PHASE = 10
"""Prompts from one summary to the next."""


class ChatDev(TaskMemory):
    """Work in phases, each of which begins with a summary of what was before."""

    name = "chat_dev"

    async def prepare(self, task: Task, held: Held, turns: Sequence[Turn]) -> Held:
        """Count the prompt; at every tenth, sum up."""
        prompts = int(held.get("prompts", 0)) + 1
        since = turns[int(held.get("summed_up", 0)) :]
        if prompts % PHASE or not since:
            return {**held, "prompts": prompts}
        steps = condensed(self.means, [str(turn) for turn in since])
        given = Phase(goal=task.goal, before=str(held.get("summary", "")), steps=steps)
        answered = await ask(summarise_phase, given, self.means.who, lane="background")
        summary = self.means.tally.add(summarise_phase, given, answered).summary
        return {"prompts": prompts, "summary": summary, "summed_up": len(turns)}

    def context(self, task: Task, held: Held, turns: Sequence[Turn], agent: str) -> Shown:
        """Show the last summary, and the turns since."""
        summary = str(held.get("summary", ""))
        memory = f"The phase before, summed up:\n{summary}" if summary else ""
        return within(self.means, task, memory, turns[int(held.get("summed_up", 0)) :])
