"""One user's memories: typed records in a namespace that only this user's id opens."""

from asyncio import gather
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from datetime import date, datetime, timedelta
from functools import partial
from heapq import nlargest

from pydantic import BaseModel
from tenacity import retry, retry_if_exception_type, stop_after_attempt

from mneme.core.errors import Conflict
from mneme.stores.answers import KeptAnswers
from mneme.stores.ledger.ledger import Ledger
from mneme.stores.ledger.query import DENSE, Mode
from mneme.stores.ledger.reading import Order
from mneme.stores.ledger.records import (
    Change,
    Forgotten,
    Namespace,
    Version,
    microseconds,
    missing,
    texts_in,
    user_namespace,
)
from mneme.stores.ledger.transfer import ImportReport
from mneme.stores.shelf import RecordKind, Shelf, check_readable, read_one, readable
from mneme.stores.users.memory import RULES, Kind, Memory, MemoryRecord, valid_at
from mneme.stores.users.traces import InboxTraces, Origins, origins_of, third_person

ATTENTION_FIELDS = ("flag", "unclear", "asks", "may_contradict")
"""The fields that `Memory.attention` is made of."""
EVENT_VERBS = {"insert": "added", "update": "changed", "restore": "changed", "retire": "retired"}
"""Names of versions' events in a day's counts."""
RANK_CONSTANT = 10
"""Constant of reciprocal rank fusion: the higher, the less the first ranks weigh."""


class Day(BaseModel):
    """The numbers of memories added, changed, retired and forgotten on one day in the server's time zone."""

    day: date
    added: int = 0
    changed: int = 0
    retired: int = 0
    forgotten: int = 0


def newest_of_linked_first(found: Sequence[MemoryRecord]) -> list[MemoryRecord]:
    """Return memories with each before the older ones that it may contradict; the order is otherwise kept."""
    ordered = list(found)
    for newer in sorted(found, key=lambda each: each.at):
        places = [n for n, each in enumerate(ordered) if each.key in newer.memory.may_contradict]
        at = ordered.index(newer)
        if places and places[0] < at:
            ordered.insert(places[0], ordered.pop(at))
    return ordered


def both_sides(found: Sequence[MemoryRecord], among: Iterable[MemoryRecord]) -> list[MemoryRecord]:
    """Show each link between two live memories of `among` on both of them; remove all other links."""
    live = {each.key: each for each in among if each.live}
    links = defaultdict[str, list[str]](list)
    stored = ((newer, older) for newer in live for older in live[newer].memory.may_contradict)
    for newer, older in stored:
        if older in live:
            links[newer].append(older)
            links[older].append(newer)
    shown = [[*dict.fromkeys(links[each.key])] if each.live else [] for each in found]
    return [
        each.model_copy(update={"memory": each.memory.model_copy(update={"may_contradict": keys})})
        for each, keys in zip(found, shown, strict=True)
    ]


class UserMemories(Shelf[Memory, MemoryRecord]):
    """One user's memories; it reaches no other user's.

    Lists and searches skip records that are not memories, with a warning.
    """

    def __init__(self, ledger: Ledger, user: str, place: Namespace = ()) -> None:
        kind = RecordKind[Memory, MemoryRecord](
            MemoryRecord.of,
            text=lambda memory: memory.content,
            missing=f"{user} has no memory {{key}}.",
            hint="See `mneme memories list`.",
        )
        super().__init__(ledger, place or user_namespace(user, "memories"), kind)
        self.user = user

    def read(self, versions: Iterable[Version]) -> list[MemoryRecord]:
        return readable(MemoryRecord.of, versions)

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

        If the embedder is absent: those that share words with the query, then the latest others, unless
        `min_similarity` is above zero.
        """
        wanted = {"kind": kind} if kind else {}
        hits = await self.search(query, limit=k, mode=mode, filter=wanted)
        scores = {hit.version.key: {"total": hit.score, **hit.parts} for hit in hits}
        found = list[MemoryRecord]()
        for each in readable(MemoryRecord.of, (hit.version for hit in hits)):
            known = {"similarity": scores[each.key].get(DENSE)}
            shown = {"scores": scores[each.key]} if mode == "blend" else {}
            found.append(each.model_copy(update={**known, **shown}))
        found = newest_of_linked_first(found)
        if self.ledger.goes_by_words:  # the latest others, which have no similarity, fill it up
            return found if (min_similarity or 0.0) > 0 else await self._filled(found, k, wanted)
        if min_similarity is None:
            return found
        return [each for each in found if (each.similarity or 0.0) >= min_similarity]

    async def _filled(
        self, found: Sequence[MemoryRecord], k: int, wanted: Mapping[str, str]
    ) -> list[MemoryRecord]:
        """Append the latest others, up to k: the wanted one often shares no word with the question."""
        known = {each.key for each in found}
        latest = await self.latest(k, filter=wanted)
        return [*found, *(each for each in reversed(latest) if each.key not in known)][:k]

    async def related(self, content: str, said: str, names: Sequence[str], k: int) -> list[MemoryRecord]:
        """Return the k live memories that a new fact may change, best first: by meaning and by words.

        `said` are the user's own words for it. Three rankings are fused: by the meaning of the content, by
        the meaning of `said`, and by the words of content, `said` and names.
        """
        search = partial(self.search, limit=2 * k)  # what no ranking has among its first k can still win
        everything = " ".join([content, said, *names])
        asked: list[tuple[str, Mode]] = [(content, "dense"), (said, "dense"), (everything, "bm25")]
        found = await gather(*(search(text, mode=mode) for text, mode in asked if text.strip()))
        worth, hits, cosine = defaultdict[str, float](float), dict[str, Version](), dict[str, float]()
        for hit, rank in ((hit, rank) for ranked in found for rank, hit in enumerate(ranked)):
            key = hit.version.key
            hits[key] = hit.version
            worth[key] += 1 / (RANK_CONSTANT + rank)
            if DENSE in hit.parts:
                cosine[key] = max(hit.parts[DENSE], cosine.get(key, -1.0))
        if not cosine:  # no embedder: the newest may be meant without a common word
            for each in await self.heads(k, newest_first=True):
                hits.setdefault(each.key, each)
                worth[each.key] += 0.0  # behind all that share a word
        best = readable(MemoryRecord.of, (hits[key] for key in nlargest(k, worth, key=worth.__getitem__)))
        return [each.model_copy(update={"similarity": cosine.get(each.key)}) for each in best]

    async def flagged(self) -> Sequence[MemoryRecord]:
        """Return the live memories that a person should review, both sides of a link, oldest first."""
        marked = await self.ledger.filled(self.namespace, ATTENTION_FIELDS)
        links = {key for head in marked for key in texts_in(head.value.get("may_contradict"))}
        others = await self.by_keys([*links - {head.key for head in marked}])
        found = self.read(sorted([*marked, *others], key=lambda head: (head.created, head.record)))
        return [each for each in both_sides(found, found) if each.live and each.memory.attention]

    async def read_by_rules(self) -> Sequence[MemoryRecord]:
        """Return the live memories that no model has read and that rules wrote last, oldest first."""
        found = await self.heads(filter={"read_by": RULES})
        return readable(MemoryRecord.of, (each for each in found if each.change.model == RULES))

    async def linked(self, found: Sequence[MemoryRecord]) -> list[MemoryRecord]:
        """Return memories with their links in both directions, without links to retired memories."""
        newer = await self._linked_with([each.key for each in found])
        known = {each.key for each in (*found, *newer)}
        others = {key for each in found for key in each.memory.may_contradict} - known
        older = self.read(await self.by_keys([*others]))
        return both_sides(found, [*found, *newer, *older])

    async def _linked_with(self, keys: Sequence[str]) -> Sequence[MemoryRecord]:
        """Return the live memories that store a link to one of these."""
        if not keys:
            return []
        linked = self.read(await self.ledger.filled(self.namespace, ["may_contradict"]))
        return [each for each in linked if {*keys} & {*each.memory.may_contradict}]

    async def accept(self, key: str) -> MemoryRecord:
        """Accept a memory as it is: remove its flags and links. Raises NotFound, Conflict."""
        found = await self.get(key)
        change = Change(reason="A person looked at it: it is right.", actor="user")
        settled = {"flag": "", "unclear": "", "may_contradict": [], "read_by": "", "asks": []}
        memory = found.memory.model_copy(update=settled)
        # Links to it first: after a kill between the writes it still asks to be looked at.
        for newer in await self._linked_with([key]):
            await self.unlink(newer, key, change=change)
        return await self.update(key, memory, change=change, expected_version=found.version)

    async def unlink(self, newer: MemoryRecord, older: str, *, change: Change) -> MemoryRecord:
        """Remove the link to an older memory from a newer one. Raises Conflict."""
        left = [each for each in newer.memory.may_contradict if each != older]
        unlinked = newer.memory.model_copy(update={"may_contradict": left})
        return await self.update(newer.key, unlinked, change=change, expected_version=newer.version)

    async def latest_changes(self, limit: int) -> Sequence[Version]:
        """Return the latest changes of all memories as versions, newest first."""
        last_changed = Order("updated", descending=True)
        # The latest changes are among those of the memories that were changed last.
        heads = await self.heads(limit, include_retired=True, order=last_changed)
        versions = [each for head in heads for each in await self.changes(head)]
        return sorted(versions, key=lambda each: each.at, reverse=True)[:limit]

    async def by_day(self, days: int) -> list[Day]:
        """Return the counts of the last `days` days, oldest first, without days on which nothing changed."""
        since = datetime.now().astimezone() - timedelta(days=days)
        changed = Order("updated", since=microseconds(since))
        counts = defaultdict[date, Counter[str]](Counter)
        for head in await self.heads(include_retired=True, order=changed):
            for version in await self.changes(head):
                # Earlier versions of a memory that was changed since then add 0.
                counts[version.at.astimezone().date()][EVENT_VERBS[version.event]] += version.at >= since
        for note in await self.ledger.forgotten(self.namespace):
            counts[note.at.astimezone().date()]["forgotten"] += note.at >= since
        return [Day(day=day, **of) for day, of in sorted(counts.items()) if any(of.values())]

    async def keys(self, beginning: str) -> Sequence[str]:
        """Return the keys with this beginning, also of retired memories and of other records."""
        return [head.key for head in await self.heads(include_retired=True) if head.key.startswith(beginning)]

    async def get(self, key: str) -> MemoryRecord:
        """Return a memory as it is now, live or retired. Raises NotFound, BadInput."""
        return read_one(MemoryRecord.of, await self.head(key))

    async def find(self, key: str) -> MemoryRecord | None:
        """Return a memory as it is now, live or retired; None where there is none. Raises BadInput."""
        version = await self.ledger.get(self.namespace, key)
        return read_one(MemoryRecord.of, version) if version else None

    async def history(self, key: str) -> Sequence[Version]:
        """Return every version of a memory, oldest first. Raises NotFound."""
        return await self.ledger.history(self.namespace, key)

    async def diff(self, key: str, older: int, newer: int) -> str:
        """Return what changed between two versions. Raises NotFound."""
        return await self.ledger.diff(self.namespace, key, older, newer)

    async def as_of(self, at: datetime) -> Sequence[MemoryRecord]:
        """Return the memories as of that time."""
        return self.read(await self.ledger.as_of(self.namespace, at))

    async def valid_at(self, day: date) -> Sequence[MemoryRecord]:
        """Return for each memory the version that held on a day, as far as is known now."""
        held = [
            valid_at(await self.changes(head), day)
            for head in await self.heads(include_retired=True)
            if head.live
        ]
        return self.read(filter(None, held))

    async def ranked(self, query: str, among: Sequence[MemoryRecord], k: int) -> Sequence[MemoryRecord]:
        """Return the k of these memories, of any version, that fit a query best."""
        scores = await self.ledger.scores([query], [each.memory.content for each in among])
        best = nlargest(k, zip(scores, range(len(among)), strict=True))
        return [among[number].model_copy(update={"similarity": score}) for score, number in best]

    async def undo(self, *, actor: str) -> MemoryRecord | None:
        """Undo the latest change that has not been undone yet; None if there is none.

        The next call undoes the change before that one.
        """
        heads = await self.heads(include_retired=True)
        known = {each.key for each in self.read(heads)}
        stacks = [standing(await self.changes(head)) for head in heads if head.key in known]
        latest = max(filter(None, stacks), key=lambda stack: stack[-1].at, default=None)
        return None if latest is None else await self._take_back(latest, actor)

    async def undo_one(
        self, key: str, *, actor: str, expected_version: int | None = None
    ) -> MemoryRecord | None:
        """Undo a memory's latest change that has not been undone; None if there is none.

        Raises NotFound, Conflict.
        """
        history = await self.history(key)
        latest = history[-1].version
        if expected_version not in (None, latest):
            raise Conflict(f"{key} is at version {latest}, not {expected_version}.", "Look at it again.")
        stack = standing(history)
        return await self._take_back(stack, actor) if stack else None

    # Again where the memory or the inbox changed meanwhile: what was added then must be erased as well.
    @retry(retry=retry_if_exception_type(Conflict), stop=stop_after_attempt(5), reraise=True)
    async def forget(self, key: str, *, reason: str, actor: str) -> Forgotten:
        """Erase a memory and every text in this user's inbox that it came from. Raises NotFound."""
        history = await self.ledger.history(self.namespace, key)
        traces = await InboxTraces(self.ledger, self.user).find(origins_of(history))
        # Answers that are kept for repeated requests may have the memory's text.
        answers = await KeptAnswers(self.ledger, user_namespace(self.user)).without_texts()
        mark, *_ = await self.ledger.forget_records(
            [history[-1], *traces.gone],
            reason=reason,
            actor=actor,
            rewritten=[*traces.rewritten, *answers],
        )
        if mark is None:
            raise missing(self.namespace, key)
        return mark

    async def told(self, keys: Sequence[str]) -> Origins:
        """Return these memories' sources, with the messages that the inbox still has. Raises NotFound."""
        known = Origins()
        for key in keys:
            known |= origins_of(await self.ledger.history(self.namespace, key))
        # And the texts in the third person, in which shared memories show them to others.
        known |= Origins(texts=frozenset(third_person(each, self.user) for each in known.texts))
        return await InboxTraces(self.ledger, self.user).about({*keys}, known)

    async def forget_all(self, *, reason: str, actor: str) -> int:
        """Erase everything stored for this user, also the inbox; return the number of records."""
        owner = user_namespace(self.user)
        answers = await KeptAnswers(self.ledger, owner).all()
        return await self.ledger.forget_all(owner, reason=reason, actor=actor, dropped=answers)

    def export(self) -> AsyncIterator[str]:
        """Yield every version of every memory as a JSON line."""
        return self.ledger.export(self.namespace)

    async def import_(self, lines: Iterable[str]) -> ImportReport:
        """Import this user's exported lines; lines of others, or without a memory, are refused."""
        return await self.ledger.import_(
            lines, within=self.namespace, check=partial(check_readable, Memory, "memory")
        )

    async def changes(self, head: Version) -> Sequence[Version]:
        """Return all versions of a record, oldest first."""
        return [head] if head.version == head.first else await self.history(head.key)  # mostly one read less

    async def _take_back(self, standing: Sequence[Version], actor: str) -> MemoryRecord:
        last, key = standing[-1], standing[-1].key
        head = (await self.ledger.history(self.namespace, key))[-1]
        change = Change(reason=f"take back version {last.version}", actor=actor, undoes=last.version)
        if len(standing) == 1:
            return await self.retire(key, change=change, expected_version=head.version)
        before = standing[-2].version  # not the version before: it may have been undone itself
        return await self.rollback(key, before, change=change, expected_version=head.version)


def standing(history: Sequence[Version]) -> list[Version]:
    """Return the changes that have not been undone, oldest first."""
    stack: list[Version] = []
    for version in history:
        if version.change.undoes is None:
            stack.append(version)
        else:
            stack.pop()  # an undo takes back the latest change that stands
    return stack
