"""Operations on a team's cards and disputes, in this process or on a running server."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated

from pydantic import Field

from mneme.api.card_reviews import CardId, CardReviews, DisputeId, Expiry, Owner, ValidFor
from mneme.api.operation import LARGEST, USER, Limit, Offset, Reason, changes, reads
from mneme.core.errors import BadInput
from mneme.core.settings import settings
from mneme.nodes.learning.abstracting import abstraction_of
from mneme.nodes.learning.dispute_resolution import Verdict, decided
from mneme.stores.cards.card import Card, CardVersion, Lesson, Retrieved, Rule, Status
from mneme.stores.cards.card_files import Imported
from mneme.stores.cards.consolidation import ConsolidationCycle
from mneme.stores.cards.disputes import Approach, ConflictType, Dispute, DisputeStatus
from mneme.stores.cards.knowledge_cards import Learned
from mneme.stores.cards.lifecycle import Approval, Care, PromotionRubric
from mneme.stores.cards.metrics import Metrics, Period, Unit
from mneme.stores.cards.sharing import BUDGET, Shared
from mneme.stores.cards.task_log import TaskRecord
from mneme.stores.ledger.ledger import Ledger
from mneme.stores.ledger.namespaces import unescaped
from mneme.stores.tuned_models import Archive, Attempt

APPROVED = PromotionRubric(solved=True, faster_or_novel=True, no_new_failures=True, reusable=True)
Sentence = Annotated[str, Field(max_length=2000)]
Tag = Annotated[str, Field(min_length=1, max_length=100)]


class Cards(CardReviews):
    """Operations on a team's cards, disputes and metrics."""

    def __init__(self, ledger: Ledger, team: str, caller: str = USER) -> None:
        super().__init__(ledger, team, caller)
        self._cycle = ConsolidationCycle(ledger, self._cards)

    @reads("team")
    async def whose(self) -> str:
        """Return the team's name; on a server with users it contains the caller's name."""
        return self._owner

    @reads("teams")
    async def teams(self) -> Sequence[str]:
        """Return the teams of which anything is kept; with keys, those of the key's user."""
        keyed = settings().auth is not None
        mine = f"{self._owner.partition('/')[0]}/" if keyed else ""
        found = await self._ledger.namespaces(("teams",), include_retired=True)
        names = {unescaped(each[1]) for each in found}
        return sorted(name.removeprefix(mine) for name in names if name.startswith(mine))

    @reads("cards")
    async def list(
        self,
        status: Annotated[Status | None, Field(description="Only of this status.")] = None,
        limit: Limit = 100,
        offset: Offset = 0,
    ) -> Sequence[Card]:
        """Return cards in the order in which they were first learned."""
        return await self._cards.records.list(status, limit=limit, offset=offset)

    @reads("cards/count")
    async def count(self) -> int:
        """Return the number of cards, whatever their status."""
        return await self._cards.records.count()

    @reads("cards/search")
    async def search(
        self,
        task: Annotated[str, Field(min_length=1, description="The task that the cards are to help with.")],
        limit: Annotated[int, Field(ge=1, le=100, description="How many at most.")] = 5,
    ) -> Sequence[Retrieved]:
        """Return the cards that score best for a task, with the parts of each score. Raises BadInput."""
        if not task.strip():
            raise BadInput("The task is empty.", "Give some words to search for.")
        return await self._cards.retrieve(task, limit)

    @changes("cards/propose")
    async def propose(
        self,
        claim: Annotated[
            str, Field(min_length=1, max_length=1000, description="The lesson in one or two sentences.")
        ],
        rationale: Annotated[Sentence, Field(description="Why it holds, and what was seen.")] = "",
        scope: Annotated[str, Field(max_length=200, description="The domain that it holds in.")] = "",
        rules: Annotated[
            Sequence[Rule], Field(max_length=10, description="Under which condition to do what.")
        ] = (),
        tags: Annotated[Sequence[Tag], Field(max_length=20, description="Words to find it by.")] = (),
        owner: Owner = None,
        expires_at: Expiry = None,
        valid_for: ValidFor = None,
        reason: Reason = "",
    ) -> Learned:
        """Store a lesson that no task has tested as a provisional card, for a person to review.

        It has no evidence, and half the confidence of a lesson that a task proved. A card that is there
        already stays as it is. Raises BadInput.
        """
        if not claim.strip():
            raise BadInput("The claim is empty.", "Say what was learned.")
        lesson = Lesson(claim=claim, rationale=rationale, scope=scope, rules=[*rules], tags=[*tags])
        care = Care(owner=owner, expires_at=expires_at, valid_for=valid_for)
        return await self._cards.propose(
            lesson, change=self._change(reason, "proposed, not tested"), care=care
        )

    @reads("cards/{card_id}")
    async def get(self, card_id: CardId) -> Card:
        """Return a card as it is now. Raises NotFound, BadInput."""
        return await self._cards.records.get(await self._card(card_id))

    @reads("cards/{card_id}/history")
    async def history(self, card_id: CardId) -> Sequence[CardVersion]:
        """Return every version of a card with its reason, oldest first. Raises NotFound, BadInput."""
        return await self._cards.records.history(await self._card(card_id))

    @changes("cards/{card_id}/promote")
    async def promote(
        self,
        card_id: CardId,
        approval: Annotated[Approval | None, Field(description="None: the caller approves of it.")] = None,
        reason: Reason = "",
    ) -> Card:
        """Make a provisional card verified. Raises BadInput with every reason against it, NotFound."""
        change = self._change(reason, "promoted by a person")
        if approval is None:
            approval = Approval(by=self._caller, approved=True, rubric=APPROVED, reason=change.reason)
        return await self._cards.promote(await self._card(card_id), approval, change=change)

    @changes("cards/{card_id}/deprecate")
    async def deprecate(self, card_id: CardId, reason: Reason = "") -> Card:
        """Take a card out of retrieval; the devil's advocate still sees it. Raises NotFound, BadInput."""
        change = self._change(reason, "deprecated by a person")
        return await self._cards.deprecate(await self._card(card_id), change=change)

    @changes("cards/{card_id}/restore")
    async def restore(self, card_id: CardId, reason: Reason = "") -> Card:
        """Bring a deprecated or archived card back to the standing it had. Raises NotFound, BadInput."""
        change = self._change(reason, "restored by a person")
        return await self._cards.restore(await self._card(card_id), change=change)

    @changes("cards/{card_id}/rollback")
    async def rollback(
        self,
        card_id: CardId,
        to_version: Annotated[int, Field(ge=1, le=LARGEST, description="A version's number, from 1.")],
        reason: Reason = "",
    ) -> Card:
        """Give a card again what it was at an older version, as a new version. Raises NotFound, BadInput."""
        change = self._change(reason, "a person's decision")
        return await self._cards.rollback(await self._card(card_id), to_version, change=change)

    @changes("cards/{card_id}/clear-flag")
    async def clear_flag(self, card_id: CardId, reason: Reason = "") -> Card:
        """Let a flagged card be retrieved, on a person's word. Raises NotFound, BadInput."""
        change = self._change(reason, "looked at by a person")
        return await self._cards.clear_flag(await self._card(card_id), change=change)

    @reads("cards/export")
    async def export(
        self,
        card_ids: Annotated[Sequence[str] | None, Field(description="Which; none: all.")] = None,
        all_versions: Annotated[
            bool, Field(description="With every version, as JSON Lines: to be imported as it was.")
        ] = False,
    ) -> str:
        """Return cards as YAML. Raises NotFound."""
        return await self._cards.files.export(card_ids, all_versions=all_versions)

    @changes("cards/share")
    async def share(
        self,
        epsilon: Annotated[
            float | None,
            Field(
                gt=0, le=1000, description="ε of the counts; the smaller, the more private; none: no counts."
            ),
        ] = None,
        budget: Annotated[
            float, Field(gt=0, description="What ε may come to over all exports of the team, this one too.")
        ] = BUDGET,
        private: Annotated[
            Sequence[str], Field(max_length=1000, description="Further names that must not be told.")
        ] = (),
        reason: Reason = "",
    ) -> Shared:
        """Return cards for another organisation: abstract, unsigned, with noisy counts or none.

        Names and figures are taken out. What ε protects is a task's trace in the counts, not the text of a
        lesson. Raises BadInput where the budget does not allow it, MnemeError without the extra `private`.
        """
        abstraction = await abstraction_of(self._cards, private)
        change = self._change(reason, "shared with another organisation")
        return await self._cards.shared.export(abstraction, epsilon, budget, change=change)

    @changes("cards/import")
    async def import_(
        self,
        text: Annotated[str, Field(description="What `export` returned.")],
        reason: Reason = "",
        all_versions: Annotated[
            bool, Field(description="The text has every version; its successes are taken on your word.")
        ] = False,
    ) -> Imported:
        """Take in exported cards, all of them or none. Raises BadInput.

        Cards in YAML become provisional, without their successes.
        """
        if all_versions:
            return await self._cards.files.import_versions(text)
        return await self._cards.files.import_(text, change=self._change(reason, "imported"))

    @reads("cards/metrics")
    async def metrics(
        self,
        now: Annotated[datetime | None, Field(description="At which moment; none: now.")] = None,
    ) -> Metrics:
        """Return every metric of the team's learning, with the alerts that they raise."""
        return await self._cards.metrics(now=now)

    @reads("cards/trend")
    async def trend(
        self,
        by: Annotated[Unit, Field(description="How long a period is, by the calendar (UTC).")] = "month",
        tasks: Annotated[
            int | None, Field(ge=1, le=LARGEST, description="Instead: so many tasks make a period.")
        ] = None,
        last: Annotated[int, Field(ge=1, le=1000, description="How many of the last periods.")] = 12,
        now: Annotated[datetime | None, Field(description="Until which moment; none: now.")] = None,
    ) -> Sequence[Period]:
        """Return reuse, satisfaction and quality over time, oldest first, from the ledger's history."""
        return await self._cards.trend(tasks or by, last=last, now=now)

    @reads("consolidations")
    async def consolidations(self) -> Sequence[Attempt]:
        """Return the consolidations into a model that came to their end, oldest first."""
        return await self._cycle.attempts()

    @reads("consolidations/due")
    async def consolidation_due(self) -> Sequence[str]:
        """Return why a consolidation is due; nothing where it is not."""
        return await self._cycle.due()

    @reads("consolidations/serving")
    async def serving(self) -> str:
        """Return the tuned model that answers for the team; empty where none was promoted."""
        return await self._cycle.serving()

    @changes("consolidations/rollback")
    async def roll_back_consolidation(self, reason: Reason = "") -> Archive:
        """Undo the latest consolidation in one step: model and cards are as before. Raises BadInput."""
        return await self._cycle.take_back(change=self._change(reason, "taken back by a person"))

    @reads("tasks")
    async def list_tasks(self, limit: Limit = 100, offset: Offset = 0) -> Sequence[TaskRecord]:
        """Return finished tasks, oldest first."""
        return await self._cards.tasks.all(limit, offset=offset)

    @reads("tasks/count")
    async def count_tasks(self) -> int:
        """Return the number of finished tasks."""
        return await self._cards.tasks.count()

    @changes("disputes")
    async def open_dispute(
        self,
        card_id: CardId,
        old: Approach,
        new: Approach,
        reason: Reason = "",
        conflict_type: Annotated[ConflictType, Field(description="How the two differ.")] = "contradiction",
    ) -> Dispute:
        """Open a dispute against a card. Raises NotFound, BadInput."""
        change, found = self._change(reason, "disputed by a person"), await self._card(card_id)
        return await self._cards.disputes.open(
            found, old=old, new=new, change=change, conflict_type=conflict_type
        )

    @reads("disputes")
    async def list_disputes(
        self,
        status: Annotated[DisputeStatus | None, Field(description="Only of this status.")] = None,
        card_id: Annotated[str | None, Field(description="Only about this card, by its whole id.")] = None,
    ) -> Sequence[Dispute]:
        """Return disputes, oldest first."""
        return await self._cards.disputes.list(status, card_id=card_id)

    @reads("disputes/{dispute_id}")
    async def get_dispute(self, dispute_id: DisputeId) -> Dispute:
        """Return a dispute as it is now. Raises NotFound, BadInput."""
        return await self._cards.disputes.get(await self._dispute(dispute_id))

    @changes("disputes/{dispute_id}/decide")
    async def decide(self, dispute_id: DisputeId, verdict: Verdict) -> Dispute:
        """Resolve a dispute as a person decided, where no run waits for the decision.

        Raises NotFound, BadInput.
        """
        dispute = await self._cards.disputes.get(await self._dispute(dispute_id))
        card = await self._cards.records.get(dispute.card_id)
        return await self._cards.resolve(dispute.id, decided(verdict, dispute, card))
