"""The ids of a user's threads, which the user's names for them decide and nobody else can guess.

A server's threads are UUIDs that its users may choose. If an id followed from the name alone, whoever knows
the name (a user's memory thread, a team's task) could create that thread first and keep its owner out. So
each user has a random root in the ledger, outside of what the store's API shows, and an id follows from both.
"""

from uuid import NAMESPACE_URL, UUID, uuid4, uuid5

from mneme.stores.ledger.ledger import Ledger
from mneme.stores.ledger.records import Change, check_name, escaped

CHANGE = Change(reason="the root of this user's thread ids", actor="threads")


class ThreadIds:
    """The thread ids of one user."""

    def __init__(self, ledger: Ledger, user: str) -> None:
        self._ledger = ledger
        self._namespace = ("threads", escaped(check_name(user, "user id")))

    async def of(self, name: str) -> str:
        """Return the id of the user's thread of that name: always the same one."""
        return str(uuid5(await self._root(), name))

    async def forget(self, *, reason: str, actor: str) -> None:
        """Erase the root: threads of the user's names have other ids from now on."""
        await self._ledger.forget_all(self._namespace, reason=reason, actor=actor)

    async def _root(self) -> UUID:
        """Return the user's root; where two were written at once, the first one counts."""
        if not await self._ledger.count(self._namespace):
            await self._ledger.insert(self._namespace, {"root": str(uuid4())}, text="", change=CHANGE)
        (first,) = await self._ledger.records(self._namespace, limit=1)
        return UUID(str(first.value["root"]))


def known_id(name: str) -> str:
    """Return the id that earlier versions gave to the thread of that name, which everybody can work out."""
    return str(uuid5(NAMESPACE_URL, f"mneme:{name}"))
