"""Reuse, satisfaction and quality over time, counted from a real ledger's history and from a given one."""

from datetime import UTC, datetime, timedelta

import pytest

import mneme
from mneme.stores.cards.card import Card, CardVersion, Evidence, Lesson, Provenance, Rating, TaskOutcome
from mneme.stores.cards.knowledge_cards import KnowledgeCards
from mneme.stores.cards.metrics import TaskRecord, duplicate_mistakes, periods
from mneme.stores.ledger.ledger import Ledger
from mneme.stores.ledger.records import Change

CHANGE = Change(reason="a test", actor="anna")


def task(name: str, at: datetime | None = None, **more: object) -> TaskRecord:
    plain: dict[str, object] = {"id": name, "solved": True, "seconds": 1, "iterations": 1, "at": at}
    return TaskRecord.model_validate(plain | more)


def version(at: datetime, number: int, **more: object) -> CardVersion:
    made = Provenance(created_at=at)
    plain: dict[str, object] = {"id": "c", "claim": "c", "provenance": made, "confidence": 0.9}
    return CardVersion(
        card=Card.model_validate(plain | {"version": number} | more), at=at, reason="", actor=""
    )


async def test_a_ledger_tells_what_each_stretch_of_tasks_was_like(ledger: Ledger) -> None:
    cards = KnowledgeCards(ledger, "team")
    assert await cards.trend("month") == []
    lesson, outcome = Lesson(claim="use an index"), TaskOutcome(task="t1", success=True, confidence=0.9)
    card = (await cards.create(lesson, outcome, change=CHANGE)).card
    await cards.tasks.add(task("t1", iterations=3, mistakes=["scan for sums"], cards=[card.id]))
    await cards.tasks.add(task("t2", solved=False, iterations=2, mistakes=["scan for sums"]))
    await cards.reinforce(card.id, TaskOutcome(task="t3", success=True, confidence=0.9), change=CHANGE)
    await cards.tasks.add(task("t3", retrieved=[card.id, "other"], used=[card.id]))
    for good in (False, True):  # the second word takes the first back; both were said
        word = Rating(by="ann", good=good, task="x", at=datetime.now(UTC))
        await cards.rate(card.id, word, change=CHANGE)
    await cards.deprecate(card.id, change=CHANGE)
    before, after = await cards.trend(2)
    assert (before.tasks, before.reuse, before.solved, before.iterations) == (2, 0, 0.5, 2.5)
    assert (before.learned, before.duplicate_mistakes, before.satisfaction) == (1, 0.5, None)
    assert (before.in_service, before.card_success) == (1, None)
    assert (after.tasks, after.reuse, after.retrieval_precision) == (1, 1, 0.5)
    assert (after.ratings, after.satisfaction, after.deprecated, after.in_service) == (2, 0.5, 1, 0)
    assert after.card_success == pytest.approx(2 / 3), "the task, and both words as they were counted"
    assert await cards.trend("year", now=datetime(2020, 1, 1, tzinfo=UTC)) == []
    (year,) = await cards.trend("year", last=1)
    assert (year.tasks, year.ratings) == (3, 2)


def test_the_calendar_has_every_period_from_the_first_event_to_now() -> None:
    january = datetime(2026, 1, 31, 23, 0, tzinfo=UTC)
    march = datetime(2026, 3, 1, tzinfo=UTC)
    history = [
        version(january, 1, evidence=Evidence(success_count=1)),
        version(march, 2, status="verified", evidence=Evidence(success_count=2, failure_count=1)),
    ]
    tasks = [task("a", january), task("b", march, solved=False), task("c", march + timedelta(days=60))]
    months = periods(tasks, [history], "month", datetime(2026, 3, 9, tzinfo=UTC))
    assert [f"{each.begins:%m-%d %H}" for each in months] == ["01-01 00", "02-01 00", "03-01 00"]
    assert [each.tasks for each in months] == [1, 0, 1], "what is after now is not there yet"
    assert [each.solved for each in months] == [1, None, 0]
    assert [each.promoted for each in months] == [0, 0, 1]
    assert [each.verified for each in months] == [0, 0, 1]
    assert [each.card_success for each in months] == [None, None, 0.5]
    weeks = periods(tasks, [history], "week", march)
    assert weeks[0].begins == datetime(2026, 1, 26, tzinfo=UTC) and weeks[-1].ends == march
    assert len(periods(tasks, [history], "quarter", march)) == 1


def test_the_same_is_one_call_of_the_library() -> None:
    with mneme.open() as memory:
        memory.cards.propose("Say what was measured.")
        (period,) = memory.cards.trend("day")
        assert (period.tasks, period.learned, period.reuse) == (0, 1, None)
        assert [each.learned for each in memory.cards.trend(tasks=5)] == [1]


def test_mistakes_without_a_name_are_no_duplicates() -> None:
    assert duplicate_mistakes([["", " for "], ["", " for "], [" for sums"]]) is None
    assert duplicate_mistakes([["a for sums"], ["a for sums", ""], ["a for sums"]]) == pytest.approx(2 / 3)
    assert duplicate_mistakes([["a"]], known=[["a"]]) == 1
