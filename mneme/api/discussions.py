"""Operations on discussions, in this process or on a running server."""

from collections.abc import Sequence
from typing import ClassVar

from mneme.core.errors import BadInput, NotFound
from mneme.stores.discussions.agent_memory import MemoryVersion
from mneme.stores.discussions.discussions import Discussion, Discussions, Turn


class DiscussionOperations(Discussions):
    """Operations on discussions, their turns, and each agent's memory after each turn."""

    ROUTE: ClassVar[str] = "discussions"
    REMOTE: ClassVar[Sequence[str]] = (
        "whose",
        "get",
        "list",
        "starting",
        "turns",
        "memory_now",
        "memory_at",
        "memory_history",
        "memory_diff",
    )
    """The operations that a server offers to the command line."""

    async def whose(self) -> str:
        """Return the owner's name; on a server with users it contains the caller's name."""
        return self.owner

    async def starting(self, beginning: str) -> Discussion:
        """Return the discussion whose id begins so; the latest for "". Raises NotFound, BadInput."""
        known = await self.list(limit=MANY)
        found = [each for each in known if each.id.startswith(beginning)]
        if not found:
            raise NotFound(f"There is no discussion {beginning or 'yet'}.", "See `mneme discuss list`.")
        exact = [each for each in found if each.id == beginning]
        if beginning and len(found) > 1 and not exact:
            raise BadInput(f"{len(found)} discussions begin with {beginning}.", "Give more of the id.")
        return exact[0] if exact else found[-1]

    async def turns(self, discussion_id: str) -> Sequence[Turn]:
        """Return a discussion's turns so far, oldest first."""
        conversation, found = self.conversation(discussion_id), list[Turn]()
        while turns := await conversation.between(len(found) + 1, len(found) + PAGE):
            found += turns
        return found

    async def memory_now(self, discussion_id: str, agent: str) -> MemoryVersion:
        """Return an agent's current memory. Raises NotFound."""
        return await self.memory(discussion_id, agent).now()

    async def memory_at(self, discussion_id: str, agent: str, turn: int) -> MemoryVersion:
        """Return an agent's memory after a turn. Raises NotFound."""
        return await self.memory(discussion_id, agent).at_turn(turn)

    async def memory_history(self, discussion_id: str, agent: str) -> Sequence[MemoryVersion]:
        """Return every version of an agent's memory. Raises NotFound."""
        return await self.memory(discussion_id, agent).history()

    async def memory_diff(self, discussion_id: str, agent: str, older: int, newer: int) -> str:
        """Return what changed in an agent's memory between two turns. Raises NotFound."""
        return await self.memory(discussion_id, agent).diff(older, newer)


MANY = 1_000_000
PAGE = 200
