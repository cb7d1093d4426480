"""Reuse, satisfaction and quality of a team's learning over time (§11, 5), from the ledger's own history.

Everything is counted where it happened: tasks by when they were logged, outcomes, promotions and
deprecations by the version of the card that has them, ratings by when they were given, those that somebody
took back later too. What was forgotten is in no period.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from statistics import fmean, median
from typing import Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field

from mneme.stores.cards.card import Card, CardVersion, Rating, Status
from mneme.stores.cards.knowledge_cards import KnowledgeCards
from mneme.stores.cards.lifecycle import is_in_service
from mneme.stores.cards.metrics import duplicate_mistakes, retrieval_precision
from mneme.stores.cards.task_log import TaskRecord

Unit = Literal["day", "week", "month", "quarter", "year"]
History = Sequence[CardVersion]
INSTANT = timedelta(microseconds=1)
"""The ledger's times are no finer, so that a period begins just after the one before."""
LONGER_THAN: Mapping[Unit, timedelta] = {
    "day": timedelta(days=1),
    "week": timedelta(days=7),
    "month": timedelta(days=31),
    "quarter": timedelta(days=92),
    "year": timedelta(days=366),
}
"""From a period's beginning it is so far into the next one."""


class Period(BaseModel):
    """What a team's learning was like in one period; None where there is nothing to compute it from."""

    model_config = ConfigDict(frozen=True)

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
    deprecated: int = Field(description="Cards that became deprecated, dead ends among them.")
    in_service: int = Field(description="Cards that serve at the end of the period.")
    verified: int = Field(description="Cards that are verified at its end.")


async def trend(
    cards: KnowledgeCards, by: Unit | int, *, last: int = 12, now: datetime | None = None
) -> list[Period]:
    """Return the last periods, oldest first, each a unit of the calendar (UTC) or so many tasks."""
    known = await cards.records.list()
    histories = [await cards.records.history(each.id) for each in known]
    return periods(await cards.tasks.list(), histories, by, now or datetime.now(UTC), last)


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
    edges = (
        _by_count([at for at, _ in logged if at <= now], by, min(until_now), now)
        if isinstance(by, int)
        else list(_by_calendar(by, min(until_now), now))
    )
    changes = [each for history in histories for each in _changes(history)]
    past = _Past(logged, histories, changes, _ratings(histories))
    return [_period(between, past) for between in list(pairwise(edges))[-last if last else None :]]


def _by_count(logged: Sequence[datetime], count: int, first: datetime, now: datetime) -> list[datetime]:
    """Return the edges of periods of so many tasks: a task's cards are written just before it is logged."""
    return [first - INSTANT, *logged[count - 1 : -1 : count], now]


def _by_calendar(unit: Unit, first: datetime, now: datetime) -> Iterator[datetime]:
    """Yield the edges of the calendar's periods from the one with the first moment to now."""
    edge = _beginning(unit, first)
    while edge < now:
        yield edge - INSTANT
        edge = _beginning(unit, edge + LONGER_THAN[unit])
    yield now


def _beginning(unit: Unit, at: datetime) -> datetime:
    """Return the first moment of the period that a moment is in."""
    day = at.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    if unit == "day":
        return day
    if unit == "week":
        return day - timedelta(days=day.weekday())
    months = {"month": 1, "quarter": 3, "year": 12}[unit]
    return day.replace(day=1, month=(day.month - 1) // months * months + 1)


class _Past(NamedTuple):
    """All that ever happened: tasks as they were logged, cards, and what was changed and said of these."""

    tasks: Sequence[tuple[datetime, TaskRecord]]
    histories: Sequence[History]
    changes: Sequence[tuple[Card | None, CardVersion]]
    ratings: Sequence[Rating]


def _period(between: tuple[datetime, datetime], past: _Past) -> Period:
    begins, ends = between

    def is_within(at: datetime) -> bool:
        return begins < at <= ends

    tasks = [task for at, task in past.tasks if is_within(at)]
    before = [task for at, task in past.tasks if at <= begins]
    changes = [(old, new.card) for old, new in past.changes if is_within(new.at)]
    ratings = [each for each in past.ratings if is_within(each.at)]
    standing = [_as_of(history, ends) for history in past.histories]
    return Period(
        begins=begins + INSTANT,
        ends=ends,
        tasks=len(tasks),
        reuse=_mean(bool(each.used) for each in tasks),
        retrieval_precision=retrieval_precision(tasks),
        satisfaction=_mean(each.good for each in ratings),
        ratings=len(ratings),
        solved=_mean(each.solved for each in tasks),
        first_attempt=_mean(each.first_attempt for each in tasks),
        iterations=_mean(each.iterations for each in tasks),
        seconds_p50=_median(each.seconds for each in tasks if each.solved),
        speed_up_p50=_median(each.speed_up for each in tasks if each.speed_up is not None),
        duplicate_mistakes=duplicate_mistakes(
            (each.mistakes for each in tasks), (each.mistakes for each in before)
        ),
        card_success=_success(changes),
        learned=sum(old is None for old, _ in changes),
        promoted=_became("verified", changes, was=("provisional",)),
        deprecated=_became("deprecated", changes),
        in_service=sum(card is not None and is_in_service(card) for card in standing),
        verified=sum(card is not None and card.status == "verified" for card in standing),
    )


def _changes(history: History) -> Iterator[tuple[Card | None, CardVersion]]:
    """Yield each version of a card with the card before it."""
    before = None
    for version in history:
        yield before, version
        before = version.card


def _ratings(histories: Sequence[History]) -> list[Rating]:
    """Return every rating that was ever given, once."""
    given = [rating for history in histories for each in history for rating in each.card.ratings]
    return list({each.model_dump_json(): each for each in given}.values())


def _as_of(history: History, at: datetime) -> Card | None:
    return next((each.card for each in reversed(history) if each.at <= at), None)


def _success(changes: Sequence[tuple[Card | None, Card]]) -> float | None:
    """Return the share of successes of what was counted; the task that made a card is no reuse of it."""
    pairs = [(old.evidence, new.evidence) for old, new in changes if old is not None]
    successes = sum(max(0, new.success_count - old.success_count) for old, new in pairs)
    failures = sum(max(0, new.failure_count - old.failure_count) for old, new in pairs)
    return successes / (successes + failures) if successes + failures else None


def _became(status: Status, changes: Sequence[tuple[Card | None, Card]], was: Sequence[Status] = ()) -> int:
    """Count the cards that came to a status, of any other or of those given."""
    return sum(
        new.status == status and old is not None and old.status != status and (not was or old.status in was)
        for old, new in changes
    )


def _mean(values: Iterable[float]) -> float | None:
    found = list(values)
    return fmean(found) if found else None


def _median(values: Iterable[float]) -> float | None:
    found = list(values)
    return median(found) if found else None
