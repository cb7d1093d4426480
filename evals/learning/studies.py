"""What the questions of §7 and §11 share: teams that play a plan of tasks, and go on where a run stopped."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Literal

from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from matplotlib.axes import Axes
from pydantic import Field

from mneme.environments.sql_tuning.generating import SCHEMAS
from mneme.environments.sql_tuning.tasks import TuningTask
from mneme.environments.sql_tuning.tuning import SqlTuning
from mneme.evals.answering import Identity, identify
from mneme.evals.measuring import home_beside, ledger_at
from mneme.evals.options import Agents, RunOptions
from mneme.evals.report import Journal, Progress, Report, Row
from mneme.graphs import compound_learning, dispute_resolution
from mneme.graphs.baselines import prompt_cache, raw_trajectories, without_advocate
from mneme.models.asking.budget import tokens_of
from mneme.models.embedding.embedders import Embedder
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


def make_databases(rows: int) -> None:
    """Make every database before anything is timed, or the first who needs one would pay for it."""
    for schema in SCHEMAS:
        SqlTuning.open(schema, 0, rows)


class StudyOptions(RunOptions):
    """What every study has."""

    rows: int = Field(8_000, ge=100, description="Rows of each database's table of facts.")
    agents: Agents = "auto"


@dataclass(frozen=True)
class Played:
    """A task of a plan: its arm, who solves it, how many cards that is shown, and what is noted of it.

    `rows` are those of its databases, by default the study's; `memory` is the memory of the team.
    """

    arm: str
    team: str
    task: TuningTask
    noted: Row
    shown: int = RECALL
    rows: int = 0
    memory: str = OURS

    @property
    def case(self) -> str:
        return "/".join(map(str, (self.arm, *self.noted.values())))


@dataclass
class Study:
    """A run of a study: where it is kept, and who answers."""

    who: Identity
    embedder: Embedder
    ledger: Ledger
    journal: Journal
    rows: int
    progress: Progress

    def cards(self, team: str) -> KnowledgeCards:
        """Return the cards of a team; what it has learned is in the ledger."""
        return KnowledgeCards(self.ledger, team)

    async def play(self, plan: Sequence[Played]) -> None:
        """Solve every task of a plan that is not in the journal, in this order."""
        await self.journal.play({each.case: each for each in plan}, self._solve, self.progress)

    async def _solve(self, each: Played) -> Row:
        """Put a task to its team, and the disputes that it opens to the test."""
        cards, task = self.cards(each.team), each.task
        graph = GRAPHS.get(each.memory, compound_learning.builder).compile(store=LedgerStore(self.ledger))
        problem: Any = {"task": task.description, "task_id": task.id, **task.posed}
        roles: dict[str, Any] = dict.fromkeys(ROLES, self.who.responder)
        context = LearningContext(
            **roles,
            team=each.team,
            environment="sql_tuning",
            schema_name=task.schema_name,
            database_seed=task.seed,
            rows=each.rows or self.rows,
            recall=each.shown,
        )
        result = await graph.ainvoke(problem, context=context, output_keys=[*SEEN])
        disputes = [each["dispute"] for each in result["learned"] if each["dispute"]]
        decided = [await self._resolve(dispute, cards, context) for dispute in disputes]
        return {"arm": each.arm} | each.noted | await _row(cards, task, result, decided)

    async def _resolve(self, dispute: str, cards: KnowledgeCards, context: TeamContext) -> Row:
        """Let both approaches be tried; a dispute that waits for a person then waits."""
        graph = dispute_resolution.builder.compile(
            store=LedgerStore(self.ledger), checkpointer=InMemorySaver()
        )
        own = TeamContext(**context.model_dump(include={"devils_advocate", "team", "environment", "rows"}))
        config: Any = {"configurable": {"thread_id": dispute}}
        given: Any = {"dispute_id": dispute}
        done = await graph.ainvoke(given, config, context=own)
        ended = await cards.disputes.get(dispute)
        return {**ended.model_dump(mode="json"), **done["recommendation"]}

    def report(self, rows: list[Row], summary: Row, *plots: Callable[[Axes], None], title: str) -> Report:
        """Return a report with its plots, whose tables and notes are still to be given."""
        notes = [] if self.who.is_model else ["Answered by rules: the mechanism, not a language model."]
        return self.journal.report(self.who, summary, [], notes, rows).with_plots(title, *plots)


async def _row(cards: KnowledgeCards, task: TuningTask, result: Row, decided: list[Row]) -> Row:
    """Return what is kept of a solved task."""
    known, record = await cards.records.list(), await cards.tasks.get(task.id)
    packet, metrics = result["packet"], result["packet"]["metrics"]
    measured: Row = next((each for each in metrics["measured"] if each["name"] == "seconds"), {})
    shown = "\n".join(str(each) for each in result["cards"])
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


@asynccontextmanager
async def study(
    name: str, options: StudyOptions, varied: Iterable[str], progress: Progress
) -> AsyncIterator[Study]:
    """Open a study, whose results are those of the options that are `varied`, and make its databases."""
    embedder = await options.opened_embedder()
    who = await identify(options.agents)
    configuration: Row = {"agents": who.model_dump(), "embedder": embedder.name, "rows": options.rows}
    configuration |= options.model_dump(mode="json", include={*varied})
    journal = options.journal(name, configuration)
    async with ledger_at(home_beside(journal), embedder) as ledger:
        await asyncio.to_thread(make_databases, options.rows)
        yield Study(who, embedder, ledger, journal, options.rows, progress)
