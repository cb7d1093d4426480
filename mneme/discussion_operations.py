"""What the command line may do with somebody's discussions, here or through a running server."""

from collections.abc import Sequence
from typing import ClassVar

from mneme.errors import BadInput, NotFound
from stores.agent_memory import Remembered
from stores.discussions import Discussion, Discussions, Turn


class DiscussionOperations(Discussions):
    """Discussions, their turns, and the memory of each agent after each turn."""

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
    """The operations that a server does for the command line."""

    async def whose(self) -> str:
        """Return whose discussions these are: a server answers with the caller's own of that name."""
        return self.owner

    async def starting(self, beginning: str) -> Discussion:
        """Return the one discussion whose id begins so; the latest for nothing. Raises NotFound, BadInput."""
        known = await self.list(limit=MANY)
        found = [each for each in known if each.id.startswith(beginning)]
        if not found:
            raise NotFound(f"There is no discussion {beginning or 'yet'}.", "See `mneme discuss list`.")
        exact = [each for each in found if each.id == beginning]
        if beginning and len(found) > 1 and not exact:
            raise BadInput(f"{len(found)} discussions begin with {beginning}.", "Give more of the id.")
        return exact[0] if exact else found[-1]

    async def turns(self, discussion_id: str) -> Sequence[Turn]:
        """Return a discussion's turns, oldest first; of one that goes on, those so far."""
        conversation, found = self.conversation(discussion_id), list[Turn]()
        while turns := await conversation.between(len(found) + 1, len(found) + PAGE):
            found += turns
        return found

    async def memory_now(self, discussion_id: str, agent: str) -> Remembered:
        """Return an agent's memory as it is. Raises NotFound."""
        return await self.memory(discussion_id, agent).now()

    async def memory_at(self, discussion_id: str, agent: str, turn: int) -> Remembered:
        """Return an agent's memory after a turn. Raises NotFound."""
        return await self.memory(discussion_id, agent).at_turn(turn)

    async def memory_history(self, discussion_id: str, agent: str) -> Sequence[Remembered]:
        """Return every version of an agent's memory. Raises NotFound."""
        return await self.memory(discussion_id, agent).history()

    async def memory_diff(self, discussion_id: str, agent: str, older: int, newer: int) -> str:
        """Return what changed in an agent's memory between two turns. Raises NotFound."""
        return await self.memory(discussion_id, agent).diff(older, newer)


MANY = 1_000_000
PAGE = 200
