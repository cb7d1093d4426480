"""ChatDev: no memory across tasks; every tenth prompt shows a summary in place of the trajectory.

As in G-Memory's harness, only that prompt shows the summary; all others show the full trajectory. If the
summary gets no usable answer, the prompt shows the trajectory, and a complaint is noted.
"""

from collections.abc import Sequence

from mneme.core.errors import BadAnswer
from mneme.environments.turns import Turn
from mneme.models.asking.asking import ask
from mneme.nodes.task_memories.interface import Held, ShownContext, Task, TaskMemory
from mneme.prompts.task_memories.task_memories import Phase, summarise_phase

PHASE = 10
"""Number of prompts from one summary to the next."""
PROMPTS_BEFORE = 1
"""Number of prompts that the harness composes before the first step; they count, too."""


class ChatDev(TaskMemory):
    """Show a summary instead of the turns in every tenth prompt."""

    name = "chat_dev"

    async def recall(self, task: Task) -> Held:
        """Return the initial count of prompts."""
        return {"prompts": PROMPTS_BEFORE}

    async def prepare(self, task: Task, held: Held, turns: Sequence[Turn]) -> Held:
        """Count the prompt; for every tenth, summarise all turns."""
        counted = {"prompts": int(held.get("prompts", PROMPTS_BEFORE)) + 1}
        if counted["prompts"] % PHASE or not turns:
            return counted
        given = Phase(goal=task.goal, before="", steps=self.services.condensed([str(turn) for turn in turns]))
        try:
            answered = await ask(summarise_phase, given, self.services.who, lane="background")
        except BadAnswer as bad:
            self.services.complaints.append(str(bad))
            return counted
        return {**counted, "summary": answered.value.summary}  # the next `prepare` drops it

    def context(self, task: Task, held: Held, turns: Sequence[Turn], agent: str) -> ShownContext:
        """Return the summary that was made for this prompt, else the turns."""
        summary = str(held.get("summary", ""))
        if not summary:
            return super().context(task, held, turns, agent)
        return self.services.within(task, f"The task so far, summed up:\n{summary}", [])
