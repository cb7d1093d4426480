"""How cards live (§5, §6): what makes one verified, deprecated, archived or restored. All functions are pure.

*Confidence* is the mean over a card's tasks of the leader's confidence, a failed task counting 0. It
gives both of the paper's figures: 0.75 and 0.88 make 0.82 (§7), 23 of 25 make 0.92 (§6).

A *rating* counts as §5's user satisfaction, and as a task of its own in a card's evidence: what a model alone
judged is confirmed, or refuted, by people. A person has one word on a card for each task; a second one takes
the first back.

*Obsolescence*, a newer card that is strictly superior, is not decided here: the newer finding opens a
dispute, whose tests on similar tasks show which of the two is better (`deprecate_old`).
"""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Literal

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version
from pydantic import Field

from mneme.core.errors import BadInput
from mneme.stores.cards.card import (
    SUCCESS_WINDOW,
    Card,
    CardSettings,
    Decision,
    DeprecatedApproach,
    Evidence,
    FailureMode,
    Frozen,
    Lesson,
    Provenance,
    Rating,
    TaskOutcome,
    flags_of,
    normalised,
)
from mneme.stores.ledger.records import Change


class PromotionRubric(Frozen):
    """The four questions of §5 about a card that is a candidate for promotion."""

    solved: bool
    faster_or_novel: bool
    no_new_failures: bool
    reusable: bool

    @property
    def score(self) -> int:
        return self.solved + self.faster_or_novel + self.no_new_failures + self.reusable


class Approval(Frozen):
    """The leader's decision on a promotion, with its basis."""

    by: str = Field(min_length=1)
    approved: bool
    rubric: PromotionRubric
    open_blocking: int = Field(0, ge=0, description="Blocking objections that are still open.")
    reason: str = ""
    at_creation: bool = Field(False, description="Of a card whose one task was measured (§3, step 5).")


MAJORITY = 0.5
SURE_CONFIDENCE = 0.8
"""The confidence above which a card may be verified as it is created."""


def with_outcomes(card: Card, outcomes: Iterable[TaskOutcome], times: Literal[1, -1] = 1) -> Card:
    """Add tasks to a card's evidence, or remove them (`times` is -1); confidence is a mean.

    A task is not added twice, and a task that the evidence lacks is not removed.
    """
    for outcome in outcomes:
        before = card.evidence
        if (outcome.task in before.task_ids) == (times > 0):
            continue
        others = [each for each in before.task_ids if each != outcome.task]
        recent = [each for each in before.recent if each.task != outcome.task]
        evidence = Evidence(
            task_ids=[*others, outcome.task] if times > 0 else others,
            success_count=before.success_count + times * outcome.success,
            failure_count=before.failure_count + times * (not outcome.success),
            recent=[*recent, outcome][-SUCCESS_WINDOW:] if times > 0 else recent,
        )
        # A failed task counts 0, whatever the leader's confidence was; the bounds are for rounding.
        total = card.confidence * before.count + times * outcome.success * outcome.confidence
        confidence = min(1.0, max(0.0, total / evidence.count)) if evidence.count else card.confidence
        card = card.model_copy(update={"evidence": evidence, "confidence": confidence})
    return card


def reinforced(card: Card, outcome: TaskOutcome, reason: str, settings: CardSettings) -> Decision:
    """Count a task; deprecate a card that fails too often, restore an archived one on success."""
    if outcome.task in card.evidence.task_ids:
        return None
    counted = with_outcomes(card, [outcome])
    said = f"{'success' if outcome.success else 'failure'} in {outcome.task}: {reason}"
    rate, least = counted.evidence.recent_rate, settings.failing_below
    if rate is not None and rate < least and is_in_service(counted):  # §5: repeated failure
        failing = f"{rate:.0%} success over the last {SUCCESS_WINDOW} tasks, below {least:.0%}"
        return deprecated(counted, f"{failing} ({said})")
    if counted.status == "archived" and outcome.success:  # archived as not needed, yet it served
        counted = counted.model_copy(update={"status": counted.returns_to})
    return counted, said


def promoted(card: Card, approval: Approval, reason: str, settings: CardSettings) -> Decision:
    """Verify a card that meets its rubric: promotion. Raises BadInput with every reason against it."""
    if card.status == "verified":
        return None
    against = against_promotion(card, approval, settings)
    if against:
        raise BadInput(f"{card.id} cannot be promoted: {'; '.join(against)}.")
    update = {"status": "verified", "returns_to": "verified"}
    return card.model_copy(update=update), f"promoted by {approval.by}: {reason}"


def against_promotion(card: Card, approval: Approval, settings: CardSettings) -> list[str]:
    """Return the reasons against verifying a card by §5's promotion rules, if any."""
    rubric, needed = approval.rubric, settings.successes_to_verify
    if (card.satisfaction or 0.0) > MAJORITY:  # rule 3: user satisfaction is a measurable improvement, too
        rubric = rubric.model_copy(update={"faster_or_novel": True})
    if approval.at_creation and card.confidence > SURE_CONFIDENCE:  # §3, step 5
        needed = 1
    tests = [
        (card.status == "provisional", f"it is {card.status}, not provisional"),
        (not card.flags, "it is flagged as instructing agents"),
        (approval.approved, f"{approval.by} does not approve"),  # "only the Leader can promote"
        (approval.open_blocking == 0, f"{approval.open_blocking} blocking objections are open"),  # rule 2
        (rubric.solved, "the task was not solved"),  # rule 1, also where the rubric has its 3 points
        (rubric.score >= settings.rubric_to_verify, f"the rubric gives {rubric.score} of 4"),
        (
            card.evidence.success_count >= needed,
            f"it has {card.evidence.success_count} successes of the {needed} that are needed",
        ),
    ]
    return [why for passes, why in tests if not passes]


def deprecated(card: Card, reason: str) -> Decision:
    """Take a card out of retrieval with a reason: its deprecation."""
    return None if card.status == "deprecated" else (out_of_service(card, "deprecated", reason), reason)


def archived(card: Card, reason: str, *, disputed: bool = False) -> Decision:
    """Take a card that is not needed now out of retrieval; a `disputed` one only on request."""
    in_use = card.status in ("provisional", "verified") or (disputed and card.disputed)
    return (out_of_service(card, "archived"), reason) if in_use else None


def restored(card: Card, reason: str) -> Decision:
    """Return a deprecated or archived card to its earlier status, with an empty window of outcomes."""
    if is_in_service(card):
        return None
    update = {
        "status": card.returns_to,
        "superseded_by": "",
        "deprecated_because": "",
        "evidence": card.evidence.model_copy(update={"recent": []}),  # else the next failure takes it back
    }
    return card.model_copy(update=update), reason


def is_in_service(card: Card) -> bool:
    """Return whether a card is neither deprecated nor archived."""
    return card.status not in ("deprecated", "archived")


def out_of_service(
    card: Card, status: Literal["deprecated", "archived"], because: str = "", by: str = ""
) -> Card:
    """Return a card taken out of service, with the status to which it may return; `by` replaces it."""
    stood = card.status if card.status in ("provisional", "verified") else card.returns_to
    update = {"status": status, "returns_to": stood, "deprecated_because": because, "superseded_by": by}
    return card.model_copy(update=update)


def untested_card(lesson: Lesson, change: Change, confidence: float) -> Card:
    """Return the card of a lesson, without evidence from tasks."""
    provenance = Provenance(created_by=change.actor, created_at=datetime.now(UTC), model_version=change.model)
    return Card(
        **{name: getattr(lesson, name) for name in Lesson.model_fields},
        id=lesson.card_id,
        provenance=provenance,
        confidence=confidence,
    )


def with_details(card: Card, lesson: Lesson) -> Card:
    """Add a later lesson's failure modes, dead ends, example and tags; claim, rationale and rules stay."""
    if flags_of(lesson):  # what reads like an instruction would take the whole card out of retrieval
        return card
    dead_ends = dict[tuple[str, str], DeprecatedApproach]()
    for each in (*card.deprecated_approaches, *lesson.deprecated_approaches):
        name = normalised(each.approach), normalised(each.condition)
        here = dead_ends.get(name, each)  # the tasks of both, and the best gain
        gained = max((part.gained for part in (here, each) if part.gained is not None), default=None)
        failed_in = list(dict.fromkeys([*here.failed_in, *each.failed_in]))
        dead_ends[name] = here.model_copy(update={"failed_in": failed_in, "gained": gained})
    failures: dict[str, FailureMode] = {}
    for mode in (*card.failure_modes, *lesson.failure_modes):
        failures.setdefault(normalised(mode.condition), mode)
    return card.model_copy(
        update={
            "deprecated_approaches": [*dead_ends.values()],
            "failure_modes": [*failures.values()],
            "example": card.example or lesson.example,
            "tags": list(dict.fromkeys([*card.tags, *lesson.tags])),
        }
    )


def holds_for(valid_for: str, versions: Mapping[str, str]) -> bool | None:
    """Return whether a card is valid for these versions; None if they do not tell."""
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
    with suppress(InvalidRequirement):
        read = Requirement(text)
        if read.specifier and not (read.url or read.extras or read.marker):
            return read
    raise BadInput(f"{text!r} names no version.", "Write it like sqlite>=3.40 or python>=3.11,<4.")


SERVED_CONFIDENCE = 0.8
"""The confidence of a person's rating; a higher one could verify a card at once (§3, step 5)."""


class Care(Frozen):
    """Maintenance of a card: who maintains it, until when and for which versions; None: unchanged."""

    owner: str | None = None
    expires_at: datetime | None = None
    valid_for: str | None = None

    def of(self, card: Card) -> Card:
        """Return the card with these changes. Raises BadInput for an invalid version or time."""
        if self.expires_at is not None and self.expires_at.tzinfo is None:
            raise BadInput("The time of expiry needs its zone.", "Write it like 2027-01-31T00:00:00Z.")
        given = self.model_dump(exclude_none=True)
        if self.valid_for is not None:
            given["valid_for"] = str(_read(self.valid_for)) if self.valid_for.strip() else ""
        return card.model_copy(update=given)


def cared_for(card: Card, care: Care, reason: str) -> Decision:
    """Change a card's maintainer, expiry date and versions."""
    changed = care.of(card)
    return None if changed == card else (changed, reason)


def rated(card: Card, rating: Rating, settings: CardSettings) -> Decision:
    """Add a person's rating to a card, in place of their earlier one on the same task."""
    earlier = [each for each in card.ratings if (each.by, each.task) == (rating.by, rating.task)]
    ratings = [*(each for each in card.ratings if each not in earlier), rating]
    counted = with_outcomes(card.model_copy(update={"ratings": ratings}), map(_outcome, earlier), -1)
    said = f"{rating.by} says that it {'served' if rating.good else 'did not serve'}"
    said += f": {rating.comment}" if rating.comment else ""
    if rating.task and rating.task in card.evidence.task_ids:  # the task is already counted itself
        return counted, said
    return reinforced(counted, _outcome(rating), said, settings)


def _outcome(rating: Rating) -> TaskOutcome:
    name = f"rated by {rating.by}" + (f" in {rating.task}" if rating.task else "")
    return TaskOutcome(task=name, success=rating.good, confidence=SERVED_CONFIDENCE)


def superseded(card: Card, by: Card, reason: str) -> Decision:
    """Replace a card by a strictly superior one (§5). Raises BadInput if `by` cannot replace it."""
    if by.id == card.id:
        raise BadInput(f"{card.id} cannot replace itself.", "Name the card that replaces it.")
    if not is_in_service(by) or by.flags:
        why = "flagged" if by.flags else by.status
        raise BadInput(f"{by.id} is {why}: it can replace no card.", "Restore it, or clear its flags, first.")
    if card.status == "deprecated" and card.superseded_by == by.id:
        return None
    return out_of_service(card, "deprecated", reason, by.id), f"superseded by {by.id}: {reason}"
