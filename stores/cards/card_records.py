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

from mneme.stores.cards.card import Card, CardSettings, CardVersion, Status, flags_of
from mneme.stores.cards.lifecycle import Decide, Decision
from mneme.stores.ledger.ledger import Ledger
from mneme.stores.ledger.query import Ranking, section_name
from mneme.stores.ledger.records import Change, Value, Version, Write, team_namespace
from mneme.stores.shelf import RecordKind, Shelf

SECONDS_A_DAY = 86_400
SIMILARITY = 0.40
"""The weight of the cosine with the task."""
STANDING = {"verified": 1.0, "disputed": 0.5}
"""What a card's status counts; a provisional one counts nothing, nor does one out of use."""


def ranking(settings: CardSettings) -> Ranking:
    """The four-factor retrieval of §4: similarity 0.40, confidence 0.25, recency 0.15, success 0.20."""
    return Ranking(
        similarity=SIMILARITY,
        fields={"confidence": 0.15, "standing": 0.10, "success": 0.20},
        recency=0.15,
        half_life_days=settings.half_life_days,
        aged_from="renewed",
        ageless="proven",
        candidates=settings.candidates,
    )


def derived(card: Card, settings: CardSettings) -> Value:
    """Return the numbers that the formula and upkeep read; `renewed` and `expires` in days since 1970."""
    evidence, rate = card.evidence, card.evidence.success_rate
    successes = evidence.success_count
    is_proven = successes >= settings.proven_successes and rate >= settings.proven_rate
    ends = {"expires": card.expires_at.timestamp() / SECONDS_A_DAY} if card.expires_at else {}
    return {
        **ends,
        "standing": STANDING.get(card.status, 0.0),
        "success": rate * successes / (successes + settings.saturation),
        "proven": 1.0 if card.status == "verified" and is_proven else 0.0,
        "renewed": (card.renewed_at or card.provenance.created_at).timestamp() / SECONDS_A_DAY,
    }


class CardRecords(Shelf[Card, Card]):
    """One team's cards; it reaches no other team's."""

    def __init__(self, ledger: Ledger, team: str, settings: CardSettings) -> None:
        kind = RecordKind[Card, Card](
            Card.of,
            text=lambda card: card.text,
            part=lambda card: f"{card.shelf}/{section_name(card.scope)}",
            beside=lambda card: derived(card, settings),
            outside=frozenset({"id"}),
            missing=f"The team {team} has no card {{key}}.",
            hint="See `mneme cards list`.",
        )
        super().__init__(ledger, team_namespace(team, "cards"), kind)
        self.team, self.settings = team, settings

    async def flagged(self) -> Sequence[Card]:
        """Return the cards that read like instructions to agents, and that nobody has cleared."""
        return [card for card in await self.all(shelf="aside") if card.flags]

    async def list(
        self, status: Status | None = None, *, limit: int | None = None, offset: int = 0
    ) -> Sequence[Card]:
        """Return cards in the order in which they were first learned; all of them without a limit."""
        return await self.all(limit, filter={"status": status} if status else None, offset=offset)

    async def history(self, card_id: str) -> Sequence[CardVersion]:
        """Return every version of a card, oldest first, with its reason. Raises NotFound."""
        await self.head(card_id)
        return [CardVersion.of(each) for each in await self.ledger.history(self.namespace, card_id)]

    def decided(self, head: Version, decide: Decide, change: Change) -> Write | None:
        """Return the write of a card's next version, with its number; None where it stays as it is."""

        def numbered(card: Card) -> Decision:
            decision = decide(card)
            return decision and (decision[0].model_copy(update={"version": card.version + 1}), decision[1])

        return super().decided(head, numbered, change)

    def write(
        self,
        key: str | None,
        value: Card,
        change: Change,
        expected_version: int | None = None,
        *,
        idempotency_key: str | None = None,
    ) -> Write:
        """Return the write of a card, with what its words are flagged for now, less what a person cleared."""
        flags = [flag for flag in flags_of(value) if flag not in value.cleared]
        checked = value.model_copy(update={"flags": flags})
        return super().write(key, checked, change, expected_version, idempotency_key=idempotency_key)
