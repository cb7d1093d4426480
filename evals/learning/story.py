"""The paper's story (§7) on real databases, beside what the paper prints.

Besides the story as Mneme ships it, whose second task counts, the paper's own second task is played, which
sums; and what the paper's dispute reports is measured: on five queries with several filters, four of two or
three filters and one of many with little room for indexes, the index on one filter, that on all filters, and
the partial index of the paper's third rule.
"""

import asyncio
from collections.abc import Sequence

from mneme.cli.tables import Table
from mneme.core.errors import BadInput
from mneme.environments.sql_tuning import SCHEMAS, TuningTask, story, tasks
from mneme.environments.worlds import Task, World, find_world
from mneme.evals.learning.compound_tables import saved
from mneme.evals.report import Journal, Row, table

PAPER = (("18 min", "2", "0", "86 %"), ("8 min", "1", "2", "92 %"), ("9 min", "1", "3", "89 %"))
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


async def measured_trials(journal: Journal, rows: int) -> list[Row]:
    """Measure the three indexes of the paper's dispute on its five queries, where that is not done yet."""

    async def measure(task: TuningTask) -> Row:
        return await asyncio.to_thread(_trial, task, rows)

    cases = {f"trials/0/{number}": task for number, task in enumerate(printed_trials())}
    return await journal.play(cases, measure, lambda done, of, what: None)


def _trial(task: TuningTask, rows: int) -> Row:
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
    """Return what a pattern gains and takes; None where the query lacks what it names."""
    try:
        made = world.carry_out(pattern)
    except BadInput:
        return None
    trial = world.attempt(made)
    room = next((each.value for each in trial.metrics if each.name == "index_share"), 0.0)
    return {"gain": trial.gain, "room": room, "solved": trial.solved}


def story_tables(rows: Sequence[Row], printed: Sequence[Row], trials: Sequence[Row]) -> list[Table]:
    """Return both stories beside the paper's figures, and what the indexes of its dispute gain."""
    cells = [
        [
            row["description"].split(".")[0][:90],
            f"{row['room']:.0%}",
            *(_gain(row[name]) for name in PATTERNS),
        ]
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
    for row, (time, iterations, retrieved, gain) in zip(rows, PAPER, strict=True):
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
