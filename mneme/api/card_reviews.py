"""Operations by which people look after a team's cards: review, rate, care for and replace them."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from mneme.api.operation import USER, Limit, Operations, Reason, changes, only, reads
from mneme.core.errors import BadInput
from mneme.stores.cards.card import Card, Rating
from mneme.stores.cards.disputes import Dispute
from mneme.stores.cards.knowledge_cards import KnowledgeCards
from mneme.stores.cards.lifecycle import Care
from mneme.stores.cards.task_log import TaskRecord
from mneme.stores.cards.upkeep import Kept
from mneme.stores.ledger.ledger import Ledger

CardId = Annotated[str, Field(description="The card's id or its first letters, with or without `card_`.")]
DisputeId = Annotated[
    str, Field(description="The dispute's id or its first letters, with or without `disp_`.")
]
Person = Annotated[str, Field(max_length=100, description="Who says so; none: the caller.")]
Owner = Annotated[str | None, Field(max_length=200, description="Who looks after the card.")]


def _in_utc(moment: datetime | None) -> datetime | None:
    return moment.replace(tzinfo=UTC) if moment and moment.tzinfo is None else moment


Expiry = Annotated[
    datetime | None,
    AfterValidator(_in_utc),
    Field(
        description="From when on it is not retrieved any more; a day begins in UTC.",
        examples=["2027-01-31T00:00:00Z"],
    ),
]
ValidFor = Annotated[
    str | None,
    Field(max_length=200, description="For which version it holds.", examples=["sqlite>=3.40"]),
]


class ToReview(BaseModel):
    """A card that a person should look at, and why; of a disputed one, the dispute and its evidence."""

    model_config = ConfigDict(frozen=True)

    why: Literal["flagged", "disputed", "provisional"]
    card: Card
    dispute: Dispute | None = None
    task: TaskRecord | None = Field(None, description="The task that made the disputed finding.")


class CardReviews(Operations):
    """What people do with a team's cards."""

    OWNER = "team"

    def __init__(self, ledger: Ledger, team: str, caller: str = USER) -> None:
        super().__init__(ledger, team, caller)
        self._cards = KnowledgeCards(ledger, team)

    @reads("cards/review")
    async def review(self, limit: Limit = 100) -> Sequence[ToReview]:
        """Return what a person should look at: flagged cards, disputes, and then provisional cards."""
        flagged = [ToReview(why="flagged", card=card) for card in await self._cards.records.flagged()]
        open_ = [each for each in await self._cards.disputes.list() if each.unresolved]
        disputed = [await self._contested(each) for each in open_[:limit]]
        found = [*flagged, *disputed]
        left = limit - len(found)
        waiting = await self._cards.records.list("provisional", limit=limit) if left > 0 else []
        plain = [ToReview(why="provisional", card=card) for card in waiting if not card.flags]
        return [*found, *plain][:limit]

    @reads("disputes/{dispute_id}/evidence")
    async def evidence(self, dispute_id: DisputeId) -> ToReview:
        """Return a dispute with its card and the task that made the finding. Raises NotFound, BadInput."""
        return await self._contested(await self._cards.disputes.get(await self._dispute(dispute_id)))

    async def _contested(self, dispute: Dispute) -> ToReview:
        card = await self._cards.records.get(dispute.card_id)
        task = await self._cards.tasks.find(dispute.new.task) if dispute.new.task else None
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
        """Count a person's word on a card: as user satisfaction, and as a success or failure.

        A person's second word on the same card and task takes the first back. Raises NotFound, BadInput.
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
        """Say who looks after a card, until when it holds, and for which version; what is left out stays.

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
        """Replace a card by a better one: it is deprecated, and says by which. Raises NotFound, BadInput."""
        old, new = await self._card(card_id), await self._card(by)
        return await self._cards.supersede(old, new, change=self._change(reason, "replaced by a person"))

    @changes("cards/upkeep")
    async def upkeep(self) -> Kept:
        """Archive inactive and expired cards, and bring the clusters up to date, and wait for it."""
        return await self._cards.upkeep.run()

    async def _card(self, beginning: str) -> str:
        if beginning.strip() and await self._cards.records.find(beginning):
            return beginning
        known = [card.id for card in await self._cards.records.list()]
        return only(beginning, known, f"The team {self._owner}", "card", "mneme cards list")

    async def _dispute(self, beginning: str) -> str:
        known = [dispute.id for dispute in await self._cards.disputes.list()]
        return only(beginning, known, f"The team {self._owner}", "dispute", "mneme disputes list")
