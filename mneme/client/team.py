"""One team's cards, disputes and graphs for the command line."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from langchain_core.runnables import RunnableConfig

from mneme.api.cards import Cards
from mneme.client.workflows import Workflows, open_workflows


@dataclass(frozen=True)
class TeamSession:
    """What a command needs to solve tasks and to resolve disputes for one team."""

    team: str
    cards: Cards
    flows: Workflows

    async def task(self, task_id: str) -> RunnableConfig:
        """Return the config of the thread on which a task is solved; a killed run continues there."""
        return await self.flows.thread(f"learn/{self.team}/{task_id}", "compound_learning")

    async def dispute(self, dispute_id: str) -> RunnableConfig:
        """Return the config of the thread on which a dispute is resolved, or waits for a person."""
        return await self.flows.thread(f"dispute/{self.team}/{dispute_id}", "dispute_resolution")

    async def consolidation(self, pool: str = "") -> RunnableConfig:
        """Return the config of consolidation, of the cards or of a pool; a killed one continues there."""
        name = "/".join(filter(None, ["consolidate", self.team, pool]))
        return await self.flows.thread(name, "consolidation")


LEARNING = ("compound_learning", "dispute_resolution")


@asynccontextmanager
async def open_team_session(team: str, names: Sequence[str] = LEARNING) -> AsyncIterator[TeamSession]:
    """Open a session with these graphs in this process, or on the server that has the ledger open."""
    async with open_workflows(*names) as flows, flows.operations(Cards, team) as cards:
        yield TeamSession(await cards.whose(), cards, flows)
