"""Operations on what is remembered about one user."""

from collections.abc import Sequence
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Annotated, cast

from pydantic import Field

from mneme.api.erased import Erased, erased_of, told_to
from mneme.api.inbox import Conversation, Remembered, Remembering, remember_messages, to_remember
from mneme.api.operation import BY_USER, Key, Limit, Offset, Operations, Reason, changes, only, reads
from mneme.api.times import ISO_DAY, SINCE, UNTIL, AsOf, At, Since, Until
from mneme.core.errors import BadInput
from mneme.core.settings import settings
from mneme.models.asking.lazily import import_lazily
from mneme.stores.audit import Reading, readings
from mneme.stores.ledger.ledger import Ledger
from mneme.stores.ledger.query import Mode
from mneme.stores.ledger.records import MAX_INT, Forgotten, Version, check_name, thread_root, unescaped
from mneme.stores.ledger.transfer import ImportReport
from mneme.stores.provenance import told_again
from mneme.stores.users.inbox import Inbox, complete
from mneme.stores.users.memories import Day, UserMemories, both_sides
from mneme.stores.users.memory import Kind, Memory, MemoryRecord, check_period
from mneme.stores.users.promotion import OwnMemories, linked
from mneme.stores.write_gate import FACT_GATE

if TYPE_CHECKING:  # slow to import
    from mneme.api.server_state import ServerState
    from mneme.api.threads import Threads

Content = Annotated[
    str,
    Field(
        min_length=1,
        max_length=FACT_GATE.max_chars,
        description="What is remembered.",
        examples=["Ann has a dog."],
    ),
]
Query = Annotated[str, Field(min_length=1, max_length=8000, description="What to search for.")]
VersionNumber = Annotated[int, Field(ge=1, le=MAX_INT, description="A version's number, from 1.")]
IncludeRetired = Annotated[bool, Field(description="Also those not recalled any more.")]
Expected = Annotated[VersionNumber | None, Field(description="Refuse if another version is the latest.")]


class Written(MemoryRecord):
    """A memory written word for word, or one that exists already, and the memories that it may contradict.

    >>> import mneme
    >>> with mneme.open("ann") as memory:
    ...     flat = memory.memories.add("Ann's rent is 900 euros.")
    ...     later = memory.memories.add("Ann's rent is 950 euros.")
    >>> later.beside[0].memory.content
    "Ann's rent is 900 euros."
    """

    is_new: bool = True
    """Whether a version was written; else the same text was remembered already."""
    is_proposed: bool = False
    """Whether it waits until a reviewer of the team accepts it."""
    beside: Sequence[MemoryRecord] = ()
    """The memories that it may contradict, or repeats in other words; linked until somebody settles it."""


async def compared(
    new: Memory, memories: UserMemories, but: str = ""
) -> tuple[MemoryRecord | None, Sequence[MemoryRecord]]:
    """Return duplicates and possible contradictions of a memory, as `mneme.nodes.chat.compared` does."""
    room = await import_lazily("mneme.nodes.chat.compared")
    return cast(tuple[MemoryRecord | None, Sequence[MemoryRecord]], await room.compared(new, memories, but))


async def names_in(text: str, known: Sequence[str] = ()) -> Sequence[str]:
    """Return the known names that a text still contains and the other names in it, as that module does."""
    room = await import_lazily("mneme.nodes.chat.compared")
    return cast(Sequence[str], await room.names_in(_filled(text), known))


class Memories(Operations):
    """Operations on one user's memories."""

    OWNER = "user"

    def __init__(
        self,
        ledger: Ledger,
        user: str,
        caller: str = BY_USER,
        *,
        state: "ServerState | None" = None,
        remembering: Remembering | None = None,
    ) -> None:
        super().__init__(ledger, user, caller)
        self._kept, self._inbox = OwnMemories(ledger, user, self._who, compared), Inbox(ledger)
        self._state, self._remembering = state, remembering

    @reads("me")
    async def whoami(self) -> str:
        """Return the user's name; a server with users answers with the name that the key belongs to."""
        return self._owner

    @reads("users")
    async def users(self) -> Sequence[str]:
        """Return the users who have records; with keys, only the key's user."""
        if settings().auth is not None:
            return [self._owner]
        found = await self._ledger.namespaces(("users",), include_retired=True)
        return sorted({unescaped(each[1]) for each in found})

    @changes("memories/remember")
    async def remember(
        self,
        messages: Conversation,
        thread: Annotated[
            str,
            Field(max_length=200, description="The conversation's name: sent again, it is remembered once."),
        ] = "",
        memory_agent: Annotated[str, Field(description="The memory agent's model.")] = "auto",
        seconds: Annotated[float, Field(ge=0, le=600, description="How long to wait for it.")] = 60.0,
    ) -> Sequence[Remembered]:
        """Let the memory agent read messages, and return the outcome of each of the user's.

        They are stored first: a message that is not remembered in time, or fails, waits in the inbox. Raises
        TooMany, BadInput.
        """
        batch = [complete(each) for each in to_remember(messages, thread)]
        if memory_agent.strip() != "auto":
            responders = await import_lazily("mneme.models.asking.responders")
            await responders.resolve(memory_agent)  # a name that nobody has is refused before anything waits
        if not batch:
            raise BadInput("No message is the user's.", 'Give one with the role "user".')
        await self._inbox.must_have_room(self._owner, batch)
        for message in batch:
            await self._inbox.add(self._owner, message)  # one by one: they are read in this order
        ids, inbox, how = [each["message_id"] for each in batch], self._inbox, self._remembering
        return await remember_messages(inbox, self._owner, ids, how, memory_agent, seconds)

    @changes("memories")
    async def add(
        self,
        content: Content,
        kind: Annotated[Kind, Field(description="A lasting fact, or something that happened.")] = "semantic",
        entities: Annotated[
            Sequence[str], Field(max_length=50, description="Names in it; none: found in the text.")
        ] = (),
        reason: Reason = "",
        since: Since = "",
        until: Until = "",
    ) -> Written:
        """Remember a text verbatim, without the memory agent; return what it repeats or may contradict.

        A text that is known word for word is not written again; a given period changes it. Raises BadInput.
        """
        check_period(since, until)
        entities = list(entities) or await names_in(content)
        new = Memory(content=content, kind=kind, entities=entities, quote=content, since=since, until=until)
        known, beside = await compared(new, self._kept)
        if known:
            old = known.memory
            timed = old.model_copy(update={"since": since or old.since, "until": until or old.until})
            if timed == old:
                return await self._written(known, beside, is_new=False)
            change = self._change(reason, "its period was added by hand")
            memory = linked(timed, beside)
            kept = await self._kept.update(known.key, memory, change=change, expected_version=known.version)
            return await self._written(kept, beside)
        change = self._change(reason, "added by hand")
        added = await self._kept.insert(linked(new, beside), change=change)
        return await self._written(added, beside)

    @changes("memories/{key}/update")
    async def update(
        self,
        key: Key,
        content: Content,
        reason: Reason = "",
        expected_version: Expected = None,
        since: Annotated[str | None, Field(pattern=ISO_DAY, description=f"{SINCE} None: as before.")] = None,
        until: Annotated[str | None, Field(pattern=ISO_DAY, description=f"{UNTIL} None: as before.")] = None,
    ) -> Written:
        """Write a new version of a memory's text, and return its duplicates and possible contradictions.

        Its names are those of the new text, its quote is the text. Raises NotFound, Conflict, BadInput.
        """
        found = await self._kept.get(await self._whole(key))
        old = found.memory
        if since is not None or until is not None:
            check_period(old.since if since is None else since, old.until if until is None else until)
        memory = Memory(
            **old.model_dump(include={"kind", "message_id", "thread", "time", "is_change", "past"}),
            content=content,
            entities=await names_in(content, old.entities),
            quote=content,
            since=old.since if since is None else since,
            until=old.until if until is None else until,
        )
        known, beside = await compared(memory, self._kept, but=found.key)
        beside = [*filter(None, [known]), *beside]
        written = await self._kept.update(
            found.key,
            linked(memory, beside),
            change=self._change(reason, "edited by hand"),
            expected_version=expected_version or found.version,  # it was compared on this version
        )
        return await self._written(written, beside)

    @reads("memories/search")
    async def recall(
        self,
        query: Query,
        limit: Annotated[int, Field(ge=1, le=100, description="How many at most.")] = 10,
        search: Annotated[
            Mode, Field(description="By cosine, by words, by both ranks, or by both scores and more.")
        ] = "blend",
        kind: Annotated[Kind | None, Field(description="Only of this kind.")] = None,
        min_similarity: Annotated[
            float | None, Field(ge=-1, le=1, description="Leave out memories of a lower cosine.")
        ] = None,
        at: At = None,
        as_of: AsOf = None,
    ) -> Sequence[MemoryRecord]:
        """Return the live memories that fit a query best, the best first; `similarity` is the cosine.

        For another time the memories are ranked by cosine and words alone, and `similarity` is that sum.
        """
        _filled(query)
        if at or as_of:
            among = [each for each in await self._then(at, as_of) if kind in {None, each.memory.kind}]
            return await self._kept.ranked(query, among, limit)
        found = await self._kept.similar(query, limit, mode=search, kind=kind, min_similarity=min_similarity)
        self._was_shown(each.key for each in found)
        return await self._kept.linked(found)

    @reads("memories")
    async def list(
        self,
        limit: Limit = 100,
        offset: Offset = 0,
        include_retired: IncludeRetired = False,
        newest_first: Annotated[bool, Field(description="List the newest first.")] = False,
        at: At = None,
        as_of: AsOf = None,
    ) -> Sequence[MemoryRecord]:
        """Return memories in the order in which they were first remembered."""
        if at or as_of:
            then = await self._then(at, as_of)
            return (then[::-1] if newest_first else then)[offset : offset + limit]
        found = await self._kept.all(
            limit=limit, offset=offset, include_retired=include_retired, newest_first=newest_first
        )
        return await self._kept.linked(found)

    async def _then(self, at: date | None, as_of: datetime | None) -> Sequence[MemoryRecord]:
        """Return memories valid on a day, or remembered at a moment; for both, those known as valid then."""
        if as_of is None:
            assert at is not None
            then = await self._kept.valid_at(at)
        else:
            known = await self._kept.as_of(as_of.astimezone())  # without a zone the time is local
            then = [each for each in known if at is None or each.memory.holding_on(at) == "now"]
        return both_sides(then, then)

    @reads("memories/count")
    async def count(self, include_retired: IncludeRetired = False) -> int:
        """Return the number of memories."""
        return await self._kept.count(include_retired=include_retired)

    @reads("memories/changes")
    async def latest_changes(self, limit: Limit = 100) -> Sequence[Version]:
        """Return the latest versions of all memories, the newest first."""
        return await self._kept.latest_changes(limit)

    @reads("memories/activity")
    async def activity(
        self, days: Annotated[int, Field(ge=1, le=3660, description="How far back.")] = 30
    ) -> Sequence[Day]:
        """Return how many memories changed on each day, the oldest first, without days that have none."""
        return await self._kept.by_day(days)

    @reads("memories/readings")
    async def readings(
        self, key: Annotated[str, Field(description="The whole key of one.")] = "", limit: Limit = 100
    ) -> Sequence[Reading]:
        """Return which programs were shown memories in the last 90 days, the newest first."""
        return await readings(self._ledger, self._owner, key, limit)

    @reads("memories/{key}")
    async def show(self, key: Key) -> MemoryRecord:
        """Return a memory as it is now, live or retired. Raises NotFound, BadInput."""
        return await self._linked(await self._kept.get(await self._whole(key)))

    @reads("memories/{key}/history")
    async def history(self, key: Key) -> Sequence[Version]:
        """Return every version of a memory with its reason, oldest first. Raises NotFound."""
        return await self._kept.history(await self._whole(key))

    @reads("memories/{key}/diff")
    async def diff(self, key: Key, older: VersionNumber, newer: VersionNumber) -> str:
        """Return what changed between two versions, as a unified diff. Raises NotFound."""
        return await self._kept.diff(await self._whole(key), older, newer)

    @reads("memories/flagged")
    async def flagged(self) -> Sequence[MemoryRecord]:
        """Return the live memories for a person to review, with both sides of each link, oldest first."""
        return await self._kept.flagged()

    @changes("memories/{key}/accept")
    async def accept(self, key: Key) -> MemoryRecord:
        """Remove the flag of a memory that is right as it is. Raises NotFound, Conflict."""
        return await self._kept.accept(await self._whole(key))

    @changes("memories/{key}/rollback")
    async def rollback(
        self,
        key: Key,
        to_version: VersionNumber,
        reason: Reason = "",
        expected_version: Expected = None,
    ) -> MemoryRecord:
        """Write a new version that equals an older one. Raises Conflict, NotFound."""
        change = self._change(reason, f"rolled back to version {to_version}")
        whole = await self._whole(key)
        rolled = await self._kept.rollback(
            whole, to_version, change=change, expected_version=expected_version
        )
        return await self._linked(rolled)

    @changes("memories/{key}/retire")
    async def retire(self, key: Key, reason: Reason = "") -> MemoryRecord:
        """Stop recalling a memory, keeping its history; `undo` brings it back. Raises NotFound, Conflict."""
        found = await self._kept.get(await self._whole(key))
        change = self._change(reason, "retired by hand")
        return await self._kept.retire(found.key, change=change, expected_version=found.version)

    @changes("memories/undo")
    async def undo(self) -> MemoryRecord | None:
        """Undo the latest change that has not been undone yet; None if there is none.

        Another call undoes the change before that one.
        """
        undone = await self._kept.undo(actor=self._caller)
        return undone and await self._linked(undone)

    @changes("memories/{key}/undo")
    async def undo_one(
        self,
        key: Key,
        expected_version: Expected = None,
    ) -> MemoryRecord | None:
        """Undo a memory's latest change that has not been undone; None if there is none.

        Raises NotFound, Conflict.
        """
        whole = await self._whole(key)
        undone = await self._kept.undo_one(whole, actor=self._caller, expected_version=expected_version)
        return undone and await self._linked(undone)

    @changes("memories/{key}/forget", erases=True)
    async def forget(
        self,
        key: Key,
        reason: Reason = "",
        whole: Annotated[bool, Field(description="Delete the conversations in which it was said.")] = False,
    ) -> Erased:
        """Erase a memory, the messages that it came from, and the turns that told or repeat it.

        Records made from it are erased, too, if they repeat it: a fact that was shared with a team, a
        discussion that repeats it, with its thread and its files in MNEME_HOME; and household runs. A record
        that does not repeat it stays, is stale, and is named. It cannot be undone. A call that failed can be
        repeated. Raises NotFound, Conflict if a reply does not end.
        """
        found = await self._whole(key)
        told = await self._kept.told([found])
        source = await self._kept.head(found)
        derived, rest = await told_again(self._ledger, [source.record], told.is_in)
        # The ledger last: a call that was killed finds everything again, and can be repeated.
        async with self._threads().erasing(told, [source, *derived], whole=whole) as cleaned:
            await self._ledger.forget_records(derived, reason=reason, actor=self._caller)
            mark = await self._kept.forget(found, reason=reason, actor=self._caller)
        cleaned.add(await told_to(self._ledger, [*derived, *rest], self._owner))
        names = {found, *told.messages, *(each.key for each in derived)}  # by which backups are searched
        return await erased_of(mark, cleaned, [source, *derived], rest, names)

    @changes("memories/forget-everything", erases=True)
    async def forget_everything(
        self,
        reason: Reason = "",
        threads: Annotated[bool, Field(description="Delete all of the user's threads, too.")] = False,
    ) -> Erased:
        """Erase all memories and waiting messages; also all threads with `threads`, else the turns with them.

        It cannot be undone. Raises Conflict if a reply does not end.
        """
        sources = await self._kept.heads(include_retired=True)
        keys = [each.key for each in sources]
        told = await self._kept.told(keys)
        derived, rest = await told_again(self._ledger, [each.record for each in sources], told.is_in)
        kept, made = self._threads(), [*sources, *derived]
        async with kept.erasing(told, made, everything=threads) as cleaned:
            await self._ledger.forget_records(derived, reason=reason, actor=self._caller)
            count = len(derived) + await self._kept.forget_all(reason=reason, actor=self._caller)
        if threads:  # the root from which their ids follow; before, it is needed to find them
            await self._ledger.forget_all(thread_root(self._owner), reason=reason, actor=self._caller)
        cleaned.add(await told_to(self._ledger, [*derived, *rest], self._owner))
        mark = Forgotten(at=datetime.now(UTC), reason=reason, actor=self._caller)
        erased = await erased_of(mark, cleaned, made, rest, {*keys, *told.messages})
        return erased.model_copy(update={"records": count})

    @reads("memories/export")
    async def export(self) -> Sequence[str]:
        """Return every version of every memory as a line of JSON."""
        return [line async for line in self._kept.export()]

    @changes("memories/import")
    async def import_(
        self, lines: Annotated[Sequence[str], Field(description="What `export` returned.")]
    ) -> ImportReport:
        """Import exported lines; records that exist already stay unchanged."""
        return await self._kept.import_(lines)

    def _threads(self) -> "Threads":
        from mneme.api.threads import Threads  # noqa: PLC0415  (slow to import)

        return Threads(self._ledger, self._owner, self._caller, state=self._state)

    async def _linked(self, record: MemoryRecord) -> MemoryRecord:
        (linked,) = await self._kept.linked([record])
        return linked

    async def _written(
        self, record: MemoryRecord, beside: Sequence[MemoryRecord], *, is_new: bool = True
    ) -> Written:
        """Return a memory and its possible duplicates and contradictions, all with their links."""
        whole, *others = await self._kept.linked([record, *beside])
        return Written(**dict(whole), is_new=is_new, beside=others)

    async def _whole(self, beginning: str) -> str:
        """Return the key that begins with this. Raises NotFound, BadInput."""
        if beginning.strip() and await self._ledger.get(self._kept.namespace, beginning):
            return beginning  # most are whole: nothing else need be read
        known = await self._kept.keys(check_name(beginning, "key")) if beginning.strip() else []
        return only(beginning, known, self._owner, "memory", "mneme memories list")


def _filled(text: str) -> str:
    if not text.strip():
        raise BadInput("The text is empty.", "Give some words.")
    return text
