"""The structured memories of a discussion's agents: each M_{n,m} a version in the ledger, private to n.

Owners who ask for it carry memories from one discussion of a team to its next. Of two discussions that end at
the same time the later one's version follows the earlier's; both stay in the history.
"""

import difflib
import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from pydantic import BaseModel

from mneme.core.errors import NotFound
from mneme.stores.ledger.ledger import Ledger
from mneme.stores.ledger.log import retry_on_conflict
from mneme.stores.ledger.records import Change, Namespace, Version, check_namespace, team_namespace
from mneme.stores.provenance import made_from, outdated, pairs_in
from mneme.stores.shelf import RecordKind, Shelf

MEMORY_KEY = "memory"


class TurnMemory(BaseModel, frozen=True):
    """An agent's memory after a turn."""

    turn: int
    memory: dict[str, Any]


class MemoryVersion(TurnMemory):
    """M_{n,m}: an agent's memory after a turn, as a version."""

    agent: str
    version: int
    at: datetime
    reason: str = ""
    model: str = ""

    @classmethod
    def of(cls, version: Version) -> "MemoryVersion":
        """Read a memory back from its version."""
        told = {"reason": version.change.reason, "model": version.change.model, "at": version.at}
        agent = version.namespace[-1]
        return cls.model_validate({**version.value, **told, "agent": agent, "version": version.version})


class AgentMemory:
    """One agent's memory within a discussion or a task; it reaches no other agent's."""

    def __init__(self, ledger: Ledger, within: Namespace, agent: str) -> None:
        missing = f"There is no memory of {agent} here."
        kind = RecordKind[TurnMemory, MemoryVersion](
            MemoryVersion.of, missing=missing, hint="Its name is that of a role of the team."
        )
        self.agent, self._kept = agent, Shelf(ledger, check_namespace((*within, "agents", agent)), kind)

    async def begin(self, memory: dict[str, Any], *, change: Change) -> MemoryVersion:
        """Store M_{n,0}; begun again, it stays as it is."""
        return await self._kept.insert(
            TurnMemory(turn=0, memory=memory), change=change, key=MEMORY_KEY, idempotency_key="begin"
        )

    async def update(
        self, memory: dict[str, Any], *, turn: int, change: Change, expected_version: int
    ) -> MemoryVersion:
        """Store M_{n,m}, once for a turn: repeated, it returns what was stored then. Raises Conflict."""
        # Eq. 3 makes it of M_{n,m-1}: `expected_version` is that one's, so no turn is skipped or lost.
        value, once = TurnMemory(turn=turn, memory=memory), f"turn {turn}"
        return await self._kept.update(
            MEMORY_KEY, value, change=change, expected_version=expected_version, idempotency_key=once
        )

    async def now(self) -> MemoryVersion:
        """Return the memory as it is. Raises NotFound."""
        return await self._kept.get(MEMORY_KEY)

    async def at_turn(self, turn: int) -> MemoryVersion:
        """Return the memory as it was after that turn of the discussion. Raises NotFound."""
        known = [each for each in await self.history() if each.turn <= turn]  # others speak in between
        if not known:
            raise NotFound(
                f"{self.agent} has no memory of turn {turn}.", "Turns count from 0, the beginning."
            )
        return known[-1]

    async def history(self) -> Sequence[MemoryVersion]:
        """Return every M_{n,m}, oldest first. Raises NotFound."""
        return await self._kept.versions(MEMORY_KEY)

    async def diff(self, older: int, newer: int) -> str:
        """Return what changed in the memory between two turns, as a unified diff. Raises NotFound."""
        before, after = await self.at_turn(older), await self.at_turn(newer)
        both, names = (before, after), (f"turn {before.turn}", f"turn {after.turn}")
        old, new = (json.dumps(each.memory, indent=1, ensure_ascii=False).splitlines() for each in both)
        return "\n".join(difflib.unified_diff(old, new, *names, lineterm=""))


class EndedMemory(BaseModel, frozen=True):
    """An agent's memory at the end of a discussion, and the versions that it was shown before."""

    memory: dict[str, Any]
    discussion: str
    made_from: list[str] = []


class CarriedMemory(EndedMemory):
    """Memory that an agent carries into its next discussion, and the discussion that it comes from."""

    agent: str
    version: int
    at: datetime

    @classmethod
    def of(cls, version: Version) -> "CarriedMemory":
        """Read it back from its version."""
        told = {"agent": version.key, "version": version.version, "at": version.at}
        return cls.model_validate({**version.value, **told})


class CarriedMemories(Shelf[EndedMemory, CarriedMemory]):
    """The carried memories of one team, by its name and by agent; they reach no other owner or team."""

    def __init__(self, ledger: Ledger, owner: str, team: str) -> None:
        super().__init__(
            ledger, team_namespace(owner, "carried_memories", team), RecordKind(CarriedMemory.of)
        )

    @retry_on_conflict
    async def keep(self, agent: str, ended: EndedMemory, change: Change) -> None:
        """Store an agent's memory at the end of a discussion; once for each discussion."""
        change = made_from(change, ended.made_from)
        await self.put(agent, ended, change=change, idempotency_key=f"ended {ended.discussion}")

    async def holding(self) -> dict[str, CarriedMemory]:
        """Return the carried memories by agent, without entries that rest on something out of date."""
        kept = await self.all()
        old = await outdated(self.ledger, {pair for each in kept for pair in pairs_in(each.made_from)})
        return {each.agent: each for each in kept if not old.keys() & {*pairs_in(each.made_from)}}

    async def forget(self, agents: Sequence[str], *, reason: str, actor: str) -> list[str]:
        """Erase the carried memories of these agents, or of all; return the agents' names."""
        erased = [head for head in await self.heads() if head.key in agents or not agents]
        await self.ledger.forget_records(erased, reason=reason, actor=actor)
        return [head.key for head in erased]
