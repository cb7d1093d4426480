"""A team's cards as records of the ledger: reading them, and changing them one version at a time.

Retrieved cards are ranked by §4's weights and the numbers of a card that they are applied to:

- *Confidence* (§4: 25 %) has two terms: 15 % for a card's own, and 10 % for its *standing*, so that of two
  cards that are alike otherwise the verified one is first; a disputed one stands between.
- *Success* saturates, since the first successes say more than the hundredth: n / (n + saturation) times
  the success rate, so that 3 successes in 3 tasks count 0.5 and 23 in 25 count 0.81.
- *Recency* halves with every half-life since the lesson was learned or rewritten. "Long-proven" cards do
  not age: those that are verified, with at least `proven_successes` successes at a rate of at least
  `proven_rate`.
"""

from collections.abc import Sequence

from mneme.core.errors import NotFound
from mneme.stores.cards.card import Card, CardVersion, Evidence, Status
from mneme.stores.cards.check import flags_of
from mneme.stores.cards.lifecycle import Decide
from mneme.stores.cards.settings import CardSettings
from mneme.stores.ledger.ledger import Ledger
from mneme.stores.ledger.namespaces import team_namespace
from mneme.stores.ledger.query import Ranking, section_name
from mneme.stores.ledger.records import Change, Version, Write, make_write
from mneme.stores.ledger.writing import retry_on_conflict

SECONDS_A_DAY = 86_400
STANDING = {"verified": 1.0, "disputed": 0.5}
"""What a card's status counts; a provisional one counts nothing, nor does one out of use."""


def ranking(settings: CardSettings) -> Ranking:
    """The four-factor retrieval of §4: similarity 0.40, confidence 0.25, recency 0.15, success 0.20."""
    return Ranking(
        similarity=0.40,
        fields={"confidence": 0.15, "standing": 0.10, "success": 0.20},
        recency=0.15,
        half_life_days=settings.half_life_days,
        aged_from="renewed",
        ageless="proven",
        candidates=settings.candidates,
    )


def derived(card: Card, settings: CardSettings) -> dict[str, float]:
    """Return the numbers that the formula and upkeep read; `renewed` and `expires` in days since 1970."""
    renewed = card.renewed_at or card.provenance.created_at
    ends = card.expires_at
    return {
        **({"expires": ends.timestamp() / SECONDS_A_DAY} if ends else {}),
        "standing": STANDING.get(card.status, 0.0),
        "success": success_share(card.evidence, settings),
        "proven": 1.0 if is_proven(card, settings) else 0.0,
        "renewed": renewed.timestamp() / SECONDS_A_DAY,
    }


def success_share(evidence: Evidence, settings: CardSettings) -> float:
    """Return 0 to 1: how often the card was right, and how often it has been tried."""
    successes = evidence.success_count
    return evidence.success_rate * successes / (successes + settings.saturation)


def is_proven(card: Card, settings: CardSettings) -> bool:
    """Say whether a card has been right so often that it does not age."""
    evidence = card.evidence
    return (
        card.status == "verified"
        and evidence.success_count >= settings.proven_successes
        and evidence.success_rate >= settings.proven_rate
    )


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
