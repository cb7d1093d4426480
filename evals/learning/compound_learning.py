"""§7 of the self-improving-memory paper: do a team's lessons make later tasks faster?

Query-tuning tasks in a seeded order go to teams that are alike but for their memory: with knowledge cards,
without any (the monitor learns; nobody is shown), and to the rivals of §1 and §9: raw trajectories are
retrieved in the place of cards, a prompt cache answers what was asked before, and the loop goes on without
the devil's advocate. Some tasks of each order are put once more in the same words. Disputes are tested as
they are opened.

Beside it the paper's three-task story: as Mneme ships it, whose second task counts, and with the paper's own,
which sums. What the paper's dispute reports is measured too: on five queries with several filters, four of
two or three filters and one of many with little room for indexes, the index on one filter, that on all
filters, and the partial index of the paper's third rule.
"""

import asyncio
import random
from collections.abc import Sequence
from functools import partial

from pydantic import Field

from mneme.api.tables import Table
from mneme.core.errors import BadInput
from mneme.environments.sql_tuning.generating import SCHEMAS
from mneme.environments.sql_tuning.tasks import TuningTask, story, tasks
from mneme.environments.worlds import Task, World, find_world
from mneme.evals.learning import compound_tables
from mneme.evals.learning.compound_tables import saved
from mneme.evals.learning.playing import LEARNING_RIVALS, WITH_MEMORY, Arm, PlannedTask, make_databases, solve
from mneme.evals.measuring import home_beside, ledger_at
from mneme.evals.options import Agents, Identity, RunOptions, identify
from mneme.evals.report import Journal, Progress, Report, Row, table
from mneme.stores.cards.knowledge_cards import KnowledgeCards

PAPER_EVIDENCE = (("18 min", "2", "0", "86 %"), ("8 min", "1", "2", "92 %"), ("9 min", "1", "3", "89 %"))
"""§7, compound learning evidence: time, iterations, cards retrieved, query speed-up."""
PATTERNS = {
    "old": "INDEX (filter, group)",
    "new": "INDEX (filters, group)",
    "third": "INDEX (range, group) WHERE equality",
}
"""The indexes of the paper's dispute."""
TASKS_DRAWN = 200


def printed_story() -> list[TuningTask]:
    """Return the story with the paper's own second task: sums and counts of sales by product."""
    first, second, third = story()
    schema = SCHEMAS["sales"]
    c = schema.columns
    asks = f"Speed up the report query that sums {schema.subject} by {c['group']} over the last quarter."
    summing = (
        f"SELECT {c['group']}, SUM({c['amount']}) AS total, COUNT({c['group']}) AS sold FROM {schema.fact} "  # noqa: S608  our own schema
        f"WHERE {c['time']} >= {schema.moment(90)} GROUP BY {c['group']} ORDER BY total DESC, {c['group']}"
    )
    room = "New indexes may take 30% of the tables' size."
    return [first, second.model_copy(update={"description": f"{asks} {room}", "query": summing}), third]


def printed_trials() -> list[TuningTask]:
    """Return five queries with several filters as in the paper's dispute: four plain, one that bloats."""
    drawn = tasks(7, TASKS_DRAWN)
    plain = {each.schema_name: each for each in drawn if each.family == "multi_filter"}
    many = next(each for each in drawn if "more than three filters" in each.description)
    return [*[plain[name] for name in sorted(plain)][:4], many]


def _trial(task: TuningTask, rows: int) -> Row:
    """Measure the three indexes of the paper's dispute on one of its five queries."""
    given = {**task.posed, "schema_name": task.schema_name, "rows": rows}
    world = find_world("sql_tuning").open(Task(id=task.id, text=task.description, given=given))
    found: Row = {
        "arm": "trials",
        "task": task.id,
        "description": task.description,
        "room": task.index_budget,
    }
    return found | {name: _measured(world, pattern) for name, pattern in PATTERNS.items()}


def _measured(world: World, pattern: str) -> Row | None:
    """Return the gain and the cost of a pattern; None if the query lacks what it names."""
    try:
        made = world.carry_out(pattern)
    except BadInput:
        return None
    trial = world.attempt(made)
    room = next((each.value for each in trial.metrics if each.name == "index_share"), 0.0)
    return {"gain": trial.gain, "room": room, "solved": trial.solved}


def story_tables(rows: Sequence[Row], printed: Sequence[Row], trials: Sequence[Row]) -> list[Table]:
    """Return both stories beside the paper's figures, and the gain of the indexes in its dispute."""
    cells = [
        [row["description"].split(".")[0][:90], f"{row['room']:.0%}", *(_gain(row[n]) for n in PATTERNS)]
        for row in trials
    ]
    gains = "The dispute of §7: times as fast, and the share of the tables that the index takes"
    return [
        _story_table("The three-task story (§7)", rows),
        _story_table("The same with the paper's own second task, which sums", printed),
        table(gains, ["query", "room", *PATTERNS.values()], cells),
    ]


def _story_table(title: str, rows: Sequence[Row]) -> Table:
    columns = ["time", "paper", "iterations", "paper", "cards", "paper", "query time saved", "paper"]
    cells = []
    for row, (time, iterations, retrieved, gain) in zip(rows, PAPER_EVIDENCE, strict=True):
        events = [each["event"] for each in row["learned"]]
        events += [each["recommendation"] for each in row["disputes"]]
        here = [
            f"{row['seconds']:.2f} s",
            time,
            row["iterations"],
            iterations,
            len(row["retrieved"]),
            retrieved,
        ]
        cells.append([row["task"], *here, f"{100 * saved(row):.0f} %", gain, "; ".join(events)])
    return table(title, ["task", *columns, "learned"], cells)


def _gain(found: Row | None) -> str:
    if found is None:
        return "no equality"
    return f"{found['gain']:.2f} ({found['room']:.1%})" + ("" if found["solved"] else ", not solved")


STORY_ROWS = 150_000
"""Rows at which the story's remedies are as far apart as in the paper; with fewer, noise decides."""


class Options(RunOptions):
    """Number of tasks, their orders, the size of the database, and responders."""

    agents: Agents = "auto"
    tasks: int = Field(64, ge=1, description="Tasks in each order.")
    seeds: list[int] = Field([1, 2, 3], min_length=1, description="Orders of tasks; each for every team.")
    rows: int = Field(60_000, ge=100, description="Rows of each database's table of facts.")
    repeats: int = Field(16, ge=0, description="Tasks of each order that are put once more at its end.")
    without_rivals: bool = Field(False, description="Leave out trajectories, cache and no advocate.")
    quick: bool = Field(False, description="A short run: 12 tasks, one order, small databases.")

    @property
    def sized(self) -> "Options":
        """Return the options, with the sizes of a short run if one is requested."""
        small = {"tasks": 12, "seeds": [1], "rows": 8_000, "repeats": 3}
        return self.model_copy(update=small) if self.quick else self

    @property
    def arms(self) -> tuple[Arm, ...]:
        """Return the teams that are compared, ours first."""
        return (WITH_MEMORY, *(LEARNING_RIVALS[:1] if self.without_rivals else LEARNING_RIVALS))


async def run(options: Options, progress: Progress = lambda done, of, what: None) -> Report:
    """Run the story, and every order with each team; an interrupted run is continued."""
    sized = options.sized
    story_rows = sized.rows if options.quick else STORY_ROWS
    embedder, who = await sized.opened_embedder(), await identify(sized.agents)
    configuration = {"agents": who.model_dump(), "embedder": embedder.name}
    journal = sized.journal("compound_learning", configuration | sized.model_dump(include={"rows", "tasks"}))
    plan = _plan(sized, story_rows)
    async with ledger_at(home_beside(journal), embedder) as ledger:
        await asyncio.to_thread(make_databases, sized.rows)
        one = partial(solve, ledger=ledger, responder=who.responder)
        rows = await journal.play({each.case: each for each in plan}, one, progress)
        trials = {f"trials/0/{number}": task for number, task in enumerate(printed_trials())}
        rows += await journal.play(trials, lambda task: asyncio.to_thread(_trial, task, story_rows), progress)
        ours = KnowledgeCards(ledger, f"{WITH_MEMORY} {sized.seeds[-1]}")
        metrics = (await ours.metrics()).model_dump(mode="json")
    return _report(journal, sized, who, rows, metrics)


def _plan(options: Options, story_rows: int) -> list[PlannedTask]:
    """Put each task to all teams by turns, starting with another one each time: a busy machine slows all."""
    plan = [
        PlannedTask(arm, 0, number, task, story_rows)
        for arm, told in (("story", story()), ("printed", printed_story()))
        for number, task in enumerate(told)
    ]
    for seed in options.seeds:
        drawn = tasks(seed, options.tasks)
        chosen = random.Random(seed).sample(drawn, min(options.repeats, len(drawn)))  # noqa: S311  no secret
        again = [task.model_copy(update={"id": f"{task.id}-again"}) for task in chosen]
        for number, task in enumerate([*drawn, *again]):
            first = number % len(options.arms)
            arms = (*options.arms[first:], *options.arms[:first])
            plan += [PlannedTask(arm, seed, number, task, options.rows) for arm in arms]
    return plan


def _report(journal: Journal, options: Options, who: Identity, rows: list[Row], metrics: Row) -> Report:
    told = [[row for row in rows if row["arm"] == arm] for arm in ("story", "printed", "trials")]
    played = compound_tables.measured([row for row in rows if row["arm"] in options.arms])
    parts = compound_tables.parts_of(played, options.tasks)
    compared = {part: compound_tables.compared(frame) for part, frame in parts.items()}
    tested, disputes = compound_tables.significance(parts), compound_tables.disputes(parts["all"])
    return journal.report(
        who,
        {
            **options.model_dump(include={"tasks", "seeds", "rows", "repeats"}),
            "compared": compared,
            "significance": tested,
            "metrics": metrics,
            "disputes": disputes,
        },
        [*story_tables(*told), *compound_tables.tables(parts, compared)],
        compound_tables.notes(tested, disputes),
        rows,
    ).with_plots(
        f"Compound learning: {options.tasks} query-tuning tasks, {len(options.seeds)} orders",
        partial(compound_tables.plot, played),
    )
