"""The metrics of a base of cards, and its consolidation."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest

from mneme.core.errors import BadInput
from mneme.stores.cards.card import Card, Consolidation
from mneme.stores.cards.consolidation import (
    ConsolidationCycle,
    is_good,
    is_held_out,
    lesson_of,
    reasons_to_consolidate,
    warning_of,
)
from mneme.stores.cards.disputes import Approach, Dispute
from mneme.stores.cards.knowledge_cards import KnowledgeCards
from mneme.stores.cards.metrics import MONTH, Metrics, TaskRecord, Thresholds, compute
from mneme.stores.ledger.ledger import Ledger
from tests.doubles.cards import MONITOR, PERSON, card_of, ids, learn, task_record, verified


@pytest.fixture
def cycle(ledger: Ledger, cards: KnowledgeCards) -> ConsolidationCycle:
    return ConsolidationCycle(ledger, cards)


def metrics_of(
    tasks: Sequence[TaskRecord] = (),
    cards: Sequence[Card] = (),
    before: Sequence[Card] = (),
    disputes: Sequence[Dispute] = (),
) -> Metrics:
    return compute(
        tasks,
        {card.id: card for card in cards},
        {card.id: card for card in before},
        disputes,
        now=datetime.now(UTC),
        thresholds=Thresholds(),
    )


def raised(metrics: Metrics) -> list[tuple[str, str]]:
    return [(alert.level, alert.metric) for alert in metrics.alerts]


class TestMetrics:
    async def test_every_metric_is_computed_from_the_log(self, cards: KnowledgeCards) -> None:
        assert (await cards.metrics()).seconds_p50 is None
        card = await verified(cards)
        await learn(cards, "an index on dates", "t9")
        gone = await learn(cards, "an index on all", "t10")
        await cards.deprecate(gone.id, change=PERSON)
        await cards.disputes.open(card.id, old=Approach(claim="a"), new=Approach(claim="b"), change=MONITOR)
        log = [
            task_record(1, seconds=18, iterations=2, mistakes=["no index"], retrieval_ms=4),
            task_record(2, seconds=8, retrieved=["a", "b"], used=["a"], mistakes=["no index", "no limit"]),
            task_record(3, seconds=9, retrieved=["a", "b"], used=["a", "b", "never shown"]),
            task_record(4, seconds=99, solved=False, iterations=3),
        ]
        for task in log:
            assert await cards.tasks.add(task)
            assert not await cards.tasks.add(task)
        now = await cards.metrics()
        assert (now.tasks, now.seconds_p50, now.iterations_per_task) == (4, 9, 1.75)
        assert now.seconds_p95 == pytest.approx(17.1)
        assert (now.first_attempt_success, now.retrieval_precision) == (0.5, 0.75)
        assert now.duplicate_mistake_rate == pytest.approx(1 / 3)
        assert now.cards == {"disputed": 1, "provisional": 1, "deprecated": 1}
        assert (now.disputes_open, now.retrieval_p95_ms) == (1, 4)
        assert now.deprecated_rate == pytest.approx(1 / 3)
        assert raised(now) == [("critical", "deprecated rate")]
        later = await cards.metrics(now=datetime.now(UTC) + timedelta(days=8))
        assert ("critical", "dispute duration") in raised(later)
        assert later.dispute_days_longest_open == pytest.approx(8, abs=0.01)
        next_month = await cards.metrics(now=datetime.now(UTC) + MONTH + timedelta(hours=1))
        assert (next_month.deprecated_rate, next_month.verified_growth) == (0, 0)

    @pytest.mark.parametrize(("latest", "critical"), [(120, False), (121, True)])
    def test_a_rise_of_time_to_solution_is_critical(self, latest: float, *, critical: bool) -> None:
        tasks = [task_record(n, seconds=100 if n < 10 else latest) for n in range(20)]
        assert (("critical", "time to solution") in raised(metrics_of(tasks))) is critical

    @pytest.mark.parametrize(("deprecated", "critical"), [(1, False), (2, True)])
    def test_many_deprecations_a_month_are_critical(self, deprecated: int, *, critical: bool) -> None:
        before = [card_of(f"c{n}") for n in range(10)] + [card_of("long gone", "deprecated")]
        now = [card_of(f"c{n}", "deprecated" if n < deprecated else "verified") for n in range(10)]
        found = metrics_of(cards=[*now, before[-1]], before=before)
        assert found.deprecated_rate == deprecated / 10
        assert (("critical", "deprecated rate") in raised(found)) is critical

    @pytest.mark.parametrize(("used", "warns"), [(3, False), (2, True)])
    def test_a_low_retrieval_precision_warns(self, used: int, *, warns: bool) -> None:
        shown = [f"c{n}" for n in range(5)]
        found = metrics_of([task_record(1, retrieved=shown, used=shown[:used])])
        assert (("warning", "retrieval precision") in raised(found)) is warns

    @pytest.mark.parametrize(("provisional", "warns"), [(10, False), (11, True)])
    def test_too_many_provisional_cards_warn(self, provisional: int, *, warns: bool) -> None:
        some = [card_of(f"p{n}", "provisional") for n in range(provisional)] + [card_of("a"), card_of("b")]
        found = metrics_of(cards=some, before=[card_of("a")])
        assert (("warning", "provisional to verified") in raised(found)) is warns
        assert (found.verified_growth, found.verified_growth_rate) == (1, 1.0)


class TestConsolidation:
    def test_each_trigger_condition_alone_suffices(self) -> None:
        quiet = metrics_of()
        now = datetime.now(UTC)

        def due(metrics: Metrics, days: float = 90, model: str = "a") -> list[str]:
            last = now - timedelta(days=days)
            return reasons_to_consolidate(metrics, now=now, last=last, trained_model="a", model=model)

        assert due(quiet) == []
        assert due(quiet, days=91) == ["a quarter has passed"]
        assert due(quiet, model="b") == ["a new base model: b"]
        assert due(quiet.model_copy(update={"verified": 10_000})) == []
        assert due(quiet.model_copy(update={"verified": 10_001})) == ["10001 verified cards"]
        for update, why in (
            ({"retrieval_p95_ms": 501.0}, "retrieval takes 501 ms (p95)"),
            ({"retrieval_precision": 0.69}, "retrieval precision is 69%"),
        ):
            assert due(quiet.model_copy(update={**update, "tasks": 20})) == [why]
            assert due(quiet.model_copy(update={**update, "tasks": 19})) == [], "too few to tell"

    def test_what_is_taught_is_of_proven_cards_and_warnings(self) -> None:
        proven = [
            card_of(f"c{n}", evidence={"success_count": 3, "task_ids": ["t1"]}, rationale="because")
            for n in range(100)
        ]
        others = [
            card_of("unsure", confidence=0.8, evidence={"success_count": 9}),
            card_of("new", evidence={"success_count": 2}),
            card_of("unverified", "provisional", evidence={"success_count": 9}),
        ]
        assert [card for card in (*proven, *others) if is_good(card, Consolidation())] == proven
        assert not any(is_good(card, Consolidation(successes=4)) for card in proven)
        assert 10 <= sum(map(is_held_out, proven)) <= 30
        assert lesson_of(proven[0]).startswith("Reasoning: because\nLesson: c0")
        wrong = card_of(
            "wrong",
            "deprecated",
            deprecated_because="20% success over the last 10 tasks",
            deprecated_approaches=[{"approach": "hot", "condition": "silk", "reason": "it bled"}],
        )
        assert "20% success" in warning_of(wrong)
        assert "Not when silk: hot (it bled)" in warning_of(wrong)

    async def test_the_base_is_archived_under_a_tag_and_starts_anew(
        self, cards: KnowledgeCards, cycle: ConsolidationCycle
    ) -> None:
        card = await verified(cards)
        seed = await learn(cards, "an index on dates", "t9")
        archive = await cycle.archive("v1", change=PERSON, model="llama-v1", keep=[seed.id])
        assert (archive.cards, await cycle.archives()) == (1, [archive])
        assert await ids(cards) == [seed.id]
        archived = (await cards.records.history(card.id))[-1]
        assert (archived.card.status, archived.reason) == ("archived", "consolidated as v1: a person says so")
        with pytest.raises(BadInput, match="archive v1 already"):
            await cycle.archive("v1", change=PERSON)
        assert await cycle.due(model="llama-v1") == []
        assert await cycle.due(model="other") == ["a new base model: other"]
        later = datetime.now(UTC) + timedelta(days=92)
        assert await cycle.due(now=later) == ["a quarter has passed"]
        assert (await cards.restore(card.id, change=PERSON)).status == "verified"
