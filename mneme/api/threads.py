"""Operations on one user's threads, in this process or on a running server: listed, deleted, cleaned.

A thread belongs to the user whose name the server or the thread's latest checkpoint has. With keys the
server's name counts, since whoever runs a graph can write any owner into a checkpoint; without keys, the
thread belongs to the user that its runs name.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence, Set
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, Field

from mneme.api.conversations import (
    ConversationSummary,
    ConversationTurn,
    conversations,
    messages_in,
    told,
    turns_of_thread,
)
from mneme.api.copies import erase_files
from mneme.api.operation import BY_USER, Limit, Operations, changes, reads
from mneme.api.server_state import ServerState
from mneme.core.errors import BadInput, Conflict, Damaged, NotFound
from mneme.core.settings import settings
from mneme.nodes.background import MEMORY_THREAD, THREAD_NAME, named_thread
from mneme.stores.access import known_id, may_read, thread_id
from mneme.stores.checkpoints.checkpointer import kept_threads, opened_checkpointer
from mneme.stores.checkpoints.threads import ThreadSummary
from mneme.stores.ledger.ledger import Ledger
from mneme.stores.ledger.records import LOCAL, MAX_INT, Version, unescaped
from mneme.stores.ledger.words import words_of
from mneme.stores.users.traces import Origins

if TYPE_CHECKING:  # slow to import
    from langchain_core.runnables import RunnableConfig

    from mneme.stores.checkpoints.erasing import Eraser

CHAT_NAME = "chat/{user}/{name}"
REPEATED_WORDS = 2
"""Number of shared words that make a reply a repetition if none of them is a name or a number."""
TELLING_MARK = re.compile(r"\d+|(?<![.!?] )(?<!^)\b[A-Z]\w+")
"""A number, or a word with a capital that does not begin a sentence."""
COMMON_STEMS = frozenset(words_of("user users").indices)
"""Stems of words that every memory has: they do not count as shared."""

CHECKPOINTS_PER_PAGE = 20
"""Number of checkpoints that are read at once to check them."""

ThreadName = Annotated[str, Field(description="The thread's name, its id, or the beginning of its id.")]


class Thread(BaseModel):
    """A thread that has checkpoints: its name, if it has one, its graph, and the time of its last step."""

    id: str
    name: str = ""
    graph: str = ""
    checkpoints: int
    at: datetime


class Cleaned(BaseModel):
    """The result of erasing from threads: how many messages, in which threads (name or id); what was left."""

    turns: int = 0
    threads: list[str] = []
    left: list[str] = []
    """Files that may still hold it, and what to do."""
    stopped: list[str] = []
    """Stopped runs: the command that began one continues it, without the erased texts."""

    def add(self, left: Sequence[str]) -> None:
        """Note files that may still hold it, each once."""
        self.left = [*dict.fromkeys([*self.left, *left])]


class Pruned(BaseModel):
    """Number of pruned threads and of removed checkpoints."""

    threads: int
    checkpoints: int


class Threads(Operations):
    """A user's threads: conversations, the memory agent's thread, and those of other graphs."""

    OWNER = "user"

    def __init__(
        self, ledger: Ledger, user: str, caller: str = BY_USER, *, state: ServerState | None = None
    ) -> None:
        super().__init__(ledger, user, caller)
        self._state = state or ServerState()

    @reads("threads/named")
    async def named(self, name: ThreadName) -> str:
        """Return the id of the user's thread of that name, whether it exists yet or not."""
        return await named_thread(self._ledger, name, self._owner)

    @reads("threads")
    async def list(self) -> Sequence[Thread]:
        """Return the user's threads that have checkpoints, the most recently active last."""
        found = await kept_threads()
        mine = await self._mine(found)
        return [_described(each) for each in found if each.id in mine]

    @reads("threads/find")
    async def find(self, name: ThreadName) -> Thread:
        """Return a thread by its name, its id or the beginning of one of them. Raises NotFound, BadInput."""
        threads, names = await self.list(), {name, CHAT_NAME.format(user=self._owner, name=name)}
        ids = {name, *[await self.named(each) for each in names]}
        exact = [each for each in threads if each.name in names or each.id in ids]
        found = exact or [each for each in threads if each.id.startswith(name)]
        if not name or not found:
            raise NotFound(f"There is no thread {name}.", "See `mneme threads list`.")
        if len(found) > 1:
            raise BadInput(f"{len(found)} threads match {name}.", "Give the whole id.")
        return found[0]

    @reads("threads/conversations")
    async def conversations(self, limit: Limit = 50) -> Sequence[ConversationSummary]:
        """Return the conversations with a message of the user, from any interface, the latest first."""
        names = {each.id: each.name for each in await self.list()}
        return await conversations(self._ledger, self._owner, names, limit)

    @reads("threads/conversation")
    async def conversation(
        self,
        thread: Annotated[str, Field(description="The conversation's thread; empty: the message's.")] = "",
        message_id: Annotated[
            str, Field(description="A message in it, around which turns are returned.")
        ] = "",
        limit: Limit = 100,
    ) -> Sequence[ConversationTurn]:
        """Return the messages of a conversation, oldest first, and the memories made from each.

        For a thread of the chatbot, also the texts that the replies were shown. Raises NotFound.
        """
        messages = await messages_in(self._ledger, self._owner, thread, message_id)
        thread = thread or (str(messages[0].value["thread"]) if messages else "")
        turns = list[ConversationTurn]()
        if thread and thread in await self._all():
            turns = await turns_of_thread(self._ledger, thread, lambda place: may_read(self._who, place))
        if not (turns := turns or await told(self._ledger, messages)):
            raise NotFound(f"Nothing is kept of {thread or message_id}.", "See `mneme threads list`.")
        at = [number for number, each in enumerate(turns, 1) if each.message_id == message_id]
        # The message stands in the middle of what is returned, or else the latest turns do.
        end = min(len(turns), max(limit, at[0] + limit // 2)) if message_id and at else len(turns)
        heads = {each.key: each for each in messages}
        return [each.of(heads.get(each.message_id)) for each in turns[max(0, end - limit) : end]]

    @changes("threads/delete", erases=True)
    async def delete(self, name: ThreadName) -> Cleaned:
        """Delete one of the user's threads everywhere. Raises NotFound, BadInput, Conflict."""
        thread = await self.find(name)
        background = await self._background() & {thread.id}  # only the memory agent goes on afterwards
        async with self._state.quiet({thread.id} - background, background):
            done = await self._deleted({thread.id})
        return done.model_copy(update={"threads": [thread.name or thread.id]})

    @changes("threads/prune")
    async def prune(
        self,
        name: ThreadName = "",
        everything: Annotated[bool, Field(description="All threads of the user, instead of one.")] = False,
        turns: Annotated[
            int | None,
            Field(ge=1, le=MAX_INT, description="Turns that you can go back; none: MNEME_CHECKPOINT_TURNS."),
        ] = None,
    ) -> Pruned:
        """Keep the checkpoints that the last turns of a thread, or of all threads, need; all messages stay.

        Raises NotFound, BadInput.
        """
        if bool(name) == everything:
            raise BadInput("Which thread?", "Give its name, its id, or --all.")
        if not (turns := turns or settings().checkpoint_turns):
            raise BadInput("MNEME_CHECKPOINT_TURNS is 0: all turns are kept.", "Say how many with --turns.")
        found = await self._all() if everything else {(await self.find(name)).id}
        async with opened_checkpointer() as saver:
            gone = [await saver.keep_turns(each, turns) for each in found]
            await saver.give_back()
        return Pruned(threads=len(found), checkpoints=sum(gone))

    def erasing(
        self, told: Origins, made: Sequence[Version], *, whole: bool = False, everything: bool = False
    ) -> AbstractAsyncContextManager[Cleaned]:
        """Remove the `told` messages, and the replies that repeat them, from all threads of the user.

        Discussions among the records `made` from them, and household runs that were shown such a record and
        repeat it, are deleted with their files, whoever owns them. All this is repeated at the end of
        the `with`, in which the ledger is erased: until then a reply can recall it. The memory agent's thread
        is deleted: nothing on it is needed again. `whole` also deletes every conversation that had such a
        message, `everything` each thread of the user. Raises Conflict if a reply does not end.
        """
        from mneme.stores.checkpoints.erasing import Eraser  # noqa: PLC0415  (LangGraph is slow to import)

        async def erase(background: Set[str]) -> Cleaned:
            mine = await self._all()
            runs = await self._erase_runs(told, made, mine, mine if everything else background)
            eraser = Eraser(told, repeating(told))
            telling, changed = await _rewritten(await self._all(), eraser)
            left = await self._state.renew(changed)
            gone = await self._deleted(telling if whole else set())
            threads = {*changed, *runs.threads} - (set() if everything else background)
            cleaned = Cleaned(turns=eraser.turns, threads=sorted(threads), left=left)
            cleaned.add([*runs.left, *gone.left])
            return cleaned

        return self._cleaning(erase)

    @asynccontextmanager
    async def _cleaning(self, clean: Callable[[Set[str]], Awaitable[Cleaned]]) -> AsyncIterator[Cleaned]:
        """Clean the threads on entering, and again on leaving because replies may have begun meanwhile.

        `clean` receives the memory agent's threads. A reply that has not ended by then is reported.
        """
        background = await self._background()
        async with self._state.quiet(await self._all() - background, background) as stopped:
            known = await kept_threads() if stopped else ()  # what is cleaned may be gone afterwards
            names = {each.id: str(each.metadata.get(THREAD_NAME) or each.id) for each in known}
            cleaned = await clean(background)
            yield cleaned
            background = await self._background()  # the first cleaning may have replaced the thread
            try:
                async with self._state.quiet(await self._all() - background, background):
                    cleaned.add((await clean(background)).left)
            except Conflict:
                cleaned.add(["a reply that began meanwhile may repeat it: delete its conversation"])
        runs = {names.get(each, each) for each in stopped} - {*cleaned.threads}
        cleaned.stopped = sorted(runs)

    async def _erase_runs(
        self, told: Origins, made: Sequence[Version], mine: Set[str], also: Set[str]
    ) -> Cleaned:
        """Erase discussions and household runs with their files, as `erasing` says, and threads in `also`."""
        names = {each.id: str(each.metadata.get(THREAD_NAME) or "") for each in await kept_threads()}
        places = [(each.namespace, each.key) for each in made if each.namespace[2:] == ("discussions",)]
        discussed = {f"discuss/{unescaped(place[1])}/{key}" for place, key in places}
        played = {thread for thread, name in names.items() if name.startswith("household/")}
        runs = await _repeating(played, mine, told, made) | (played & also)
        left = await asyncio.to_thread(erase_files, {*discussed, *(names[each] for each in runs)})
        gone = runs | also | {thread for thread, name in names.items() if name in discussed}
        done = await self._deleted(gone)  # last: after a kill everything else is found by them
        done.add(left)
        return done.model_copy(update={"threads": [names[each] if each in runs else each for each in gone]})

    async def _deleted(self, threads: Set[str]) -> Cleaned:
        """Delete threads, without looking at their content."""
        left = await self._state.delete(threads)
        async with opened_checkpointer() as saver:
            for thread in threads:
                await saver.adelete_thread(thread)
        return Cleaned(threads=sorted(threads), left=left)

    async def _background(self) -> Set[str]:
        """Return the ids of the memory agent's threads, including that of an earlier version."""
        name = MEMORY_THREAD.format(user=self._owner)
        return {known_id(name), await thread_id(self._ledger, self._owner, name)} & await self._all()

    async def _all(self) -> Set[str]:
        """Return the ids of the user's threads, also of those that only the server knows."""
        return await self._mine(await kept_threads())

    async def _mine(self, found: Sequence[ThreadSummary]) -> Set[str]:
        keyed, on_server = settings().auth is not None, await self._state.owners()
        named = {each.id: _owner(each.metadata, keyed) for each in found}
        owners = {**named, **on_server} if keyed else {**on_server, **named}  # the later one counts
        return {thread for thread, owner in owners.items() if owner == self._owner}


async def damaged_threads() -> list[str]:
    """Read all checkpoints, of every user; return each unreadable thread with the reason and what to do."""
    found = list[str]()
    async with opened_checkpointer(to_read=True) as saver:
        for thread in await saver.threads():
            config: RunnableConfig = {"configurable": {"thread_id": thread.id}}
            before: RunnableConfig | None = None
            try:
                while page := [  # by pages: a thread can be larger than the memory
                    each async for each in saver.alist(config, before=before, limit=CHECKPOINTS_PER_PAGE)
                ]:
                    before = page[-1].config
            except Damaged as damage:
                name, owner = _described(thread).name or thread.id, _owner(thread.metadata, keyed=False)
                whose = "" if owner == LOCAL else f" --user {owner}"
                remedy = f"Restore a backup, or delete the thread: `mneme threads delete {name}{whose}`."
                found.append(f"{name}: {damage}. {remedy}")
    return found


@contextmanager
def _damage_named(thread: str) -> Iterator[None]:
    """Raise Damaged, naming the thread that cannot be read: it may contain what is to be erased."""
    try:
        yield
    except ValueError as damage:
        raise Damaged(
            f"The thread {thread} is damaged: {damage}.",
            f"Restore a backup, or delete the thread: `mneme threads delete {thread}`; then erase again.",
        ) from damage


async def _repeating(played: Set[str], mine: Set[str], told: Origins, made: Sequence[Version]) -> Set[str]:
    """Return the runs that were shown the erased texts and repeat them, or are `mine` and contain them."""
    from mneme.stores.checkpoints.erasing import texts_of  # noqa: PLC0415  (LangGraph is slow to import)

    repeats, found = repeating(told), set[str]()
    async with opened_checkpointer() as saver:
        for thread in played:
            values = await saver.values(thread)
            # A record's id stands in the stored bytes as it is: nothing is decoded to find it.
            is_shown = any(each.record.encode() in bytes(data) for _, data in values for each in made)
            if is_shown or thread in mine:
                with _damage_named(thread):
                    said = map(repeats if is_shown else told.is_in, texts_of(values))
                    found |= {thread} if await asyncio.to_thread(any, said) else set()
    return found


async def _rewritten(threads: Set[str], eraser: "Eraser") -> tuple[Set[str], Set[str]]:
    """Return the threads in which messages were found, and those in which text was replaced."""
    telling: set[str] = set()
    async with opened_checkpointer() as saver:
        for thread in threads:  # all before one is changed: a reply may answer another thread's message
            before = eraser.finds
            with _damage_named(thread):
                await asyncio.to_thread(eraser.look, await saver.values(thread))
            telling |= {thread} if eraser.finds > before else set()
        changed = set[str]()
        for thread in threads:
            with _damage_named(thread):
                changed |= {thread} if await saver.rewrite(thread, eraser.rewrite) else set()
        await saver.finish()
    return telling, changed


def _owner(metadata: Mapping[str, Any], keyed: bool) -> str:
    named = "" if keyed else metadata.get("user")
    return str(named or metadata.get("owner") or LOCAL)


def _described(kept: ThreadSummary) -> Thread:
    return Thread(
        id=kept.id,
        name=str(kept.metadata.get(THREAD_NAME) or ""),
        graph=str(kept.metadata.get("graph_id") or ""),
        checkpoints=kept.checkpoints,
        at=kept.at,
    )


def repeating(told: Origins) -> Callable[[str], bool]:
    """Return a test of replies: those with a name, a number or two distinctive words of the memory.

    A reply rephrases the memory, so the exact text is not searched. Erasing one reply too many costs little;
    leaving one that reveals the memory is worse.
    """
    known = [words for text in told.texts if (words := _telling(text))]
    marks = _telling(" ".join(each for text in told.texts for each in TELLING_MARK.findall(text)))

    def repeats(reply: str) -> bool:
        said = _telling(reply)
        return bool(said & marks) or any(len(said & each) >= min(REPEATED_WORDS, len(each)) for each in known)

    return repeats


def _telling(text: str) -> frozenset[int]:
    """Return the stems of the words of a text that are no stop words, as the search weighs them."""
    return frozenset(words_of(text).indices) - COMMON_STEMS
