"""The library: the memories of a user and a team, for Python programs.

Every call goes to the embedded ledger, or to the server that has it open. The ledger is opened with the first
call, and stays open until the end; other processes may have it open, too.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import wraps
from types import TracebackType
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    Generic,
    NamedTuple,
    ParamSpec,
    TypeVar,
    cast,
    get_type_hints,
)

from mneme.api.cards import Cards
from mneme.api.discussions import TeamDiscussions
from mneme.api.inbox import Messages, Remembered
from mneme.api.memories import Memories
from mneme.api.operation import Kind, Operations
from mneme.api.pools import Pools
from mneme.api.shared_memory import SharedMemory
from mneme.api.threads import Threads
from mneme.client.blocking import Loop
from mneme.client.blocking_memory import BlockingMemory
from mneme.client.home import Place, open_own_ledger, opened, operations_at
from mneme.client.spoken import Spoken, chat_messages
from mneme.core.errors import BadInput, NotOpened, ServerGone
from mneme.stores.ledger.records import LOCAL

if TYPE_CHECKING:  # slow to import
    from mneme.client.workflows import MemoryAgents
    from mneme.stores.ledger.base_store import LedgerStore

P = ParamSpec("P")
T = TypeVar("T")
LIBRARY_CALLER = "library"
"""Author of a program's changes, as their history names it."""


class OfMemories(Generic[P, T]):
    """An operation on the user's memories as a method of `Memory`, with its parameters and result."""

    def __init__(self, function: Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]) -> None:
        self._function, self.__doc__ = function, function.__doc__

    def __get__(self, memory: "Memory | None", _: type) -> Callable[P, Coroutine[Any, Any, T]]:
        of: Any = Memories if memory is None else memory.memories  # of the class: for `help`
        found: Callable[P, Coroutine[Any, Any, T]] = getattr(of, self._function.__name__)
        return found


class Memory:
    """The memories of one user and one team.

    `memories`, `inbox` and `threads` are the user's; `cards`, `pools` and `discussions` are the team's;
    `shared` covers all of them. The most used calls are here, too.

    >>> import asyncio, mneme
    >>> async def corrected():
    ...     async with mneme.open("ann") as memory:
    ...         added = await memory.memories.add("Ann lives in Olso.")
    ...         await memory.memories.update(added.key, "Ann lives in Oslo.", reason="a slip")
    ...         return [each.change.reason for each in await memory.history(added.key)]
    >>> asyncio.run(corrected())
    ['added by hand', 'a slip']
    """

    memories: Memories
    inbox: Messages
    threads: Threads
    cards: Cards
    pools: Pools
    discussions: TeamDiscussions
    shared: SharedMemory

    def __init__(self, door: "Door", user: str, team: str, caller: str) -> None:
        self.user, self.team = user, team
        for name, kind in OPERATIONS.items():
            setattr(self, name, door.operations(kind, user if kind.OWNER == "user" else team, caller))

    recall = OfMemories(Memories.recall)
    list = OfMemories(Memories.list)
    history = OfMemories(Memories.history)
    rollback = OfMemories(Memories.rollback)
    undo = OfMemories(Memories.undo)
    forget = OfMemories(Memories.forget)
    export = OfMemories(Memories.export)

    async def remember(
        self,
        messages: Spoken | Sequence[Spoken],
        thread: str = "",
        *,
        memory_agent: str = "auto",
        seconds: float = 60.0,
    ) -> Sequence[Remembered]:
        """Let the memory agent read a text or messages; return what it did with each of the user's.

        With the name of a thread, a conversation that is sent again, also with new turns, is not remembered
        twice. After `seconds` it continues in the background. Raises BadInput, TooMany.
        """
        return await self.memories.remember(chat_messages(messages), thread, memory_agent, seconds)


OPERATIONS: Mapping[str, type[Operations]] = get_type_hints(Memory)
"""The attributes of a `Memory`, and the classes whose operations they have."""


class Door:
    """The way to the ledger, or to the server that has it open, shared by all operations of a `Memory`."""

    def __init__(self) -> None:
        self._lock, self._busy = asyncio.Lock(), 0
        self._place: Place | None = None
        self._opened = AsyncExitStack()
        self._agents: MemoryAgents | None = None

    def operations(self, kind: type[Kind], owner: str, caller: str) -> Kind:
        """Return operations on an owner's data that find the ledger, or the server, with each call."""
        return cast(Kind, _Calls(self, Owned(kind, owner, caller)))

    async def do(self, owned: "Owned", work: Callable[[Any], Awaitable[T]], *, again: bool = True) -> T:
        """Await `work` on an owner's operations; repeat it once (`again`) if the server ended meanwhile."""
        async with self._used() as place:
            more: dict[str, Any] = {"remembering": self._remember} if owned.kind is Memories else {}
            try:
                return await work(operations_at(place, owned.kind, owned.owner, owned.caller, **more))
            except ServerGone:  # so the ledger is open to everybody
                self._place = None
                if not again:
                    raise
        return await self.do(owned, work, again=False)

    @asynccontextmanager
    async def _used(self) -> AsyncIterator[Place]:
        """Open the ledger or the way to its server, and keep it open meanwhile."""
        async with self._lock:  # of several first calls one opens it; then they run side by side
            if self._place is None:
                self._place = await self._opened.enter_async_context(opened())
            self._busy += 1
        try:
            yield self._place
        finally:
            self._busy -= 1

    async def close(self) -> None:
        """Close what is open, once no call uses it; the next call opens it again."""
        async with self._lock:
            if not self._busy:
                self._place = None
                await self._opened.aclose()

    async def leave(self) -> None:
        """Stop remembering in the background, which the next call continues, and close."""
        if self._agents is not None:  # first: a memory agent uses the ledger, so nothing would be closed
            await self._agents.stop()
        await self.close()

    async def _remember(self, user: str, memory_agent: str, seconds: float) -> None:
        from mneme.client.workflows import MemoryAgents  # noqa: PLC0415  (the graphs are slow to import)

        if self._agents is None:
            self._agents = MemoryAgents(self._used)
        await self._agents.remember(user, memory_agent, seconds)


class Owned(NamedTuple):
    """Operations of a class on an owner's data, and who calls them."""

    kind: type[Operations]
    owner: str
    caller: str


class _Calls:
    """Operations of a class, each called through the door."""

    def __init__(self, door: Door, owned: Owned) -> None:
        self._door, self._owned = door, owned

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        kind = self._owned.kind
        if name not in kind.OFFERED:
            raise AttributeError(f"{kind.__name__} has no operation {name!r}")

        @wraps(getattr(kind, name))
        async def call(*args: Any, **kwargs: Any) -> Any:
            return await self._door.do(self._owned, lambda on: getattr(on, name)(*args, **kwargs))

        return call

    def __dir__(self) -> list[str]:
        return [*self._owned.kind.OFFERED]


class Opening:
    """A `Memory` as a context: `async with` for its coroutines, `with` for calls that block."""

    def __init__(self, user: str, team: str, caller: str) -> None:
        self._given = (user, team, caller)
        self._door: Door | None = None
        self._loop: Loop | None = None

    if not TYPE_CHECKING:  # a type checker refuses every such name by itself

        def __getattr__(self, name: str) -> Any:
            if name.startswith("_"):  # copy, pickle, inspect and notebooks probe for such names
                raise AttributeError(name)
            way = "write `with mneme.open(…) as memory:`, or `async with` in a coroutine"
            raise NotOpened(f"This memory is not open yet: {way}.", f"Then call `memory.{name}`.")

    async def __aenter__(self) -> Memory:
        self._door = Door()
        return Memory(self._door, *self._given)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._door is not None
        await self._door.leave()

    def __enter__(self) -> BlockingMemory:
        """Return a `Memory` whose calls block. Raises BadInput in a coroutine."""
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            self._loop = Loop(lambda: self.__aexit__(None, None, None))
            return BlockingMemory(self._loop.run(self.__aenter__()), self._loop)
        raise BadInput("`with mneme.open()` would stop this program's event loop.", "Say `async with`.")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._loop is not None
        self._loop.close()


@asynccontextmanager
async def open_store() -> "AsyncIterator[LedgerStore]":
    """Open the embedded ledger as a LangGraph store, for use in graphs of your own.

    It stays open until the end; other processes may have it open, too.

    >>> import asyncio, mneme
    >>> async def kept():
    ...     async with mneme.open_store() as store:  # builder.compile(store=store)
    ...         await store.aput(("notes",), "tea", {"text": "green"})
    ...         return (await store.aget(("notes",), "tea")).value
    >>> asyncio.run(kept())
    {'text': 'green'}
    """
    from mneme.stores.ledger.base_store import LedgerStore  # noqa: PLC0415  (slow to import)

    ledger = await open_own_ledger()
    try:
        yield LedgerStore(ledger, actor=LIBRARY_CALLER)
    finally:
        await ledger.close()


def open(user: str = LOCAL, team: str = LOCAL, *, caller: str = LIBRARY_CALLER) -> Opening:
    """Open the memories of a user and a team, in `MNEME_HOME` or on the server that has it open.

    With keys, user and team are those of the key in `MNEME_KEY`.

    >>> import mneme
    >>> with mneme.open("ann") as memory:
    ...     [told] = memory.remember("I live in Oslo.", memory_agent="rules")
    ...     [found] = memory.recall("Where does she live?", limit=1)
    >>> told.status, found.text
    ('stored', 'I live in Oslo.')
    """
    return Opening(user, team, caller)
