"""Operations on one user's threads, on a running server."""

from collections.abc import Sequence
from typing import ClassVar

from mneme.nodes.background import named_thread
from mneme.stores.ledger.ledger import Ledger


class ThreadOperations:
    """Which ids the threads of a user have, by the names that the command line gives them."""

    ROUTE: ClassVar[str] = "threads"
    REMOTE: ClassVar[Sequence[str]] = ("named",)
    """The operations that a server offers to the command line."""

    def __init__(self, ledger: Ledger, user: str) -> None:
        self._ledger, self._user = ledger, user

    async def named(self, name: str) -> str:
        """Return the id of the user's thread of that name, whether it exists yet or not."""
        return await named_thread(self._ledger, name, self._user)
