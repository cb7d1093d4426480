"""§7 of the self-improving-memory paper: does what a team learned make later tasks faster?

Query-tuning tasks in a seeded order go through the graph `compound_learning` twice, with memory (cards
are retrieved) and without (none are; everything else is the same, the monitor's work included). Every
speed-up and every plan is the database's own. Disputes are tested as they are opened. Beside it the
paper's three-task story, run on real databases: discovery, reuse on another schema, an edge case that opens a
dispute and merges into a conditional rule.

Under `rules` the researcher begins with the usual remedies and learns from cards and objections alone;
these results show what the mechanism does, not what a language model would do.
"""

import asyncio
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean, median, stdev
from typing import Any, Literal

import numpy as np
from langgraph.checkpoint.memory import InMemorySaver
from matplotlib.axes import Axes
from pydantic import BaseModel, Field

from mneme.cli.tables import Table
from mneme.core.settings import settings
from mneme.environments.sql_tuning import SCHEMAS, SqlTuning, TuningTask, story, tasks
from mneme.evals.answering import Identity, identify
from mneme.evals.measuring import p_cell, wilcoxon_p
from mneme.evals.options import RUNS, Agents, EmbedderName, Fresh, Out
from mneme.evals.report import Journal, Progress, Report, Row, draw, open_journal, table
from mneme.graphs import compound_learning, dispute_resolution
from mneme.models.embedding.embedders import open_embedder
from mneme.nodes.learning.context import LearningContext, TeamContext
from mneme.stores.cards.knowledge_cards import KnowledgeCards
from mneme.stores.cards.metrics import Metrics
from mneme.stores.cards.task_log import TaskRecord
from mneme.stores.ledger.base_store import LedgerStore
from mneme.stores.ledger.ledger import Ledger, open_ledger

STORY_ROWS = 150_000
"""Rows at which the story's remedies are as far apart as in the paper; with fewer, noise decides."""

Arm = Literal["with memory", "without memory", "story"]
ROLES = ("researcher", "devils_advocate", "leader", "monitor")
ARMS: tuple[Arm, ...] = ("with memory", "without memory")
WINDOW = 8
"""Tasks over which a learning curve is averaged."""
PAPER_STORY = (
    ("18 min", "2", "0", "86 %"),
    ("8 min", "1", "2", "92 %"),
    ("9 min", "1", "3", "89 %"),
)
"""§7, compound learning evidence: time, iterations, cards retrieved, query speed-up."""


class Options(BaseModel):
    """How many tasks, in which orders, on how large a database, and who answers."""

    tasks: int = Field(64, ge=1, description="Tasks in each order.")
    seeds: list[int] = Field([1, 2, 3], min_length=1, description="Orders of tasks; each with and without.")
    rows: int = Field(60_000, ge=100, description="Rows of each database's table of facts.")
    agents: Agents = "auto"
    out: Out = RUNS
    embedder: EmbedderName = ""
    fresh: Fresh = False
    quick: bool = Field(False, description="A short run: 12 tasks, one order, small databases.")

    @property
    def sized(self) -> "Options":
        """Return the options with the sizes of a short run, where one is asked for."""
        return self.model_copy(update={"tasks": 12, "seeds": [1], "rows": 8_000}) if self.quick else self


@dataclass
class Team:
    """A team that solves tasks: its ledger, who answers, the rows of its databases, the cards retrieved."""

    name: str
    ledger: Ledger
    who: str
    rows: int
    recall: int

    @property
    def cards(self) -> KnowledgeCards:
        return KnowledgeCards(self.ledger, self.name)

    async def solve(self, task: TuningTask) -> Row:
        """Put a task to the team, and the disputes that it opens to the test."""
        graph = compound_learning.builder.compile(store=LedgerStore(self.ledger))
        problem: Any = {
            "task": task.description,
            "task_id": task.id,
            "query": task.query,
            "wanted_speed_up": task.wanted_speed_up,
            "index_budget": task.index_budget,
        }
        result = await graph.ainvoke(problem, context=self._context(task))
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
        record = await self._record(task.id)
        packet = result["packet"]
        return {
            "task": task.id,
            "family": task.family,
            "schema": task.schema_name,
            "description": task.description,
            "iterations": record.iterations,
            "solved": record.solved,
            "first_attempt": record.first_attempt,
            "seconds": packet["metrics"]["latency_seconds"],
            "calls": packet["metrics"]["model_calls"],
            "tokens": packet["metrics"]["tokens"],
            "speed_up": record.speed_up,
            "baseline_seconds": _seconds(packet, "baseline"),
            "solution_seconds": _seconds(packet, "value"),
            "confidence": packet["confidence"],
            "answer": packet["answer"],
            "retrieved": record.retrieved,
            "used": record.used,
            "retrieval_ms": record.retrieval_ms,
            "mistakes": record.mistakes,
            "learned": [
                {name: each[name] for name in ("event", "card", "status", "claim")}
                for each in result["learned"]
            ],
            "disputes": decided,
            "cards": len(cards),
            "verified": sum(card.status == "verified" for card in cards),
            "answered_by": record.answered_by,
        }

    async def _record(self, task_id: str) -> TaskRecord:
        (record,) = [each for each in await self.cards.tasks.list() if each.id == task_id]
        return record


async def run(options: Options, progress: Progress = lambda done, of, what: None) -> Report:
    """Run the story, and every order with and without memory; go on where an interrupted run stopped."""
    sized = options.sized
    embedder = await open_embedder(sized.embedder or settings().embedder)
    who = await identify(sized.agents)
    configuration = {
        "tasks": sized.tasks,
        "rows": sized.rows,
        "agents": who.model_dump(),
        "embedder": embedder.name,
    }
    journal = open_journal(sized.out, "compound_learning", configuration, fresh=sized.fresh)
    home = journal.path.with_suffix("")
    if not journal.rows:
        shutil.rmtree(home, ignore_errors=True)  # what a run left that finished no case
    ledger = await open_ledger(str(home), embedder)
    try:
        await _run(sized, ledger, who.responder, journal, progress)
        metrics = await KnowledgeCards(ledger, _team("with memory", sized.seeds[-1])).metrics()
        merged = await KnowledgeCards(ledger, _team("story", 0)).records.list()
    finally:
        await ledger.close()
    return _report(
        sized, journal, who, metrics, [rule.model_dump() for card in merged for rule in card.rules]
    )


def _team(arm: Arm, seed: int) -> str:
    return f"{arm} {seed}"


async def _run(options: Options, ledger: Ledger, who: str, journal: Journal, progress: Progress) -> None:
    await asyncio.to_thread(_make_databases, options.rows)
    plan = _plan(options)
    for done, (arm, seed, number, task) in enumerate(plan, start=1):
        recall = 0 if arm == "without memory" else 5
        rows = STORY_ROWS if arm == "story" and not options.quick else options.rows
        team = Team(_team(arm, seed), ledger, who, rows, recall)
        case = f"{arm}/{seed}/{number:03d}"
        if case not in journal:
            journal.add(case, {"arm": arm, "seed": seed, "number": number, **await team.solve(task)})
        progress(done, len(plan), f"{arm}, order {seed}")


def _plan(options: Options) -> list[tuple[Arm, int, int, TuningTask]]:
    """Put each task to both arms one after the other, either first in turn: a busy machine slows both."""
    plan: list[tuple[Arm, int, int, TuningTask]] = [("story", 0, n, task) for n, task in enumerate(story())]
    for seed in options.seeds:
        for number, task in enumerate(tasks(seed, options.tasks)):
            plan += [(arm, seed, number, task) for arm in (ARMS if number % 2 else ARMS[::-1])]
    return plan


def _make_databases(rows: int) -> None:
    """Make every database before anything is timed, or the first who needs one would pay for it."""
    for schema in SCHEMAS:
        SqlTuning.open(schema, 0, rows).close()


def _report(options: Options, journal: Journal, who: Identity, metrics: Metrics, rules: list[Row]) -> Report:
    rows = [row for row in journal.rows if row["arm"] == "story" or row["seed"] in options.seeds]
    story_rows = [row for row in rows if row["arm"] == "story"]
    by_arm = {arm: _orders(rows, arm, options) for arm in ARMS}
    summary = {
        "tasks": options.tasks,
        "seeds": options.seeds,
        "rows": options.rows,
        **{str(arm): _summary(by_arm[arm]) for arm in ARMS},
        "significance": _significance(by_arm),
        "reduction": _reductions(by_arm),
        "metrics": metrics.model_dump(mode="json"),
        "story": [_story_row(row) for row in story_rows],
        "story_rules": rules,
        "disputes": _disputes([row for order in by_arm["with memory"] for row in order]),
    }
    plot = draw(
        journal.path.with_suffix(".png"),
        f"Compound learning: {options.tasks} query-tuning tasks, {len(options.seeds)} orders, "
        f"mean and spread, averaged over {WINDOW} tasks",
        str(who),
        *_plots(by_arm),
    )
    return Report(
        name="compound_learning",
        answered_by=str(who),
        raw=journal.path,
        rows=rows,
        summary=summary,
        tables=[_story_table(story_rows), _arms_table(summary), _growth_table(summary)],
        plots=[plot],
        notes=_notes(summary, rules, who),
    )


def _orders(rows: Sequence[Row], arm: Arm, options: Options) -> list[list[Row]]:
    return [
        sorted((r for r in rows if r["arm"] == arm and r["seed"] == seed), key=lambda row: row["number"])
        for seed in options.seeds
    ]


def _seconds(packet: Row, side: str) -> float | None:
    """Return the measured seconds of the baseline or of the solution's `value`."""
    found = [each[side] for each in packet["metrics"]["measured"] if each["name"] == "seconds"]
    return found[0] if found else None


def _saved(row: Row) -> float:
    """Return the share of the query's time that the solution saves; nothing where it solves nothing."""
    if not row["solved"] or not row["baseline_seconds"]:
        return 0.0
    return 1.0 - float(row["solution_seconds"]) / float(row["baseline_seconds"])


def _share(part: float, whole: float) -> float:
    return part / whole if whole else 0.0


def _duplicates(rows: Sequence[Row]) -> float:
    """Return the share of mistakes that an earlier task of the same order made already."""
    seen: set[str] = set()
    made = again = 0
    for row in rows:
        again += len(seen.intersection(row["mistakes"]))
        made += len(row["mistakes"])
        seen.update(row["mistakes"])
    return _share(again, made)


FIGURES: dict[str, Callable[[Sequence[Row]], float]] = {
    "iterations per task": lambda rows: fmean(row["iterations"] for row in rows),
    "first-attempt success": lambda rows: fmean(row["first_attempt"] for row in rows),
    "solved": lambda rows: fmean(row["solved"] for row in rows),
    "seconds to solution": lambda rows: fmean(row["seconds"] for row in rows),
    "model calls to solution": lambda rows: fmean(row["calls"] for row in rows),
    "speed-up (median)": lambda rows: median(row["speed_up"] or 0.0 for row in rows),
    "time saved by the solution": lambda rows: fmean(_saved(row) for row in rows),
    "cards retrieved": lambda rows: fmean(len(row["retrieved"]) for row in rows),
    "cards used": lambda rows: fmean(len(row["used"]) for row in rows),
    "retrieval precision": lambda rows: _share(
        sum(len(row["used"]) for row in rows), sum(len(row["retrieved"]) for row in rows)
    ),
    "duplicate mistakes": _duplicates,
}


def _summary(orders: Sequence[Sequence[Row]]) -> Row:
    """Return each figure over the whole orders, their beginnings and their ends, with the spread."""
    third = max(1, len(orders[0]) // 3)
    parts = {"all": slice(None), "first third": slice(third), "last third": slice(-third, None)}
    return {
        name: {part: _spread([figure(order[cut]) for order in orders]) for part, cut in parts.items()}
        for name, figure in FIGURES.items()
    } | {
        "slope of iterations per 10 tasks": _spread([_slope(order) for order in orders]),
        "cards at the end": _spread([float(order[-1]["cards"]) for order in orders]),
        "verified at the end": _spread([float(order[-1]["verified"]) for order in orders]),
        "mistakes": _spread([float(sum(len(row["mistakes"]) for row in order)) for order in orders]),
    }


def _spread(values: Sequence[float]) -> Row:
    return {"mean": fmean(values), "sd": stdev(values) if len(values) > 1 else 0.0}


def _slope(order: Sequence[Row]) -> float:
    if len(order) < 2:
        return 0.0
    return 10 * float(np.polyfit(range(len(order)), [row["iterations"] for row in order], 1)[0])


def _significance(by_arm: dict[Arm, list[list[Row]]]) -> dict[str, float | None]:
    """Return Wilcoxon's p for the same tasks with and without memory."""
    return {name: _wilcoxon(by_arm, name) for name in ("iterations", "seconds", "calls")}


def _wilcoxon(by_arm: dict[Arm, list[list[Row]]], name: str) -> float | None:
    with_, without = ([row[name] for order in by_arm[arm] for row in order] for arm in ARMS)
    return wilcoxon_p(np.subtract(with_, without))


def _reductions(by_arm: dict[Arm, list[list[Row]]]) -> dict[str, float]:
    """Return by which share memory lowers what a task of the last third costs."""
    third = max(1, len(by_arm["with memory"][0]) // 3)
    ends = {arm: [row for order in by_arm[arm] for row in order[-third:]] for arm in ARMS}
    return {
        name: 1.0
        - fmean(row[name] for row in ends["with memory"]) / fmean(row[name] for row in ends["without memory"])
        for name in ("iterations", "seconds", "calls")
    }


def _disputes(rows: Sequence[Row]) -> dict[str, int]:
    counted: dict[str, int] = {}
    for row in rows:
        for each in row["disputes"]:
            counted[each["recommendation"]] = counted.get(each["recommendation"], 0) + 1
    return counted


def _story_row(row: Row) -> Row:
    kept = ("task", "iterations", "seconds", "calls", "speed_up", "confidence", "retrieved", "used")
    return {name: row[name] for name in (*kept, "learned", "disputes")} | {"saved": _saved(row)}


def _story_table(rows: Sequence[Row]) -> Table:
    columns = [
        "task",
        "time",
        "paper",
        "iterations",
        "paper",
        "cards",
        "paper",
        "query time saved",
        "paper",
        "learned",
    ]
    cells = [
        [
            row["task"],
            f"{row['seconds']:.2f} s",
            paper[0],
            row["iterations"],
            paper[1],
            len(row["retrieved"]),
            paper[2],
            f"{100 * _saved(row):.0f} %",
            paper[3],
            "; ".join(
                [*(each["event"] for each in row["learned"]), *(d["recommendation"] for d in row["disputes"])]
            ),
        ]
        for row, paper in zip(rows, PAPER_STORY, strict=False)
    ]
    return table("The three-task story (§7)", columns, cells)


def _arms_table(summary: Row) -> Table:
    columns = ["", *(f"{arm}: {part}" for arm in ARMS for part in ("all", "first third", "last third"))]
    cells = [
        [
            name,
            *(
                _cell(summary[arm][name][part])
                for arm in ARMS
                for part in ("all", "first third", "last third")
            ),
        ]
        for name in FIGURES
    ]
    return table(f"Mean and standard deviation over {len(summary['seeds'])} orders", columns, cells)


def _cell(spread: Row) -> str:
    return f"{spread['mean']:.2f} ± {spread['sd']:.2f}"


def _growth_table(summary: Row) -> Table:
    names = ("slope of iterations per 10 tasks", "mistakes", "cards at the end", "verified at the end")
    cells = [[name, *(_cell(summary[arm][name]) for arm in ARMS)] for name in names]
    return table("Learning", ["", *ARMS], cells)


def _notes(summary: Row, rules: Sequence[Row], who: Identity) -> list[str]:
    saved, p = summary["reduction"], summary["significance"]
    taken = ", ".join(
        f"{100 * saved[name]:.0f} % of the {name}" for name in ("seconds", "iterations", "calls")
    )
    tested = ", ".join(f"{name} p={p_cell(value)}" for name, value in p.items())
    notes = [
        f"In the last third memory saves {taken} (paper, one example: 53 % of the time).",
        f"The same tasks with and without, Wilcoxon: {tested}.",
        "Under rules an answer costs no time, so that seconds are the database's: two trials at the least.",
        f"Disputes with memory: {summary['disputes'] or 'none'}.",
    ]
    if len(rules) > 1:
        listed = "; ".join(f"{rule['condition'].replace(';', ',')} -> {rule['pattern']}" for rule in rules)
        notes.append(f"The story's card ends as: {listed}.")
    if not who.is_model:
        notes.append("Answered by rules: the figures show the mechanism, not a language model.")
    return notes


def _plots(by_arm: dict[Arm, list[list[Row]]]) -> list[Callable[[Axes], None]]:
    return [
        lambda axes: _curve(axes, by_arm, "iterations", "drafts per task"),
        lambda axes: _curve(axes, by_arm, "seconds", "seconds to solution"),
        lambda axes: _growth(axes, by_arm["with memory"]),
    ]


def _curve(axes: Axes, by_arm: dict[Arm, list[list[Row]]], name: str, label: str) -> None:
    """Draw a moving mean over the orders, with the range between them."""
    for arm, colour in zip(ARMS, ("tab:blue", "tab:orange"), strict=True):
        smooth = np.array([_smooth([float(row[name]) for row in order]) for order in by_arm[arm]])
        at = np.arange(smooth.shape[1]) + min(WINDOW, len(by_arm[arm][0]))
        axes.plot(at, smooth.mean(axis=0), color=colour, label=arm)
        axes.fill_between(at, smooth.min(axis=0), smooth.max(axis=0), color=colour, alpha=0.2)
    axes.set_xlabel("task")
    axes.set_ylabel(label)
    axes.set_ylim(bottom=0)
    axes.legend()


def _smooth(values: Sequence[float]) -> list[float]:
    width = min(WINDOW, len(values))
    return list(np.convolve(values, np.ones(width) / width, mode="valid"))


def _growth(axes: Axes, orders: Sequence[Sequence[Row]]) -> None:
    for name, colour in (("cards", "tab:gray"), ("verified", "tab:green")):
        counts = np.array([[row[name] for row in order] for order in orders])
        axes.plot(range(1, counts.shape[1] + 1), counts.mean(axis=0), color=colour, label=name)
        axes.fill_between(
            range(1, counts.shape[1] + 1), counts.min(axis=0), counts.max(axis=0), color=colour, alpha=0.2
        )
    axes.set_xlabel("task")
    axes.set_ylabel("knowledge cards")
    axes.legend()
