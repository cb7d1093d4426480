"""What may not hold together of all that somebody may see: a user's facts, those of teams, two teams' cards.

Within one place facts are linked when they are written. Across places they are compared when somebody asks:
first the vectors, which the ledger has, then, by rules or a model, what is close. That two texts were settled
is kept under both of them, so that they are looked at anew once either says something else.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

import numpy as np
from pydantic import BaseModel

from mneme.api.write_gate import NEARLY_SAME
from mneme.core.errors import BadInput, Forbidden
from mneme.models.asking.asking import ask, resolve
from mneme.prompts.chat.memory_agent.comparing import Comparing, Fact, Relation, compare_memories
from mneme.stores.access import check_right
from mneme.stores.cards.card import Card
from mneme.stores.cards.disputes import Approach
from mneme.stores.cards.knowledge_cards import KnowledgeCards
from mneme.stores.ledger.ledger import Ledger
from mneme.stores.ledger.records import Change, Version, team_namespace, texts_in, unescaped, user_namespace
from mneme.stores.recall import Asker, Contradiction, Keep, Recallable, Recalled, visible
from mneme.stores.shelf import Shelf, kind_of
from mneme.stores.users.memories import RULES, MemoryRecord, UserMemories
from mneme.stores.users.valid_time import overlaps

KINDS: tuple[Recallable, ...] = ("fact", "card")
"""Kinds that are compared across places, each within itself."""
CLOSE = 0.3
"""Cosine from which two texts of different places are compared: most of what is unrelated is below it."""
CLOSE_BY_RULES = 0.5
"""The same where rules compare, which doubt much that a model tells apart."""
MOST = 8
"""Older texts of other places with which one is compared at most, the closest."""
OPPOSED: Sequence[Relation] = ("change", "later", "correction", "unclear")
Side = tuple[Recalled, Version]
Near = tuple[Recalled, float]


class BothHold(BaseModel):
    """That two texts hold beside one another; its key says which."""


class Contradictions:
    """The contradictions that one asker may see, and how they end."""

    def __init__(self, ledger: Ledger, asker: Asker, caller: str | None) -> None:
        self._ledger, self._asker, self._caller = ledger, asker, caller
        self._versions: dict[str, Version] = {}

    async def found(self, who: str, limit: int) -> Sequence[Contradiction]:
        """Return the newest of those that nobody settled, compared by `who`. Raises BadAnswer."""
        pairs, shelves = list[Contradiction](), [*map(self._shelf, ("", *self._asker.teams))]
        enough = limit + sum([await shelf.count() for shelf in shelves])
        least = CLOSE_BY_RULES if await resolve(who) == RULES else CLOSE
        for kind in KINDS:
            sides, across = await self._sides(kind), list[Contradiction]()
            for newer, older in await self._close(sides, least):
                across += await _compared(newer, older, who)
                if len(across) >= enough:
                    break
            pairs += [*_linked(sides), *across]
        keys = [each.key for each in pairs]
        settled = {each.key for shelf in shelves for each in await shelf.by_keys(keys)}
        pairs.sort(key=lambda each: self._versions[each.newer.reference].at, reverse=True)
        return [each for each in pairs if each.key not in settled][:limit]

    async def candidates(self) -> Mapping[str, Contradiction]:
        """Return by their keys all pairs that may be found, whatever who compares says of them."""
        pairs = list[Contradiction]()
        for kind in KINDS:
            sides = await self._sides(kind)
            close = await self._close(sides, CLOSE)
            pairs += [
                *_linked(sides),
                *(_pair(newer, each, "") for newer, older in close for each, _ in older),
            ]
        return {each.key: each for each in pairs}

    async def settle(self, pair: Contradiction, keep: Keep, change: Change) -> None:
        """Take back one side, or note that both hold, or dispute a card with the other.

        Raises Forbidden for what is another's, BadInput, and Conflict where a side changed meanwhile.
        """
        if keep == "trial":
            await self._dispute(pair, change)
        elif keep == "both":
            await self._note(pair, change)
        else:
            await self._take_back(pair.older if keep == "newer" else pair.newer, change)

    async def _sides(self, kind: Recallable) -> Sequence[Side]:
        sides = await visible(self._ledger, self._asker, kind)
        self._versions |= {part.reference: version for part, version in sides}
        return sides

    async def _close(self, sides: Sequence[Side], least: float) -> Iterator[tuple[Recalled, Sequence[Near]]]:
        """Return texts, the newest first, each with the closest older ones of other places, and how close."""
        vectors = await self._ledger.vectors_by_ids([version.record for _, version in sides])
        ordered = sorted((each for each in sides if each[1].record in vectors), key=lambda each: each[1].at)
        matrix = np.array([vectors[version.record] for _, version in ordered], dtype=np.float32)

        def each_with_older() -> Iterator[tuple[Recalled, Sequence[Near]]]:
            for number in reversed(range(1, len(ordered))):
                newer, version = ordered[number]
                alike = matrix[:number] @ matrix[number]
                close = np.flatnonzero(alike >= least)
                nearest = (int(at) for at in close[np.argsort(-alike[close])])
                meeting = (at for at in nearest if self._may_meet(version, ordered[at][1]))
                if older := [(ordered[at][0], float(alike[at])) for at in islice(meeting, MOST)]:
                    yield newer, older

        return each_with_older()

    def _may_meet(self, one: Version, other: Version) -> bool:
        """Return whether two records of different places, one of them own, hold on a day together."""
        is_own = self._is_own(one) or self._is_own(other)
        return is_own and one.namespace != other.namespace and overlaps(_period(one), _period(other))

    def _is_own(self, version: Version) -> bool:
        return version.namespace[0] == "users" or unescaped(version.namespace[1]) in self._asker.teams

    def _shelf(self, team: str) -> Shelf[BothHold, BothHold]:
        """Return where it is noted what holds beside one another: of a team, or of the user."""
        place = team_namespace(team, "settled") if team else user_namespace(self._asker.user, "settled")
        return Shelf(self._ledger, place, kind_of(BothHold))

    async def _note(self, pair: Contradiction, change: Change) -> None:
        """Note it with the user where one is theirs alone, else with the team; linked facts are unlinked."""
        newer, older = (self._versions[each.reference] for each in (pair.newer, pair.older))
        team = ""
        if newer.namespace[0] == older.namespace[0] == "teams":
            team = self._own_side(pair).owner
            check_right(self._caller, team, "review")
        if newer.namespace != older.namespace:
            await self._shelf(team).add_new(pair.key, BothHold(), change=change)
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
        else:
            given = (head.namespace, head.key)
            await self._ledger.retire(*given, change=change, expected_version=head.version)

    async def _dispute(self, pair: Contradiction, change: Change) -> None:
        """Set the other card against the own team's, as a finding."""
        if pair.newer.kind != "card":
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
        """Return the side that is of the asker's, the older where both are."""
        both = (pair.older, pair.newer)
        return next(each for each in both if self._is_own(self._versions[each.reference]))


async def _compared(newer: Recalled, older: Sequence[Near], who: str) -> list[Contradiction]:
    """Ask which older texts a newer one contradicts; rules also doubt those that it nearly repeats."""
    memories = [each.text for each, _ in older]
    given = Comparing(facts=[Fact(content=newer.text)], memories=memories)
    answered = await ask(compare_memories, given, who, lane="background")
    judged = {each.memory: each for each in answered.value.judgements}
    found = [
        _pair(newer, older[at][0], each.reason) for at, each in judged.items() if each.relation in OPPOSED
    ]
    if answered.responder != RULES:
        return found
    unsure = (each for at, (each, cosine) in enumerate(older) if at not in judged and cosine >= NEARLY_SAME)
    return found + [_pair(newer, each, "They say nearly the same, and not the same.") for each in unsure]


def _linked(sides: Sequence[Side]) -> list[Contradiction]:
    by_place = {(version.namespace, version.key): part for part, version in sides}
    return [
        _pair(part, older, "It was linked when it was written.")
        for part, version in sides
        for key in texts_in(version.value.get("may_contradict"))
        if (older := by_place.get((version.namespace, key)))
    ]


def _period(version: Version) -> tuple[str, str]:
    return str(version.value.get("since") or ""), str(version.value.get("until") or "")


def _pair(newer: Recalled, older: Recalled, why: str) -> Contradiction:
    said = "\x1f".join(f"{each.owner}/{each.key}: {each.text}" for each in (newer, older))
    key = hashlib.sha256(said.encode()).hexdigest()[:16]
    return Contradiction(key=key, newer=newer, older=older, why=why)
