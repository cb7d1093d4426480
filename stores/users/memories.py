"""What is remembered about one user: typed memories in a namespace that only this user's id opens."""

from collections.abc import AsyncIterable, AsyncIterator, Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Literal

from pydantic import BaseModel, ConfigDict
from tenacity import retry, retry_if_exception_type, stop_after_attempt

from mneme.core.errors import Conflict, NotFound
from mneme.stores.ledger.answers import KeptAnswers
from mneme.stores.ledger.deciding import missing
from mneme.stores.ledger.engine import Mode
from mneme.stores.ledger.forgetting import Forgotten
from mneme.stores.ledger.ledger import Ledger
from mneme.stores.ledger.namespaces import user_namespace
from mneme.stores.ledger.records import Change, Namespace, Version
from mneme.stores.ledger.transfer import ImportReport
from mneme.stores.users.told import Told, told_by
from mneme.stores.users.traces import InboxTraces
from mneme.stores.users.unreadable import check, read_one, readable

Kind = Literal["semantic", "episodic"]


class Statement(BaseModel):
    """One thing that a memory says: as it was written down, the user's own words, and in which message."""

    model_config = ConfigDict(frozen=True)

    content: str
    quote: str
    message_id: str = ""
    time: str = ""


class Memory(BaseModel):
    """One self-contained memory and the words it rests on; `quote` and `message_id` are the latest."""

    model_config = ConfigDict(frozen=True)

    content: str
    kind: Kind = "semantic"
    entities: list[str] = []
    relations: list[str] = []
    quote: str = ""
    message_id: str = ""
    thread: str = ""
    time: str = ""
    statements: list[Statement] = []
    """What it was put together from, oldest first; none in memories of other makers."""
    flag: str = ""
    """Why a person should look at it; empty: no reason."""
    unclear: str = ""
    """What the user should be asked, because two people have one name; empty: nothing."""


class MemoryRecord(BaseModel):
    """A memory in the ledger: under which key, at which version, and how similar to what was asked.

    >>> import mneme
    >>> with mneme.open("ann") as memory:
    ...     added = memory.memories.add("Ann has a dog.", entities=["Ann"])
    ...     edited = memory.memories.edit(added.key, "Ann has two dogs.")
    >>> edited.version, edited.memory.content, edited.memory.entities
    (2, 'Ann has two dogs.', ['Ann'])
    """

    model_config = ConfigDict(frozen=True)

    key: str
    version: int
    live: bool
    at: datetime
    memory: Memory
    similarity: float | None = None

    @classmethod
    def of(cls, version: Version, similarity: float | None = None) -> "MemoryRecord":
        """Read a memory back from its version."""
        return cls(
            key=version.key,
            version=version.version,
            live=version.live,
            at=version.at,
            memory=Memory.model_validate(version.value),
            similarity=similarity,
        )


class UserMemories:
    """One user's memories; it reaches no other user's."""

    def __init__(self, ledger: Ledger, user: str) -> None:
        self._ledger, self.user = ledger, user
        self.namespace: Namespace = user_namespace(user, "memories")

    async def insert(
        self, memory: Memory, *, change: Change, idempotency_key: str | None = None
    ) -> MemoryRecord:
        """Remember something new."""
        version = await self._ledger.insert(
            self.namespace,
            memory.model_dump(),
            text=memory.content,
            change=change,
            idempotency_key=idempotency_key,
        )
        return MemoryRecord.of(version)

    async def update(
        self,
        key: str,
        memory: Memory,
        *,
        change: Change,
        expected_version: int,
        idempotency_key: str | None = None,
    ) -> MemoryRecord:
        """Replace a memory by its next version. Raises Conflict, NotFound."""
        version = await self._ledger.update(
            self.namespace,
            key,
            memory.model_dump(),
            text=memory.content,
            change=change,
            expected_version=expected_version,
            idempotency_key=idempotency_key,
        )
        return MemoryRecord.of(version)

    async def retire(
        self, key: str, *, change: Change, expected_version: int, idempotency_key: str | None = None
    ) -> MemoryRecord:
        """Stop recalling a memory, keeping its history. Raises Conflict, NotFound."""
        version = await self._ledger.retire(
            self.namespace,
            key,
            change=change,
            expected_version=expected_version,
            idempotency_key=idempotency_key,
        )
        return MemoryRecord.of(version)

    async def similar(
        self,
        query: str,
        k: int = 5,
        *,
        min_similarity: float | None = None,
        mode: Mode = "dense",
        kind: Kind | None = None,
    ) -> list[MemoryRecord]:
        """Return the k live memories that fit best; `min_similarity` is a cosine in every mode.

        Where the embedder is absent: those that share words with the query, then the latest others, unless a
        similarity above zero is asked of them, since they have none.
        """
        wanted = {"kind": kind} if kind else {}
        hits = await self._ledger.search(self.namespace, query, limit=k, mode=mode, filter=wanted)
        alike = {hit.version.key: hit.parts.get("dense") for hit in hits}
        found = readable(lambda each: MemoryRecord.of(each, alike[each.key]), (hit.version for hit in hits))
        if self._ledger.goes_by_words:
            return found if (min_similarity or 0.0) > 0 else await self._filled(found, k, wanted)
        if min_similarity is None:
            return found
        return [each for each in found if (each.similarity or 0.0) >= min_similarity]

    async def _filled(
        self, found: Sequence[MemoryRecord], k: int, wanted: Mapping[str, str]
    ) -> list[MemoryRecord]:
        """Add the latest other memories, up to k: what is meant often shares no word with the question."""
        count = await self._ledger.count(self.namespace, filter=wanted)
        latest = await self._ledger.records(self.namespace, filter=wanted, limit=k, offset=max(0, count - k))
        known = {each.key for each in found}
        others = readable(MemoryRecord.of, (each for each in reversed(latest) if each.key not in known))
        return [*found, *others][:k]

    async def flagged(self) -> Sequence[MemoryRecord]:
        """Return the live memories that a person should look at, oldest first."""
        everything = await self._ledger.records(
            self.namespace, limit=await self._ledger.count(self.namespace)
        )
        return [
            found
            for found in readable(MemoryRecord.of, everything)
            if found.memory.flag or found.memory.unclear
        ]

    async def accept(self, key: str) -> MemoryRecord:
        """Take the flag off a memory that is right as it stands. Raises NotFound, Conflict."""
        found = await self.show(key)
        change = Change(reason="A person looked at it: it is right.", actor="user")
        memory = found.memory.model_copy(update={"flag": "", "unclear": ""})
        return await self.update(key, memory, change=change, expected_version=found.version)

    async def list(
        self,
        *,
        limit: int = 100,
        offset: int = 0,
        include_retired: bool = False,
        newest_first: bool = False,
    ) -> Sequence[MemoryRecord]:
        """Return memories in the order in which they were first remembered, or in the opposite one.

        Here and in every search, a record that is no memory is passed over with a warning.
        """
        versions = await self._ledger.records(
            self.namespace,
            limit=limit,
            offset=offset,
            include_retired=include_retired,
            newest_first=newest_first,
        )
        return readable(MemoryRecord.of, versions)

    async def count(self, *, include_retired: bool = False) -> int:
        """Return the number of memories."""
        return await self._ledger.count(self.namespace, include_retired=include_retired)

    async def latest_changes(self, limit: int) -> Sequence[Version]:
        """Return the latest versions of all memories, the newest first."""
        heads = await self._ledger.latest(self.namespace, limit)
        versions = [each for head in heads for each in await self._changes(head)]
        return sorted(versions, key=lambda each: each.at, reverse=True)[:limit]

    async def created_after(self, moment: datetime | None) -> Sequence[MemoryRecord]:
        """Return the live memories that were first remembered after a time, oldest first; None: all."""
        count = await self._ledger.count(self.namespace)
        everything = await self._ledger.records(self.namespace, limit=count)
        return readable(
            MemoryRecord.of, (each for each in everything if moment is None or each.created > moment)
        )

    async def keys(self, beginning: str) -> Sequence[str]:
        """Return the keys that begin with this, also of retired memories and of records that are none."""
        return [head.key for head in await self._heads() if head.key.startswith(beginning)]

    async def show(self, key: str) -> MemoryRecord:
        """Return a memory as it is now, live or retired. Raises NotFound, BadInput."""
        found = await self.find(key)
        if found is None:
            raise NotFound(f"{self.user} has no memory {key}.", "See `mneme memories list`.")
        return found

    async def find(self, key: str) -> MemoryRecord | None:
        """Return a memory as it is now, live or retired; None where there is none. Raises BadInput."""
        version = await self._ledger.get(self.namespace, key)
        return read_one(MemoryRecord.of, version) if version else None

    async def history(self, key: str) -> Sequence[Version]:
        """Return every version of a memory, oldest first. Raises NotFound."""
        return await self._ledger.history(self.namespace, key)

    async def diff(self, key: str, older: int, newer: int) -> str:
        """Return what changed between two versions. Raises NotFound."""
        return await self._ledger.diff(self.namespace, key, older, newer)

    async def as_of(self, at: datetime) -> Sequence[MemoryRecord]:
        """Return what was remembered at that time."""
        return readable(MemoryRecord.of, await self._ledger.as_of(self.namespace, at))

    async def rollback(
        self, key: str, to_version: int, *, change: Change, expected_version: int | None = None
    ) -> MemoryRecord:
        """Write a new version that equals an older one. Raises Conflict, NotFound."""
        version = await self._ledger.rollback(
            self.namespace, key, to_version, change=change, expected_version=expected_version
        )
        return MemoryRecord.of(version)

    async def undo(self, *, actor: str) -> MemoryRecord | None:
        """Take back the latest change that has not been taken back yet; None where there is none.

        Called again, it takes back the change before that one.
        """
        heads = await self._heads()
        known = {each.key for each in readable(MemoryRecord.of, heads)}
        stacks = [standing(await self._changes(head)) for head in heads if head.key in known]
        latest = max(filter(None, stacks), key=lambda stack: stack[-1].at, default=None)
        return None if latest is None else await self._take_back(latest, actor)

    async def undo_one(
        self, key: str, *, actor: str, expected_version: int | None = None
    ) -> MemoryRecord | None:
        """Take back a memory's latest change that has not been taken back; None where there is none.

        Raises NotFound, Conflict.
        """
        history = await self.history(key)
        latest = history[-1].version
        if expected_version not in (None, latest):
            raise Conflict(f"{key} is at version {latest}, not {expected_version}.", "Look at it again.")
        stack = standing(history)
        return await self._take_back(stack, actor) if stack else None

    async def forget(self, key: str, *, reason: str, actor: str) -> Forgotten:
        """Erase a memory and every text in this user's inbox that it came from. Raises NotFound."""
        return await self._forget(key, reason, actor)

    @retry(retry=retry_if_exception_type(Conflict), stop=stop_after_attempt(5), reraise=True)
    async def _forget(self, key: str, reason: str, actor: str) -> Forgotten:
        history = await self._ledger.history(self.namespace, key)
        traces = await InboxTraces(self._ledger, self.user).find(told_by(history))
        answers = await KeptAnswers(self._ledger, user_namespace(self.user)).without_texts()
        mark, *_ = await self._ledger.forget_records(
            [history[-1], *traces.gone],
            reason=reason,
            actor=actor,
            rewritten=[*traces.rewritten, *answers],
        )
        if mark is None:
            raise missing(self.namespace, key)
        return mark

    async def told(self, keys: Sequence[str]) -> Told:
        """Return what these memories were told by, with the messages that the inbox has. Raises NotFound."""
        known = Told()
        for key in keys:
            known |= told_by(await self._ledger.history(self.namespace, key))
        return await InboxTraces(self._ledger, self.user).about({*keys}, known)

    async def forget_all(self, *, reason: str, actor: str) -> int:
        """Erase everything kept for this user, the inbox too; return the number of records."""
        owner = user_namespace(self.user)
        answers = await KeptAnswers(self._ledger, owner).all()
        return await self._ledger.forget_all(owner, reason=reason, actor=actor, dropped=answers)

    def export(self) -> AsyncIterator[str]:
        """Yield every version of every memory as a line of JSON."""
        return self._ledger.export(self.namespace)

    async def import_(self, lines: Iterable[str] | AsyncIterable[str]) -> ImportReport:
        """Bring this user's exported lines in; anybody else's, and those that hold no memory, are refused."""
        return await self._ledger.import_(
            lines, within=self.namespace, check=partial(check, Memory.model_validate)
        )

    async def _heads(self) -> Sequence[Version]:
        count = await self._ledger.count(self.namespace, include_retired=True)
        return await self._ledger.records(self.namespace, limit=count, include_retired=True)

    async def _changes(self, head: Version) -> Sequence[Version]:
        return [head] if head.version == head.first else await self.history(head.key)

    async def _take_back(self, standing: Sequence[Version], actor: str) -> MemoryRecord:
        last, key = standing[-1], standing[-1].key
        head = (await self._ledger.history(self.namespace, key))[-1]
        change = Change(reason=f"take back version {last.version}", actor=actor, undoes=last.version)
        if len(standing) == 1:
            return await self.retire(key, change=change, expected_version=head.version)
        before = standing[-2].version
        return await self.rollback(key, before, change=change, expected_version=head.version)


def standing(history: Sequence[Version]) -> list[Version]:
    """Return the changes that have not been taken back, oldest first."""
    stack: list[Version] = []
    for version in history:
        if version.change.undoes is None:
            stack.append(version)
        else:
            stack.pop()
    return stack
