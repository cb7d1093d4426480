"""How a lesson becomes a card, and what a later lesson adds to it. All functions are pure."""

from collections.abc import Sequence
from datetime import UTC, datetime

from mneme.stores.cards.card import Card, Lesson, Part, Provenance, TaskOutcome, normalised
from mneme.stores.cards.check import flags_of
from mneme.stores.cards.lifecycle import with_outcomes
from mneme.stores.ledger.records import Change


def learned_card(lesson: Lesson, outcome: TaskOutcome, change: Change) -> Card:
    """Return the card of a lesson that a task taught."""
    return with_outcomes(untested_card(lesson, change, outcome.worth), [outcome])


def untested_card(lesson: Lesson, change: Change, confidence: float) -> Card:
    """Return the card of a lesson that rests on no task."""
    provenance = Provenance(created_by=change.actor, created_at=datetime.now(UTC), model_version=change.model)
    return Card(
        **{name: getattr(lesson, name) for name in Lesson.model_fields},
        id=lesson.card_id,
        provenance=provenance,
        confidence=confidence,
    )


def with_details(card: Card, lesson: Lesson) -> Card:
    """Add what a later lesson knows of failures and dead ends; claim, rationale and rules stay.

    Nothing is added of a lesson that reads like an instruction: it would take the card out of retrieval.
    """
    if flags_of(lesson):
        return card
    return card.model_copy(
        update={
            "deprecated_approaches": _joined(
                card.deprecated_approaches, lesson.deprecated_approaches, "approach"
            ),
            "failure_modes": _joined(card.failure_modes, lesson.failure_modes, "condition"),
            "tags": list(dict.fromkeys([*card.tags, *lesson.tags])),
        }
    )


def _joined(here: Sequence[Part], new: Sequence[Part], by: str) -> list[Part]:
    known = {normalised(getattr(part, by)) for part in here}
    return [*here, *(part for part in new if normalised(getattr(part, by)) not in known)]
