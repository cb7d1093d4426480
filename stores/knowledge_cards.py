"""What a team has learned: knowledge cards (§3 to §6), retrieved by weights, kept by rules, on the ledger.

Each team's cards are records of ("teams", team, "cards"), keyed by the claim and its scope, so that two
tasks which learn the same lesson meet in one card: the second reinforces the first. Every change is a
version with its reason. A verified card is never overwritten: it is reinforced, merged by a resolution,
deprecated, restored or rolled back, each by name.

A card stands on one of three shelves of its namespace: `active` cards are retrieved; `pitfall`s are the
deprecated ones, for the devil's advocate alone; those set `aside` (archived, flagged, of a confidence
under 0.5) are found by no search.

Deviations from the paper: the weights rank the `candidates` cards most similar to the task (128 by
default), not all cards, so that a card about something else does not win by its standing.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Literal

from pydantic import BaseModel, ConfigDict

from mneme.errors import BadInput, Conflict, NotFound
from stores.card_check import flags_of
from stores.card_disputes import merged
from stores.card_rules import (
    Approval,
    against_promotion,
    against_superseding,
    ranking,
    why_failing,
    with_outcomes,
)
from stores.card_upkeep import CardUpkeep, is_in_service
from stores.card_yaml import Document, dump, load
from stores.cards import Card, CardVersion, Lesson, Outcome, Part, Provenance, Retrieved, normalised
from stores.disputes import DeprecateOld, Dispute, Merge, Resolution, out_of_service
from stores.records import Change, Source, Version, Write


class Learned(BaseModel):
    """What became of a lesson: a new card, support for one that was there, or nothing new."""

    model_config = ConfigDict(frozen=True)

    event: Literal["created", "reinforced", "unchanged"]
    card: Card


class Imported(BaseModel):
    """Ids of the cards that an import stored, and of those that were here just so."""

    model_config = ConfigDict(frozen=True)

    stored: list[str]
    unchanged: list[str]


class KnowledgeCards(CardUpkeep):
    """One team's knowledge. Every write names its reason and actor in a `Change`."""

    async def create(self, lesson: Lesson, outcome: Outcome, *, change: Change) -> Learned:
        """Make a provisional card of a lesson, or reinforce the card that it already is.

        One task teaches a lesson once, however often it is asked. A deprecated card stays so.
        """
        card = _card(lesson, outcome, change)
        try:
            [made] = await self._ledger.write([self._exactly(card, change, 0, f"learn:{outcome.task}")])
        except Conflict:
            return await self._learned_again(lesson, outcome, change)
        return Learned(event="created", card=Card.of(made))

    async def reinforce(self, card_id: str, outcome: Outcome, *, change: Change) -> Card:
        """Add a task's outcome to a card: counts, confidence, window; a task counts once.

        A card that fails too often (under 30 % of a full window) is deprecated in the same version.
        A success brings an archived card back. Raises NotFound.
        """
        return await self._change(card_id, lambda card: self._reinforced(card, outcome, change), change)

    async def promote(self, card_id: str, approval: Approval, *, change: Change) -> Card:
        """Make a provisional card verified (§5). Raises BadInput with every reason against it."""

        def decide(card: Card) -> tuple[Card, str] | None:
            if card.status == "verified":
                return None
            against = against_promotion(card, approval, self.settings)
            if against:
                raise BadInput(f"{card.id} cannot be promoted: {'; '.join(against)}.")
            update = {"status": "verified", "returns_to": "verified"}
            return card.model_copy(update=update), f"promoted by {approval.by}: {change.reason}"

        return await self._change(card_id, decide, change)

    async def deprecate(self, card_id: str, *, change: Change) -> Card:
        """Take a card out of retrieval for good reason; the devil's advocate still sees it."""
        return await self._change(card_id, lambda card: _deprecated(card, change.reason), change)

    async def supersede(self, card_id: str, by: str, *, change: Change) -> Card:
        """Deprecate a card for a strictly better one. Raises BadInput where the other is not better."""
        better = await self.get(by)

        def decide(card: Card) -> tuple[Card, str] | None:
            if card.superseded_by == by:
                return None
            against = against_superseding(card, better, self.settings)
            if against:
                raise BadInput(f"{card.id} is not superseded: {'; '.join(against)}.")
            return _deprecated(card, f"superseded by {by}: {change.reason}", by)

        return await self._change(card_id, decide, change)

    async def restore(self, card_id: str, *, change: Change) -> Card:
        """Bring a deprecated or archived card back to the standing it had, with a fresh window."""

        def decide(card: Card) -> tuple[Card, str] | None:
            if card.status not in ("deprecated", "archived"):
                return None
            evidence = card.evidence.model_copy(update={"recent": []})
            update = {
                "status": card.returns_to,
                "superseded_by": "",
                "deprecated_because": "",
                "evidence": evidence,
            }
            return card.model_copy(update=update), change.reason

        return await self._change(card_id, decide, change)

    async def merge(self, card_id: str, merge: Merge, *, change: Change) -> Card:
        """Widen a card into conditional rules, keeping its standing. Raises BadInput for one out of use."""

        def decide(card: Card) -> tuple[Card, str] | None:
            if not is_in_service(card):
                raise BadInput(f"{card.id} is {card.status}.", "Restore it first.")
            return merged(with_outcomes(card, merge.outcomes), merge), f"merged: {merge.reason}"

        return await self._change(card_id, decide, change)

    async def rollback(self, card_id: str, to_version: int, *, change: Change) -> Card:
        """Give a card again what it was at an older version, as a new version. Raises NotFound.

        Whether it is disputed does not go back with it: that is for its disputes to say.
        """
        versions = {each.card.version: each.card for each in await self.history(card_id)}
        if to_version not in versions:
            raise NotFound(f"{card_id} has no version {to_version}; it has {_spans(versions)}.")
        reason = f"rolled back to version {to_version}: {change.reason}"
        return await self._change(
            card_id, lambda card: (_as_it_was(versions[to_version], card), reason), change
        )

    async def clear_flag(self, card_id: str, *, change: Change) -> Card:
        """Let a flagged card be retrieved, on a person's word; a later change is checked anew."""

        def decide(card: Card) -> tuple[Card, str] | None:
            cleared = [*card.cleared, *card.flags]
            return (card.model_copy(update={"cleared": cleared}), change.reason) if card.flags else None

        return await self._change(card_id, decide, change)

    async def retrieve(self, text: str, k: int = 5) -> Sequence[Retrieved]:
        """Return the k cards that score best for a task, with the parts of each score (§4).

        Where there are clusters, only the cards of the nearest ones are looked at, and those in none.
        """
        vector = await self._ledger.vector_of(text)
        near = await self._ledger.search(
            self.cluster_namespace, text, limit=self.settings.probed, mode="dense", vector=vector
        )
        hits = await self._ledger.search(
            self.namespace,
            text,
            limit=k,
            mode="dense",
            ranking=ranking(self.settings),
            shelf="active",
            groups=[*(hit.version.key for hit in near), ""] if near else None,
            vector=vector,
        )
        return [Retrieved(card=Card.of(hit.version), score=hit.score, parts=hit.parts) for hit in hits]

    async def pitfalls(self, text: str, k: int = 5) -> Sequence[Retrieved]:
        """Return the deprecated cards most similar to a task or a draft, for the devil's advocate."""
        hits = await self._ledger.search(self.namespace, text, limit=k, mode="dense", shelf="pitfall")
        return [
            Retrieved(card=Card.of(hit.version), score=hit.score, parts={"similarity": hit.score})
            for hit in hits
        ]

    async def resolve(self, dispute_id: str, resolution: Resolution) -> Dispute:
        """End a dispute, or hand it to a person (escalate), and change its card accordingly.

        A lesson that replaces the card becomes a card first. Asked again with the same resolution,
        nothing changes. Raises NotFound, and BadInput where the dispute ended otherwise.
        """
        if isinstance(resolution, DeprecateOld) and resolution.lesson is not None:
            await self._replacement(dispute_id, resolution, resolution.lesson)
        return await self._end(dispute_id, resolution)

    async def export_yaml(self, card_ids: Sequence[str] | None = None, *, all_versions: bool = False) -> str:
        """Return cards as YAML, one document each, on request with every version. Raises NotFound."""
        cards = await self.list() if card_ids is None else [await self.get(each) for each in card_ids]
        return "".join([dump(card, await self.history(card.id) if all_versions else ()) for card in cards])

    async def import_yaml(self, text: str, *, change: Change) -> Imported:
        """Take in exported cards, identical in every respect, all of them or none.

        A card that is here already must be the same, or provisional and of a lower version: a verified
        card is never overwritten. Raises BadInput with the line and the field of what is wrong.
        """
        documents = load(text)
        writes = [await self._imported(document, change) for document in documents]
        await self._ledger.write([write for group in writes for write in group])
        kept = [document.id for document, group in zip(documents, writes, strict=True) if group]
        return Imported(stored=kept, unchanged=[each.id for each in documents if each.id not in kept])

    async def _learned_again(self, lesson: Lesson, outcome: Outcome, change: Change) -> Learned:
        before = await self.get(lesson.card_id)
        if before.status == "deprecated":
            return Learned(event="unchanged", card=before)
        after = await self._change(
            before.id, lambda card: self._reinforced(_with_details(card, lesson), outcome, change), change
        )
        return Learned(event="unchanged" if after.version == before.version else "reinforced", card=after)

    def _reinforced(self, card: Card, outcome: Outcome, change: Change) -> tuple[Card, str] | None:
        if outcome.task in card.evidence.task_ids:
            return None
        counted = with_outcomes(card, [outcome])
        said = f"{'success' if outcome.success else 'failure'} in {outcome.task}: {change.reason}"
        failing = why_failing(counted, self.settings)
        if failing and is_in_service(counted):
            return _deprecated(counted, f"{failing} ({said})")
        if counted.status == "archived" and outcome.success:
            counted = counted.model_copy(update={"status": counted.returns_to})
        return counted, said

    async def _imported(self, document: Document, change: Change) -> list[Write]:
        head = await self._ledger.get(self.namespace, document.id)
        if head is not None:
            return self._renewed(document, change, head)
        past = [former.as_version() for former in document.history]
        return self._past(past) if past else [self._exactly(document.card, change, 0)]

    def _renewed(self, document: Document, change: Change, head: Version) -> list[Write]:
        here = Card.of(head)
        if document.card == here:
            return []
        if here.status != "provisional" or document.version <= here.version:
            raise BadInput(
                f"{here.id} is here already, {here.status}, at version {here.version}, and differs.",
                "Only a provisional card can be replaced, by a higher version; merge or deprecate others.",
            )
        return [self._exactly(document.card, change, head.version)]

    def _past(self, past: Sequence[CardVersion]) -> list[Write]:
        return [self._exactly(each.card, _change_of(each), number) for number, each in enumerate(past)]

    async def _replacement(self, dispute_id: str, resolution: DeprecateOld, lesson: Lesson) -> None:
        dispute = await self.dispute(dispute_id)
        if lesson.card_id == dispute.card_id:
            raise BadInput(f"{dispute.card_id} cannot replace itself.", "Keep it, or merge.")
        first, *more = resolution.outcomes or [Outcome(task=dispute.new.task or dispute_id, success=True)]
        change = Change(reason=f"{dispute_id}: {resolution.reason}", actor=resolution.by)
        learned = await self.create(lesson, first, change=change)
        for outcome in more:
            await self.reinforce(learned.card.id, outcome, change=change)


def _card(lesson: Lesson, outcome: Outcome, change: Change) -> Card:
    provenance = Provenance(created_by=change.actor, created_at=datetime.now(UTC), model_version=change.model)
    card = Card(
        **{name: getattr(lesson, name) for name in Lesson.model_fields},
        id=lesson.card_id,
        provenance=provenance,
        confidence=outcome.worth,
    )
    return with_outcomes(card, [outcome])


def _change_of(former: CardVersion) -> Change:
    source = Source(tasks=former.tasks)
    return Change(reason=former.reason, actor=former.actor, model=former.model, source=source)


def _deprecated(card: Card, reason: str, by: str = "") -> tuple[Card, str] | None:
    if card.status == "deprecated":
        return None
    return out_of_service(card, "deprecated", reason, by), reason


def _as_it_was(then: Card, now: Card) -> Card:
    stood = then.returns_to if then.status == "disputed" else then.status
    return then.model_copy(update={"status": "disputed" if now.disputed else stood})


def _with_details(card: Card, lesson: Lesson) -> Card:
    """Add what a later lesson knows of failures and dead ends; claim, rationale and rules stay.

    Nothing is added of a lesson that reads like an instruction: it would take the card out of retrieval.
    """
    if flags_of(lesson):
        return card
    return card.model_copy(
        update={
            "deprecated_approaches": _joined(
                card.deprecated_approaches, lesson.deprecated_approaches, "approach"
            ),
            "failure_modes": _joined(card.failure_modes, lesson.failure_modes, "condition"),
            "tags": list(dict.fromkeys([*card.tags, *lesson.tags])),
        }
    )


def _joined(here: Sequence[Part], new: Sequence[Part], by: str) -> list[Part]:
    known = {normalised(getattr(part, by)) for part in here}
    return [*here, *(part for part in new if normalised(getattr(part, by)) not in known)]


def _spans(versions: dict[int, Card]) -> str:
    return f"{min(versions)} to {max(versions)}"
