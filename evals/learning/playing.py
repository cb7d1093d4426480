"""One task given to a team with one of the compared memories, and the disputes that it opens."""

from typing import Any, Literal, NamedTuple

from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver

from mneme.environments.sql_tuning.generating import SCHEMAS
from mneme.environments.sql_tuning.tasks import TuningTask
from mneme.environments.sql_tuning.tuning import SqlTuning
from mneme.evals.report import Row
from mneme.graphs import compound_learning, dispute_resolution
from mneme.graphs.baselines import prompt_cache, raw_trajectories, without_advocate
from mneme.models.asking.counting import tokens_of
from mneme.nodes.learning.context import LearningContext, TeamContext
from mneme.nodes.workflow import Workflow
from mneme.stores.cards.knowledge_cards import KnowledgeCards
from mneme.stores.ledger.base_store import LedgerStore
from mneme.stores.ledger.ledger import Ledger

Arm = Literal["with memory", "without memory", "raw trajectories", "prompt cache", "without advocate"]
LEARNING_ROLES = ("researcher", "devils_advocate", "leader", "monitor")
WITH_MEMORY: Arm = "with memory"
WITHOUT_MEMORY: Arm = "without memory"
LEARNING_RIVALS: tuple[Arm, ...] = (WITHOUT_MEMORY, "raw trajectories", "prompt cache", "without advocate")
ARM_GRAPHS: dict[str, Workflow] = {
    "raw trajectories": raw_trajectories.builder,
    "prompt cache": prompt_cache.builder,
    "without advocate": without_advocate.builder,
}
"""The graphs of the rivals; all other arms are compound learning's own."""
OUTPUT_KEYS = ("packet", "learned", "iterations", "cards")
RECORDED = (
    *("iterations", "solved", "first_attempt", "speed_up", "retrieved", "used", "retrieval_ms", "mistakes"),
    "answered_by",
)
LEARNED_COLUMNS = ("event", "card", "status", "claim")
RECALL = 5


def make_databases(rows: int) -> None:
    """Create every database before anything is timed, or the first user would pay for it."""
    for schema in SCHEMAS:
        SqlTuning.of(TuningTask(id=schema, description="", schema_name=schema), rows=rows)


class PlannedTask(NamedTuple):
    """A task of a plan: its arm, its order and the place in it, and the rows of its databases."""

    arm: str
    seed: int
    number: int
    task: TuningTask
    rows: int

    @property
    def case(self) -> str:
        return f"{self.arm}/{self.seed}/{self.number}"

    @property
    def team(self) -> str:
        return f"{self.arm} {self.seed}"


async def solve(each: PlannedTask, ledger: Ledger, responder: str) -> Row:
    """Give a task to its team, and test the disputes that it opens."""
    cards, store, task = KnowledgeCards(ledger, each.team), LedgerStore(ledger), each.task
    graph = ARM_GRAPHS.get(each.arm, compound_learning.builder).compile(store=store)
    problem: Any = {"task": task.description, "task_id": task.id, **task.posed}
    roles: dict[str, Any] = dict.fromkeys(LEARNING_ROLES, responder)
    context = LearningContext(
        **roles,
        team=each.team,
        environment="sql_tuning",
        schema_name=task.schema_name,
        database_seed=task.seed,
        rows=each.rows,
        recall=0 if each.arm == WITHOUT_MEMORY else RECALL,
    )
    result = await graph.ainvoke(problem, context=context, output_keys=[*OUTPUT_KEYS])
    disputes = [each["dispute"] for each in result["learned"] if each["dispute"]]
    decided = [await _resolve(dispute, cards, store, context) for dispute in disputes]
    about = {"arm": each.arm, "seed": each.seed, "number": each.number}
    return about | await _row(cards, task, result, decided)


async def _resolve(dispute: str, cards: KnowledgeCards, store: LedgerStore, context: TeamContext) -> Row:
    """Try both approaches; a dispute that needs a person then waits for one."""
    graph = dispute_resolution.builder.compile(store=store, checkpointer=InMemorySaver())
    own = TeamContext(**context.model_dump(include={"devils_advocate", "team", "environment", "rows"}))
    config: Any = {"configurable": {"thread_id": dispute}}
    given: Any = {"dispute_id": dispute}
    done = await graph.ainvoke(given, config, context=own)
    ended = await cards.disputes.get(dispute)
    return {**ended.model_dump(mode="json"), **done["recommendation"]}


async def _row(cards: KnowledgeCards, task: TuningTask, result: Row, decided: list[Row]) -> Row:
    """Return the row of a solved task."""
    known, record = await cards.records.list(), await cards.tasks.get(task.id)
    packet, metrics = result["packet"], result["packet"]["metrics"]
    measured: Row = next((each for each in metrics["measured"] if each["name"] == "seconds"), {})
    shown = "\n".join(str(each) for each in result["cards"])
    learned = [{name: each[name] for name in LEARNED_COLUMNS} for each in result["learned"]]
    return {
        **{name: getattr(record, name) for name in RECORDED},
        "task": task.id,
        "family": task.family,
        "schema": task.schema_name,
        "description": task.description,
        "seconds": metrics["latency_seconds"],
        "calls": metrics["model_calls"],
        "tokens": metrics["tokens"],
        "baseline_seconds": measured.get("baseline"),
        "solution_seconds": measured.get("value"),
        "confidence": packet["confidence"],
        "answer": packet["answer"],
        "shown_tokens": tokens_of([HumanMessage(shown)]) if shown else 0,
        "learned": learned,
        "disputes": decided,
        "cards": len(known),
        "verified": sum(card.status == "verified" for card in known),
    }
