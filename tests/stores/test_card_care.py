"""What retrieval looks at, what upkeep archives, and what people do with cards."""

from datetime import UTC, datetime, timedelta

import pytest

from mneme.core.errors import BadInput
from mneme.stores.cards.card import CardSettings, Lesson, Rating, Rule, TaskOutcome
from mneme.stores.cards.knowledge_cards import KnowledgeCards
from mneme.stores.cards.lifecycle import Approval, Care, PromotionRubric, holds_for
from mneme.stores.cards.metrics import TaskRecord
from mneme.stores.ledger.ledger import Ledger
from mneme.stores.ledger.records import Change

CHANGE = Change(reason="a test", actor="anna")


@pytest.fixture
def cards(ledger: Ledger) -> KnowledgeCards:
    return KnowledgeCards(ledger, "carers", CardSettings(inactive_tasks=3))


async def learned(cards: KnowledgeCards, claim: str, scope: str = "", *rules: Rule) -> str:
    lesson = Lesson(claim=claim, scope=scope, rules=[*rules])
    outcome = TaskOutcome(task=f"task of {claim}", success=True, confidence=0.9)
    return (await cards.create(lesson, outcome, change=CHANGE)).card.id


def rating(by: str, *, good: bool, task: str = "") -> Rating:
    return Rating(by=by, good=good, task=task, at=datetime.now(UTC))


async def finish(cards: KnowledgeCards, name: str, *shown: str) -> None:
    task = TaskRecord(id=name, solved=True, seconds=1, iterations=1, retrieved=[*shown])
    await cards.tasks.add(task)


async def test_cards_of_another_scope_or_that_do_not_fit_hide_none_that_does(cards: KnowledgeCards) -> None:
    for n in range(8):
        await learned(cards, f"index dates number {n}", "sql")
    mine = await learned(cards, "something about dates", "shell")
    common = await learned(cards, "dates are hard")
    found = {
        each.card.id for each in await cards.retrieve("index dates number, something hard", 5, scope="shell")
    }
    assert found == {mine, common}
    fitting = await cards.retrieve("index dates number, something hard", 1, fits=lambda card: card.id == mine)
    assert [each.card.id for each in fitting] == [mine]
    await cards.deprecate(mine, change=CHANGE)
    assert await cards.pitfalls("dates", scope="sql") == []
    assert len(await cards.pitfalls("dates", scope="shell")) == 1


async def test_of_two_cards_alike_the_verified_one_is_first_and_says_why(cards: KnowledgeCards) -> None:
    plain, approved = [await learned(cards, "use an index", scope) for scope in ("a", "b")]
    await cards.reinforce(approved, TaskOutcome(task="again", success=True, confidence=0.9), change=CHANGE)
    await cards.reinforce(plain, TaskOutcome(task="again", success=True, confidence=0.9), change=CHANGE)
    rubric = PromotionRubric(solved=True, faster_or_novel=True, no_new_failures=True, reusable=True)
    await cards.promote(approved, Approval(by="ann", approved=True, rubric=rubric), change=CHANGE)
    first, second = await cards.retrieve("use an index", 2)
    assert (first.card.id, second.card.id) == (approved, plain)
    assert first.parts["standing"] == pytest.approx(0.10) and second.parts["standing"] == 0.0


async def test_upkeep_archives_step_by_step_what_it_would_archive_at_once(ledger: Ledger) -> None:
    """One team keeps up after each task, the other once at the end: both end with the same cards."""
    teams = [KnowledgeCards(ledger, name, CardSettings(inactive_tasks=3)) for name in ("often", "once")]
    kept = []
    for team in teams:
        made = [await learned(team, f"lesson {n}") for n in range(4)]
        for n in range(12):
            await finish(team, f"t{n}", *([made[0]] if n % 2 else []), *([made[1]] if n == 2 else []))
            if n == 5:
                made.append(await learned(team, "a later lesson"))
            if team is teams[0]:
                await team.keep_up()
        await team.keep_up()
        kept.append([card.claim for card in await team.records.list("provisional")])
    assert kept == [["lesson 0"], ["lesson 0"]]


async def test_upkeep_begins_beside_and_ends_with_the_ledger(cards: KnowledgeCards, ledger: Ledger) -> None:
    idle = await learned(cards, "nobody needs this")
    for n in range(4):
        await finish(cards, f"t{n}")
    await cards.keep_up()
    assert (await cards.records.get(idle)).status == "archived"
    late = ledger.begin(cards.keep_up())
    await ledger.close()
    assert late.done() and not late.exception()


async def test_what_has_expired_is_not_shown_and_is_archived(cards: KnowledgeCards) -> None:
    over, soon = [await learned(cards, f"{name} uses an index") for name in ("old", "new")]
    now = datetime.now(UTC)
    await cards.care_for(over, Care(expires_at=now - timedelta(days=1), owner="ann"), change=CHANGE)
    await cards.care_for(soon, Care(expires_at=now + timedelta(days=1)), change=CHANGE)
    assert [each.card.id for each in await cards.retrieve("uses an index", 2)] == [soon]
    assert (await cards.keep_up()).expired == [over]
    card = await cards.records.get(over)
    assert (card.status, card.owner) == ("archived", "ann")
    with pytest.raises(BadInput, match="zone"):
        await cards.care_for(soon, Care(expires_at=datetime(2030, 1, 1)), change=CHANGE)


def test_a_version_is_held_against_what_is_there() -> None:
    assert holds_for("sqlite>=3.40", {"SQLite": "3.45.1"}) is True
    assert holds_for("sqlite<3.40", {"sqlite": "3.45.1"}) is False
    assert holds_for("sqlite<3.40", {"python": "3.12"}) is None
    assert holds_for("", {}) is True
    for wrong in ("sqlite", "sqlite three", "a @ https://example.com/a.zip"):
        with pytest.raises(BadInput, match="names no version"):
            Care(valid_for=wrong).of(None)  # type: ignore[arg-type]


async def test_peoples_ratings_count_and_can_be_taken_back(cards: KnowledgeCards) -> None:
    made = await cards.propose(Lesson(claim="Retry with jitter."), change=CHANGE)
    card = await cards.rate(made.card.id, rating("ann", good=True), change=CHANGE)
    assert (card.evidence.success_count, card.confidence, card.satisfaction) == (1, 0.8, 1.0)
    card = await cards.rate(card.id, rating("ann", good=False), change=CHANGE)
    assert (card.evidence.success_count, card.evidence.failure_count, card.confidence) == (0, 1, 0.0)
    card = await cards.rate(card.id, rating("ann", good=True), change=CHANGE)
    card = await cards.rate(card.id, rating("ben", good=True, task="t7"), change=CHANGE)
    assert (card.evidence.success_count, len(card.ratings)) == (2, 2)
    rubric = PromotionRubric(solved=True, faster_or_novel=False, no_new_failures=True, reusable=False)
    approval = Approval(by="ann", approved=True, rubric=rubric)
    card = await cards.promote(card.id, approval, change=CHANGE)
    assert card.status == "verified", "people who were served are a gain (§5)"
    assert (await cards.metrics()).satisfaction == 1.0


async def test_a_rating_of_a_task_that_counts_already_is_satisfaction_alone(cards: KnowledgeCards) -> None:
    card_id = await learned(cards, "use an index")
    task = "task of use an index"
    card = await cards.rate(card_id, rating("ann", good=False, task=task), change=CHANGE)
    assert (card.evidence.count, card.satisfaction) == (1, 0.0)


async def test_a_better_card_supersedes_another(cards: KnowledgeCards) -> None:
    old, new = await learned(cards, "retry"), await learned(cards, "retry with jitter")
    card = await cards.supersede(old, new, change=CHANGE)
    assert (card.status, card.superseded_by, card.deprecated_because) == ("deprecated", new, "a test")
    assert await cards.supersede(old, new, change=CHANGE) == card
    for wrong, why in ((old, "is deprecated"), (new, "itself")):
        with pytest.raises(BadInput, match=why):
            await cards.supersede(new, wrong, change=CHANGE)
