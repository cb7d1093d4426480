"""Operations on discussions, in this process or on a running server."""

import builtins
from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

from mneme.api.operation import Limit, Operations, changes, reads
from mneme.core.errors import BadInput, NotFound
from mneme.stores.access import team_sees
from mneme.stores.discussions.agent_memory import CarriedMemories, CarriedMemory, MemoryVersion
from mneme.stores.discussions.discussions import AgreementChange, Discussion, Discussions, Turn
from mneme.stores.ledger.records import MAX_INT, record_id
from mneme.stores.provenance import stale

DiscussionId = Annotated[str, Field(description="The discussion's whole id.")]
AgentName = Annotated[str, Field(description="The agent's name.", examples=["Architect"])]
TeamName = Annotated[str, Field(description="The name of a team of experts.", examples=["data_pipeline"])]
Roles = Annotated[list[str] | None, Field(description="Names of agents; none: all.")]
WhyErased = Annotated[str, Field(max_length=2000, description="Why; it is kept without what was erased.")]
TurnNumber = Annotated[int, Field(ge=0, le=MAX_INT, description="A turn's number.")]


class TeamDiscussions(Operations):
    """Operations on discussions, their turns, and each agent's memory after each turn."""

    OWNER = "team"

    def _prepare(self) -> None:
        self._discussions = Discussions(self._ledger, self._owner)

    @reads("discussions/whose")
    async def whose(self) -> str:
        """Return the owner's name; on a server with users it contains the caller's name."""
        return self._owner

    @reads("discussions")
    async def list(self, limit: Limit = 100) -> Sequence[Discussion]:
        """Return discussions in the order in which they were begun."""
        return await self._as_now(await self._discussions.all(limit))

    @reads("discussions/starting")
    async def starting(
        self,
        beginning: Annotated[str, Field(description="The first letters of its id; none: the latest.")] = "",
    ) -> Discussion:
        """Return the discussion whose id begins so, or the latest. Raises NotFound, BadInput."""
        known = await self._discussions.all()
        found = [each for each in known if each.id.startswith(beginning)]
        if not found:
            raise NotFound(
                f"There is no discussion {beginning or 'yet'}.",
                "See `mneme discuss list`; a team's need --team TEAM.",
            )
        exact = [each for each in found if each.id == beginning]
        if beginning and len(found) > 1 and not exact:
            raise BadInput(f"{len(found)} discussions begin with {beginning}.", "Give more of the id.")
        return (await self._as_now(exact[:1] or found[-1:]))[0]

    @reads("discussions/{discussion_id}")
    async def get(self, discussion_id: DiscussionId) -> Discussion:
        """Return a discussion by its whole id. Raises NotFound."""
        return (await self._as_now([await self._discussions.get(discussion_id)]))[0]

    async def _as_now(self, found: Sequence[Discussion]) -> builtins.list[Discussion]:
        """Return discussions with the turns that were taken so far, and why they are out of date."""
        records = {each.id: record_id(self._discussions.namespace, each.id) for each in found}
        why = await stale(self._ledger, records.values(), team_sees(self._owner))
        now = builtins.list[Discussion]()
        for each in found:
            # The record of a discussion gets its number of turns at its end.
            turns = each.turns if each.ended else await self._discussions.conversation(each.id).count()
            now.append(each.model_copy(update={"turns": turns, "stale": why.get(records[each.id], "")}))
        return now

    @reads("discussions/{discussion_id}/turns")
    async def turns(self, discussion_id: DiscussionId) -> Sequence[Turn]:
        """Return a discussion's turns so far, oldest first."""
        conversation, found = self._discussions.conversation(discussion_id), builtins.list[Turn]()
        while turns := await conversation.between(len(found) + 1, len(found) + TURNS_PER_PAGE):
            found += turns
        return found

    @reads("discussions/{discussion_id}/withdrawn")
    async def withdrawn(self, discussion_id: DiscussionId) -> Sequence[AgreementChange]:
        """Return the agreements that are taken back, with the version that did so. Raises NotFound."""
        return await self._discussions.withdrawn(discussion_id)

    @reads("discussions/{discussion_id}/memories/{agent}")
    async def memory_now(self, discussion_id: DiscussionId, agent: AgentName) -> MemoryVersion:
        """Return an agent's current memory. Raises NotFound."""
        return await self._discussions.memory(discussion_id, agent).now()

    @reads("discussions/{discussion_id}/memories/{agent}/at")
    async def memory_at(
        self, discussion_id: DiscussionId, agent: AgentName, turn: TurnNumber
    ) -> MemoryVersion:
        """Return an agent's memory after a turn. Raises NotFound."""
        return await self._discussions.memory(discussion_id, agent).at_turn(turn)

    @reads("discussions/{discussion_id}/memories/{agent}/history")
    async def memory_history(self, discussion_id: DiscussionId, agent: AgentName) -> Sequence[MemoryVersion]:
        """Return every version of an agent's memory, oldest first. Raises NotFound."""
        return await self._discussions.memory(discussion_id, agent).history()

    @reads("carried-memories/{experts}")
    async def carried(self, experts: TeamName) -> Sequence[CarriedMemory]:
        """Return the memory that each agent of a team carries into the next discussion."""
        return await CarriedMemories(self._ledger, self._owner, experts).all()

    @changes("carried-memories/{experts}/forget", erases=True)
    async def forget_carried(
        self, experts: TeamName, roles: Roles = None, reason: WhyErased = ""
    ) -> Sequence[str]:
        """Erase what a team's agents carry, with its history, or only the named agents'; return their names.

        Raises NotFound.
        """
        carried = CarriedMemories(self._ledger, self._owner, experts)
        erased = await carried.forget(roles or [], reason=reason, actor=self._caller)
        if not erased:
            raise NotFound(f"No such agent of {experts} carries anything.", "See `mneme discuss carried`.")
        return erased

    @reads("discussions/{discussion_id}/memories/{agent}/diff")
    async def memory_diff(
        self, discussion_id: DiscussionId, agent: AgentName, older: TurnNumber, newer: TurnNumber
    ) -> str:
        """Return what changed in an agent's memory between two turns. Raises NotFound."""
        return await self._discussions.memory(discussion_id, agent).diff(older, newer)


TURNS_PER_PAGE = 200
