"""Operations on a team's cards and disputes, in this process or on a running server."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from mneme.api.operation import Limit, Offset, Operations, Reason, changes, only, reads
from mneme.core.errors import BadInput
from mneme.core.settings import settings
from mneme.nodes.learning.verdicts import Verdict, decision_of
from mneme.stores.access import roles
from mneme.stores.cards.card import Card, CardVersion, Frozen, Lesson, Rating, Retrieved, Rule, Status
from mneme.stores.cards.card_files import Imported
from mneme.stores.cards.consolidation import ConsolidationCycle
from mneme.stores.cards.disputes import Approach, ConflictType, Dispute, DisputeStatus
from mneme.stores.cards.knowledge_cards import Kept, KnowledgeCards, Learned
from mneme.stores.cards.lifecycle import Approval, Care, PromotionRubric
from mneme.stores.cards.metrics import Metrics, Period, TaskRecord, Unit
from mneme.stores.cards.sharing import EPSILON_BUDGET, Shared
from mneme.stores.ledger.records import MAX_INT, unescaped
from mneme.stores.pools.memory_pool import MemoryPool
from mneme.stores.pools.tuned import PoolModels
from mneme.stores.tuned_models import Archive, Attempt

APPROVAL = PromotionRubric(solved=True, faster_or_novel=True, no_new_failures=True, reusable=True)
"""The rubric of a person who promotes by hand, and so answers for all of it."""
CardId = Annotated[str, Field(description="The card's id or its first letters, with or without `card_`.")]
DisputeId = Annotated[
    str, Field(description="The dispute's id or its first letters, with or without `disp_`.")
]
Person = Annotated[str, Field(max_length=100, description="Who says so; none: the caller.")]
Owner = Annotated[str | None, Field(max_length=200, description="Who looks after the card.")]
Expiry = Annotated[
    datetime | None,
    AfterValidator(lambda at: at.replace(tzinfo=UTC) if at and at.tzinfo is None else at),
    Field(
        description="From when on it is not retrieved any more; a day begins in UTC.",
        examples=["2027-01-31T00:00:00Z"],
    ),
]
ValidFor = Annotated[
    str | None,
    Field(max_length=200, description="For which version it holds.", examples=["sqlite>=3.40"]),
]
Tuned = Annotated[str, Field(description="The pool that is consolidated; none: the team's cards.")]
Sentence = Annotated[str, Field(max_length=2000)]
Tag = Annotated[str, Field(min_length=1, max_length=100)]


class ToReview(Frozen):
    """A card for a person to review, and why; for a disputed card, also the dispute and its evidence."""

    why: Literal["flagged", "disputed", "provisional"]
    card: Card
    dispute: Dispute | None = None
    task: TaskRecord | None = Field(None, description="The task that made the disputed finding.")


class Cards(Operations):
    """Operations on a team's cards, disputes and metrics."""

    OWNER = "team"

    def _prepare(self) -> None:
        self._cards = KnowledgeCards(self._ledger, self._owner)
        self._cycle = ConsolidationCycle(self._ledger, self._cards)

    @reads("team")
    async def whose(self) -> str:
        """Return the team's name; on a server with users it contains the caller's name."""
        return self._owner

    @reads("teams")
    async def teams(self) -> Sequence[str]:
        """Return the teams that have records or roles; with keys, only the teams of the key's user."""
        # With keys a team of one's own is kept as `user/team`, one of the roles file by its name alone.
        user = self._owner.partition("/")[0] if settings().auth is not None else ""
        mine = f"{user}/" if user else ""
        found = await self._ledger.namespaces(("teams",), include_retired=True)
        names = {unescaped(each[1]) for each in found}
        own = {name.removeprefix(mine) for name in names if name.startswith(mine)}
        return sorted(own | {name for name, members in roles().teams.items() if not user or user in members})

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
        query: Annotated[str, Field(min_length=1, description="The task that the cards are to help with.")],
        limit: Annotated[int, Field(ge=1, le=100, description="How many at most.")] = 5,
    ) -> Sequence[Retrieved]:
        """Return the cards that score best for a task, with the parts of each score. Raises BadInput."""
        if not query.strip():
            raise BadInput("The task is empty.", "Give some words to search for.")
        return await self._cards.retrieve(query, limit)

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
        """Store an untested lesson as a provisional card, for a person to review.

        It has no evidence, and half the confidence of a lesson that a task proved. An existing card stays
        unchanged. Raises BadInput.
        """
        if not claim.strip():
            raise BadInput("The claim is empty.", "Say what was learned.")
        lesson = Lesson(claim=claim, rationale=rationale, scope=scope, rules=[*rules], tags=[*tags])
        care = Care(owner=owner, expires_at=expires_at, valid_for=valid_for)
        change = self._change(reason, "proposed, not tested")
        return await self._cards.propose(lesson, change=change, care=care)

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
        """Verify a provisional card. Raises BadInput with every reason against it, NotFound."""
        change = self._change(reason, "promoted by a person")
        if approval is None:
            approval = Approval(by=self._caller, approved=True, rubric=APPROVAL, reason=change.reason)
        return await self._cards.promote(await self._card(card_id), approval, change=change)

    @changes("cards/{card_id}/deprecate")
    async def deprecate(self, card_id: CardId, reason: Reason = "") -> Card:
        """Take a card out of retrieval; the devil's advocate still sees it. Raises NotFound, BadInput."""
        change = self._change(reason, "deprecated by a person")
        return await self._cards.deprecate(await self._card(card_id), change=change)

    @changes("cards/{card_id}/restore")
    async def restore(self, card_id: CardId, reason: Reason = "") -> Card:
        """Restore a deprecated or archived card to its former status. Raises NotFound, BadInput."""
        change = self._change(reason, "restored by a person")
        return await self._cards.restore(await self._card(card_id), change=change)

    @changes("cards/{card_id}/rollback")
    async def rollback(
        self,
        card_id: CardId,
        to_version: Annotated[int, Field(ge=1, le=MAX_INT, description="A version's number, from 1.")],
        reason: Reason = "",
    ) -> Card:
        """Write a new version of a card that equals an older one. Raises NotFound, BadInput."""
        change = self._change(reason, "a person's decision")
        return await self._cards.rollback(await self._card(card_id), to_version, change=change)

    @changes("cards/{card_id}/clear-flag")
    async def clear_flag(self, card_id: CardId, reason: Reason = "") -> Card:
        """Remove a card's flag after a person's review: it is retrieved again. Raises NotFound, BadInput."""
        change = self._change(reason, "looked at by a person")
        return await self._cards.clear_flag(await self._card(card_id), change=change)

    @reads("cards/export")
    async def export(
        self,
        card_ids: Annotated[Sequence[str] | None, Field(description="Which; none: all.")] = None,
        history: Annotated[
            bool, Field(description="With every version, as JSON Lines: to be imported as it was.")
        ] = False,
    ) -> str:
        """Return cards as YAML. Raises NotFound."""
        return await self._cards.files.export(card_ids, all_versions=history)

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
        ] = EPSILON_BUDGET,
        private: Annotated[
            Sequence[str], Field(max_length=1000, description="Further names that must not be told.")
        ] = (),
        reason: Reason = "",
    ) -> Shared:
        """Return cards for another organisation: abstract, unsigned, with noisy counts or none.

        Names and figures are taken out. ε protects a task's trace in the counts, not the text of a lesson.
        Raises BadInput where the budget does not allow it, MnemeError without the extra `private`.
        """
        from mneme.nodes.learning.worlds import abstraction_of  # noqa: PLC0415  (slow to import)

        abstraction = await abstraction_of(self._cards, private)
        change = self._change(reason, "shared with another organisation")
        return await self._cards.shared.export(abstraction, epsilon, budget, change=change)

    @changes("cards/import")
    async def import_(
        self,
        text: Annotated[str, Field(description="What `export` returned.")],
        reason: Reason = "",
        history: Annotated[
            bool, Field(description="The text has every version; its successes are taken on your word.")
        ] = False,
    ) -> Imported:
        """Import exported cards, all of them or none. Raises BadInput.

        Cards in YAML become provisional, without their successes.
        """
        if history:
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
        period: Annotated[Unit, Field(description="How long a period is, by the calendar (UTC).")] = "month",
        tasks: Annotated[
            int | None, Field(ge=1, le=MAX_INT, description="Instead: so many tasks make a period.")
        ] = None,
        limit: Annotated[int, Field(ge=1, le=1000, description="How many of the last periods.")] = 12,
        now: Annotated[datetime | None, Field(description="Until which moment; none: now.")] = None,
    ) -> Sequence[Period]:
        """Return reuse, satisfaction and quality over time, oldest first, from the ledger's history."""
        return await self._cards.trend(tasks or period, last=limit, now=now)

    @reads("consolidations")
    async def consolidations(self, pool: Tuned = "") -> Sequence[Attempt]:
        """Return the finished consolidations into a model, oldest first."""
        return await self._models(pool).attempts()

    @reads("consolidations/due")
    async def consolidation_due(self, pool: Tuned = "") -> Sequence[str]:
        """Return why a consolidation is due; empty if it is not. Raises NotFound for an empty pool."""
        if pool:
            await MemoryPool(self._ledger, self._owner, pool).check_filled()
        return await self._models(pool).due()

    @reads("consolidations/serving")
    async def serving(self, pool: Tuned = "") -> str:
        """Return the tuned model that answers where the model is `auto`; empty where none was promoted."""
        return await self._models(pool).serving()

    @changes("consolidations/rollback")
    async def roll_back_consolidation(self, pool: Tuned = "", reason: Reason = "") -> Archive:
        """Undo the latest consolidation in one step: the model before it answers again, cards are as before.

        Raises BadInput.
        """
        change = self._change(reason, "taken back by a person")
        return await self._models(pool).take_back(change=change)

    def _models(self, pool: str) -> ConsolidationCycle | PoolModels:
        return PoolModels(MemoryPool(self._ledger, self._owner, pool)) if pool else self._cycle

    @reads("tasks")
    async def list_tasks(self, limit: Limit = 100, offset: Offset = 0) -> Sequence[TaskRecord]:
        """Return finished tasks, oldest first."""
        return await self._cards.tasks.all(limit, offset=offset)

    @changes("disputes")
    async def open_dispute(
        self,
        card_id: CardId,
        claim: Annotated[
            str, Field(min_length=1, description="What was found against the card, in a sentence.")
        ],
        rule: Annotated[str, Field(description='Its rule, "CONDITION: WHAT TO DO".')] = "",
        task: Annotated[str, Field(description="The task that found it, by its id.")] = "",
        reason: Reason = "",
        conflict_type: Annotated[ConflictType, Field(description="How the two differ.")] = "contradiction",
    ) -> Dispute:
        """Open a dispute: a finding against a card, to be tested or decided. Raises NotFound, BadInput."""
        card, read = await self.get(card_id), rule_of(rule) if rule else None
        new = Approach(claim=claim, task=task, solution=f"{read.condition} -> {read.pattern}" if read else "")
        change = self._change(reason, "disputed by a person")
        return await self._cards.disputes.open(
            card.id, old=Approach(claim=card.claim), new=new, change=change, conflict_type=conflict_type
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
        return await self._cards.resolve(dispute.id, decision_of(verdict, dispute, card))

    @reads("cards/review")
    async def review(self, limit: Limit = 100) -> Sequence[ToReview]:
        """Return the cards to review: flagged cards, disputes, and then provisional cards."""
        flagged = [ToReview(why="flagged", card=card) for card in await self._cards.records.flagged()]
        open_ = [each for each in await self._cards.disputes.list() if each.unresolved]
        disputed = [await self._contested(each) for each in open_[:limit]]  # each reads two records
        found = [*flagged, *disputed]
        left = limit - len(found)  # what is wrong comes before what is new
        waiting = await self._cards.records.list("provisional", limit=limit) if left > 0 else []
        plain = [ToReview(why="provisional", card=card) for card in waiting if not card.flags]  # listed above
        return [*found, *plain][:limit]

    @reads("disputes/{dispute_id}/evidence")
    async def evidence(self, dispute_id: DisputeId) -> ToReview:
        """Return a dispute with its card and the task that made the finding. Raises NotFound, BadInput."""
        return await self._contested(await self._cards.disputes.get(await self._dispute(dispute_id)))

    async def _contested(self, dispute: Dispute) -> ToReview:
        card = await self._cards.records.get(dispute.card_id)
        task = await self._cards.task_behind(dispute)
        return ToReview(why="disputed", card=card, dispute=dispute, task=task)

    @changes("cards/{card_id}/rate")
    async def rate(
        self,
        card_id: CardId,
        good: Annotated[bool, Field(description="Whether the card served.")],
        task: Annotated[str, Field(max_length=200, description="In which task, by its id.")] = "",
        comment: Annotated[str, Field(max_length=2000, description="What the person says of it.")] = "",
        by: Person = "",
    ) -> Card:
        """Record a person's rating of a card: as user satisfaction, and as a success or failure.

        A person's second rating of the same card and task replaces the first. Raises NotFound, BadInput.
        """
        person = by.strip() or self._caller
        rating = Rating(by=person, good=good, task=task, comment=comment, at=datetime.now(UTC))
        change = self._change(comment, "rated by a person")
        return await self._cards.rate(await self._card(card_id), rating, change=change)

    @changes("cards/{card_id}/care")
    async def care_for(
        self,
        card_id: CardId,
        owner: Owner = None,
        expires_at: Expiry = None,
        valid_for: ValidFor = None,
        reason: Reason = "",
    ) -> Card:
        """Set who maintains a card, until when it is valid, and for which version; omitted fields stay.

        Raises NotFound, BadInput.
        """
        care = Care(owner=owner, expires_at=expires_at, valid_for=valid_for)
        if care == Care():
            raise BadInput("Nothing is to change.", "Give an owner, an expiry or a version.")
        change = self._change(reason, "cared for by a person")
        return await self._cards.care_for(await self._card(card_id), care, change=change)

    @changes("cards/{card_id}/supersede")
    async def supersede(
        self,
        card_id: CardId,
        by: Annotated[str, Field(description="The id of the card that replaces it, or its first letters.")],
        reason: Reason = "",
    ) -> Card:
        """Replace a card by a better one; it is deprecated and names that one. Raises NotFound, BadInput."""
        old, new = await self._card(card_id), await self._card(by)
        return await self._cards.supersede(old, new, change=self._change(reason, "replaced by a person"))

    @changes("cards/upkeep")
    async def upkeep(self) -> Kept:
        """Archive inactive and expired cards, and wait for it."""
        return await self._cards.keep_up()

    async def _card(self, beginning: str) -> str:
        if beginning.strip() and await self._cards.records.find(beginning):
            return beginning  # most ids are whole: the others need not be read
        known = [card.id for card in await self._cards.records.list()]
        return only(beginning, known, f"The team {self._owner}", "card", "mneme cards list")

    async def _dispute(self, beginning: str) -> str:
        known = [dispute.id for dispute in await self._cards.disputes.list()]
        return only(beginning, known, f"The team {self._owner}", "dispute", "mneme disputes list")


def rule_of(text: str) -> Rule:
    """Parse a rule in one line. Raises BadInput."""
    condition, _, pattern = (part.strip() for part in text.partition(":"))
    if not condition or not pattern:
        raise BadInput(f"The rule {text!r} cannot be read.", 'Write "CONDITION: WHAT TO DO".')
    return Rule(condition=condition, pattern=pattern)
