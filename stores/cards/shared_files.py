"""A team's cards for another organisation: without names, figures and exact counts, as unsigned YAML (§11.4).

Cards in service go out, each as a new and provisional one: its id follows from the abstract claim, its time
is the day of the export, and it names no task, person or model. Lessons that are the same once they are
abstract become one card. Whoever imports it takes the lesson alone, as from any file; the confidence that
follows from the noisy counts decides whether it is shown to agents or set aside.
"""

from collections.abc import Sequence
from datetime import UTC, datetime

from pydantic import BaseModel, ConfigDict, Field

from mneme.stores.cards.abstraction import Abstraction
from mneme.stores.cards.card import QUARANTINE, SHARER, Card, Evidence, Lesson, Provenance
from mneme.stores.cards.card_records import CardRecords
from mneme.stores.cards.lifecycle import is_in_service
from mneme.stores.cards.private_counts import Counts, PrivacyAccount, Spending, bounded, noisy, outcomes_of
from mneme.stores.cards.yaml_form import dump
from mneme.stores.ledger.ledger import Ledger
from mneme.stores.ledger.records import Change


class Shared(BaseModel):
    """What goes to another organisation, and what it has cost in privacy."""

    model_config = ConfigDict(frozen=True)

    text: str = Field(description="The cards as YAML.")
    cards: int
    names: int = Field(description="Different names that were taken out.")
    figures: int = Field(description="Figures that were taken out.")
    epsilon: float | None = Field(description="Of this export's counts; none: there are no counts in it.")
    spent: Spending = Field(description="The team's exports up to now, this one included.")


class SharedFiles:
    """One team's cards, out to other organisations."""

    def __init__(self, ledger: Ledger, records: CardRecords) -> None:
        self._records = records
        self.account = PrivacyAccount(ledger, records.team)

    async def export(
        self, abstraction: Abstraction, epsilon: float | None, budget: float, *, change: Change
    ) -> Shared:
        """Return abstract cards, with noisy counts where an ε is given. Raises BadInput as `spend` does."""
        cards = [each for each in await self._records.list() if is_in_service(each) and not each.flags]
        lessons: dict[str, Lesson] = {}
        outcomes: dict[str, dict[str, bool]] = {}
        for card in cards:
            lesson = abstraction.lesson(card)
            lessons.setdefault(lesson.card_id, lesson)
            found = outcomes_of(await self._records.history(card.id)) if epsilon is not None else {}
            outcomes.setdefault(lesson.card_id, {}).update(found)
        counts: dict[str, Counts] = {}
        if epsilon is not None:
            counts = noisy(bounded(outcomes), epsilon)
            await self.account.spend(epsilon, budget, change=change)
        made = [_card(lesson, counts.get(key)) for key, lesson in lessons.items()]
        return Shared(
            text=_written(made),
            cards=len(made),
            names=len(abstraction.names),
            figures=abstraction.figures,
            epsilon=epsilon,
            spent=await self.account.spent(),
        )


def _card(lesson: Lesson, counts: Counts | None) -> Card:
    """Return the card that goes out; its confidence is the noisy counts', or that of an untested lesson."""
    successes, failures = counts or (0, 0)
    known = successes + failures
    today = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    return Card(
        **{name: getattr(lesson, name) for name in Lesson.model_fields},
        id=lesson.card_id,
        evidence=Evidence(success_count=successes, failure_count=failures),
        provenance=Provenance(created_by=SHARER, created_at=today),
        confidence=successes / known if known else QUARANTINE,
    )


def _written(cards: Sequence[Card]) -> str:
    """Return the cards in the order of their ids, which says nothing of when they were learned."""
    return "".join(dump(card) for card in sorted(cards, key=lambda card: card.id))
