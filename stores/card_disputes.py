"""A team's disputes in the ledger, each bound to the card that it is about."""

from collections.abc import Sequence
from datetime import UTC, datetime

from mneme.errors import BadInput, NotFound
from stores.card_records import CardRecords, Decide, team_namespace, until_ours
from stores.card_rules import CardSettings, with_outcomes
from stores.cards import Card, Outcome
from stores.disputes import (
    Approach,
    ConflictType,
    DeprecateOld,
    Dispute,
    DisputeStatus,
    Escalate,
    KeepOld,
    Merge,
    Resolution,
    Round,
    dispute_id,
    out_of_service,
    told,
)
from stores.ledger import Ledger
from stores.records import Change, Version, Write, make_write


class CardDisputes(CardRecords):
    """Opening, testing and resolving disputes. A card and its dispute change in one batch."""

    def __init__(self, ledger: Ledger, team: str, settings: CardSettings | None = None) -> None:
        super().__init__(ledger, team, settings)
        self.dispute_namespace = team_namespace(team, "disputes")

    async def open_dispute(
        self,
        card_id: str,
        *,
        old: Approach,
        new: Approach,
        change: Change,
        conflict_type: ConflictType = "contradiction",
    ) -> Dispute:
        """Set a finding against a card, which is disputed from then on, but not overwritten.

        The same finding against the same card opens one dispute, however many tasks make it; one that
        has been resolved is returned as it ended. Raises NotFound, and BadInput for a card out of use.
        """
        dispute = Dispute(
            id=dispute_id(card_id, new),
            card_id=card_id,
            conflict_type=conflict_type,
            old=old,
            new=new,
            opened_at=datetime.now(UTC),
            opened_by=change.actor,
        )
        return await self._open(dispute, change)

    async def dispute(self, dispute_id: str) -> Dispute:
        """Return a dispute as it is now. Raises NotFound."""
        return Dispute.of(await self._dispute_head(dispute_id))

    async def disputes(
        self, status: DisputeStatus | None = None, *, card_id: str | None = None
    ) -> Sequence[Dispute]:
        """Return disputes, oldest first."""
        wanted = {"status": status, "card_id": card_id}
        found = await self._ledger.records(
            self.dispute_namespace,
            filter={name: value for name, value in wanted.items() if value is not None},
            limit=await self._ledger.count(self.dispute_namespace),
        )
        return [Dispute.of(version) for version in found]

    async def dispute_history(self, dispute_id: str) -> Sequence[Version]:
        """Return every version of a dispute, oldest first. Raises NotFound."""
        await self._dispute_head(dispute_id)
        return await self._ledger.history(self.dispute_namespace, dispute_id)

    @until_ours
    async def add_round(
        self, dispute_id: str, tested: Round, *, change: Change, idempotency_key: str | None = None
    ) -> Dispute:
        """Add a round of tests. Raises BadInput where the dispute is over or has had its rounds."""
        head = await self._dispute_head(dispute_id)
        dispute = Dispute.of(head)
        if tested in dispute.rounds and head.idempotency_key == idempotency_key is not None:
            return dispute
        _check_open(dispute)
        if len(dispute.rounds) >= self.settings.dispute_rounds:
            raise BadInput(
                f"{dispute_id} has had its {self.settings.dispute_rounds} rounds.",
                "Escalate it to a person.",
            )
        longer = dispute.model_copy(update={"rounds": [*dispute.rounds, tested]})
        [version] = await self._ledger.write([self._dispute_write(longer, change, head, idempotency_key)])
        return Dispute.of(version)

    @until_ours
    async def _end(self, dispute_id: str, resolution: Resolution) -> Dispute:
        head = await self._dispute_head(dispute_id)
        dispute = Dispute.of(head)
        if dispute.resolution == resolution:
            return dispute
        _check_open(dispute)
        change = Change(reason=f"{dispute_id}: {resolution.reason}", actor=resolution.by)
        ended = _ended(dispute, resolution)
        card = await self._resolved_card(dispute, resolution, change)
        writes = [*([card] if card else []), self._dispute_write(ended, change, head)]
        return Dispute.of((await self._ledger.write(writes))[-1])

    @until_ours
    async def _open(self, dispute: Dispute, change: Change) -> Dispute:
        card_head = await self._head(dispute.card_id)
        there = await self._ledger.get(self.dispute_namespace, dispute.id)
        if there is not None and not Dispute.of(there).unresolved:
            return Dispute.of(there)
        opening = change.model_copy(update={"reason": f"{dispute.id} opened: {change.reason}"})
        flagged = self._decided(card_head, _disputed(dispute.id), opening)
        made = [] if there else [self._dispute_write(dispute, change, None)]
        written = await self._ledger.write([*made, *([flagged] if flagged else [])])
        return Dispute.of(there or written[0])

    async def _resolved_card(self, dispute: Dispute, resolution: Resolution, change: Change) -> Write | None:
        """Return what the resolution does to the card: nothing while a person has yet to decide."""
        if isinstance(resolution, Escalate):
            return None
        others = [each for each in await self.disputes(card_id=dispute.card_id) if each.unresolved]
        last = not [each for each in others if each.id != dispute.id]
        decide = _decision(resolution, change.reason, last=last)
        return self._decided(await self._head(dispute.card_id), decide, change)

    async def _dispute_head(self, dispute_id: str) -> Version:
        head = await self._ledger.get(self.dispute_namespace, dispute_id)
        if head is None:
            raise NotFound(f"The team {self.team} has no dispute {dispute_id}.", "See `mneme disputes list`.")
        return head

    def _dispute_write(
        self, dispute: Dispute, change: Change, head: Version | None, idempotency_key: str | None = None
    ) -> Write:
        return make_write(
            event="insert" if head is None else "update",
            namespace=self.dispute_namespace,
            key=dispute.id,
            value=told(dispute),
            text="",
            change=change,
            expected_version=None if head is None else head.version,
            idempotency_key=idempotency_key,
        )


def _check_open(dispute: Dispute) -> None:
    if not dispute.unresolved:
        assert dispute.resolution is not None
        raise BadInput(f"{dispute.id} is resolved: {dispute.resolution.decision}.", "Open a new dispute.")


def _ended(dispute: Dispute, resolution: Resolution) -> Dispute:
    if isinstance(resolution, Escalate):
        return dispute.model_copy(update={"status": "escalated", "resolution": resolution})
    end = {"status": "resolved", "resolution": resolution, "resolved_at": datetime.now(UTC)}
    return dispute.model_copy(update=end)


def _disputed(dispute: str) -> Decide:
    def decide(card: Card) -> tuple[Card, str] | None:
        if card.status in ("deprecated", "archived"):
            raise BadInput(f"{card.id} is {card.status}: there is nothing to dispute.", "Restore it first.")
        if card.status == "disputed":
            return None
        return card.model_copy(update={"status": "disputed", "returns_to": card.status}), f"{dispute} opened"

    return decide


def _decision(resolution: DeprecateOld | KeepOld | Merge, reason: str, *, last: bool) -> Decide:
    """Return what a resolution makes of the card; it stays disputed while another dispute is open."""

    def decide(card: Card) -> tuple[Card, str] | None:
        tested = card if isinstance(resolution, DeprecateOld) else _tested(card, resolution.outcomes)
        if isinstance(resolution, DeprecateOld):
            by = resolution.lesson.card_id if resolution.lesson else ""
            changed = out_of_service(tested, "deprecated", resolution.reason, by)
        elif isinstance(resolution, Merge):
            changed = merged(tested, resolution)
        else:
            changed = tested
        if last and changed.status == "disputed":
            changed = changed.model_copy(update={"status": card.returns_to})
        return None if changed == card else (changed, reason)

    return decide


def _tested(card: Card, outcomes: Sequence[Outcome]) -> Card:
    return with_outcomes(card, outcomes)


def merged(card: Card, merge: Merge) -> Card:
    """Return the card with a wider claim and conditional rules; what it was stays in its history."""
    update = {
        "claim": merge.claim,
        "rules": merge.rules,
        "rationale": merge.rationale or card.rationale,
        "renewed_at": datetime.now(UTC),
    }
    return card.model_copy(update=update)
