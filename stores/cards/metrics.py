"""What §10 watches: every metric, computed from the log of tasks, the cards and the disputes, and alerts.

Definitions, where the paper gives a name only:

- Time to solution: seconds of solved tasks. Its increase compares the median of the latest tasks with
  that of as many before them (`compared_tasks` at most), which is silent under five of each.
- First-attempt success: tasks that their first draft solved, of all tasks.
- Retrieval precision: cards used of cards shown, over all tasks that were shown any.
- Duplicate mistakes: mistakes that an earlier task had made already, of all mistakes.
- Verified growth: cards verified now less those 30 days ago, as a share of the latter where there were any.
- Deprecated rate: cards deprecated in the last 30 days, of those that were in service in that time.
- Provisional to verified: a ratio to at least one verified card.
"""

from collections.abc import Iterable, Mapping, Sequence, Set
from datetime import datetime, timedelta
from typing import Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from mneme.stores.cards.card import Card, Status
from mneme.stores.cards.disputes import Dispute
from mneme.stores.cards.task_log import TaskRecord

MONTH = timedelta(days=30)
FEWEST = 5
OUT_OF_SERVICE: Set[Status] = {"deprecated", "archived"}


class Thresholds(BaseModel):
    """§10's alerts: three that are critical, two that warn."""

    model_config = ConfigDict(frozen=True)

    slower: float = Field(0.20, description="Critical: time to solution increases by more.")
    dispute_days: float = Field(7, description="Critical: a dispute stays open longer.")
    deprecated_a_month: float = Field(0.10, description="Critical: more of the cards are deprecated.")
    precision: float = Field(0.60, description="Warning: less of what is retrieved is used.")
    provisional_to_verified: float = Field(5.0, description="Warning: more provisional cards for each.")
    compared_tasks: int = Field(50, ge=FEWEST)


class Alert(BaseModel):
    """A threshold that has been passed."""

    model_config = ConfigDict(frozen=True)

    level: Literal["critical", "warning"]
    metric: str
    message: str


class Metrics(BaseModel):
    """Every metric of §10; None where there is nothing to compute it from."""

    model_config = ConfigDict(frozen=True)

    tasks: int
    cards: dict[Status, int]
    seconds_p50: float | None
    seconds_p95: float | None
    seconds_increase: float | None
    iterations_per_task: float | None
    first_attempt_success: float | None
    retrieval_precision: float | None
    retrieval_p95_ms: float | None
    duplicate_mistake_rate: float | None
    satisfaction: float | None = Field(None, description="Ratings by people that were good, of all.")
    verified: int
    verified_growth: int
    verified_growth_rate: float | None
    deprecated_rate: float | None
    provisional_to_verified: float
    disputes_open: int
    dispute_days_p50: float | None
    dispute_days_longest_open: float | None
    alerts: list[Alert] = []


def compute(  # noqa: PLR0913 (one name for each thing that is computed from)
    tasks: Sequence[TaskRecord],
    cards: Mapping[str, Card],
    month_ago: Mapping[str, Card],
    disputes: Sequence[Dispute],
    *,
    now: datetime,
    thresholds: Thresholds,
) -> Metrics:
    """Compute every metric from what is now and what the cards were a month ago, both by their ids."""
    seconds = [task.seconds for task in tasks if task.solved]
    retrieval = [task.retrieval_ms for task in tasks if task.retrieval_ms is not None]
    verified, before = _in(cards, "verified"), _in(month_ago, "verified")
    lengths = [_days(dispute, now) for dispute in disputes]
    open_ = [_days(dispute, now) for dispute in disputes if dispute.unresolved]
    counts: dict[Status, int] = {}
    for card in cards.values():
        counts[card.status] = counts.get(card.status, 0) + 1
    metrics = Metrics(
        tasks=len(tasks),
        cards=counts,
        seconds_p50=_percentile(seconds, 50),
        seconds_p95=_percentile(seconds, 95),
        seconds_increase=_increase(seconds, thresholds.compared_tasks),
        iterations_per_task=_mean([task.iterations for task in tasks]),
        first_attempt_success=_mean([task.first_attempt for task in tasks]),
        retrieval_precision=retrieval_precision(tasks),
        retrieval_p95_ms=_percentile(retrieval, 95),
        duplicate_mistake_rate=duplicate_mistakes(task.mistakes for task in tasks),
        satisfaction=_mean([each.good for card in cards.values() for each in card.ratings]),
        verified=verified,
        verified_growth=verified - before,
        verified_growth_rate=(verified - before) / before if before else None,
        deprecated_rate=_deprecated_rate(cards, month_ago),
        provisional_to_verified=_in(cards, "provisional") / max(verified, 1),
        disputes_open=len(open_),
        dispute_days_p50=_percentile(lengths, 50),
        dispute_days_longest_open=max(open_, default=None),
    )
    return metrics.model_copy(update={"alerts": alerts(metrics, thresholds)})


def alerts(metrics: Metrics, thresholds: Thresholds) -> list[Alert]:
    """Return the alerts that these metrics raise, the critical ones first."""
    slower, days, gone = metrics.seconds_increase, metrics.dispute_days_longest_open, metrics.deprecated_rate
    precision, ratio = metrics.retrieval_precision, metrics.provisional_to_verified
    raised: list[Alert] = []
    if slower is not None and slower > thresholds.slower:
        raised.append(_critical("time to solution", f"{slower:.0%} longer than before"))
    if days is not None and days > thresholds.dispute_days:
        raised.append(_critical("dispute duration", f"a dispute has been open for {days:.1f} days"))
    if gone is not None and gone > thresholds.deprecated_a_month:
        raised.append(_critical("deprecated rate", f"{gone:.0%} of the cards were deprecated in a month"))
    if precision is not None and precision < thresholds.precision:
        raised.append(_warning("retrieval precision", f"{precision:.0%} of the retrieved cards were used"))
    if ratio > thresholds.provisional_to_verified:
        raised.append(_warning("provisional to verified", f"{ratio:.3g} provisional cards for each verified"))
    return raised


def _critical(metric: str, message: str) -> Alert:
    return Alert(level="critical", metric=metric, message=message)


def _warning(metric: str, message: str) -> Alert:
    return Alert(level="warning", metric=metric, message=message)


def _in(cards: Mapping[str, Card], status: Status) -> int:
    return sum(card.status == status for card in cards.values())


def _days(dispute: Dispute, now: datetime) -> float:
    return ((dispute.resolved_at or now) - dispute.opened_at).total_seconds() / 86_400


def _percentile(values: Sequence[float], percent: float) -> float | None:
    return float(np.percentile(values, percent)) if values else None


def _mean(values: Sequence[float]) -> float | None:
    return float(np.mean(values)) if values else None


def _increase(seconds: Sequence[float], compared: int) -> float | None:
    count = min(compared, len(seconds) // 2)
    if count < FEWEST:
        return None
    before, latest = np.median(seconds[-2 * count : -count]), np.median(seconds[-count:])
    return float(latest / before - 1) if before else None


def retrieval_precision(tasks: Sequence[TaskRecord]) -> float | None:
    """Return the share of the cards shown that were used; None where none was shown."""
    shown = sum(len(set(task.retrieved)) for task in tasks)
    used = sum(len(set(task.retrieved) & set(task.used)) for task in tasks)
    return used / shown if shown else None


def duplicate_mistakes(tasks: Iterable[Iterable[str]], known: Iterable[Iterable[str]] = ()) -> float | None:
    """Return which share of the mistakes some task before made, `known` ones too; None without mistakes.

    Within a task each counts once. A mistake without a name is like no other, and is not counted.
    """
    seen = {name for before in known for name in before}
    made = repeated = 0
    for task in tasks:
        mistakes = {name for name in task if _is_named(name)}
        made += len(mistakes)
        repeated += len(mistakes & seen)
        seen |= mistakes
    return repeated / made if made else None


def _is_named(mistake: str) -> bool:
    """Say whether a mistake names an approach; earlier versions logged some without, as " for …"."""
    return bool(f" {mistake}".partition(" for ")[0].strip())


def _is_dead_end(card: Card) -> bool:
    """Say whether a card was kept as what not to try: it never was in service."""
    return card.status == "deprecated" and card.evidence.success_count == 0


def _deprecated_rate(cards: Mapping[str, Card], month_ago: Mapping[str, Card]) -> float | None:
    was_out = {card_id for card_id, card in month_ago.items() if card.status in OUT_OF_SERVICE}
    in_service = {card_id for card_id in cards.keys() - was_out if not _is_dead_end(cards[card_id])}
    gone = sum(cards[card_id].status == "deprecated" for card_id in in_service)
    return gone / len(in_service) if in_service else None
