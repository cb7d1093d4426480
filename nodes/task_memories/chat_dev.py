"""ChatDev: nothing across tasks; at every tenth prompt, a summary in the place of the trajectory.

As in G-Memory's harness: that prompt alone shows the summary, all others show the full trajectory; a prompt
is composed, and counts, before the first step, and the second agent's prompts count, too. A summary that gets
no usable answer leaves its prompt with the trajectory, and is complained of.
"""

from collections.abc import Sequence

from mneme.core.errors import BadAnswer
from mneme.environments.turns import Turn
from mneme.models.asking.asking import ask
from mneme.nodes.task_memories.interface import Held, ShownContext, Task, TaskMemory
from mneme.prompts.task_memories.task_memories import Phase, summarise_phase

PHASE = 10
"""Prompts from one summary to the next."""
PROMPTS_BEFORE = 1
"""Prompts that the harness composes before the first step."""


class ChatDev(TaskMemory):
    """Show every tenth prompt a summary instead of the turns."""

    name = "chat_dev"

    async def recall(self, task: Task) -> Held:
        """Begin to count the prompts."""
        return {"prompts": PROMPTS_BEFORE}

    async def prepare(self, task: Task, held: Held, turns: Sequence[Turn]) -> Held:
        """Count the prompt; at every tenth, sum up all turns for it."""
        counted = {"prompts": int(held.get("prompts", PROMPTS_BEFORE)) + 1}
        if counted["prompts"] % PHASE or not turns:
            return counted
        given = Phase(goal=task.goal, before="", steps=self.services.condensed([str(turn) for turn in turns]))
        try:
            answered = await ask(summarise_phase, given, self.services.who, lane="background")
        except BadAnswer as bad:
            self.services.complaints.append(str(bad))
            return counted
        return {**counted, "summary": answered.value.summary}

    def context(self, task: Task, held: Held, turns: Sequence[Turn], agent: str) -> ShownContext:
        """Show the summary that was made for this prompt, else the turns."""
        summary = str(held.get("summary", ""))
        if not summary:
            return super().context(task, held, turns, agent)
        return self.services.within(task, f"The task so far, summed up:\n{summary}", [])
