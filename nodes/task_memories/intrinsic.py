"""Intrinsic memory (§3): each agent's structured memory, which evolves with its own outputs.

Nothing is carried across tasks. Every M_{n,m} is a version in the ledger, below the task's run. Deviation: in
an environment, the result of an action is part of the output O_{n,m} that updates the memory, since the
agent's own output is only the name of an action, from which nothing could be learned.
"""

import json
import re
from collections.abc import Sequence

from mneme.environments.turns import Turn
from mneme.library.teams.team import empty
from mneme.nodes.task_memories.f_memory_update import Agent, f_memory_update
from mneme.nodes.task_memories.interface import Held, ShownContext, Task, TaskMemory
from mneme.stores.discussions.agent_memory import AgentMemory
from mneme.stores.ledger.records import Change, Source, team_namespace

SENTENCE_GAP = re.compile(r"(?<=\.)\s+")
LISTING = re.compile(r"valid actions\b", re.IGNORECASE)
"""Pattern of a list of possible actions: no fact to keep, since the newest turns show it while it holds."""


class Intrinsic(TaskMemory):
    """Keep a structured memory for each agent, private to it, and show it before the newest turns."""

    name = "intrinsic"

    async def recall(self, task: Task) -> Held:
        """Begin an empty memory for each agent."""
        held, change = Held(), self._change("a task begins", "")
        for agent, role in self.services.roles.items():
            known = await self._store(agent).begin(empty(role.template), change=change)
            held[agent] = {"memory": known.memory, "version": known.version}
        return held

    def context(self, task: Task, held: Held, turns: Sequence[Turn], agent: str) -> ShownContext:
        """Show the agent its own memory, and the newest turns that fit."""
        known = held.get(agent)
        return self.services.within(
            task, json.dumps(known["memory"], indent=1, ensure_ascii=False) if known else "", turns
        )

    async def observe(self, task: Task, held: Held, turns: Sequence[Turn]) -> Held:
        """Update the memory of the agent whose turn it was with its output (equation 3)."""
        turn = turns[-1]
        if turn.agent not in held:
            return held  # an agent without a role here has no memory
        role, services = self.services.roles[turn.agent], self.services
        about = (role.description, role.template, services.memory_tokens, services.who)
        agent = Agent(*about, "background", task.text or task.goal)
        done = await f_memory_update(agent, held[turn.agent]["memory"], _output(turn))
        services.complaints += [done.complaint] if done.complaint else []
        change = self._change(done.reason, done.responder)
        known = await self._store(turn.agent).update(
            done.memory,
            turn=turn.number,
            change=change,
            expected_version=held[turn.agent]["version"],  # another run of this id must not be overwritten
        )
        return {**held, turn.agent: {"memory": known.memory, "version": known.version}}

    def _store(self, agent: str) -> AgentMemory:
        within_task = team_namespace(self.services.team, "task_memory", self.name, self.services.trial)
        return AgentMemory(self.services.ledger, within_task, agent)

    def _change(self, reason: str, model: str) -> Change:
        return Change(reason=reason, actor=self.name, model=model, source=Source(tasks=[self.services.trial]))


def _output(turn: Turn) -> str:
    """Return O_{n,m}: the agent's message, or its action and the result."""
    if turn.thought or not turn.outcome:
        return turn.thought or turn.output
    if turn.failed:
        return f"Action failed: {turn.output}. {turn.outcome}"
    seen = [] if LISTING.match(turn.outcome) else SENTENCE_GAP.split(turn.outcome)
    return "\n".join([f"Action worked: {turn.output}.", *(f"Observed: {each}" for each in seen)])
