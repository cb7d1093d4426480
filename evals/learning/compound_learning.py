"""§7 of the self-improving-memory paper: does what a team learned make later tasks faster?

Query-tuning tasks in a seeded order go to teams that are alike but for their memory: with knowledge cards,
without any (the monitor learns; nobody is shown), and to the rivals of §1 and §9: raw trajectories are
retrieved in the place of cards, a prompt cache answers what was asked before, and the loop goes on without
the devil's advocate. Some tasks of each order are put once more in the same words. Every speed-up and every
plan is the database's own. Disputes are tested as they are opened. Beside it the paper's three-task story, as
shipped and as printed, line by line; and how reuse and quality went over time, from the ledger's history.

Under `rules` the researcher begins with the usual remedies and learns from cards and objections alone;
these results show what the mechanism does, not what a language model would do.
"""

import asyncio
import random
from collections.abc import Sequence

from pydantic import BaseModel, Field

from mneme.cli.learning import trend as over_time
from mneme.core.settings import settings
from mneme.environments.sql_tuning import TuningTask, story, tasks
from mneme.evals.answering import Identity, identify
from mneme.evals.learning.arms import OURS, RIVALS, Arm, Team, make_databases, recall_of
from mneme.evals.learning.compound_figures import (
    compared,
    disputes,
    reductions,
    significance,
    summarised,
)
from mneme.evals.learning.compound_tables import (
    WINDOW,
    arms_table,
    growth_table,
    notes,
    plots,
    rivals_table,
    verdicts,
)
from mneme.evals.learning.story import (
    lines,
    lines_table,
    printed_story,
    printed_trials,
    story_row,
    story_table,
    trials_table,
    tried,
)
from mneme.evals.measuring import home_beside, ledger_at
from mneme.evals.options import RUNS, Agents, EmbedderName, Fresh, Out
from mneme.evals.report import Journal, Progress, Report, Row, draw, open_journal
from mneme.models.embedding.embedders import open_embedder
from mneme.stores.cards.knowledge_cards import KnowledgeCards
from mneme.stores.cards.metrics import Period
from mneme.stores.ledger.ledger import Ledger

STORY_ROWS = 150_000
"""Rows at which the story's remedies are as far apart as in the paper; with fewer, noise decides."""
PERIODS = 4
"""Into so many periods an order's tasks are divided to watch them over time."""
Case = tuple[str, int, int, TuningTask]
"""An arm, an order, a number within it, and the task."""
ByArm = dict[str, list[list[Row]]]


class Options(BaseModel):
    """How many tasks, in which orders, on how large a database, and who answers."""

    tasks: int = Field(64, ge=1, description="Tasks in each order.")
    seeds: list[int] = Field([1, 2, 3], min_length=1, description="Orders of tasks; each for every team.")
    rows: int = Field(60_000, ge=100, description="Rows of each database's table of facts.")
    repeats: int = Field(16, ge=0, description="Tasks of each order that are put once more at its end.")
    without_rivals: bool = Field(False, description="Leave out trajectories, cache and no advocate.")
    agents: Agents = "auto"
    out: Out = RUNS
    embedder: EmbedderName = ""
    fresh: Fresh = False
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
    embedder = await open_embedder(sized.embedder or settings().embedder)
    who = await identify(sized.agents)
    configuration = {
        "tasks": sized.tasks,
        "rows": sized.rows,
        "agents": who.model_dump(),
        "embedder": embedder.name,
    }
    journal = open_journal(sized.out, "compound_learning", configuration, fresh=sized.fresh)
    async with ledger_at(home_beside(journal), embedder) as ledger:
        await _run(sized, ledger, who.responder, journal, progress)
        ours = KnowledgeCards(ledger, _team(OURS, sized.seeds[-1]))
        learned: Row = {
            "metrics": (await ours.metrics()).model_dump(mode="json"),
            "story": [card.model_dump() for card in await KnowledgeCards(ledger, "story 0").records.list()],
        }
        watched = await ours.trend(-(-(sized.tasks + sized.repeats) // PERIODS))
    return _report(sized, journal, who, learned, watched)


def _team(arm: str, seed: int) -> str:
    return f"{arm} {seed}"


async def _run(options: Options, ledger: Ledger, who: str, journal: Journal, progress: Progress) -> None:
    story_rows = options.rows if options.quick else STORY_ROWS
    await asyncio.to_thread(make_databases, options.rows)
    plan = _plan(options)
    for done, (arm, seed, number, task) in enumerate(plan, start=1):
        rows = story_rows if arm in {"story", "printed", "trials"} else options.rows
        case = f"{arm}/{seed}/{number:03d}"
        if case not in journal:
            if arm == "trials":
                solved = await tried(task, rows)
            else:
                team = Team(_team(arm, seed), ledger, who, rows, recall_of(arm), arm)
                solved = await team.solve(task)
            journal.add(case, {"arm": arm, "seed": seed, "number": number, **solved})
        progress(done, len(plan), f"{arm}, order {seed}")


def _plan(options: Options) -> list[Case]:
    """Put each task to all teams one after the other, another one first in turn: a busy machine slows all."""
    plan: list[Case] = [("story", 0, n, task) for n, task in enumerate(story())]
    plan += [("printed", 0, n, task) for n, task in enumerate(printed_story())]
    plan += [("trials", 0, n, task) for n, task in enumerate(printed_trials())]
    for seed in options.seeds:
        drawn = tasks(seed, options.tasks)
        for number, task in enumerate([*drawn, *_again(drawn, seed, options.repeats)]):
            first = number % len(options.arms)
            turn = [*options.arms[first:], *options.arms[:first]]
            plan += [(arm, seed, number, task) for arm in turn]
    return plan


def _again(drawn: Sequence[TuningTask], seed: int, count: int) -> list[TuningTask]:
    """Return some of the tasks as they come once more, each in its own words under another id."""
    chosen = random.Random(seed).sample(drawn, min(count, len(drawn)))  # noqa: S311  no secret
    return [task.model_copy(update={"id": f"{task.id}-again"}) for task in chosen]


def _report(
    options: Options, journal: Journal, who: Identity, learned: Row, watched: Sequence[Period]
) -> Report:
    told = {arm: _rows(journal, arm) for arm in ("story", "printed", "trials")}
    whole: ByArm = {arm: _orders(journal, arm, options) for arm in options.arms}
    by_arm: ByArm = {arm: [order[: options.tasks] for order in orders] for arm, orders in whole.items()}
    parts = {"all": by_arm, "last third": _cut(by_arm, -max(1, options.tasks // 3))}
    if options.repeats:
        parts["put once more"] = _cut(whole, options.tasks)
    rules = [rule for card in learned["story"] for rule in card["rules"]]
    told_lines = lines(told["story"], told["printed"], told["trials"], _card(learned["story"]))
    summary = {
        "tasks": options.tasks,
        "seeds": options.seeds,
        "rows": options.rows,
        "repeats": options.repeats,
        **{arm: summarised(orders) for arm, orders in by_arm.items()},
        "compared": {part: compared(orders) for part, orders in parts.items()},
        "significance": significance(by_arm),
        "reduction": reductions(by_arm),
        "metrics": learned["metrics"],
        "trend": [each.model_dump(mode="json") for each in watched],
        "story": [story_row(row) for row in told["story"]],
        "story_printed": [story_row(row) for row in told["printed"]],
        "story_trials": told["trials"],
        "story_lines": told_lines,
        "story_rules": rules,
        "disputes": disputes([row for order in by_arm[OURS] for row in order]),
    }
    plot = draw(
        journal.path.with_suffix(".png"),
        f"Compound learning: {options.tasks} query-tuning tasks, {len(options.seeds)} orders, "
        f"mean and spread, averaged over {WINDOW} tasks",
        str(who),
        *plots(by_arm),
    )
    return Report(
        name="compound_learning",
        answered_by=str(who),
        raw=journal.path,
        rows=[*(row for rows in told.values() for row in rows), *_flat(whole)],
        summary=summary,
        tables=[
            story_table(told["story"], "The three-task story (§7)"),
            story_table(told["printed"], "The same with the paper's own second task, which sums"),
            trials_table(told["trials"]),
            lines_table(told_lines),
            arms_table(summary),
            growth_table(summary),
            *(rivals_table(part.capitalize(), found) for part, found in summary["compared"].items()),
            *over_time.tables(watched, lambda each: f"task {_first(watched, each)}"),
        ],
        plots=[plot],
        notes=[
            *notes(summary, rules, who),
            *(f"Put once more, {each}." for each in verdicts(summary["compared"].get("put once more", {}))),
        ],
    )


def _rows(journal: Journal, arm: str) -> list[Row]:
    return sorted((row for row in journal.rows if row["arm"] == arm), key=lambda row: row["number"])


def _orders(journal: Journal, arm: str, options: Options) -> list[list[Row]]:
    """Return an arm's rows, order by order: of a longer run before, as many as are asked for."""
    count = options.tasks + options.repeats
    return [[row for row in _rows(journal, arm) if row["seed"] == seed][:count] for seed in options.seeds]


def _cut(by_arm: ByArm, begin: int) -> ByArm:
    return {arm: [order[begin:] for order in orders] for arm, orders in by_arm.items()}


def _flat(by_arm: ByArm) -> list[Row]:
    return [row for orders in by_arm.values() for order in orders for row in order]


def _card(cards: Sequence[Row]) -> Row:
    """Return of the story's card what the paper prints of it: the one with the most rules."""
    if not cards:
        return {"rules": 0, "successes": 0, "confidence": 0.0}
    card = max(cards, key=lambda each: len(each["rules"]))
    successes = card["evidence"]["success_count"]
    return {"rules": len(card["rules"]), "successes": successes, "confidence": card["confidence"]}


def _first(watched: Sequence[Period], period: Period) -> int:
    """Return the number of a period's first task."""
    return 1 + sum(each.tasks for each in watched if each.begins < period.begins)
