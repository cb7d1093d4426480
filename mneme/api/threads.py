"""Operations on one user's threads, here or on a running server."""

from collections.abc import Sequence
from typing import ClassVar

from pydantic import BaseModel, PositiveInt

from mneme.core.errors import NotFound
from mneme.core.settings import settings
from mneme.nodes.background import is_of, named_thread
from mneme.stores.checkpoints.checkpointer import own_checkpoints
from mneme.stores.ledger.ledger import Ledger


class Pruned(BaseModel):
    """How many threads were pruned, and how many checkpoints went."""

    threads: int
    checkpoints: int


class ThreadOperations:
    """Which ids the threads of a user have, by the names that the command line gives them."""

    ROUTE: ClassVar[str] = "threads"
    REMOTE: ClassVar[Sequence[str]] = ("named", "prune")
    """The operations that a server offers to the command line."""

    def __init__(self, ledger: Ledger, user: str) -> None:
        self._ledger, self._user = ledger, user

    async def named(self, name: str) -> str:
        """Return the id of the user's thread of that name, whether it exists yet or not."""
        return await named_thread(self._ledger, name, self._user)

    async def prune(self, thread: str, turns: PositiveInt) -> Pruned:
        """Keep the checkpoints that the last turns of a thread need; of all the user's threads for "".

        `thread` is a conversation's name, a thread's whole name or its id. Raises NotFound.
        """
        owner = None if settings().auth is None else self._user  # without keys everything is one person's
        async with own_checkpoints() as checkpoints:
            found = [await self._id_of(thread)] if thread else await checkpoints.thread_ids(owner)
            gone = [await checkpoints.keep_turns(each, turns) for each in found]
            await checkpoints.give_back()
        return Pruned(threads=len(found), checkpoints=sum(gone))

    async def _id_of(self, thread: str) -> str:
        names = (f"chat/{self._user}/{thread}", thread)
        for each in (thread, *[await self.named(name) for name in names]):
            if await is_of(each, self._user):
                return each
        raise NotFound(f"You have no thread {thread}.", "Give a conversation's name, or a thread's id.")
