"""How retrieved cards are ranked (§4): the weights, and the numbers of a card that they are applied to.

- *Confidence* (§4: 25 %) has two terms: 15 % for a card's own, and 10 % for its *standing*, so that of two
  cards that are alike otherwise the verified one is first; a disputed one stands between.
- *Success* saturates, since the first successes say more than the hundredth: n / (n + saturation) times
  the success rate, so that 3 successes in 3 tasks count 0.5 and 23 in 25 count 0.81.
- *Recency* halves with every half-life since the lesson was learned or rewritten. "Long-proven" cards do
  not age: those that are verified, with at least `proven_successes` successes at a rate of at least
  `proven_rate`.
"""

from mneme.stores.cards.card import Card, Evidence
from mneme.stores.cards.settings import CardSettings
from mneme.stores.ledger.engine import Ranking

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
