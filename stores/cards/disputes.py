"""Disputes: a new finding against a verified card (§5), tested in at most two rounds, then resolved.

While a dispute is open its card is `disputed`: still retrieved, but marked as such. There are four
resolutions; an escalated dispute waits for a person, who chooses one of the other three.

Each dispute is a record of the ledger.
"""

import hashlib
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Literal, Self

from pydantic import Field, model_validator

from mneme.core.errors import BadInput
from mneme.stores.cards.card import (
    Card,
    CardRecords,
    Decision,
    Frozen,
    Lesson,
    Part,
    Rule,
    TaskOutcome,
    normalised,
)
from mneme.stores.cards.lifecycle import is_in_service, out_of_service, with_outcomes
from mneme.stores.ledger.ledger import Ledger
from mneme.stores.ledger.log import retry_on_conflict
from mneme.stores.ledger.records import Change, Version, team_namespace
from mneme.stores.shelf import RecordKind, Shelf

Recommendation = Literal["deprecate_old", "keep_old", "merge", "escalate"]
ConflictType = Literal["contradiction", "refinement"]
DisputeStatus = Literal["open", "escalated", "resolved"]


class Approach(Part):
    """One of the two approaches, as text and in executable form."""

    claim: str = Field(min_length=1)
    solution: str = ""
    task: str = Field("", description="The task that it comes from.")


class PairedTrial(Part):
    """Both approaches on one similar task; a time is None if it was not measured."""

    task: str = Field(min_length=1)
    features: str = Field("", description="What mattered in the task, where its world can tell.")
    old: str = Field("", description="What the world said of the old approach.")
    new: str = Field("", description="What the world said of the new approach.")
    old_correct: bool
    new_correct: bool
    old_seconds: float | None = Field(None, ge=0)
    new_seconds: float | None = Field(None, ge=0)
    edge_cases: list[str] = Field([])
    winner: Literal["old", "new", "neither"]


class Round(Part):
    """One round of tests and its conclusion."""

    trials: list[PairedTrial]
    recommendation: Recommendation
    rationale: str
    by: str = ""


class Resolution(Part):
    """The end of a dispute: the card is replaced, kept, or merged with the finding; or a person is asked."""

    decision: Recommendation
    reason: str = Field(min_length=1)
    by: str = Field(min_length=1)
    claim: str = Field("", description="Of a merged card.")
    rules: list[Rule] = Field([], description="Of a merged card, each under its condition.")
    rationale: str = Field("", description="Of a merged card; empty keeps the card's own.")
    lesson: Lesson | None = Field(None, description="What replaces the card, and becomes one of its own.")
    outcomes: list[TaskOutcome] = Field([], description="Tests that the approach which stays has won.")

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        if self.decision == "merge" and not (self.claim and self.rules):
            raise ValueError("a merge needs a claim and rules")
        return self


class Dispute(Frozen):
    """A conflict between a card and the finding of a task."""

    id: str
    status: DisputeStatus = "open"
    card_id: str
    conflict_type: ConflictType = "contradiction"
    old: Approach
    new: Approach
    opened_at: datetime
    opened_by: str
    rounds: list[Round] = Field([])
    resolution: Resolution | None = None
    resolved_at: datetime | None = None

    @property
    def unresolved(self) -> bool:
        return self.status != "resolved"

    @property
    def trials(self) -> list[PairedTrial]:
        """The trials of all rounds."""
        return [trial for tested in self.rounds for trial in tested.trials]

    @classmethod
    def of(cls, version: Version) -> "Dispute":
        """Read a dispute back from its record."""
        return cls.model_validate({**version.value, "id": version.key})


def dispute_id(card_id: str, finding: Approach) -> str:
    """Return a dispute's id, which is the same for the same finding against the same card."""
    said = f"{card_id}\x1f{normalised(finding.claim)}"
    return f"disp_{hashlib.sha256(said.encode()).hexdigest()[:16]}"


class DisputeRecords(Shelf[Dispute, Dispute]):
    """One team's disputes: opening, testing and ending them."""

    def __init__(self, ledger: Ledger, cards: CardRecords) -> None:
        kind = RecordKind[Dispute, Dispute](
            Dispute.of,
            outside=frozenset({"id"}),
            missing=f"The team {cards.team} has no dispute {{key}}.",
            hint="See `mneme disputes list`.",
        )
        super().__init__(ledger, team_namespace(cards.team, "disputes"), kind)
        self._cards = cards

    @retry_on_conflict
    async def open(
        self,
        card_id: str,
        *,
        old: Approach,
        new: Approach,
        change: Change,
        conflict_type: ConflictType = "contradiction",
    ) -> Dispute:
        """Open a dispute of a finding against a card; the card becomes `disputed`, but is not overwritten.

        The same finding against the same card opens only one dispute, even from several tasks; a resolved one
        is returned unchanged. Raises NotFound, and BadInput for a card out of service.
        """
        card_head, key = await self._cards.head(card_id), dispute_id(card_id, new)
        there = await self.find(key)
        if there is not None and not there.unresolved:
            return there
        dispute = Dispute(
            id=key,
            card_id=card_id,
            conflict_type=conflict_type,
            old=old,
            new=new,
            opened_at=datetime.now(UTC),
            opened_by=change.actor,
        )
        opening = change.model_copy(update={"reason": f"{key} opened: {change.reason}"})
        flagged = self._cards.decided(card_head, partial(_disputed, opening.reason), opening)
        made = [] if there else [self.write(key, dispute, change)]
        # One batch, all or nothing: a card that is marked without a dispute would stay so for ever.
        written = await self.ledger.write([*made, *([flagged] if flagged else [])])
        return there or Dispute.of(written[0])

    async def list(
        self, status: DisputeStatus | None = None, *, card_id: str | None = None
    ) -> Sequence[Dispute]:
        """Return disputes, oldest first."""
        wanted = {"status": status, "card_id": card_id}
        return await self.all(filter={name: value for name, value in wanted.items() if value is not None})

    @retry_on_conflict
    async def add_round(
        self, dispute_id: str, tested: Round, *, change: Change, idempotency_key: str | None = None
    ) -> Dispute:
        """Add a round of tests. Raises BadInput for a resolved dispute or one that has had all its rounds."""
        head = await self.head(dispute_id)
        dispute, most = Dispute.of(head), self._cards.settings.dispute_rounds
        if tested in dispute.rounds and head.idempotency_key == idempotency_key is not None:
            return dispute  # the same call again; a new round may well have the same results
        _check_open(dispute)
        if len(dispute.rounds) >= most:  # §5: two at most, to prevent infinite loops
            raise BadInput(f"{dispute_id} has had its {most} rounds.", "Escalate it to a person.")
        longer = dispute.model_copy(update={"rounds": [*dispute.rounds, tested]})
        return await self.update(
            dispute_id,
            longer,
            change=change,
            expected_version=head.version,
            idempotency_key=idempotency_key,
        )

    @retry_on_conflict
    async def end(self, dispute_id: str, resolution: Resolution) -> Dispute:
        """End a dispute, or hand it to a person (escalate), and change its card accordingly.

        Repeated with the same resolution, it changes nothing. Raises NotFound, and BadInput if the dispute
        ended differently.
        """
        head = await self.head(dispute_id)
        dispute = Dispute.of(head)
        if dispute.resolution == resolution:
            return dispute
        _check_open(dispute)
        change = Change(reason=f"{dispute_id}: {resolution.reason}", actor=resolution.by)
        card = None
        if resolution.decision != "escalate":
            others = [each for each in await self.list(card_id=dispute.card_id) if each.unresolved]
            last = all(each.id == dispute_id for each in others)  # else the card stays disputed
            decide = partial(_resolving, resolution, change.reason, last)
            card = self._cards.decided(await self._cards.head(dispute.card_id), decide, change)
        ended = self.write(dispute_id, _ended(dispute, resolution), change, head.version)
        return Dispute.of((await self.ledger.write([*([card] if card else []), ended]))[-1])


def _check_open(dispute: Dispute) -> None:
    if not dispute.unresolved:
        assert dispute.resolution is not None
        raise BadInput(f"{dispute.id} is resolved: {dispute.resolution.decision}.", "Open a new dispute.")


def _ended(dispute: Dispute, resolution: Resolution) -> Dispute:
    if resolution.decision == "escalate":
        return dispute.model_copy(update={"status": "escalated", "resolution": resolution})
    end = {"status": "resolved", "resolution": resolution, "resolved_at": datetime.now(UTC)}
    return dispute.model_copy(update=end)


def _disputed(reason: str, card: Card) -> Decision:
    if not is_in_service(card):
        raise BadInput(f"{card.id} is {card.status}: there is nothing to dispute.", "Restore it first.")
    if card.disputed:
        return None
    return card.model_copy(update={"status": "disputed", "returns_to": card.status}), reason


def _resolving(made: Resolution, reason: str, last: bool, card: Card) -> Decision:
    """Return the card after a resolution; it stays disputed while another dispute about it is open."""
    changed = with_outcomes(card, made.outcomes)
    if made.decision == "deprecate_old":
        by = made.lesson.card_id if made.lesson else ""
        changed = out_of_service(card, "deprecated", made.reason, by)
    elif made.decision == "merge":
        lesson = {"claim": made.claim, "rules": made.rules, "rationale": made.rationale or card.rationale}
        changed = changed.model_copy(update={**lesson, "renewed_at": datetime.now(UTC)})
    if last and changed.disputed:
        changed = changed.model_copy(update={"status": card.returns_to})
    return None if changed == card else (changed, reason)
