"""Operations on the records of all workflows: recall, origin, contradictions, and sharing."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

from pydantic import BaseModel, ConfigDict, Field

from mneme.api.discussions import DiscussionId
from mneme.api.memories import Query, Written, compared
from mneme.api.operation import Key, Limit, Operations, Reason, changes, only, reads
from mneme.core.errors import BadInput, Forbidden
from mneme.models.asking.counting import tokens as token_count
from mneme.stores.access import RECALLABLE, Recallable, Right, VisibleRecords, may_read, own_team, roles
from mneme.stores.audit import asker_of, audit
from mneme.stores.discussions.discussions import AgreementChange, Discussions
from mneme.stores.ledger.reading import heads_of, links_of, versions_of
from mneme.stores.ledger.records import (
    LOCAL,
    Forgotten,
    Namespace,
    Source,
    Version,
    check_name,
    team_namespace,
    unescaped,
    user_namespace,
)
from mneme.stores.provenance import as_now, stale, steps
from mneme.stores.recall import RECORD_KINDS, Contradiction, Keep, Recalled, is_verified, kind_in, recall
from mneme.stores.shelf import readable
from mneme.stores.users.memories import UserMemories
from mneme.stores.users.memory import Memory, MemoryRecord
from mneme.stores.users.promotion import (
    OwnMemories,
    Policy,
    Sharing,
    TeamFacts,
    as_shared,
    marks_of,
    policies_of,
    shared,
)

if TYPE_CHECKING:
    from mneme.api.contradictions import Contradictions

Kinds = Annotated[
    Sequence[Recallable],
    Field(description="facts of the user and of teams, knowledge cards, agreements of discussions, …"),
]
RecordKey = Annotated[
    str,
    Field(
        description="The key, or its first letters; a card's with or without `card_`.", examples=["0197f3c2"]
    ),
]
Team = Annotated[str, Field(description="A team's name.", examples=["analysts"])]
Teams = Annotated[Sequence[str], Field(max_length=20, description="Whose findings may answer, too.")]
Budget = Annotated[int, Field(ge=1, le=100_000, description="How many tokens the answer may have.")]


class Step(BaseModel):
    """One record on the path from a message to the records made from it.

    `made` names the author and reason of that version; `stale` says why its sources no longer support it. A
    record that the caller may not see has no text and no names.
    """

    model_config = ConfigDict(frozen=True)

    distance: int
    kind: str
    key: str = ""
    owner: str = ""
    version: int = 0
    text: str = ""
    at: datetime | None = None
    made: str = ""
    said: str = ""
    """The words that somebody said."""
    said_in: Sequence[str] = ()
    """The messages and threads in which a person said it."""
    stale: str = ""


class SharedMemory(Operations):
    """All memories that a user may see: their own facts, and the findings of their teams.

    >>> import mneme
    >>> with mneme.open("ann") as memory:
    ...     added = memory.memories.add("Reporting runs on PostgreSQL.")
    ...     found = memory.shared.recall("Which database does reporting use?")
    >>> found[0].kind, found[0].text
    ('fact', 'Reporting runs on PostgreSQL.')
    """

    OWNER = "user"

    def _prepare(self) -> None:
        self._facts = OwnMemories(self._ledger, self._owner, self._who, compared)

    @reads("recall")
    async def recall(
        self,
        query: Query,
        kinds: Kinds = RECALLABLE,
        teams: Teams = (LOCAL,),
        tokens: Budget = 400,
        include_stale: Annotated[
            bool, Field(description="Also what rests on something out of date.")
        ] = False,
    ) -> Sequence[Recalled]:
        """Return the records of every kind that answer a question, best first, each with its origin."""
        own = [own_team(self._who, team, "read") for team in teams]
        asker = await asker_of(self._ledger, self._who, self._owner, own)
        found = await recall(
            self._ledger, query, asker, kinds=kinds, budget=tokens, cost=token_count, show_stale=include_stale
        )
        self._was_shown(each.key for each in found if each.is_in(self._facts.namespace))
        return found

    @reads("forgotten")
    async def forgotten(self, team: Team = LOCAL) -> Sequence[Forgotten]:
        """Return the erasures of the user's and a team's records: when, by whom and why, without content."""
        own = await self._read_team(team, "forgotten")
        mine = await self._ledger.forgotten(user_namespace(self._owner))
        return [*mine, *await self._ledger.forgotten(team_namespace(own))]

    @reads("trace/{key}")
    async def trace(
        self,
        key: RecordKey,
        forward: Annotated[bool, Field(description="What was made of it, not what it was made of.")] = False,
        team: Team = LOCAL,
    ) -> Sequence[Step]:
        """Return a record with its sources back to a message, or with everything made from it.

        Sources are shown as they were then.
        """
        own = await self._read_team(team, "trace")
        head = await self._found(key, own, roles().opened([own]))
        owner = unescaped(head.namespace[1])
        if head.namespace[0] == "teams" and owner != own:
            await audit(self._ledger, self._who, owner, "trace")
        found = await steps(self._ledger, head.record, forward=forward)
        # Reversed: of a record that is reached in several ways the nearest comes last, and stays.
        ids = {link.record if forward else link.source: distance for distance, link in reversed(found)}
        heads = await self._ledger.read(heads_of, [*ids])
        old = await stale(self._ledger, [head.record, *heads], self._sees)
        # A source is shown in the version that was used; what was made of a record, as it is now.
        used = [] if forward else [(link.source, link.number) for _, link in reversed(found)]
        versions = await self._ledger.read(versions_of, used)
        then = {record: version for (record, _), version in versions.items()}
        for record in then.keys() & heads.keys() - old.keys():
            if then[record].text != heads[record].text:
                old[record] = f"It says now: {heads[record].text}"
        nearest_first = sorted(ids.items(), key=lambda each: each[1])
        return [
            _step(0, head, old),
            *(
                self._shown(distance, then.get(record, heads[record]), old)
                if record in heads
                else Step(distance=distance, kind="forgotten")
                for record, distance in nearest_first
            ),
        ]

    @reads("stale")
    async def stale(self, team: Team = LOCAL) -> Sequence[Step]:
        """Return the stale records of the user and of a team, which their sources no longer support."""
        places = [user_namespace(self._owner), team_namespace(await self._read_team(team, "stale"))]
        heads = {each.record: each for place in places for each in await self._ledger.derived(place)}
        old = await stale(self._ledger, heads, self._sees)
        shown = [heads[record] for record in old if kind_in(heads[record].namespace)]
        return [_step(0, each, old) for each in shown if each.live]

    @changes("stale/{key}/settle")
    async def settle(
        self,
        key: RecordKey,
        keep: Annotated[bool, Field(description="It still holds as it is; else it is taken back.")],
        team: Team = LOCAL,
        reason: Reason = "",
    ) -> Step:
        """Decide whether a stale record still holds; one that does not is retired."""
        head = await self._found(key, own_team(self._who, team, "review"))
        if not keep:
            change = self._change(reason, "what it was made from no longer holds")
            done = await self._ledger.retire(
                head.namespace, head.key, change=change, expected_version=head.version
            )
            return _step(0, done, {})
        # It rests on its sources as they are now: until they change again it is not stale.
        change = await as_now(self._ledger, head, self._change(reason, "looked at again: it still holds"))
        kept = await self._ledger.update(
            head.namespace, head.key, head.value, text=None, change=change, expected_version=head.version
        )
        return _step(0, kept, await stale(self._ledger, [kept.record], self._sees))

    @changes("stale/{key}/renew")
    async def renew(self, key: RecordKey, team: Team = LOCAL, reason: Reason = "") -> Step:
        """Update a shared fact to the current text of its source, for a user who may see the source.

        Raises BadInput if it does not have exactly one source, Forbidden if the source is another user's.
        """
        head = await self._found(key, own_team(self._who, team, "promote"))
        links = await self._ledger.read(links_of, [head.record])
        sources = await self._ledger.read(heads_of, [link.source for link in links])
        live = [each for each in sources.values() if each.live and kind_in(each.namespace) == "fact"]
        if kind_in(head.namespace) != "fact" or len(live) != 1:
            hint = "Keep it or retire it: mneme settle."
            raise BadInput(f"{head.key} was not made from one fact that still stands.", hint)
        owner = unescaped(live[0].namespace[1])
        if not may_read(self._who, live[0].namespace):
            raise Forbidden(f"What {head.key} was made from is of {owner}.", f"Ask {owner} to renew it.")
        change = self._change(reason, f"as {owner} says now")
        change = change.model_copy(update={"source": Source(records=[live[0].reference])})
        memory = as_shared(Memory.model_validate(live[0].value), live[0].at, owner)
        facts = UserMemories(self._ledger, unescaped(head.namespace[1]), head.namespace)
        await facts.update(head.key, memory, change=change, expected_version=head.version)
        return _step(0, await facts.head(head.key), {})

    @changes("stale/reverify")
    async def reverify(
        self,
        team: Team = LOCAL,
        agents: Annotated[
            str,
            Field(
                description="Who carries out a rule that is words: `rules` cannot, `auto`, or a model.",
                examples=["ollama:llama3.1:8b"],
            ),
        ] = "auto",
        limit: Annotated[int, Field(ge=1, le=100, description="How many cards are tried at most.")] = 10,
    ) -> Sequence[Step]:
        """Apply the roles file to a team's stale records, and return them.

        Cards are tried on the latest tasks that they served, and then kept or deprecated, or they are
        retired; cards that cannot be tried and all other records stay stale and wait for a person. Another
        call continues with the rest. Raises Forbidden, ModelUnavailable.
        """
        from mneme.api.reverification import reverify  # noqa: PLC0415  (slow to import)

        own = own_team(self._who, team, "review")
        done = await reverify(self._ledger, own, agents, limit, self._caller)
        old = await stale(self._ledger, [record for record, head in done.items() if head.live], self._sees)
        return [_step(0, head, old) for head in done.values() if kind_in(head.namespace)]

    @reads("contradictions")
    async def contradictions(
        self,
        teams: Teams = (LOCAL,),
        comparer: Annotated[
            str,
            Field(description="Who compares: `rules`, `auto` or a model.", examples=["ollama:llama3.1:8b"]),
        ] = "rules",
        limit: Limit = 100,
    ) -> Sequence[Contradiction]:
        """Return possible contradictions, within one owner's memory and between owners that the user sees.

        Each stays until somebody settles it. A model's verdict on two texts is stored, and used again until
        one of them changes.
        """
        return await (await self._contradictions(teams)).found(comparer, limit)

    @changes("contradictions/{key}/settle")
    async def settle_contradiction(
        self,
        key: Key,
        keep: Annotated[Keep, Field(description="What holds; of cards `trial` tries both on tasks.")],
        teams: Teams = (LOCAL,),
        reason: Reason = "",
    ) -> Contradiction:
        """Settle a contradiction: the other side is taken back, or both hold. Raises Forbidden, NotFound."""
        all_of_them = await self._contradictions(teams)
        found = await all_of_them.candidates()
        whole = only(key, [*found], self._owner, "contradiction", "mneme contradictions list")
        change = self._change(reason, f"looked at what contradicts it: {keep}")
        await all_of_them.settle(found[whole], keep, change)
        return found[whole].model_copy(update={"why": change.reason})

    @changes("agreements/{discussion_id}/restore")
    async def restore_agreement(
        self,
        discussion_id: DiscussionId,
        agreement: Annotated[str, Field(description="Its text, as the list of withdrawn ones has it.")],
        team: Team = LOCAL,
        reason: Reason = "",
    ) -> AgreementChange:
        """Restore an agreement of a discussion that was taken back. Raises Forbidden, NotFound."""
        talks = Discussions(self._ledger, own_team(self._who, team, "review"))
        change = self._change(reason, "brought back: it holds all the same")
        return await talks.restore(discussion_id, agreement, change=change)

    async def _contradictions(self, teams: Sequence[str]) -> "Contradictions":
        from mneme.api.contradictions import Contradictions  # noqa: PLC0415  (slow to import)

        own = [own_team(self._who, team, "read") for team in teams]
        asker = await asker_of(self._ledger, self._who, self._owner, own)
        return Contradictions(self._ledger, asker, self._who)

    @changes("promote/{key}")
    async def promote(self, key: Key, team: Team, reason: Reason = "") -> Written:
        """Make one of the user's memories a fact of a team, or propose it where the role allows no more.

        The user keeps it, too: if it is corrected or taken back, the team's is stale. The team's facts that
        it may contradict are linked with it.
        """
        keys = await self._facts.keys(key)
        whole = only(key, keys, self._owner, "memory", "mneme memories list")
        change = self._change("", ": ".join(filter(None, [f"shared by {self._owner}", reason.strip()])))
        facts, made, known = await self._facts.share(whole, own_team(self._who, team), change)
        record, *others = await facts.linked([known, *made.beside])
        is_proposed = facts.place == "proposals"
        return Written(**dict(record), is_new=not made.known, is_proposed=is_proposed, beside=others)

    @reads("policies")
    async def policies(self) -> Sequence[Policy]:
        """Return which memories the user shares with which team automatically, or after a question."""
        kept = policies_of(self._ledger, self._owner)
        return readable(kept.kind.read, await kept.heads())

    @changes("policies/{team}")
    async def set_policy(
        self,
        team: Team,
        share: Annotated[Sharing, Field(description="Never, after a question about each, or always.")],
        about: Annotated[
            Sequence[Annotated[str, Field(min_length=1, max_length=200)]],
            Field(
                max_length=50,
                description="Subjects: a memory with all words of one, in any form, is about it.",
            ),
        ] = (),
        reason: Reason = "",
    ) -> Policy:
        """Set the sharing policy for the user's memories about a team's matters, from now on.

        `always`: each new or changed one is shared with the team when it is written, or proposed to it where
        the role allows no more. `ask`: it stays private until its owner promotes it; until then it is in the
        list of memories to review. So is one that reads like a secret or an instruction to agents, under
        either policy. Earlier memories are not shared. Raises BadInput, Forbidden.
        """
        check_name(team, "team")  # first: it becomes a part of a namespace
        kept = policies_of(self._ledger, self._owner)
        is_withdrawn = share == "never" and await kept.find(team)
        own = team if is_withdrawn else own_team(self._who, team)  # also where the right to write is gone
        if share != "never" and not about:
            raise BadInput("What is the team to know?", "Name subjects: --about reporting.")
        for each in about:
            if not marks_of(each):
                raise BadInput(f"{each!r} has no word that tells one memory from another.", "Name a subject.")
        policy = Policy(team=own, share=share, about=[*about])
        return await kept.put(own, policy, change=self._change(reason, "set by its owner"))

    @reads("proposals")
    async def proposals(self, team: Team) -> Sequence[MemoryRecord]:
        """Return the facts that members propose to a team, oldest first."""
        own = await self._read_team(team, "proposals", "review")
        return await TeamFacts(self._ledger, own, "proposals").all(100)

    @changes("proposals/{key}/review")
    async def review(
        self,
        key: Key,
        team: Team,
        accept: Annotated[bool, Field(description="Make it a fact of the team; else it is turned down.")],
        reason: Reason = "",
    ) -> MemoryRecord:
        """Decide on a proposal. Raises Forbidden without the right to review, NotFound."""
        own = own_team(self._who, team, "review")
        waiting = TeamFacts(self._ledger, own, "proposals")
        head = await waiting.head(only(key, await waiting.keys(key), own, "proposal", "mneme proposals"))
        change = self._change(reason, "accepted" if accept else "turned down")
        if not accept:
            return await waiting.retire(head.key, change=change, expected_version=head.version)
        decided = waiting.retirement(head.key, change, head.version)
        why = f"{head.change.reason}, {change.reason}"
        change = change.model_copy(update={"source": head.change.source, "reason": why})
        memory = Memory.model_validate(head.value)
        facts = TeamFacts(self._ledger, own)
        made = await shared(facts, memory, change, compared)
        written = await self._ledger.write([*made.writes, decided])  # both or neither
        record, *others = await facts.linked([made.known or MemoryRecord.of(written[0]), *made.beside])
        return Written(**dict(record), is_new=not made.known, beside=others)

    def _sees(self, namespace: Namespace) -> bool:
        return may_read(self._who, namespace)

    async def _read_team(self, team: str, what: str, right: Right = "read") -> str:
        """Return the name under which a team is kept, and note in its audit that it is read."""
        own = own_team(self._who, team, right)
        await audit(self._ledger, self._who, own, what)
        return own

    async def _found(self, key: str, team: str, opened: Sequence[VisibleRecords] = ()) -> Version:
        """Return a record of the user, the team or those that `opened` theirs, by its key's beginning.

        Raises NotFound, BadInput.
        """
        places = [self._facts.namespace, *await self._ledger.namespaces(team_namespace(team))]
        known = [(place, False) for place in places if kind_in(place)]
        for each in opened:
            places = await self._ledger.namespaces(team_namespace(each.team))
            known += [(place, each.only_verified) for place in places if kind_in(place) == each.kind]
        for place, only_verified in known:  # most keys are whole: then no list is read
            head = await self._ledger.get(place, key)
            if head and (is_verified(head) or not only_verified):
                return head
        heads = [
            head
            for place, only_verified in known
            for head in await self._ledger.records(place, limit=None, include_retired=True)
            if is_verified(head) or not only_verified
        ]
        whole = only(key, [each.key for each in heads], self._owner, "record", "mneme recall")
        return next(each for each in heads if each.key == whole)

    def _shown(self, distance: int, version: Version, old: Mapping[str, str]) -> Step:
        """Return a step, without what the user may not see."""
        if self._sees(version.namespace):
            return _step(distance, version, old)
        is_stale = "yes" if version.record in old else ""  # why it is would tell what it says
        return Step(distance=distance, kind="of somebody else", stale=is_stale)


def _step(distance: int, version: Version, old: Mapping[str, str]) -> Step:
    source, kind = version.change.source, kind_in(version.namespace)
    return Step(
        distance=distance,
        kind=kind or "record",
        key=version.key,
        owner=unescaped(version.namespace[1]),
        version=version.version,
        text=RECORD_KINDS[kind].texts(version)[0] if kind == "card" else version.text,
        at=version.at,
        made=f"{version.change.actor}: {version.change.reason}",
        said=str(version.value.get("quote") or ""),
        said_in=[*filter(None, [*source.messages, source.thread]), *source.tasks],
        stale=old.get(version.record, ""),
    )
