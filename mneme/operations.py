"""What the command line may do with one user's memories, here or through a running server."""

from collections.abc import Sequence
from typing import Any, ClassVar, Protocol, TypeVar, get_type_hints

from pydantic import TypeAdapter, validate_call

from mneme.errors import MnemeError, NotFound
from stores.inbox import Inbox, Outcome
from stores.ledger import Ledger
from stores.transfer import ImportReport
from stores.user_memory import UserMemories


class Operations(UserMemories):
    """A user's memories, and what becomes of the messages that they come from."""

    ROUTE: ClassVar[str] = "memories"
    REMOTE: ClassVar[Sequence[str]] = (
        "whoami",
        "list",
        "similar",
        "show",
        "history",
        "diff",
        "as_of",
        "rollback",
        "undo",
        "forget",
        "forget_all",
        "waiting",
        "outcome",
        "export_lines",
        "import_lines",
    )
    """The operations that a server does for the command line."""

    def __init__(self, ledger: Ledger, user: str) -> None:
        super().__init__(ledger, user)
        self._inbox = Inbox(ledger)

    async def whoami(self) -> str:
        """Return whose memories these are: a server answers with whoever the key belongs to."""
        return self.user

    async def waiting(self) -> int:
        """Return how many messages are still to be remembered."""
        return len(await self._inbox.pending(self.user))

    async def outcome(self, message_id: str) -> Outcome | None:
        """Return what became of a message; None while it waits."""
        return await self._inbox.outcome(self.user, message_id)

    async def export_lines(self) -> list[str]:
        """Return every version of every memory as a line of JSON."""
        return [line async for line in self.export()]

    async def import_lines(self, lines: list[str]) -> ImportReport:
        """Bring exported lines in; what is there already stays as it is."""
        return await self.import_(lines)


class Remote(Protocol):
    """A class of operations on what one owner has, some of which a server does for the command line."""

    ROUTE: ClassVar[str]
    """The kind's name in the server's addresses."""
    REMOTE: ClassVar[Sequence[str]]

    def __init__(self, ledger: Ledger, owner: str, /) -> None: ...


Kind = TypeVar("Kind", bound=Remote)


async def operate(operations: Remote, name: str, arguments: dict[str, Any]) -> bytes:
    """Do one operation with arguments from JSON; return its result as JSON.

    Raises NotFound for an unknown operation, pydantic's ValidationError for wrong arguments.
    """
    kind = type(operations)
    if name not in kind.REMOTE:
        raise NotFound(f"There is no operation {name!r}.", f"There are: {', '.join(kind.REMOTE)}.")
    method = getattr(operations, name)
    result = await validate_call(method)(**arguments)
    return returns_of(kind, name).dump_json(result)


def returns_of(kind: type[Remote], name: str) -> TypeAdapter[Any]:
    """Return what reads and writes the result of an operation."""
    return TypeAdapter(get_type_hints(getattr(kind, name))["return"])


def error_as_json(error: MnemeError) -> dict[str, str]:
    """Return an error so that the command line can raise it again."""
    return {"error": type(error).__name__, "message": str(error), "hint": error.hint}
