"""§7 of the self-improving-memory paper: does what a team learned make later tasks faster?

Query-tuning tasks in a seeded order go to teams that are alike but for their memory: with knowledge cards,
without any (the monitor learns; nobody is shown), and to the rivals of §1 and §9: raw trajectories are
retrieved in the place of cards, a prompt cache answers what was asked before, and the loop goes on without
the devil's advocate. Some tasks of each order are put once more in the same words. Disputes are tested as
they are opened. Beside it the paper's three-task story, as shipped and as printed.
"""

import random

from pydantic import Field

from mneme.environments.sql_tuning import story, tasks
from mneme.evals.learning import compound_tables
from mneme.evals.learning.story import measured_trials, printed_story, story_tables
from mneme.evals.learning.studies import OURS, RIVALS, Arm, Played, Study, StudyOptions, recall_of, study
from mneme.evals.report import Progress, Report, Row

STORY_ROWS = 150_000
"""Rows at which the story's remedies are as far apart as in the paper; with fewer, noise decides."""


class Options(StudyOptions):
    """How many tasks, in which orders, on how large a database, and who answers."""

    tasks: int = Field(64, ge=1, description="Tasks in each order.")
    seeds: list[int] = Field([1, 2, 3], min_length=1, description="Orders of tasks; each for every team.")
    rows: int = Field(60_000, ge=100, description="Rows of each database's table of facts.")
    repeats: int = Field(16, ge=0, description="Tasks of each order that are put once more at its end.")
    without_rivals: bool = Field(False, description="Leave out trajectories, cache and no advocate.")
    quick: bool = Field(False, description="A short run: 12 tasks, one order, small databases.")

    @property
    def sized(self) -> "Options":
        """Return the options with the sizes of a short run, where one is asked for."""
        small = {"tasks": 12, "seeds": [1], "rows": 8_000, "repeats": 3}
        return self.model_copy(update=small) if self.quick else self

    @property
    def arms(self) -> tuple[Arm, ...]:
        """Return the teams that are compared, ours first."""
        return (OURS, *(RIVALS[:1] if self.without_rivals else RIVALS))


async def run(options: Options, progress: Progress = lambda done, of, what: None) -> Report:
    """Run the story, and every order with each team; go on where an interrupted run stopped."""
    sized = options.sized
    story_rows = sized.rows if options.quick else STORY_ROWS
    async with study("compound_learning", sized, ("tasks",), progress) as now:
        plan = _plan(sized, story_rows)
        await now.play(plan)
        trials = await measured_trials(now.journal, story_rows)
        ours = now.cards(f"{OURS} {sized.seeds[-1]}")
        metrics = (await ours.metrics()).model_dump(mode="json")
        rows = [now.journal[each.case] for each in plan]
        return _report(now, sized, rows, trials, metrics)


def _plan(options: Options, story_rows: int) -> list[Played]:
    """Put each task to all teams one after the other, another one first in turn: a busy machine slows all."""
    told = {"story": story(), "printed": printed_story()}
    plan = [
        Played(arm, f"{arm} 0", task, {"seed": 0, "number": number}, rows=story_rows)
        for arm, played in told.items()
        for number, task in enumerate(played)
    ]
    for seed in options.seeds:
        drawn = tasks(seed, options.tasks)
        chosen = random.Random(seed).sample(drawn, min(options.repeats, len(drawn)))  # noqa: S311  no secret
        again = [task.model_copy(update={"id": f"{task.id}-again"}) for task in chosen]
        for number, task in enumerate([*drawn, *again]):
            first = number % len(options.arms)
            for arm in (*options.arms[first:], *options.arms[:first]):
                noted = {"seed": seed, "number": number}
                plan.append(Played(arm, f"{arm} {seed}", task, noted, recall_of(arm), memory=arm))
    return plan


def _report(now: Study, options: Options, rows: list[Row], trials: list[Row], metrics: Row) -> Report:
    told = {arm: [row for row in rows if row["arm"] == arm] for arm in ("story", "printed")}
    played = compound_tables.measured([row for row in rows if row["arm"] in options.arms])
    parts = compound_tables.parts_of(played, options.tasks)
    compared = {part: compound_tables.compared(frame) for part, frame in parts.items()}
    tested = compound_tables.significance(parts)
    summary = {
        **options.model_dump(include={"tasks", "seeds", "rows", "repeats"}),
        "compared": compared,
        "significance": tested,
        "metrics": metrics,
        "disputes": compound_tables.disputes(parts["all"]),
    }
    title = f"Compound learning: {options.tasks} query-tuning tasks, {len(options.seeds)} orders"
    made = now.report(
        "compound_learning", [*rows, *trials], summary, *compound_tables.plots(played), title=title
    )
    made.tables += [
        *story_tables(told["story"], told["printed"], trials),
        *compound_tables.tables(parts, compared),
    ]
    made.notes += compound_tables.notes(tested, compared, summary["disputes"])
    return made
