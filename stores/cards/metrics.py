"""Every metric of §10, from the log of tasks, the cards and the disputes, alerts and trends.

Definitions, where the paper gives a name only:

- Time to solution: seconds of solved tasks. Its increase compares the median of the latest tasks with
  that of as many before them (`compared_tasks` at most), which is silent under five of each.
- First-attempt success: tasks that their first draft solved, of all tasks.
- Retrieval precision: cards used of cards shown, over all tasks that were shown any.
- Duplicate mistakes: mistakes that an earlier task had made already, of all mistakes.
- Verified growth: cards verified now less those 30 days ago, as a share of the latter where there were any.
- Deprecated rate: cards deprecated in the last 30 days, of those that were in service in that time.
- Provisional to verified: a ratio to at least one verified card.

A trend (§11, 5) is the same over periods of time. Everything in it is counted where it happened: tasks by
when they were logged, outcomes, promotions and deprecations by the version of the card that has them,
ratings by when they were given, those that somebody took back later too. What was forgotten is in no period.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from statistics import fmean, median
from typing import Any, Literal, NamedTuple, Self

from pydantic import BaseModel, Field

from mneme.stores.cards.card import Card, CardVersion, Frozen, Rating, Status
from mneme.stores.cards.disputes import Dispute
from mneme.stores.cards.lifecycle import is_in_service
from mneme.stores.ledger.ledger import Ledger
from mneme.stores.ledger.records import Change, Version, team_namespace
from mneme.stores.shelf import RecordKind, Shelf


class TaskRecord(BaseModel, frozen=True, extra="forbid"):
    """One finished task.

    `mistakes` names what went wrong in a draft, each by a name that is the same whenever the same thing
    goes wrong again (for instance "kind: approach"): a mistake that an earlier task made is a duplicate.
    """

    id: str = Field(min_length=1)
    task: str = Field("", description="The task in words.")
    material: str = Field("", description="What the task was about, as its world showed it, shortened.")
    domain: str = ""
    world: str = Field("", description="The name of its world, where that can open the task again.")
    posed: dict[str, Any] = Field({}, description="What its world reads of it to do so.")
    solved: bool
    seconds: float = Field(ge=0, description="From the task's arrival to its resolution.")
    iterations: int = Field(ge=1, description="Drafts, the first one included.")
    model_calls: int = Field(0, ge=0)
    tokens: int = Field(0, ge=0)
    confidence: float = Field(0.0, ge=0, le=1)
    speed_up: float | None = Field(None, description="Where an environment measured it.")
    retrieved: list[str] = Field([], description="Ids of the cards that were shown.")
    used: list[str] = Field([], description="Ids of the cards that the solution rests on.")
    retrieval_ms: float | None = Field(None, ge=0)
    mistakes: list[str] = []
    cards: list[str] = Field([], description="Ids of cards that the task created or changed.")
    disputes: list[str] = []
    answered_by: str = ""
    at: datetime | None = Field(None, description="When it was logged; set by the log.")

    @property
    def first_attempt(self) -> bool:
        """Return whether the first draft solved the task."""
        return self.solved and self.iterations == 1

    @classmethod
    def of(cls, version: Version) -> Self:
        """Read a task back from its record."""
        return cls.model_validate({**version.value, "at": version.value.get("at") or version.created})


class TaskLog(Shelf[TaskRecord, TaskRecord]):
    """The finished tasks of one team."""

    def __init__(self, ledger: Ledger, team: str) -> None:
        super().__init__(ledger, team_namespace(team, "tasks"), RecordKind(TaskRecord.of))

    async def add(self, record: TaskRecord) -> bool:
        """Add a finished task to the log; return False if it is there already."""
        return await self.add_new(record.id, record, change=Change(reason="finished", actor="task log"))


MONTH = timedelta(days=30)
MIN_TASKS = 5
OUT_OF_SERVICE: Set[Status] = {"deprecated", "archived"}


class Thresholds(Frozen):
    """§10's alerts: three that are critical, two that warn."""

    slower: float = Field(0.20, description="Critical: time to solution increases by more.")
    dispute_days: float = Field(7, description="Critical: a dispute stays open longer.")
    deprecated_a_month: float = Field(0.10, description="Critical: more of the cards are deprecated.")
    precision: float = Field(0.60, description="Warning: less of what is retrieved is used.")
    provisional_to_verified: float = Field(5.0, description="Warning: more provisional cards for each.")
    compared_tasks: int = Field(50, ge=MIN_TASKS)


class Alert(Frozen):
    """A metric beyond its threshold."""

    level: Literal["critical", "warning"]
    metric: str
    message: str


class Metrics(Frozen):
    """Every metric of §10; None where there is nothing to compute it from."""

    tasks: int
    cards: dict[Status, int] = Field(description="By their status, without dead ends.")
    dead_ends: int = Field(description="Cards that were kept as not to be tried.")
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
    alerts: list[Alert] = Field([])


def compute(  # noqa: PLR0913 (one name for each thing that is computed from)
    tasks: Sequence[TaskRecord],
    cards: Mapping[str, Card],
    month_ago: Mapping[str, Card],
    disputes: Sequence[Dispute],
    *,
    now: datetime,
    thresholds: Thresholds,
) -> Metrics:
    """Compute every metric from the current state and the cards of a month ago, both by id."""
    seconds = [task.seconds for task in tasks if task.solved]
    retrieval = [task.retrieval_ms for task in tasks if task.retrieval_ms is not None]
    # Dead ends are deprecated from the start: among the deprecated they would look like failures of cards.
    dead_ends = sum(card.is_dead_end for card in cards.values())
    counts = Counter(card.status for card in cards.values() if not card.is_dead_end)
    verified, before = counts["verified"], sum(card.status == "verified" for card in month_ago.values())
    lengths = [_days(dispute, now) for dispute in disputes]
    open_ = [_days(dispute, now) for dispute in disputes if dispute.unresolved]
    metrics = Metrics(
        tasks=len(tasks),
        cards=dict(counts),
        dead_ends=dead_ends,
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
        provisional_to_verified=counts["provisional"] / max(verified, 1),
        disputes_open=len(open_),
        dispute_days_p50=_percentile(lengths, 50),
        dispute_days_longest_open=max(open_, default=None),
    )
    return metrics.model_copy(update={"alerts": alerts(metrics, thresholds)})


def alerts(metrics: Metrics, thresholds: Thresholds) -> list[Alert]:
    """Return the alerts that these metrics raise, the critical ones first."""
    slower, days, gone = metrics.seconds_increase, metrics.dispute_days_longest_open, metrics.deprecated_rate
    precision, ratio = metrics.retrieval_precision, metrics.provisional_to_verified
    critical, warning = {}, {}
    if slower is not None and slower > thresholds.slower:
        critical["time to solution"] = f"{slower:.0%} longer than before"
    if days is not None and days > thresholds.dispute_days:
        critical["dispute duration"] = f"a dispute has been open for {days:.1f} days"
    if gone is not None and gone > thresholds.deprecated_a_month:
        critical["deprecated rate"] = f"{gone:.0%} of the cards were deprecated in a month"
    if precision is not None and precision < thresholds.precision:
        warning["retrieval precision"] = f"{precision:.0%} of the retrieved cards were used"
    if ratio > thresholds.provisional_to_verified:
        warning["provisional to verified"] = f"{ratio:.3g} provisional cards for each verified"
    found = [Alert(level="critical", metric=name, message=message) for name, message in critical.items()]
    return found + [Alert(level="warning", metric=name, message=each) for name, each in warning.items()]


def _days(dispute: Dispute, now: datetime) -> float:
    return ((dispute.resolved_at or now) - dispute.opened_at).total_seconds() / 86_400


def _percentile(values: Sequence[float], percent: float) -> float | None:
    import numpy as np  # noqa: PLC0415  (slow to import)

    return float(np.percentile(values, percent)) if values else None


def _mean(values: Sequence[float]) -> float | None:
    return fmean(values) if values else None


def _increase(seconds: Sequence[float], compared: int) -> float | None:
    count = min(compared, len(seconds) // 2)  # the two halves never overlap
    if count < MIN_TASKS:
        return None
    before, latest = median(seconds[-2 * count : -count]), median(seconds[-count:])
    return latest / before - 1 if before else None


def retrieval_precision(tasks: Sequence[TaskRecord]) -> float | None:
    """Return the share of the cards shown that were used; None where none was shown."""
    shown = sum(len(set(task.retrieved)) for task in tasks)
    used = sum(len(set(task.retrieved) & set(task.used)) for task in tasks)
    return used / shown if shown else None


def duplicate_mistakes(tasks: Iterable[Iterable[str]], known: Iterable[Iterable[str]] = ()) -> float | None:
    """Return the share of mistakes that an earlier or `known` task had made; None without mistakes.

    Within a task each counts once. A mistake without a name is like no other, and is not counted.
    """
    seen = {name for before in known for name in before}
    made = repeated = 0
    for task in tasks:
        # earlier versions logged some without an approach, as " for …"
        mistakes = {name for name in task if f" {name}".partition(" for ")[0].strip()}
        made += len(mistakes)
        repeated += len(mistakes & seen)
        seen |= mistakes
    return repeated / made if made else None


def _deprecated_rate(cards: Mapping[str, Card], month_ago: Mapping[str, Card]) -> float | None:
    # Only cards that were in service in the month: those out before it could not be deprecated in it.
    was_out = {card_id for card_id, card in month_ago.items() if card.status in OUT_OF_SERVICE}
    known = [card for card_id, card in cards.items() if card_id not in was_out]
    return _mean([card.status == "deprecated" for card in known if not card.is_dead_end])


Unit = Literal["day", "week", "month", "quarter", "year"]
History = Sequence[CardVersion]
INSTANT = timedelta(microseconds=1)
"""The ledger's times are no finer, so that a period begins just after the one before."""
UNITS: Mapping[Unit, str] = {"day": "D", "week": "W", "month": "M", "quarter": "3M", "year": "Y"}
"""The periods as numpy calls them."""


class Period(Frozen):
    """A team's learning in one period; None where there is nothing to compute it from."""

    begins: datetime
    ends: datetime
    tasks: int
    reuse: float | None = Field(description="Tasks whose answer rests on a card, of all.")
    retrieval_precision: float | None = Field(description="Cards used, of cards shown.")
    satisfaction: float | None = Field(description="Ratings of the period that were good, of all.")
    ratings: int
    solved: float | None
    first_attempt: float | None = Field(description="Tasks that their first draft solved, of all.")
    iterations: float | None = Field(description="Drafts for a task.")
    seconds_p50: float | None = Field(description="Of solved tasks.")
    speed_up_p50: float | None = Field(description="Where an environment measured it.")
    duplicate_mistakes: float | None = Field(description="Mistakes that some earlier task made, of all.")
    card_success: float | None = Field(
        description="Successes, of all outcomes that were counted for cards after their first."
    )
    learned: int = Field(description="New cards.")
    promoted: int = Field(description="Cards that became verified.")
    deprecated: int = Field(description="Cards that became deprecated, without dead ends.")
    in_service: int = Field(description="Cards that serve at the end of the period.")
    verified: int = Field(description="Cards that are verified at its end.")


def periods(
    tasks: Sequence[TaskRecord],
    histories: Sequence[History],
    by: Unit | int,
    now: datetime,
    last: int | None = None,
) -> list[Period]:
    """Divide a team's history into periods, oldest first; none where nothing happened until now.

    Of more than `last` periods only the latest are computed.
    """
    logged = sorted(((task.at or now, task) for task in tasks), key=lambda each: each[0])
    moments = [at for at, _ in logged] + [each.at for history in histories for each in history]
    until_now = [at for at in moments if at <= now]
    if not until_now:
        return []
    if isinstance(by, int):  # a task's cards are written just before it is logged
        # Every by-th task ends a period; the last one ends now, whether or not it is full.
        edges = [min(until_now) - INSTANT, *[at for at, _ in logged if at <= now][by - 1 : -1 : by], now]
    else:
        edges = list(_by_calendar(by, min(until_now), now))
    changes = [
        change
        for history in histories
        for change in zip([None, *(each.card for each in history[:-1])], history, strict=True)
    ]
    # Of every version, each once: a rating that was taken back later counts in the period when it was given.
    given = [rating for _, version in changes for rating in version.card.ratings]
    ratings = list({each.model_dump_json(): each for each in given}.values())
    past = _Past(logged, histories, changes, ratings)
    return [_period(between, past) for between in list(pairwise(edges))[-last if last else None :]]


def _by_calendar(unit: Unit, first: datetime, now: datetime) -> Iterator[datetime]:
    """Yield the edges of the calendar's periods from the one with the first moment to now."""
    import numpy as np  # noqa: PLC0415  (slow to import)

    shift = timedelta(days=4 if unit == "week" else 0)  # numpy's weeks begin with a Thursday
    began = np.datetime64((first - shift).astimezone(UTC).replace(tzinfo=None))
    begins = began.astype(f"datetime64[{UNITS[unit]}]")
    while (edge := begins.astype("datetime64[us]").item().replace(tzinfo=UTC) + shift) < now:
        yield edge - INSTANT
        begins += 1
    yield now


class _Past(NamedTuple):
    """The whole history: tasks as they were logged, cards, and the changes and ratings of these."""

    tasks: Sequence[tuple[datetime, TaskRecord]]
    histories: Sequence[History]
    changes: Sequence[tuple[Card | None, CardVersion]]
    ratings: Sequence[Rating]


def _period(between: tuple[datetime, datetime], past: _Past) -> Period:
    begins, ends = between

    def is_within(at: datetime) -> bool:
        return begins < at <= ends

    tasks = [task for at, task in past.tasks if is_within(at)]
    before = [task.mistakes for at, task in past.tasks if at <= begins]
    changes = [(old, new.card) for old, new in past.changes if is_within(new.at)]
    ratings = [each for each in past.ratings if is_within(each.at)]
    standing = [
        next((each.card for each in reversed(history) if each.at <= ends), None) for history in past.histories
    ]
    return Period(
        begins=begins + INSTANT,
        ends=ends,
        tasks=len(tasks),
        reuse=_mean([bool(each.used) for each in tasks]),
        retrieval_precision=retrieval_precision(tasks),
        satisfaction=_mean([each.good for each in ratings]),
        ratings=len(ratings),
        solved=_mean([each.solved for each in tasks]),
        first_attempt=_mean([each.first_attempt for each in tasks]),
        iterations=_mean([each.iterations for each in tasks]),
        seconds_p50=_percentile([each.seconds for each in tasks if each.solved], 50),
        speed_up_p50=_percentile([each.speed_up for each in tasks if each.speed_up is not None], 50),
        duplicate_mistakes=duplicate_mistakes([each.mistakes for each in tasks], before),
        card_success=_success(changes),
        learned=sum(old is None for old, _ in changes),
        promoted=_became("verified", changes, was=("provisional",)),
        deprecated=_became("deprecated", changes),
        in_service=sum(card is not None and is_in_service(card) for card in standing),
        verified=sum(card is not None and card.status == "verified" for card in standing),
    )


def _success(changes: Sequence[tuple[Card | None, Card]]) -> float | None:
    """Return the share of successes among the outcomes counted for cards."""
    # Without a card's first version: the task that made it does not reuse it.
    pairs = [(old.evidence, new.evidence) for old, new in changes if old is not None]
    # `max`: a rating that is taken back lowers a count, and is no outcome.
    successes = sum(max(0, new.success_count - old.success_count) for old, new in pairs)
    failures = sum(max(0, new.failure_count - old.failure_count) for old, new in pairs)
    return successes / (successes + failures) if successes + failures else None


def _became(status: Status, changes: Sequence[tuple[Card | None, Card]], was: Sequence[Status] = ()) -> int:
    """Count the cards that reached a status, from any other or from the given ones."""
    return sum(
        new.status == status and old.status != status and (not was or old.status in was)
        for old, new in changes
        if old is not None and not new.is_dead_end
    )
