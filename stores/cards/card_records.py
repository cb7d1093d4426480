"""A team's cards as records of the ledger: reading them, and changing them one version at a time."""

from collections.abc import Sequence

from mneme.core.errors import NotFound
from mneme.stores.cards.card import Card, CardVersion, Status
from mneme.stores.cards.check import flags_of
from mneme.stores.cards.lifecycle import Decide
from mneme.stores.cards.ranking import derived
from mneme.stores.cards.settings import CardSettings
from mneme.stores.ledger.engine import section_name
from mneme.stores.ledger.ledger import Ledger
from mneme.stores.ledger.namespaces import team_namespace
from mneme.stores.ledger.records import Change, Version, Write, make_write
from mneme.stores.ledger.retrying import retry_on_conflict


class CardRecords:
    """One team's cards; it reaches no other team's."""

    def __init__(self, ledger: Ledger, team: str, settings: CardSettings) -> None:
        self._ledger, self.team, self.settings = ledger, team, settings
        self.namespace = team_namespace(team, "cards")

    async def get(self, card_id: str) -> Card:
        """Return a card as it is now, whatever its status. Raises NotFound."""
        return Card.of(await self.head(card_id))

    async def exists(self, card_id: str) -> bool:
        """Say whether there is a card of that id, whatever its status."""
        return await self._ledger.get(self.namespace, card_id) is not None

    async def flagged(self) -> Sequence[Card]:
        """Return the cards that read like instructions to agents, and that nobody has cleared."""
        found = await self._ledger.records(self.namespace, limit=await self.count(), shelf="aside")
        return [card for card in map(Card.of, found) if card.flags]

    async def head(self, card_id: str) -> Version:
        """Return the latest version of a card's record. Raises NotFound."""
        head = await self._ledger.get(self.namespace, card_id)
        if head is None:
            raise NotFound(f"The team {self.team} has no card {card_id}.", "See `mneme cards list`.")
        return head

    async def list(
        self, status: Status | None = None, *, limit: int | None = None, offset: int = 0
    ) -> Sequence[Card]:
        """Return cards in the order in which they were first learned; all of them without a limit."""
        found = await self._ledger.records(
            self.namespace,
            filter={"status": status} if status else None,
            limit=await self.count() if limit is None else limit,
            offset=offset,
        )
        return [Card.of(version) for version in found]

    async def count(self) -> int:
        """Return the number of cards, whatever their status."""
        return await self._ledger.count(self.namespace)

    async def history(self, card_id: str) -> Sequence[CardVersion]:
        """Return every version of a card, oldest first, with its reason. Raises NotFound."""
        await self.head(card_id)
        return [CardVersion.of(each) for each in await self._ledger.history(self.namespace, card_id)]

    @retry_on_conflict
    async def change(self, card_id: str, decide: Decide, change: Change) -> Card:
        """Write a card's next version, decided on what it is at the moment of writing. Raises NotFound."""
        head = await self.head(card_id)
        write = self.next_write(head, decide, change)
        if write is None:
            return Card.of(head)
        [version] = await self._ledger.write([write])
        return Card.of(version)

    def next_write(self, head: Version, decide: Decide, change: Change) -> Write | None:
        """Return the write of a card's next version; None where the decision leaves it as it is."""
        before = Card.of(head)
        decided = decide(before)
        if decided is None:
            return None
        card, reason = decided
        numbered = card.model_copy(update={"version": before.version + 1})
        return self.write_of(numbered, change.model_copy(update={"reason": reason}), head.version)

    def write_of(self, card: Card, change: Change, after: int, idempotency_key: str | None = None) -> Write:
        """Return the write of a card just as given, after so many versions of its record."""
        kept = checked(card)
        return make_write(
            event="update" if after else "insert",
            namespace=self.namespace,
            key=kept.id,
            value={**kept.as_value(), **derived(kept, self.settings)},
            text=kept.text,
            change=change,
            expected_version=after or None,
            idempotency_key=idempotency_key,
            shelf=f"{kept.shelf}/{section_name(kept.scope)}",
        )


def checked(card: Card) -> Card:
    """Return the card with what its words are flagged for now, less what a person has cleared."""
    return card.model_copy(update={"flags": [flag for flag in flags_of(card) if flag not in card.cleared]})
