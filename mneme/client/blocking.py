"""Calls of coroutines from code that has no event loop.

A type checker reads the parameters and the result of each blocking call from the coroutine itself.
"""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Coroutine
from functools import wraps
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar

from mneme.api.cards import Cards
from mneme.api.discussions import TeamDiscussions
from mneme.api.inbox import Messages
from mneme.api.memories import Memories
from mneme.api.pools import Pools
from mneme.api.threads import Threads

P = ParamSpec("P")
T = TypeVar("T")


class Loop:
    """An event loop in a thread of its own.

    `leave` is run there when it is closed, which the end of the process does, too.
    """

    def __init__(self, leave: Callable[[], Coroutine[Any, Any, object]]) -> None:
        self._leave = leave
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="mneme", daemon=True)
        self._thread.start()
        _running.add(self)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine and wait for its result; an interrupted wait cancels it. Blocks."""
        waits = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return waits.result()
        except BaseException:
            waits.cancel()
            raise

    def wait(self, work: Coroutine[Any, Any, T]) -> Awaitable[T]:
        """Start a coroutine, for another loop to await its result; whoever cancels that cancels it."""
        return asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._loop))

    def close(self) -> None:
        """Leave what is open, and end the thread."""
        _running.discard(self)
        if not self._thread.is_alive():  # this process was forked from the one that has the thread
            return
        try:
            self.run(self._leave())
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()


_running: set[Loop] = set()


def _close_all() -> None:
    for loop in [*_running]:
        loop.close()


# What `atexit` calls comes too late: no executor takes work any more by then, so nothing could be closed.
threading._register_atexit(_close_all)  # type: ignore[attr-defined]  # private, as its caller's in the library


class Blocking:
    """Operations whose coroutines are waited for, on a loop in another thread."""

    def __init__(self, of: Any, loop: Loop) -> None:
        self.of, self.loop = of, loop


class Waits(Generic[P, T]):
    """A coroutine as a method that blocks, with the coroutine's parameters, result and errors."""

    def __init__(self, function: Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]) -> None:
        self.__doc__ = function.__doc__

    def __set_name__(self, _: type, name: str) -> None:
        self._name = name

    def __get__(self, blocking: Blocking, _: type) -> Callable[P, T]:
        function: Callable[P, Coroutine[Any, Any, T]] = getattr(blocking.of, self._name)

        @wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> T:
            return blocking.loop.run(function(*args, **kwargs))

        return call


class BlockingMemories(Blocking):
    """`Memories` whose calls block."""

    whoami = Waits(Memories.whoami)
    users = Waits(Memories.users)
    remember = Waits(Memories.remember)
    add = Waits(Memories.add)
    update = Waits(Memories.update)
    recall = Waits(Memories.recall)
    list = Waits(Memories.list)
    count = Waits(Memories.count)
    latest_changes = Waits(Memories.latest_changes)
    show = Waits(Memories.show)
    history = Waits(Memories.history)
    diff = Waits(Memories.diff)
    flagged = Waits(Memories.flagged)
    accept = Waits(Memories.accept)
    rollback = Waits(Memories.rollback)
    retire = Waits(Memories.retire)
    undo = Waits(Memories.undo)
    undo_one = Waits(Memories.undo_one)
    forget = Waits(Memories.forget)
    forget_everything = Waits(Memories.forget_everything)
    export = Waits(Memories.export)
    import_ = Waits(Memories.import_)


class BlockingMessages(Blocking):
    """`Messages` whose calls block."""

    waiting = Waits(Messages.waiting)
    list = Waits(Messages.list)
    get = Waits(Messages.get)
    outcome = Waits(Messages.outcome)
    retry = Waits(Messages.retry)
    drop = Waits(Messages.drop)


class BlockingThreads(Blocking):
    """`Threads` whose calls block."""

    named = Waits(Threads.named)
    list = Waits(Threads.list)
    find = Waits(Threads.find)
    delete = Waits(Threads.delete)
    prune = Waits(Threads.prune)


class BlockingCards(Blocking):
    """`Cards` whose calls block."""

    whose = Waits(Cards.whose)
    teams = Waits(Cards.teams)
    list = Waits(Cards.list)
    count = Waits(Cards.count)
    search = Waits(Cards.search)
    propose = Waits(Cards.propose)
    get = Waits(Cards.get)
    history = Waits(Cards.history)
    promote = Waits(Cards.promote)
    deprecate = Waits(Cards.deprecate)
    restore = Waits(Cards.restore)
    rollback = Waits(Cards.rollback)
    clear_flag = Waits(Cards.clear_flag)
    review = Waits(Cards.review)
    rate = Waits(Cards.rate)
    care_for = Waits(Cards.care_for)
    supersede = Waits(Cards.supersede)
    upkeep = Waits(Cards.upkeep)
    export = Waits(Cards.export)
    share = Waits(Cards.share)
    import_ = Waits(Cards.import_)
    metrics = Waits(Cards.metrics)
    trend = Waits(Cards.trend)
    consolidations = Waits(Cards.consolidations)
    consolidation_due = Waits(Cards.consolidation_due)
    serving = Waits(Cards.serving)
    roll_back_consolidation = Waits(Cards.roll_back_consolidation)
    list_tasks = Waits(Cards.list_tasks)
    count_tasks = Waits(Cards.count_tasks)
    open_dispute = Waits(Cards.open_dispute)
    list_disputes = Waits(Cards.list_disputes)
    get_dispute = Waits(Cards.get_dispute)
    evidence = Waits(Cards.evidence)
    decide = Waits(Cards.decide)


class BlockingPools(Blocking):
    """`Pools` whose calls block."""

    whose = Waits(Pools.whose)
    list = Waits(Pools.list)
    pairs = Waits(Pools.pairs)
    search = Waits(Pools.search)
    pair = Waits(Pools.pair)
    history = Waits(Pools.history)
    rate = Waits(Pools.rate)
    remove = Waits(Pools.remove)
    forget = Waits(Pools.forget)
    export_lines = Waits(Pools.export_lines)
    import_lines = Waits(Pools.import_lines)
    retriever = Waits(Pools.retriever)
    serving_problem = Waits(Pools.serving_problem)
    consolidations = Waits(Pools.consolidations)
    consolidation_due = Waits(Pools.consolidation_due)
    serving = Waits(Pools.serving)
    roll_back_consolidation = Waits(Pools.roll_back_consolidation)
    rollback = Waits(Pools.rollback)
    rubrics = Waits(Pools.rubrics)
    rubric = Waits(Pools.rubric)
    freeze = Waits(Pools.freeze)


class BlockingTeamDiscussions(Blocking):
    """`TeamDiscussions` whose calls block."""

    whose = Waits(TeamDiscussions.whose)
    list = Waits(TeamDiscussions.list)
    starting = Waits(TeamDiscussions.starting)
    get = Waits(TeamDiscussions.get)
    turns = Waits(TeamDiscussions.turns)
    memory_now = Waits(TeamDiscussions.memory_now)
    memory_at = Waits(TeamDiscussions.memory_at)
    memory_history = Waits(TeamDiscussions.memory_history)
    memory_diff = Waits(TeamDiscussions.memory_diff)
    carried = Waits(TeamDiscussions.carried)
    forget_carried = Waits(TeamDiscussions.forget_carried)
