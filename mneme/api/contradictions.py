"""Possible contradictions between any records that a user may see: facts, cards, agreements of discussions.

Facts of one namespace are linked when they are written. Those of different namespaces are compared on
request: first by their vectors, then the close ones by rules or a model. A person's or a model's verdict on
two texts is stored under the content of both, so that they are compared again once either changes.
"""

import hashlib
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice

import numpy as np
from pydantic import BaseModel

from mneme.core.errors import BadInput, Conflict, Forbidden, NotWritable
from mneme.models.asking.asking import ask, resolve
from mneme.prompts.chat.memory_agent.comparing import Comparing, Fact, Relation, compare_memories
from mneme.stores.access import Asker, Recallable, Right, check_right, may
from mneme.stores.cards.card import Card
from mneme.stores.cards.disputes import Approach
from mneme.stores.cards.knowledge_cards import KnowledgeCards
from mneme.stores.discussions.discussions import Discussions
from mneme.stores.ledger.ledger import Ledger
from mneme.stores.ledger.reading import links_of, vectors_by_ids
from mneme.stores.ledger.records import (
    Change,
    Source,
    Version,
    Write,
    team_namespace,
    texts_in,
    unescaped,
    user_namespace,
)
from mneme.stores.provenance import VERDICTS
from mneme.stores.recall import ONE_TEXT, Contradiction, Keep, Recalled, visible_records
from mneme.stores.shelf import Shelf, kind_of
from mneme.stores.users.memories import UserMemories
from mneme.stores.users.memory import RULES, MemoryRecord, overlaps
from mneme.stores.users.traces import third_person
from mneme.stores.write_gate import SAME_FACT

COMPARED_KINDS: tuple[Recallable, ...] = ("fact", "card", "agreement")
"""Kinds of records that are compared across namespaces; each is compared with all of them."""
MAX_EMBEDDED = 200
"""Maximum number of a kind's latest texts without vectors in the ledger; each list embeds them anew."""
MIN_COSINE = 0.3
"""Minimum cosine at which texts of different namespaces are compared; most unrelated ones are below."""
MIN_COSINE_BY_RULES = 0.5
"""The minimum where rules compare: they report many pairs that a model can tell apart."""
MAX_COMPARED = 8
"""Maximum number of older texts that a text is compared with, the closest in other namespaces."""
OPPOSITIONS: Sequence[Relation] = ("change", "later", "correction", "unclear")
Side = tuple[Recalled, Version]
Near = tuple[Contradiction, float]
"""A possible contradiction of a text, and the similarity of the two."""


class Verdict(BaseModel):
    """A verdict on two texts: its key identifies the pair, its version has the judge and the reason."""

    opposed: bool = False  # a person's verdict, which names no model, is always that both hold


class Contradictions:
    """The contradictions that a user may see, and ways to settle them."""

    def __init__(self, ledger: Ledger, asker: Asker, caller: str | None) -> None:
        self._ledger, self._asker, self._caller = ledger, asker, caller
        self._versions: dict[str, Version] = {}
        self._resting = set[tuple[str, str]]()

    async def found(self, who: str, limit: int) -> Sequence[Contradiction]:
        """Return the newest unsettled contradictions; `who` compares pairs that have no verdict yet.

        A model's answers are stored at once. Raises BadAnswer.
        """
        responder, sides = await resolve(who), await self._sides()
        heads = [head for team in ("", *self._asker.teams) for head in await self._shelf(team).heads()]
        heads.sort(key=lambda head: not head.change.model)  # a person's come last, and replace a model's
        judges = {responder, ""} if responder != RULES else {head.change.model for head in heads}
        verdicts = {each.key: each for each in heads if each.change.model in judges}  # rules heed all judges
        if responder == RULES:
            links = await self._ledger.read(links_of, {version.record for _, version in sides})
            self._resting = {(link.record, link.source) for link in links}
        pairs, across = self._linked(sides), list[Contradiction]()
        async for near in self._close(sides):
            across += await self._opposed(near, verdicts, responder)
            if len(across) >= limit:
                break
        pairs += across
        pairs.sort(key=lambda each: self._versions[each.newer.reference].at, reverse=True)
        return pairs[:limit]

    async def candidates(self) -> Mapping[str, Contradiction]:
        """Return all possible pairs by their keys, whatever the comparison says of them."""
        sides = await self._sides()
        close = [pair async for near in self._close(sides) for pair, _ in near]
        return {each.key: each for each in (*self._linked(sides), *close)}

    async def settle(self, pair: Contradiction, keep: Keep, change: Change) -> None:
        """Settle a contradiction: take back one side, note that both hold, or dispute a card with the other.

        Raises Forbidden for another owner's record, BadInput, and Conflict if a side changed meanwhile.
        """
        if keep == "trial":
            await self._dispute(pair, change)
        elif keep == "both":
            await self._note(pair, change)
        else:
            await self._take_back(pair.older if keep == "newer" else pair.newer, change)

    async def _sides(self) -> Sequence[Side]:
        sides = list[Side]()
        for kind in COMPARED_KINDS:
            found = await visible_records(self._ledger, self._asker, kind)
            found.sort(key=lambda each: each[1].at, reverse=True)
            sides += found if kind in ONE_TEXT else found[:MAX_EMBEDDED]
        self._versions = {part.reference: version for part, version in sides}
        return sides

    async def _close(self, sides: Sequence[Side]) -> AsyncIterator[Sequence[Near]]:
        """Yield each text, the newest first, with the closest older texts of other namespaces."""
        # A fact that a team has in the same words is compared only as the team's.
        told = {part.text for part, version in sides if version.namespace[0] == "teams"}
        sides = [
            (part, version)
            for part, version in sides
            if version.namespace[0] == "teams" or third_person(part.text, part.owner) not in told
        ]
        numbers = {place: number for number, place in enumerate({version.namespace for _, version in sides})}
        if len(numbers) < 2:  # nothing to compare with: no vector is read
            return
        whole = [version.record for part, version in sides if part.kind in ONE_TEXT]
        vectors = await self._ledger.read(vectors_by_ids, whole)
        # A record has one vector; of a discussion each agreement needs its own.
        parts = await self._ledger.embedded(part.text for part, _ in sides if part.kind not in ONE_TEXT)
        known = [
            vectors.get(version.record) if part.kind in ONE_TEXT else parts.get(part.text)
            for part, version in sides
        ]
        found = [(side, vector) for side, vector in zip(sides, known, strict=True) if vector is not None]
        found.sort(key=lambda each: each[0][1].at)  # each row then meets the rows above it alone
        matrix = np.array([vector for _, vector in found], dtype=np.float32)
        own = np.array([self._is_own(version) for (_, version), _ in found])
        places = np.array([numbers[version.namespace] for (_, version), _ in found])
        for number in reversed(range(1, len(found))):
            newer, version = found[number][0]
            meets = (places[:number] != places[number]) & (own[:number] | own[number])
            alike = matrix[:number] @ matrix[number]  # vectors have length 1: products are cosines
            close = np.flatnonzero(meets & (alike >= MIN_COSINE))
            nearest = (int(at) for at in close[np.argsort(-alike[close])])
            differing = (at for at in nearest if found[at][0][0].text != newer.text)
            meeting = (at for at in differing if overlaps(_period(version), _period(found[at][0][1])))
            if near := [
                (_pair(newer, found[at][0][0]), float(alike[at])) for at in islice(meeting, MAX_COMPARED)
            ]:
                yield near

    async def _opposed(
        self, near: Sequence[Near], verdicts: Mapping[str, Version], responder: str
    ) -> Sequence[Contradiction]:
        """Return the contradictions of a text: by stored verdicts, else by the comparison."""
        known = (verdicts[pair.key] for pair, _ in near if pair.key in verdicts)
        why = {each.key: each.change.reason for each in known if each.value.get("opposed")}
        least = MIN_COSINE_BY_RULES if responder == RULES else MIN_COSINE
        if new := [  # by rules not with its own source: they have many doubts
            (pair, cosine)
            for pair, cosine in near
            if pair.key not in verdicts and cosine >= least and self._records(pair) not in self._resting
        ]:
            found = await _compared(new, responder)
            if responder != RULES:
                await self._keep([pair for pair, _ in new], found, responder)
            why |= found
        return [pair.model_copy(update={"why": why[pair.key]}) for pair, _ in near if pair.key in why]

    async def _keep(self, pairs: Sequence[Contradiction], why: Mapping[str, str], model: str) -> None:
        """Store a model's verdicts on pairs, if the ledger is writable and no person has decided first."""
        writes = list[Write]()
        for pair in pairs:
            shelf, verdict = self._shelf_of(pair, "write"), Verdict(opposed=pair.key in why)
            said = why.get(pair.key, "both may hold")
            change = _about(pair, Change(reason=said, actor="contradictions", model=model))
            head = await self._ledger.get(shelf.namespace, pair.key)
            if head is None or head.change.model:
                writes.append(shelf.write(pair.key, verdict, change, head.version if head else None))
        with suppress(Conflict, NotWritable):  # what is lost is asked again; the list itself only reads
            await self._ledger.write(writes)

    def _linked(self, sides: Sequence[Side]) -> list[Contradiction]:
        """Return the asker's own facts that were linked within a namespace when they were written."""
        own = {(each.namespace, each.key): part for part, each in sides if self._is_own(each)}
        return [
            _pair(part, older)
            for (namespace, _), part in own.items()
            for key in texts_in(self._versions[part.reference].value.get("may_contradict"))
            if (older := own.get((namespace, key)))
        ]

    def _is_own(self, version: Version) -> bool:
        return version.namespace[0] == "users" or unescaped(version.namespace[1]) in self._asker.teams

    def _records(self, pair: Contradiction) -> tuple[str, str]:
        return self._versions[pair.newer.reference].record, self._versions[pair.older.reference].record

    def _shelf(self, team: str) -> Shelf[Verdict, Verdict]:
        """Return the store of a team's verdicts, or of the user's."""
        place = team_namespace(team, VERDICTS) if team else user_namespace(self._asker.user, VERDICTS)
        return Shelf(self._ledger, place, kind_of(Verdict))

    def _shelf_of(self, pair: Contradiction, right: Right) -> Shelf[Verdict, Verdict]:
        """Return a verdict's store: the team's for two teams' records, with the right; else the user's."""
        sides = [self._versions[each.reference] for each in (pair.newer, pair.older)]
        team = self._own_side(pair).owner
        of_teams = all(each.namespace[0] == "teams" for each in sides)
        return self._shelf(team if of_teams and may(self._caller, team, right) else "")

    async def _note(self, pair: Contradiction, change: Change) -> None:
        """Store that both hold, for the whole team if both are teams' records; linked facts are unlinked."""
        newer, older = (self._versions[each.reference] for each in (pair.newer, pair.older))
        if newer.namespace[0] == older.namespace[0] == "teams":
            check_right(self._caller, self._own_side(pair).owner, "review")
        if newer.namespace != older.namespace:
            await self._shelf_of(pair, "review").put(pair.key, Verdict(), change=_about(pair, change))
            return
        facts = UserMemories(self._ledger, pair.newer.owner, newer.namespace)
        await facts.unlink(MemoryRecord.of(newer), older.key, change=change)

    async def _take_back(self, side: Recalled, change: Change) -> None:
        head = self._versions[side.reference]
        if not self._is_own(head):
            hint = "Keep both, or have a reviewer of that team decide."
            raise Forbidden(f"{side.key} is of the team {side.owner}.", hint)
        if head.namespace[0] == "teams":
            check_right(self._caller, side.owner, "review")
        if side.kind == "card":
            await KnowledgeCards(self._ledger, side.owner).deprecate(side.key, change=change)
        elif side.kind == "agreement":
            await Discussions(self._ledger, side.owner).withdraw(side.key, side.text, change=change)
        else:
            given = (head.namespace, head.key)
            await self._ledger.retire(*given, change=change, expected_version=head.version)

    async def _dispute(self, pair: Contradiction, change: Change) -> None:
        """Open a dispute of the other card against the team's own, as a finding."""
        if {pair.newer.kind, pair.older.kind} != {"card"}:
            raise BadInput("Only cards can be tried on tasks.", "Keep the newer, the older, or both.")
        own = self._own_side(pair)
        check_right(self._caller, own.owner, "write")
        other = pair.newer if own is pair.older else pair.older
        old, new = (Card.of(self._versions[each.reference]) for each in (own, other))
        solution = "".join(f"{each.condition} -> {each.pattern}" for each in new.rules[:1])
        finding = Approach(claim=new.claim, solution=solution)
        disputes = KnowledgeCards(self._ledger, own.owner).disputes
        await disputes.open(old.id, old=Approach(claim=old.claim), new=finding, change=change)

    def _own_side(self, pair: Contradiction) -> Recalled:
        """Return the side that belongs to the asker; the older one if both do."""
        both = (pair.older, pair.newer)
        return next(each for each in both if self._is_own(self._versions[each.reference]))


async def _compared(near: Sequence[Near], responder: str) -> Mapping[str, str]:
    """Return which older texts a newer one contradicts, and why; rules also report near-duplicates."""

    def says(part: Recalled) -> str:
        is_headed = part.kind == "agreement" and responder == RULES  # they take a heading for the subject
        return part.text.partition(": ")[2] if is_headed else part.text

    memories = [says(pair.older) for pair, _ in near]
    given = Comparing(facts=[Fact(content=says(near[0][0].newer))], memories=memories)
    answered = await ask(compare_memories, given, responder, lane="background")
    judged = {each.memory: each for each in answered.value.judgements}
    found = {near[at][0].key: each.reason for at, each in judged.items() if each.relation in OPPOSITIONS}
    if responder != RULES:
        return found
    unsure = (pair for at, (pair, cosine) in enumerate(near) if at not in judged and cosine >= SAME_FACT)
    return found | {pair.key: "They say nearly the same, and not the same." for pair in unsure}


def _about(pair: Contradiction, change: Change) -> Change:
    source = Source(records=[pair.newer.reference, pair.older.reference])
    return change.model_copy(update={"source": source})


def _period(version: Version) -> tuple[str, str]:
    return str(version.value.get("since") or ""), str(version.value.get("until") or "")


def _pair(newer: Recalled, older: Recalled, why: str = "It was linked when it was written.") -> Contradiction:
    """Return two records as a pair; its key is a hash of both owners, keys and texts, in any order."""
    said = "\x1f".join(sorted(f"{each.owner}/{each.key}: {each.text}" for each in (newer, older)))
    key = hashlib.sha256(said.encode()).hexdigest()[:16]
    return Contradiction(key=key, newer=newer, older=older, why=why)
