"""Disputes: a new finding against a verified card (§5), tested in at most two rounds, then resolved.

While a dispute is open its card is `disputed`: still retrieved, but marked as such. It ends with one of
four resolutions; an escalated dispute waits for a person, who gives one of the other three.
"""

import hashlib
from datetime import datetime
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from mneme.stores.cards.card import Lesson, Part, Rule, TaskOutcome, normalised
from mneme.stores.ledger.records import Value, Version

Recommendation = Literal["deprecate_old", "keep_old", "merge", "escalate"]
ConflictType = Literal["contradiction", "refinement"]
DisputeStatus = Literal["open", "escalated", "resolved"]


class Approach(Part):
    """One of the two approaches, in words and as what can be run."""

    claim: str = Field(min_length=1)
    solution: str = ""
    task: str = Field("", description="The task that it comes from.")


class PairedTrial(Part):
    """Both approaches on one similar task; None where it was not measured."""

    task: str = Field(min_length=1)
    old_correct: bool
    new_correct: bool
    old_seconds: float | None = Field(None, ge=0)
    new_seconds: float | None = Field(None, ge=0)
    edge_cases: list[str] = Field([])
    winner: Literal["old", "new", "neither"]


class Round(Part):
    """One round of tests and what it leads to."""

    trials: list[PairedTrial]
    recommendation: Recommendation
    rationale: str
    by: str = ""


class DeprecateOld(Part):
    """The finding replaces the card; `lesson`, where given, becomes a card of its own."""

    decision: Literal["deprecate_old"] = "deprecate_old"
    reason: str = Field(min_length=1)
    by: str = Field(min_length=1)
    lesson: Lesson | None = None
    outcomes: list[TaskOutcome] = Field([])


class KeepOld(Part):
    """The card stays as it was; `outcomes` of the tests are added to its evidence."""

    decision: Literal["keep_old"] = "keep_old"
    reason: str = Field(min_length=1)
    by: str = Field(min_length=1)
    outcomes: list[TaskOutcome] = Field([])


class Merge(Part):
    """Both are right, each under its condition: the card gets a wider claim and conditional rules."""

    decision: Literal["merge"] = "merge"
    reason: str = Field(min_length=1)
    by: str = Field(min_length=1)
    claim: str = Field(min_length=1)
    rules: list[Rule] = Field(min_length=1)
    rationale: str = Field("", description="Empty keeps the card's own.")
    outcomes: list[TaskOutcome] = Field([])


class Escalate(Part):
    """The tests do not decide: a person will."""

    decision: Literal["escalate"] = "escalate"
    reason: str = Field(min_length=1)
    by: str = Field(min_length=1)


Resolution = Annotated[DeprecateOld | KeepOld | Merge | Escalate, Field(discriminator="decision")]


class Dispute(BaseModel):
    """A conflict between a card and what a task found."""

    model_config = ConfigDict(frozen=True)

    id: str
    status: DisputeStatus = "open"
    card_id: str
    conflict_type: ConflictType = "contradiction"
    old: Approach
    new: Approach
    opened_at: datetime
    opened_by: str
    rounds: list[Round] = []
    resolution: Resolution | None = None
    resolved_at: datetime | None = None

    @property
    def unresolved(self) -> bool:
        return self.status != "resolved"

    @classmethod
    def of(cls, version: Version) -> "Dispute":
        """Read a dispute back from its record."""
        return cls.model_validate({**version.value, "id": version.key})

    def as_value(self) -> Value:
        """Return the dispute as a record's value, without its id: that is the record's key."""
        value: Value = self.model_dump(mode="json", exclude={"id"})
        return value


def dispute_id(card_id: str, finding: Approach) -> str:
    """Return a dispute's id: the same for the same finding against the same card."""
    said = f"{card_id}\x1f{normalised(finding.claim)}"
    return f"disp_{hashlib.sha256(said.encode()).hexdigest()[:16]}"
