"""Promotion of a user's memories to a team: shared by hand, or by a standing policy of the user.

A policy names a team and subjects. A memory with all words of a subject, in any form, is about it: with
`always` it is shared in the transaction that writes it, with `ask` it waits for its owner's decision; so does
one that the write gate doubts. A shared fact names its source, so that a correction, a rollback and `forget`
reach it. Teams propose facts to an organisation if its policy for them is `ask`.
"""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, Literal, NamedTuple
from uuid import uuid4

from pydantic import BaseModel

from mneme.core.errors import Conflict
from mneme.stores.access import check_right, may, roles
from mneme.stores.audit import SHARED_REASON, audited
from mneme.stores.ledger.ledger import Ledger
from mneme.stores.ledger.log import retry_on_conflict
from mneme.stores.ledger.reading import heads_of, links_of
from mneme.stores.ledger.records import (
    Change,
    Source,
    Write,
    record_id,
    team_namespace,
    unescaped,
    user_namespace,
)
from mneme.stores.ledger.words import HAN, INDEXED_WORD, KANA, STEM_LETTERS, folded, is_english, stems_of
from mneme.stores.provenance import pairs_in
from mneme.stores.shelf import Shelf, kind_of, readable
from mneme.stores.users.memories import UserMemories
from mneme.stores.users.memory import Memory, MemoryRecord
from mneme.stores.users.traces import third_person
from mneme.stores.write_gate import FACT_GATE

Compare = Callable[[Memory, UserMemories, str], Awaitable[tuple[MemoryRecord | None, Sequence[MemoryRecord]]]]
"""Returns the memory that is repeated, and those that may be contradicted, without the one of the key."""
Sharing = Literal["never", "ask", "always"]
WRITE_TRIES = 5
UNSPACED_TEXT = re.compile(f"(?:{HAN.pattern}|{KANA.pattern})+")
"""Pattern of Chinese or Japanese text, which has no spaces: it is compared as a whole."""
ENDING_LETTERS = 1, 3
"""Maximum letters of the endings of the shorter and the longer form of a word, if not English."""
PRIVATE: dict[str, Any] = {
    **dict.fromkeys(("quote", "message_id", "thread", "flag", "unclear"), ""),
    **{name: [] for name in ("statements", "past", "may_contradict", "asks")},
}
"""Fields that are removed from a shared memory; its time is shortened to the day."""


class Policy(BaseModel):
    """A user's policy for a team: memories about a subject are shared never, after a question, or always.

    >>> import mneme
    >>> with mneme.open("ann") as memory:
    ...     policy = memory.shared.set_policy("analysts", "always", ["reporting"])
    ...     added = memory.memories.add("Reporting runs on PostgreSQL.")
    ...     found = memory.shared.recall("What does reporting run on?", teams=["analysts"])
    >>> [each.owner for each in found]
    ['analysts']
    """

    team: str
    share: Sharing
    about: list[str] = []

    def covers(self, text: str) -> bool:
        """Return whether a text has all words of one of the subjects, in any form."""
        plain = _spaced(text)
        stems, words = stems_of(plain), defaultdict[str, set[str]](set)
        # Stems know English endings alone. Forms of one word begin alike: only such words are compared.
        for word in () if is_english(plain) else map(folded, INDEXED_WORD.findall(plain)):
            words[word[:STEM_LETTERS]].add(word)

        def says(word: str) -> bool:
            if UNSPACED_TEXT.fullmatch(word):
                return word in plain
            known = words.get(folded(word)[:STEM_LETTERS], ())
            return stems_of(word) <= stems or any(_is_form(folded(word), each) for each in known)

        subjects = [marks for each in self.about if (marks := marks_of(each))]
        return any(all(map(says, marks)) for marks in subjects)


def marks_of(subject: str) -> list[str]:
    """Return the distinctive words of a subject, without stop words."""
    return [word for word in INDEXED_WORD.findall(_spaced(subject)) if stems_of(word)]


def _spaced(text: str) -> str:
    """Return a text with spaces around its parts that have no spaces between words."""
    return UNSPACED_TEXT.sub(r" \g<0> ", unicodedata.normalize("NFKC", text))


def _is_form(one: str, other: str) -> bool:
    """Return whether two words differ only by an ending, in any language."""
    pairs = enumerate(zip(one, other, strict=False))
    alike = next((n for n, (its, others) in pairs if its != others), min(len(one), len(other)))
    shorter, longer = sorted(len(each) - alike for each in (one, other))
    return alike >= STEM_LETTERS and shorter <= ENDING_LETTERS[0] and longer <= ENDING_LETTERS[1]


class ShareWrites(NamedTuple):
    """The writes that share a memory (none if `known` says it); it may contradict memories `beside` it."""

    writes: Sequence[Write]
    known: MemoryRecord | None
    beside: Sequence[MemoryRecord]


class TeamFacts(UserMemories):
    """A team's facts, or its `proposals`; each names the memory that it was made from."""

    def __init__(self, ledger: Ledger, team: str, place: str = "facts") -> None:
        super().__init__(ledger, team, team_namespace(team, place))
        self.place = place


def policies_of(ledger: Ledger, user: str) -> Shelf[Policy, Policy]:
    """Return a user's policies, by the stored names of teams."""
    return Shelf(ledger, user_namespace(user, "policies"), kind_of(Policy))


@retry_on_conflict
async def end_sharing(ledger: Ledger) -> set[str]:
    """Set policies to never, and withdraw questions and proposals, for teams that the roles no longer name.

    A later team of that name may have other members. Facts already shared stay. Return the teams' names.
    """
    change = Change(reason="the team is no more", actor="roles")
    known, ended = {*roles().teams, *roles().organisations}, set[str]()
    if not known:  # the file of roles is not set, or is empty for a moment while it is written
        return ended
    for place in await ledger.namespaces(("users",)):
        if place[2:] == ("policies",):
            user = unescaped(place[1])
            for head in await ledger.records(place, limit=None, filter={"share": {"$ne": "never"}}):
                if "/" not in head.key and head.key not in known:  # a slash: the user's own team
                    await _end_questions(UserMemories(ledger, user), head.key, change)
                    policy = Policy(team=head.key, share="never")
                    await policies_of(ledger, user).put(head.key, policy, change=change)
                    ended.add(head.key)
    for place in await ledger.namespaces(("teams",)):
        if place[2:] == ("proposals",) and "/" not in (team := unescaped(place[1])) and team not in known:
            heads = await ledger.records(place, limit=None)
            waiting = TeamFacts(ledger, team, "proposals")
            await ledger.write([waiting.retirement(each.key, change, each.version) for each in heads])
            ended.add(team)
    return ended


async def _end_questions(memories: UserMemories, team: str, change: Change) -> None:
    """Withdraw the questions to a user whether a team may know memories."""
    for head in await memories.heads(filter={"asks": team}):
        for found in readable(MemoryRecord.of, [head]):
            memory = _asking(found.memory, team)
            await memories.update(head.key, memory, change=change, expected_version=head.version)


def as_shared(memory: Memory, at: datetime, owner: str) -> Memory:
    """Return a memory as others see it: with its owner's name, and only the day on which it was told."""
    content, *relations = (third_person(each, owner) for each in (memory.content, *memory.relations))
    day = (memory.time or at.astimezone().isoformat())[: len("2026-01-01")]
    told = {"content": content, "relations": relations, "time": day}
    return memory.model_copy(update=PRIVATE | told)


def linked(memory: Memory, beside: Sequence[MemoryRecord]) -> Memory:
    """Return a memory with links to those that it may contradict."""
    return memory.model_copy(update={"may_contradict": [each.key for each in beside]})


async def shared(facts: TeamFacts, memory: Memory, change: Change, compare: Compare) -> ShareWrites:
    """Return the writes that share a memory with a team; a fact made from its source before is updated.

    Organisations whose policy for the team is `ask` get it as a proposal.
    """
    sources = [record for record, _ in pairs_in(change.source.records)]
    links = await facts.ledger.read(links_of, sources, forward=True)
    heads = (await facts.ledger.read(heads_of, [each.record for each in links])).values()
    # A fact that was made of any version of this memory is updated, so that there is no second one.
    made = [MemoryRecord.of(each) for each in heads if each.live and each.namespace == facts.namespace]
    earlier = made[0] if made else None
    known, beside = await compare(memory, facts, earlier.key if earlier else "")
    if earlier:
        known = earlier if earlier.memory.timed == memory.timed else None
    if known:
        return ShareWrites([], known, beside)
    key, version = (earlier.key, earlier.version) if earlier else (uuid4().hex, None)
    writes = [facts.write(key, linked(memory, beside), change, version)]
    reference = f"{record_id(facts.namespace, key)}@{(version or 0) + 1}"  # the version that is being written
    onward = change.model_copy(update={"source": Source(records=[reference])})
    for organisation in roles().asked_by(facts.user) if facts.place == "facts" else ():
        proposals = TeamFacts(facts.ledger, organisation, "proposals")
        writes += (await shared(proposals, memory, onward, compare)).writes
    return ShareWrites(writes, None, beside)


class OwnMemories(UserMemories):
    """A user's memories, shared as the user's policies say; `who` has which key, None without keys."""

    def __init__(self, ledger: Ledger, user: str, who: str | None, compare: Compare) -> None:
        super().__init__(ledger, user)
        self._who, self._compare = who, compare

    async def share(self, key: str, team: str, change: Change) -> tuple[TeamFacts, ShareWrites, MemoryRecord]:
        """Make a memory a fact of a team, or a proposal where the role allows no more, and ask no longer.

        Return where it stands, how it was written, and what says it there now.
        """
        check_right(self._who, team, "write")
        head = await self.head(key)
        memory = Memory.model_validate(head.value)
        facts, made, noted = await self._shared(team, memory, head.at, head.reference, change)
        settled = (
            [self.write(key, _asking(memory, team), change, head.version)] if team in memory.asks else []
        )
        written = await self.ledger.write([*made.writes, *noted, *settled])
        return facts, made, made.known or MemoryRecord.of(written[0])

    async def keep_private(self, key: str, team: str, change: Change) -> MemoryRecord:
        """Withdraw the question whether a team may know a memory. Raises Conflict, NotFound."""
        found = await self.get(key)
        memory = _asking(found.memory, team)
        return await self.update(key, memory, change=change, expected_version=found.version)

    async def _shared(
        self, team: str, memory: Memory, at: datetime, reference: str, change: Change
    ) -> tuple[TeamFacts, ShareWrites, Sequence[Write]]:
        """Return where a version of a memory is shared, what writes it there, and the note in the audit."""
        facts = TeamFacts(self.ledger, team, "facts" if may(self._who, team, "promote") else "proposals")
        doubts = [f"It {each}." for each in _doubts(memory)]
        told = as_shared(memory, at, self.user).model_copy(update={"flag": " ".join(doubts)})
        change = change.model_copy(update={"source": Source(records=[reference]), "undoes": None})
        made = await shared(facts, told, change, self._compare)
        return (
            facts,
            made,
            audited(self.ledger, self._who, team, facts.place, SHARED_REASON) if made.writes else [],
        )

    async def _written(self, write: Write) -> MemoryRecord:
        """Write a memory, and with it what the user's policies share of what is new in it."""
        if write.event == "retire":
            return await super()._written(write)
        kept = policies_of(self.ledger, self.user)
        policies = [each for each in readable(kept.kind.read, await kept.heads()) if each.share != "never"]
        if not policies:
            return await super()._written(write)
        for left in reversed(range(WRITE_TRIES)):  # tries that are left after this one
            writes = await self._with_shares(write, policies)
            try:
                made = MemoryRecord.of((await self.ledger.write(writes))[0])
                return made.model_copy(update={"shared_with": _told(writes[1:])})
            except Conflict:  # or the team's copy was changed meanwhile
                if len(writes) == 1 or not left:  # nothing is shared: the memory itself was changed
                    raise
        raise AssertionError("It returns or raises before.")

    async def _with_shares(self, write: Write, policies: Sequence[Policy]) -> list[Write]:
        """Return the write of a memory with those that share it; one that says nothing new stays alone.

        So does one that is not the next version: it was done before, or is refused.
        """
        head = await self.ledger.get(self.namespace, write.key)
        memory, number = Memory.model_validate(write.value), head.version if head else None
        before = Memory.model_validate(head.value) if head else None
        # A new quote, flag or link tells a team nothing.
        says_so = before and (before.content, before.until) == (memory.content, memory.until)
        if number != write.expected_version or says_so:
            return [write]
        covering = [each for each in policies if each.covers(memory.content)]
        teams = {each.team: each for each in covering if may(self._who, each.team, "write")}
        doubt = _unshared(memory, [*teams])
        asks = [team for team, each in teams.items() if each.share == "ask" or doubt]
        flag = " ".join(filter(None, [memory.flag, doubt if doubt not in memory.flag else ""]))
        writes = [write.model_copy(update={"value": {**(write.value or {}), "asks": asks, "flag": flag}})]
        reference = f"{write.record}@{(number or 0) + 1}"
        change = write.change.model_copy(update={"reason": f"shared by {self.user}: always"})
        for team in teams.keys() - {*asks}:
            _, made, noted = await self._shared(team, memory, datetime.now(UTC), reference, change)
            writes += [*made.writes, *noted]
        return writes


def _doubts(memory: Memory) -> Iterator[str]:
    """Yield the write gate's doubts about all that a team would be told, each once."""
    texts = [memory.content, *memory.entities, *memory.relations]
    yield from dict.fromkeys(doubt for each in texts for doubt in FACT_GATE.doubts(each))


def _told(writes: Sequence[Write]) -> tuple[str, ...]:
    """Return the teams to which these writes tell or propose something."""
    told = {"facts": "", "proposals": " as a proposal"}
    places = [(unescaped(each.namespace[1]), told.get(each.namespace[-1])) for each in writes]
    return tuple(f"{team}{how}" for team, how in places if how is not None)


def _unshared(memory: Memory, teams: Sequence[str]) -> str:
    """Return why a memory is not shared with teams; empty if there are no teams or no doubts."""
    doubt = next(_doubts(memory), "")
    return f"It is not shared with {', '.join(teams)}: it {doubt}." if teams and doubt else ""


def _asking(memory: Memory, team: str) -> Memory:
    """Return a memory without the question whether a team may know it, and without the doubt about that."""
    asks = [each for each in memory.asks if each != team]
    flag = memory.flag.replace(_unshared(memory, memory.asks), _unshared(memory, asks)).strip()
    return memory.model_copy(update={"asks": asks, "flag": flag})
