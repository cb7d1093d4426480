"""Knowledge cards for tests: lessons, outcomes, and cards that have come as far as a test needs."""

from datetime import UTC, datetime

from mneme.stores.cards.card import Card, FailureMode, Lesson, TaskOutcome
from mneme.stores.cards.knowledge_cards import KnowledgeCards
from mneme.stores.cards.lifecycle import Approval, PromotionRubric
from mneme.stores.cards.metrics import TaskRecord
from mneme.stores.ledger.records import Change

MONITOR = Change(reason="it worked", actor="monitor", model="rules")
PERSON = Change(reason="a person says so", actor="anna")
CLAIM = "For time-range filtered aggregations, use a composite index on (filter_column, group_column)"
INDEX = Lesson(
    claim=CLAIM,
    rationale="The index answers filter and group alone.",
    tags=["sql", "index"],
    scope="sql_tuning",
    failure_modes=[FailureMode(condition="several filters", impact="the index is not used")],
)
GOOD = PromotionRubric(solved=True, faster_or_novel=True, no_new_failures=True, reusable=False)


def success(task: str, confidence: float = 1.0) -> TaskOutcome:
    return TaskOutcome(task=task, success=True, confidence=confidence)


def failure(task: str) -> TaskOutcome:
    return TaskOutcome(task=task, success=False)


def approval(*, approved: bool = True, rubric: PromotionRubric = GOOD, open_blocking: int = 0) -> Approval:
    return Approval(by="leader", approved=approved, rubric=rubric, open_blocking=open_blocking)


async def learn(cards: KnowledgeCards, claim: str, task: str = "t1", confidence: float = 0.9) -> Card:
    made = await cards.create(Lesson(claim=claim), success(task, confidence), change=MONITOR)
    return made.card


async def verified(cards: KnowledgeCards, claim: str = CLAIM) -> Card:
    card = await learn(cards, claim, "v1")
    await cards.reinforce(card.id, success("v2", 0.9), change=MONITOR)
    return await cards.promote(card.id, approval(), change=MONITOR)


async def ids(cards: KnowledgeCards, text: str = "index") -> list[str]:
    return [found.card.id for found in await cards.retrieve(text, 100)]


def task_record(number: int, **more: object) -> TaskRecord:
    plain: dict[str, object] = {"id": f"task{number}", "solved": True, "seconds": 10, "iterations": 1}
    return TaskRecord.model_validate(plain | more)


def card_of(name: str, status: str = "verified", **more: object) -> Card:
    plain: dict[str, object] = {"id": name, "claim": name, "status": status, "confidence": 0.9}
    plain["evidence"] = {"success_count": 1}
    return Card.model_validate(plain | {"provenance": {"created_at": datetime.now(UTC)}} | more)
