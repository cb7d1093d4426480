"""What a team's agents carry from one discussion to the next, for owners who asked for it.

One record an agent, of one team of one owner; each version is what it remembered as a discussion ended. Of
two discussions that end at the same time the later one's version follows the earlier's; both stay in
the history.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from pydantic import BaseModel, ConfigDict

from mneme.stores.ledger.ledger import Ledger
from mneme.stores.ledger.namespaces import team_namespace
from mneme.stores.ledger.records import Change, Namespace, Version
from mneme.stores.ledger.writing import retry_on_conflict

MANY = 1_000
"""More agents than a team has."""


class CarriedMemory(BaseModel):
    """What an agent brings into its next discussion, and the discussion that it is from."""

    model_config = ConfigDict(frozen=True)

    agent: str
    version: int
    memory: dict[str, Any]
    discussion: str
    at: datetime

    @classmethod
    def of(cls, version: Version) -> "CarriedMemory":
        """Read it back from its version."""
        return cls(agent=version.key, version=version.version, at=version.at, **version.value)


class Carried:
    """The carried memories of one team, by its name; they reach no other owner or team."""

    def __init__(self, ledger: Ledger, owner: str, team: str) -> None:
        self._ledger = ledger
        self.namespace: Namespace = team_namespace(owner, "carried_memories", team)

    async def get(self, agent: str) -> CarriedMemory | None:
        """Return what an agent carries, if it carries anything."""
        found = await self._ledger.get(self.namespace, agent)
        return CarriedMemory.of(found) if found and found.live else None

    async def all(self) -> list[CarriedMemory]:
        """Return what every agent carries."""
        return [CarriedMemory.of(each) for each in await self._ledger.records(self.namespace, limit=MANY)]

    async def history(self, agent: str) -> list[CarriedMemory]:
        """Return every version of what an agent carried, oldest first."""
        found = await self._ledger.history(self.namespace, agent)
        return [CarriedMemory.of(each) for each in found if each.value]

    @retry_on_conflict
    async def keep(self, agent: str, memory: dict[str, Any], discussion: str, change: Change) -> None:
        """Store what an agent remembered as a discussion ended; once for each discussion."""
        value: dict[str, Any] = {"memory": memory, "discussion": discussion}
        told: Any = {"change": change, "idempotency_key": f"ended {discussion}"}
        head = await self._ledger.get(self.namespace, agent)
        if head is None:
            await self._ledger.insert(self.namespace, value, text="", key=agent, **told)
            return
        await self._ledger.update(
            self.namespace, agent, value, text=None, expected_version=head.version, **told
        )

    async def forget(self, agents: Sequence[str], *, reason: str, actor: str) -> list[str]:
        """Erase what these agents carry, all of them where none is named; return whose it was."""
        known = [each.agent for each in await self.all()]
        erased = [agent for agent in known if agent in agents or not agents]
        for agent in erased:
            await self._ledger.forget(self.namespace, agent, reason=reason, actor=actor)
        return erased
