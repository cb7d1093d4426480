"""How cards live (§5): what makes one verified, deprecated, archived, proven; every rule a pure function.

Where the paper leaves a choice, the choice is a setting:

- *Successes to verify.* §6's drawing says three, §7's run promotes on the second success. The default is
  two: §7 is the only place where the rules are carried out with numbers, and two successes are no
  promotion by themselves, since rubric, objections and the leader's approval are required as well.
- *Confidence* is the mean over a card's tasks of the leader's confidence, a failed task counting 0. It
  gives both of the paper's figures: 0.75 and 0.88 make 0.82 (§7), 23 of 25 make 0.92 (§6).
- *Long-proven* cards, which do not age (§4): verified, with at least `proven_successes` successes at a
  rate of at least `proven_rate`.
- *Success* saturates, since the first successes say more than the hundredth: n / (n + saturation) times
  the success rate, so that 3 successes in 3 tasks count 0.5 and 23 in 25 count 0.81.
- *Strictly better* (obsolescence): verified, newer, of the same scope, ahead in confidence and
  not behind in success rate, on at least as many successes as are needed to verify.
"""

from collections.abc import Sequence
from datetime import datetime

from pydantic import BaseModel, ConfigDict, Field

from stores.cards import WINDOW, Card, Evidence, Outcome
from stores.engine import Ranking

SECONDS_A_DAY = 86_400


class CardSettings(BaseModel):
    """The thresholds of a team's cards; the defaults are the paper's where it names one.

    What decides whether a card is proven, and `saturation`, is worked out when a version is written.
    """

    model_config = ConfigDict(frozen=True)

    successes_to_verify: int = Field(2, ge=1)
    rubric_to_verify: int = Field(3, ge=1, le=4)
    inactive_tasks: int = Field(100, ge=1)
    failing_below: float = Field(0.30, ge=0, le=1)
    proven_successes: int = Field(10, ge=1)
    proven_rate: float = Field(0.8, ge=0, le=1)
    saturation: float = Field(3.0, gt=0)
    half_life_days: float = Field(90.0, gt=0, description="Age at which the recency part has halved.")
    candidates: int = Field(128, ge=1, description="Most similar cards that the weights then rank.")
    dispute_rounds: int = Field(2, ge=1)
    clustered_over: int = Field(20_000, ge=0, description="Cards in use over which clusters are made (§10).")
    recluster_at: float = Field(0.1, gt=0, le=1, description="Share of cards in no cluster that is too much.")
    probed: int = Field(16, ge=1, description="Clusters that a retrieval drills down into.")


class Rubric(BaseModel):
    """§5's four questions about a card that stands for promotion."""

    model_config = ConfigDict(frozen=True)

    solved: bool
    faster_or_novel: bool
    no_new_failures: bool
    reusable: bool

    @property
    def score(self) -> int:
        return self.solved + self.faster_or_novel + self.no_new_failures + self.reusable


class Approval(BaseModel):
    """The leader's decision on a promotion, with what it rests on."""

    model_config = ConfigDict(frozen=True)

    by: str = Field(min_length=1)
    approved: bool
    rubric: Rubric
    open_blocking: int = Field(0, ge=0, description="Blocking objections that are still open.")
    reason: str = ""


def ranking(settings: CardSettings) -> Ranking:
    """Return §4's formula: similarity 0.40, confidence 0.25, recency 0.15, success 0.20."""
    return Ranking(
        similarity=0.40,
        fields={"confidence": 0.25, "success": 0.20},
        recency=0.15,
        half_life_days=settings.half_life_days,
        aged_from="renewed",
        ageless="proven",
        candidates=settings.candidates,
    )


def derived(card: Card, settings: CardSettings) -> dict[str, float]:
    """Return the numbers that the formula reads beside the confidence; `renewed` is in days since 1970."""
    renewed: datetime = card.renewed_at or card.provenance.created_at
    return {
        "success": success_share(card.evidence, settings),
        "proven": 1.0 if is_proven(card, settings) else 0.0,
        "renewed": renewed.timestamp() / SECONDS_A_DAY,
    }


def success_share(evidence: Evidence, settings: CardSettings) -> float:
    """Return 0 to 1: how often the card was right, and how often it has been tried."""
    successes = evidence.success_count
    return evidence.success_rate * successes / (successes + settings.saturation)


def is_proven(card: Card, settings: CardSettings) -> bool:
    """Say whether a card has been right so often and so long that it does not age."""
    evidence = card.evidence
    return (
        card.status == "verified"
        and evidence.success_count >= settings.proven_successes
        and evidence.success_rate >= settings.proven_rate
    )


def with_outcomes(card: Card, outcomes: Sequence[Outcome]) -> Card:
    """Add tasks to a card's evidence; a task that it knows already changes nothing."""
    for outcome in outcomes:
        if outcome.task not in card.evidence.task_ids:
            card = _with_outcome(card, outcome)
    return card


def _with_outcome(card: Card, outcome: Outcome) -> Card:
    before = card.evidence
    evidence = Evidence(
        task_ids=[*before.task_ids, outcome.task],
        success_count=before.success_count + outcome.success,
        failure_count=before.failure_count + (not outcome.success),
        recent=[*before.recent, outcome][-WINDOW:],
    )
    confidence = card.confidence + (outcome.worth - card.confidence) / evidence.count
    return card.model_copy(update={"evidence": evidence, "confidence": min(1.0, max(0.0, confidence))})


def against_promotion(card: Card, approval: Approval, settings: CardSettings) -> list[str]:
    """Return why a card cannot become verified; nothing where it can.

    The task must be solved whatever else the rubric says (§5, promotion rule 1).
    """
    rubric, needed = approval.rubric, settings.successes_to_verify
    tests = [
        (card.status == "provisional", f"it is {card.status}, not provisional"),
        (not card.flags, "it is flagged as instructing agents"),
        (approval.approved, f"{approval.by} does not approve"),
        (approval.open_blocking == 0, f"{approval.open_blocking} blocking objections are open"),
        (rubric.solved, "the task was not solved"),
        (rubric.score >= settings.rubric_to_verify, f"the rubric gives {rubric.score} of 4"),
        (
            card.evidence.success_count >= needed,
            f"it has {card.evidence.success_count} successes of the {needed} that are needed",
        ),
    ]
    return [why for passes, why in tests if not passes]


def why_failing(card: Card, settings: CardSettings) -> str:
    """Return why a card is to be deprecated for repeated failure; nothing where it is not."""
    rate = card.evidence.recent_rate
    if rate is None or rate >= settings.failing_below:
        return ""
    return f"{rate:.0%} success over the last {WINDOW} tasks, below {settings.failing_below:.0%}"


def against_superseding(old: Card, new: Card, settings: CardSettings) -> list[str]:
    """Return why the new card is not strictly better than the old one; nothing where it is."""
    tests = [
        (old.id != new.id, "a card cannot replace itself"),
        (new.status == "verified", f"{new.id} is {new.status}, not verified"),
        (
            new.scope == old.scope,
            f"{new.id} is about {new.scope or 'anything'}, not {old.scope or 'anything'}",
        ),
        (new.provenance.created_at > old.provenance.created_at, f"{new.id} is not newer"),
        (new.confidence > old.confidence, f"{new.id} is not more certain"),
        (new.evidence.success_rate >= old.evidence.success_rate, f"{new.id} succeeds less often"),
        (
            new.evidence.success_count >= settings.successes_to_verify,
            f"{new.id} has {new.evidence.success_count} successes",
        ),
    ]
    return [why for passes, why in tests if not passes]
