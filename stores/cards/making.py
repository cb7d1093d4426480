"""How a lesson becomes a card, and what a later lesson adds to it. All functions are pure."""

from collections.abc import Hashable
from datetime import UTC, datetime

from mneme.stores.cards.card import (
    Card,
    DeprecatedApproach,
    FailureMode,
    Lesson,
    Provenance,
    TaskOutcome,
    normalised,
)
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
    dead_ends = {_name(each): each for each in card.deprecated_approaches}
    for each in lesson.deprecated_approaches:
        dead_ends[_name(each)] = _joined(dead_ends.get(_name(each), each), each)
    failures: dict[str, FailureMode] = {}
    for mode in (*card.failure_modes, *lesson.failure_modes):
        failures.setdefault(normalised(mode.condition), mode)
    return card.model_copy(
        update={
            "deprecated_approaches": [*dead_ends.values()],
            "failure_modes": [*failures.values()],
            "tags": list(dict.fromkeys([*card.tags, *lesson.tags])),
        }
    )


def _name(dead_end: DeprecatedApproach) -> Hashable:
    return normalised(dead_end.approach), normalised(dead_end.condition)


def _joined(here: DeprecatedApproach, new: DeprecatedApproach) -> DeprecatedApproach:
    """Count the tasks of both; of what it gained, the best is known."""
    gained = max((each.gained for each in (here, new) if each.gained is not None), default=None)
    failed_in = list(dict.fromkeys([*here.failed_in, *new.failed_in]))
    return here.model_copy(update={"failed_in": failed_in, "gained": gained})
