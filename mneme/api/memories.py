"""Operations on one user's memories, in this process or on a running server."""

import asyncio
from collections.abc import Sequence, Set
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeVar, get_type_hints

from pydantic import TypeAdapter, validate_call

from mneme.api.copies import backups_with
from mneme.core.errors import MnemeError, NotFound
from mneme.core.settings import settings
from mneme.stores.ledger.forgetting import Forgotten
from mneme.stores.ledger.ledger import Ledger
from mneme.stores.ledger.transfer import ImportReport
from mneme.stores.users.inbox import Inbox, Letter, MessageOutcome
from mneme.stores.users.memories import UserMemories

if TYPE_CHECKING:  # slow to import
    from mneme.api.server_state import ServerState
    from mneme.api.threads import ThreadOperations


class Erased(Forgotten):
    """What was erased, of the ledger and of the user's threads, and what may still hold it."""

    records: int = 1
    turns: int = 0
    threads: Sequence[str] = ()
    """The threads from which something was taken, or which were deleted."""
    left: Sequence[str] = ()
    """Files that may still hold it, and what to do."""
    backups: Sequence[str] = ()
    """Backups made by `mneme backup` that may still hold it."""


class MemoryOperations(UserMemories):
    """Operations on a user's memories, and on the messages that wait to be remembered."""

    ROUTE: ClassVar[str] = "memories"
    REMOTE: ClassVar[Sequence[str]] = (
        "whoami",
        "list",
        "similar",
        "show",
        "keys",
        "history",
        "diff",
        "as_of",
        "rollback",
        "undo",
        "forget",
        "forget_everything",
        "waiting",
        "outcome",
        "letters",
        "letter",
        "retry",
        "drop",
        "flagged",
        "accept",
        "export_lines",
        "import_lines",
    )
    """The operations that a server offers to the command line."""

    def __init__(self, ledger: Ledger, user: str, state: "ServerState | None" = None) -> None:
        super().__init__(ledger, user)
        self._inbox, self._state = Inbox(ledger), state

    async def whoami(self) -> str:
        """Return the user's name; a server with users answers with the name that the key belongs to."""
        return self.user

    async def waiting(self) -> int:
        """Return how many messages are still to be remembered."""
        return len(await self._inbox.pending(self.user))

    async def outcome(self, message_id: str) -> MessageOutcome | None:
        """Return what the memory agent did with a message; None while the message waits."""
        return await self._inbox.outcome(self.user, message_id)

    async def letters(self) -> list[Letter]:
        """Return the messages that are still to be remembered, and those that were set aside."""
        return await self._inbox.letters(self.user)

    async def letter(self, message_id: str) -> Letter:
        """Return one message of the inbox. Raises NotFound."""
        return await self._inbox.letter(self.user, message_id)

    async def retry(self, message_id: str) -> Letter:
        """Let a message that was set aside wait again. Raises NotFound."""
        return await self._inbox.retry(self.user, message_id)

    async def drop(self, message_id: str) -> Letter:
        """Close a message without remembering it. Raises NotFound."""
        return await self._inbox.drop(self.user, message_id)

    async def forget(self, key: str, *, reason: str, actor: str, whole: bool = False) -> Erased:
        """Erase a memory, the messages that it came from, and the turns in which it was told or repeated.

        With `whole`, the conversations in which it was said are deleted. The ledger comes after the threads,
        so that after a failure it can be done again. Raises NotFound, Conflict where a reply does not end.
        """
        told = await self.told([key])
        async with self._threads().erasing(told, whole=whole) as cleaned:
            mark = await super().forget(key, reason=reason, actor=actor)
        backups = await _backups({key, *told.messages})
        return Erased(**mark.model_dump(), **cleaned.model_dump(), backups=backups)

    async def forget_everything(self, *, reason: str, actor: str, threads: bool) -> Erased:
        """Erase all memories with what waits; with `threads` also all threads, else the turns that told them.

        Raises Conflict where a reply does not end.
        """
        keys = await self.keys("")
        told = await self.told(keys)
        kept = self._threads()
        async with kept.deleting_all() if threads else kept.erasing(told) as cleaned:
            count = await self.forget_all(reason=reason, actor=actor)
        if threads:
            await kept.forget_ids(reason=reason, actor=actor)
        mark = Forgotten(at=datetime.now(UTC), reason=reason, actor=actor)
        backups = await _backups({*keys, *told.messages})
        return Erased(**mark.model_dump(), **cleaned.model_dump(), records=count, backups=backups)

    def _threads(self) -> "ThreadOperations":
        from mneme.api.threads import ThreadOperations  # noqa: PLC0415  (slow to import)

        return ThreadOperations(self._ledger, self.user, self._state)

    async def export_lines(self) -> list[str]:
        """Return every version of every memory as a line of JSON."""
        return [line async for line in self.export()]

    async def import_lines(self, lines: list[str]) -> ImportReport:
        """Import exported lines; records that exist already stay unchanged."""
        return await self.import_(lines)


async def _backups(names: Set[str]) -> list[str]:
    """Name the backups that may hold these records; users with keys are not told in which folder they are."""
    made, keyed = await asyncio.to_thread(backups_with, names), settings().auth is not None
    return [f"{Path(each.file).name if keyed else each.file} of {each.at:%Y-%m-%d %H:%M}" for each in made]


class Remote(Protocol):
    """A class of operations on one owner's data; a server offers those in `REMOTE` to the command line."""

    ROUTE: ClassVar[str]
    """The name of this class in the server's routes."""
    REMOTE: ClassVar[Sequence[str]]

    def __init__(self, ledger: Ledger, owner: str, /) -> None: ...


Kind = TypeVar("Kind", bound=Remote)


async def operate(operations: Remote, name: str, arguments: dict[str, Any]) -> bytes:
    """Call one operation with arguments from JSON; return its result as JSON.

    Raises NotFound for an unknown operation, pydantic's ValidationError for wrong arguments.
    """
    kind = type(operations)
    if name not in kind.REMOTE:
        raise NotFound(f"There is no operation {name!r}.", f"There are: {', '.join(kind.REMOTE)}.")
    method = getattr(operations, name)
    result = await validate_call(method)(**arguments)
    return returns_of(kind, name).dump_json(result)


def returns_of(kind: type[Remote], name: str) -> TypeAdapter[Any]:
    """Return the type adapter for an operation's result."""
    return TypeAdapter(get_type_hints(getattr(kind, name))["return"])


def error_as_json(error: MnemeError) -> dict[str, str]:
    """Return an error as JSON, from which the command line raises it again."""
    return {"error": type(error).__name__, "message": str(error), "hint": error.hint}
