"""A team's cards as records of the ledger: reading them, and changing them one version at a time."""

from collections.abc import Callable, Sequence

from tenacity import retry, retry_if_exception_type, stop_after_attempt, wait_random

from mneme.errors import Conflict, NotFound
from stores.card_check import flags_of
from stores.card_rules import CardSettings, derived
from stores.cards import Card, CardVersion, Status, told
from stores.ledger import Ledger
from stores.records import Change, Namespace, Value, Version, Write, check_name, check_namespace, make_write

Decide = Callable[[Card], tuple[Card, str] | None]
"""Given a card as it is now: what it becomes and why, or None where it stays."""

until_ours = retry(
    retry=retry_if_exception_type(Conflict),
    stop=stop_after_attempt(100),
    wait=wait_random(0, 0.02),
    reraise=True,
)
"""Read and decide again where somebody else wrote first."""


def team_namespace(team: str, *below: str) -> Namespace:
    """Return the namespace of a team: ("teams", team, …), escaped as users' are."""
    name = check_name(team, "team").replace("%", "%25").replace(".", "%2E")
    return check_namespace(("teams", name, *below))


class CardRecords:
    """One team's cards; another team's cannot be named through it."""

    def __init__(self, ledger: Ledger, team: str, settings: CardSettings | None = None) -> None:
        self._ledger, self.team = ledger, team
        self.settings = settings or CardSettings()
        self.namespace = team_namespace(team, "cards")

    async def get(self, card_id: str) -> Card:
        """Return a card as it is now, whatever its status. Raises NotFound."""
        return Card.of(await self._head(card_id))

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
        await self._head(card_id)
        return [CardVersion.of(each) for each in await self._ledger.history(self.namespace, card_id)]

    async def _head(self, card_id: str) -> Version:
        head = await self._ledger.get(self.namespace, card_id)
        if head is None:
            raise NotFound(f"The team {self.team} has no card {card_id}.", "See `mneme cards list`.")
        return head

    @until_ours
    async def _change(self, card_id: str, decide: Decide, change: Change) -> Card:
        """Write a card's next version, decided on what it is at the moment of writing."""
        write = self._decided(await self._head(card_id), decide, change)
        if write is None:
            return await self.get(card_id)
        [version] = await self._ledger.write([write])
        return Card.of(version)

    def _decided(self, head: Version, decide: Decide, change: Change) -> Write | None:
        decided = decide(Card.of(head))
        if decided is None:
            return None
        card, reason = decided
        counted = card.model_copy(update={"version": Card.of(head).version + 1})
        return self._exactly(counted, change.model_copy(update={"reason": reason}), head.version)

    def _exactly(self, card: Card, change: Change, after: int, idempotency_key: str | None = None) -> Write:
        """Return what stores a card under its own number, after so many versions of its record."""
        kept = checked(card)
        return make_write(
            event="update" if after else "insert",
            namespace=self.namespace,
            key=kept.id,
            value=self._value(kept),
            text=kept.text,
            change=change,
            expected_version=after or None,
            idempotency_key=idempotency_key,
            shelf=kept.shelf,
        )

    def _value(self, card: Card) -> Value:
        return {**told(card), **derived(card, self.settings)}


def checked(card: Card) -> Card:
    """Return the card with what its words are flagged for now, less what a person has cleared."""
    return card.model_copy(update={"flags": [flag for flag in flags_of(card) if flag not in card.cleared]})
