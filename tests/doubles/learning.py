"""Compound learning and dispute resolution run once on a small database, for tests."""

from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver

from mneme.environments.sql_tuning.tasks import TuningTask, story
from mneme.graphs.compound_learning import builder as compound_learning
from mneme.graphs.dispute_resolution import builder as dispute_resolution
from mneme.nodes.learning.context import LearningContext, TeamContext
from mneme.stores.cards.card import Card, Lesson, Rule, TaskOutcome
from mneme.stores.cards.disputes import Approach, Dispute
from mneme.stores.cards.knowledge_cards import KnowledgeCards
from mneme.stores.ledger.base_store import LedgerStore
from mneme.stores.ledger.ledger import Ledger
from mneme.stores.ledger.records import Change

RULES = dict.fromkeys(("researcher", "devils_advocate", "leader", "monitor"), "rules")
ROWS = 30_000


CHANGE = Change(reason="a test", actor="test")
DISCOVERY, REUSE, EDGE_CASE = story()


def context(task: TuningTask | None = None, **more: Any) -> LearningContext:
    where: dict[str, Any] = {"team": "tuners", "rows": ROWS}
    if task is not None:
        where |= {"environment": "sql_tuning", "schema_name": task.schema_name}
    return LearningContext(**{**RULES, **where, **more})


def problem(given: TuningTask, **more: Any) -> Any:
    """Give a task to the graph; half again as fast is enough on the small databases of tests."""
    told: Any = {"task": given.description, "task_id": given.id, "query": given.query, "wanted_speed_up": 1.5}
    return told | {"index_budget": given.index_budget} | more


async def solve(ledger: Ledger, task: TuningTask, given: Any = None, **more: Any) -> Any:
    graph = compound_learning.compile(store=LedgerStore(ledger))
    return await graph.ainvoke(given or problem(task), context=context(task, **more))


async def resolve(
    ledger: Ledger,
    dispute: str,
    given: Any = None,
    saver: BaseCheckpointSaver[str] | None = None,
    **more: Any,
) -> Any:
    graph = dispute_resolution.compile(store=LedgerStore(ledger), checkpointer=saver or InMemorySaver())
    where: dict[str, Any] = {"team": "tuners", "devils_advocate": "rules", "rows": ROWS, **more}
    config: Any = {"configurable": {"thread_id": dispute}}
    asked: Any = given or {"dispute_id": dispute}
    return await graph.ainvoke(asked, config, context=TeamContext(**where))


def cards_in(ledger: Ledger) -> KnowledgeCards:
    return KnowledgeCards(ledger, "tuners")


def events(result: Any) -> list[str]:
    return [each["event"] for each in result["learned"]]


async def disputed(cards: KnowledgeCards, old: str, new: str, task: str = "t1") -> tuple[Card, Dispute]:
    """Make a verified card and a finding of a task against it."""
    lesson = Lesson(
        claim=f"Do {old}", rules=[Rule(condition="range filter", pattern=old)], scope="sql_tuning"
    )
    made = await cards.create(lesson, TaskOutcome(task="t0", success=True, confidence=0.9), change=CHANGE)
    dispute = await cards.disputes.open(
        made.card.id,
        old=Approach(claim=made.card.claim, solution=f"range filter; grouping -> {old}"),
        new=Approach(claim=f"Do {new}", solution=f"one range filter; grouping -> {new}", task=task),
        change=CHANGE,
    )
    return made.card, dispute
