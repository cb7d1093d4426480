"""Operations on the messages of one user that are still to be remembered."""

from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

from mneme.api.operation import USER, Operations, changes, reads
from mneme.stores.ledger.ledger import Ledger
from mneme.stores.users.inbox import Inbox, Letter, MessageOutcome, is_new

MessageId = Annotated[str, Field(min_length=1, description="The message's id, or its first letters.")]


class Messages(Operations):
    """Operations on the messages that wait to be remembered, and on those that were set aside."""

    OWNER = "user"

    def __init__(self, ledger: Ledger, user: str, caller: str = USER) -> None:
        super().__init__(ledger, user, caller)
        self._inbox = Inbox(ledger)

    @reads("inbox/count")
    async def waiting(self) -> int:
        """Return how many messages are still to be remembered, but for those that are only read again."""
        return sum(map(is_new, await self._inbox.pending(self._owner)))

    @reads("inbox")
    async def list(self) -> Sequence[Letter]:
        """Return the messages that are still to be remembered, and those that were set aside."""
        return await self._inbox.letters(self._owner)

    @reads("inbox/{message_id}")
    async def get(self, message_id: MessageId) -> Letter:
        """Return one message of the inbox. Raises NotFound."""
        return await self._inbox.letter(self._owner, message_id)

    @reads("inbox/{message_id}/outcome")
    async def outcome(self, message_id: MessageId) -> MessageOutcome | None:
        """Return what the memory agent did with a message, by its whole id; None while the message waits."""
        return await self._inbox.outcome(self._owner, message_id)

    @changes("inbox/{message_id}/retry")
    async def retry(self, message_id: MessageId) -> Letter:
        """Let a message that was set aside wait again. Raises NotFound."""
        return await self._inbox.retry(self._owner, message_id)

    @changes("inbox/{message_id}/drop")
    async def drop(self, message_id: MessageId) -> Letter:
        """Close a message without remembering it. Raises NotFound."""
        return await self._inbox.drop(self._owner, message_id)
