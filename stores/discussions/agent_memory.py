"""The structured memories of a discussion's agents: each M_{n,m} a version in the ledger, private to n."""

import difflib
import json
from datetime import datetime
from typing import Any

from pydantic import BaseModel, ConfigDict

from mneme.core.errors import NotFound
from mneme.stores.ledger.ledger import Ledger
from mneme.stores.ledger.records import Change, Namespace, Version, check_namespace

KEY = "memory"


class MemoryVersion(BaseModel):
    """M_{n,m}: an agent's memory after a turn."""

    model_config = ConfigDict(frozen=True)

    agent: str
    turn: int
    version: int
    memory: dict[str, Any]
    at: datetime
    reason: str = ""
    model: str = ""

    @classmethod
    def of(cls, agent: str, version: Version) -> "MemoryVersion":
        """Read a memory back from its version."""
        return cls(
            agent=agent,
            turn=version.value["turn"],
            version=version.version,
            memory=version.value["memory"],
            at=version.at,
            reason=version.change.reason,
            model=version.change.model,
        )


class AgentMemory:
    """One agent's memory within a discussion or a task; it reaches no other agent's."""

    def __init__(self, ledger: Ledger, within: Namespace, agent: str) -> None:
        self._ledger, self.agent = ledger, agent
        self.namespace = check_namespace((*within, "agents", agent))

    async def begin(self, memory: dict[str, Any], *, change: Change) -> MemoryVersion:
        """Store M_{n,0}; begun again, it stays as it is."""
        version = await self._ledger.insert(
            self.namespace,
            {"turn": 0, "memory": memory},
            text="",
            change=change,
            key=KEY,
            idempotency_key="begin",
        )
        return MemoryVersion.of(self.agent, version)

    async def update(
        self, memory: dict[str, Any], *, turn: int, change: Change, expected_version: int
    ) -> MemoryVersion:
        """Store M_{n,m}, once for a turn: repeated, it returns what was stored then. Raises Conflict."""
        version = await self._ledger.update(
            self.namespace,
            KEY,
            {"turn": turn, "memory": memory},
            text=None,
            change=change,
            expected_version=expected_version,
            idempotency_key=f"turn {turn}",
        )
        return MemoryVersion.of(self.agent, version)

    async def now(self) -> MemoryVersion:
        """Return the memory as it is. Raises NotFound."""
        version = await self._ledger.get(self.namespace, KEY)
        if version is None:
            raise self._unknown()
        return MemoryVersion.of(self.agent, version)

    async def at_turn(self, turn: int) -> MemoryVersion:
        """Return the memory as it was after that turn of the discussion. Raises NotFound."""
        known = [each for each in await self.history() if each.turn <= turn]
        if not known:
            raise NotFound(
                f"{self.agent} has no memory of turn {turn}.", "Turns count from 0, the beginning."
            )
        return known[-1]

    async def history(self) -> list[MemoryVersion]:
        """Return every M_{n,m}, oldest first. Raises NotFound."""
        if await self._ledger.get(self.namespace, KEY) is None:
            raise self._unknown()
        versions = await self._ledger.history(self.namespace, KEY)
        return [MemoryVersion.of(self.agent, each) for each in versions]

    async def diff(self, older: int, newer: int) -> str:
        """Return what changed in the memory between two turns, as a unified diff. Raises NotFound."""
        before, after = await self.at_turn(older), await self.at_turn(newer)
        names = (f"turn {before.turn}", f"turn {after.turn}")
        return "\n".join(difflib.unified_diff(_lines(before), _lines(after), *names, lineterm=""))

    def _unknown(self) -> NotFound:
        return NotFound(
            f"There is no memory of {self.agent} here.", "Its name is that of a role of the team."
        )


def _lines(remembered: MemoryVersion) -> list[str]:
    return json.dumps(remembered.memory, indent=1, ensure_ascii=False).splitlines()
