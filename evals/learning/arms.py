"""The arms of compound learning: teams that solve the same tasks, each with another memory, or none."""

from dataclasses import dataclass
from typing import Any, Literal

from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver

from mneme.environments.sql_tuning import SCHEMAS, SqlTuning, TuningTask
from mneme.evals.report import Row
from mneme.graphs import compound_learning, dispute_resolution
from mneme.graphs.baselines import prompt_cache, raw_trajectories, without_advocate
from mneme.models.asking.budget import tokens_of
from mneme.nodes.learning.context import LearningContext, TeamContext
from mneme.nodes.workflow import Workflow
from mneme.stores.cards.knowledge_cards import KnowledgeCards
from mneme.stores.ledger.base_store import LedgerStore
from mneme.stores.ledger.ledger import Ledger

Arm = Literal["with memory", "without memory", "raw trajectories", "prompt cache", "without advocate"]
ROLES = ("researcher", "devils_advocate", "leader", "monitor")
OURS: Arm = "with memory"
RIVALS: tuple[Arm, ...] = ("without memory", "raw trajectories", "prompt cache", "without advocate")
GRAPHS: dict[str, Workflow] = {
    "raw trajectories": raw_trajectories.builder,
    "prompt cache": prompt_cache.builder,
    "without advocate": without_advocate.builder,
}
"""The graphs of the rivals; all other arms are compound learning's own."""
SEEN = ("packet", "learned", "iterations", "cards")
RECORDED = (
    *("iterations", "solved", "first_attempt", "speed_up", "retrieved", "used", "retrieval_ms", "mistakes"),
    "answered_by",
)
LEARNED = ("event", "card", "status", "claim")
RECALL = 5


def recall_of(arm: str) -> int:
    """Return how many cards or trajectories an arm retrieves."""
    return 0 if arm == "without memory" else RECALL


def make_databases(rows: int) -> None:
    """Make every database before anything is timed, or the first who needs one would pay for it."""
    for schema in SCHEMAS:
        SqlTuning.open(schema, 0, rows)


@dataclass
class Team:
    """A team that solves tasks: its ledger, who answers, the rows of its databases, the cards retrieved."""

    name: str
    ledger: Ledger
    who: str
    rows: int
    recall: int
    arm: str = OURS

    @property
    def cards(self) -> KnowledgeCards:
        return KnowledgeCards(self.ledger, self.name)

    async def solve(self, task: TuningTask) -> Row:
        """Put a task to the team, and the disputes that it opens to the test."""
        builder = GRAPHS.get(self.arm, compound_learning.builder)
        graph = builder.compile(store=LedgerStore(self.ledger))
        problem: Any = {
            "task": task.description,
            "task_id": task.id,
            "query": task.query,
            "wanted_speed_up": task.wanted_speed_up,
            "index_budget": task.index_budget,
        }
        result = await graph.ainvoke(problem, context=self._context(task), output_keys=[*SEEN])
        disputes = [each["dispute"] for each in result["learned"] if each["dispute"]]
        decided = [await self._resolve(dispute) for dispute in disputes]
        return await self._row(task, result, decided)

    def _context(self, task: TuningTask) -> LearningContext:
        roles: dict[str, Any] = dict.fromkeys(ROLES, self.who)
        return LearningContext(
            **roles,
            team=self.name,
            environment="sql_tuning",
            schema_name=task.schema_name,
            database_seed=task.seed,
            rows=self.rows,
            recall=self.recall,
        )

    async def _resolve(self, dispute: str) -> Row:
        """Let both approaches be tried; a dispute that waits for a person then waits."""
        graph = dispute_resolution.builder.compile(
            store=LedgerStore(self.ledger), checkpointer=InMemorySaver()
        )
        context = TeamContext(
            devils_advocate=self.who, team=self.name, environment="sql_tuning", rows=self.rows
        )
        config: Any = {"configurable": {"thread_id": dispute}}
        given: Any = {"dispute_id": dispute}
        done = await graph.ainvoke(given, config, context=context)
        ended = await self.cards.disputes.get(dispute)
        return {
            "dispute": dispute,
            "type": ended.conflict_type,
            "old": ended.old.solution,
            "new": ended.new.solution,
            "rounds": [[trial.winner for trial in tested.trials] for tested in ended.rounds],
            "recommendation": done["recommendation"]["recommendation"],
            "rationale": done["recommendation"]["rationale"],
            "status": ended.status,
        }

    async def _row(self, task: TuningTask, result: Row, decided: list[Row]) -> Row:
        cards = await self.cards.records.list()
        record = next(each for each in await self.cards.tasks.all() if each.id == task.id)
        packet, metrics = result["packet"], result["packet"]["metrics"]
        learned = [{name: each[name] for name in LEARNED} for each in result["learned"]]
        return {
            **{name: getattr(record, name) for name in RECORDED},
            "task": task.id,
            "family": task.family,
            "schema": task.schema_name,
            "description": task.description,
            "seconds": metrics["latency_seconds"],
            "calls": metrics["model_calls"],
            "tokens": metrics["tokens"],
            "baseline_seconds": _seconds(packet, "baseline"),
            "solution_seconds": _seconds(packet, "value"),
            "confidence": packet["confidence"],
            "answer": packet["answer"],
            "shown_tokens": _shown_tokens(result["cards"]),
            "learned": learned,
            "disputes": decided,
            "cards": len(cards),
            "verified": sum(card.status == "verified" for card in cards),
        }


def _shown_tokens(shown: list[Row]) -> int:
    """Estimate what the memories take of a prompt that shows them."""
    said = [str(each["known"]) for each in shown]
    return tokens_of([HumanMessage("\n".join(said))]) if said else 0


def _seconds(packet: Row, side: str) -> float | None:
    """Return the measured seconds of the baseline or of the solution's `value`."""
    found = [each[side] for each in packet["metrics"]["measured"] if each["name"] == "seconds"]
    return found[0] if found else None
