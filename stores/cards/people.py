"""What people do with cards: rate them, look after them, replace them. All functions are pure.

A rating counts as §5's user satisfaction, and as a task of its own in a card's evidence: what a model alone
judged is confirmed, or refuted, by people. A person has one word on a card for each task; a second one takes
the first back.
"""

from collections.abc import Mapping
from datetime import datetime

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version
from pydantic import BaseModel, ConfigDict

from mneme.core.errors import BadInput
from mneme.stores.cards.card import Card, Rating, TaskOutcome
from mneme.stores.cards.lifecycle import Decision, is_in_service, out_of_service, reinforced, without_outcome
from mneme.stores.cards.settings import CardSettings


def check_valid_for(text: str) -> str:
    """Return what a card is valid for, as it is written. Raises BadInput for what names no version."""
    if not text.strip():
        return ""
    return str(_read(text))


def holds_for(valid_for: str, versions: Mapping[str, str]) -> bool | None:
    """Say whether a card is valid with these versions; None where nothing says so."""
    if not valid_for:
        return True
    wanted = _read(valid_for)
    here = {canonicalize_name(name): version for name, version in versions.items()}
    if canonicalize_name(wanted.name) not in here:
        return None
    try:
        return wanted.specifier.contains(Version(here[canonicalize_name(wanted.name)]), prereleases=True)
    except InvalidVersion:
        return None


def _read(text: str) -> Requirement:
    wrong = BadInput(f"{text!r} names no version.", "Write it like sqlite>=3.40 or python>=3.11,<4.")
    try:
        read = Requirement(text)
    except InvalidRequirement as why:
        raise wrong from why
    if not read.specifier or read.url or read.extras or read.marker:
        raise wrong
    return read


SERVED = 0.8
"""The confidence that a person's word gives; one above it could verify a card at once (§3, step 5)."""


class Care(BaseModel):
    """Who looks after a card, until when it holds, and for which version; None leaves it as it is."""

    model_config = ConfigDict(frozen=True)

    owner: str | None = None
    expires_at: datetime | None = None
    valid_for: str | None = None

    def of(self, card: Card) -> Card:
        """Return the card so cared for. Raises BadInput for what is no version or no time."""
        if self.expires_at is not None and self.expires_at.tzinfo is None:
            raise BadInput("The time of expiry needs its zone.", "Write it like 2027-01-31T00:00:00Z.")
        given = self.model_dump(exclude_none=True)
        if self.valid_for is not None:
            given["valid_for"] = check_valid_for(self.valid_for)
        return card.model_copy(update=given)


def cared_for(card: Card, care: Care, reason: str) -> Decision:
    """Change who looks after a card, and how long and for what it holds."""
    changed = care.of(card)
    return None if changed == card else (changed, reason)


def rated(card: Card, rating: Rating, settings: CardSettings) -> Decision:
    """Count a person's word on a card, in place of their earlier one on the same task."""
    earlier = [each for each in card.ratings if (each.by, each.task) == (rating.by, rating.task)]
    others = [each for each in card.ratings if each not in earlier]
    heard = card.model_copy(update={"ratings": others})
    for each in earlier:
        heard = without_outcome(heard, _outcome(each))
    counted = heard.model_copy(update={"ratings": [*others, rating]})
    said = f"{rating.by} says that it {'served' if rating.good else 'did not serve'}"
    said += f": {rating.comment}" if rating.comment else ""
    if rating.task and rating.task in card.evidence.task_ids:  # the task itself counts already
        return counted, said
    return reinforced(counted, _outcome(rating), said, settings)


def _outcome(rating: Rating) -> TaskOutcome:
    name = f"rated by {rating.by}" + (f" in {rating.task}" if rating.task else "")
    return TaskOutcome(task=name, success=rating.good, confidence=SERVED)


def superseded(card: Card, by: Card, reason: str) -> Decision:
    """Replace a card by another, which is strictly superior (§5). Raises BadInput where that cannot be."""
    if by.id == card.id:
        raise BadInput(f"{card.id} cannot replace itself.", "Name the card that replaces it.")
    if not is_in_service(by) or by.flags:
        why = "flagged" if by.flags else by.status
        raise BadInput(f"{by.id} is {why}: it can replace no card.", "Restore it, or clear its flags, first.")
    if card.status == "deprecated" and card.superseded_by == by.id:
        return None
    return out_of_service(card, "deprecated", reason, by.id), f"superseded by {by.id}: {reason}"
