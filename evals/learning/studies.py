"""What the questions of §11 share: teams that play a plan of tasks, and go on where a run stopped."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from statistics import fmean
from typing import NamedTuple

from matplotlib.axes import Axes
from pydantic import BaseModel, Field

from mneme.core.settings import settings
from mneme.environments.sql_tuning import TuningTask
from mneme.evals.answering import Identity, identify
from mneme.evals.learning.arms import RECALL, Team, make_databases
from mneme.evals.measuring import home_beside, ledger_at
from mneme.evals.options import RUNS, Agents, EmbedderName, Fresh, Out
from mneme.evals.report import Journal, Progress, Report, Row, draw, open_journal
from mneme.models.embedding.embedders import Embedder, open_embedder
from mneme.stores.ledger.ledger import Ledger

KEPT = (
    *("family", "schema", "iterations", "solved", "first_attempt", "seconds", "calls", "tokens"),
    *("retrieved", "used", "cards", "verified", "answered_by"),
)
"""What is kept of a task that was solved."""
Prepare = Callable[[Team], Awaitable[None]]


class StudyOptions(BaseModel):
    """What every study has."""

    rows: int = Field(8_000, ge=100, description="Rows of each database's table of facts.")
    agents: Agents = "auto"
    embedder: EmbedderName = ""
    out: Out = RUNS
    fresh: Fresh = False


class Played(NamedTuple):
    """A task of a plan: its arm, who solves it, how many cards that is shown, and what is noted of it.

    `prepare` is awaited before a team that has no card yet solves it.
    """

    arm: str
    team: str
    task: TuningTask
    noted: Row
    shown: int = RECALL
    prepare: Prepare | None = None


@dataclass
class Study:
    """A run of a study: where it is kept, and who answers."""

    who: Identity
    embedder: Embedder
    ledger: Ledger
    journal: Journal
    rows: int
    progress: Progress

    def team(self, name: str, shown: int = RECALL) -> Team:
        """Return a team by its name; what it has learned is in the ledger."""
        return Team(name, self.ledger, self.who.responder, self.rows, shown)

    async def play(self, plan: Sequence[Played]) -> None:
        """Solve every task of a plan that is not in the journal, in this order."""
        for done, each in enumerate(plan, start=1):
            case = "/".join(map(str, (each.arm, *each.noted.values())))
            if case not in self.journal:
                team = self.team(each.team, each.shown)
                if each.prepare and not await team.cards.records.count():  # a killed run may have done it
                    await each.prepare(team)
                solved = await team.solve(each.task)
                kept = {name: solved[name] for name in KEPT}
                self.journal.add(case, {"arm": each.arm} | each.noted | kept)
            self.progress(done, len(plan), case)

    def report(
        self, name: str, rows: list[Row], summary: Row, *plots: Callable[[Axes], None], title: str
    ) -> Report:
        """Return a report with its plots, whose tables and notes are still to be given."""
        plot = draw(self.journal.path.with_suffix(".png"), title, str(self.who), *plots)
        notes = [] if self.who.is_model else ["Answered by rules: the mechanism, not a language model."]
        return Report(name, str(self.who), self.journal.path, rows, summary, [], [plot], notes)


@asynccontextmanager
async def study(
    name: str, options: StudyOptions, varied: Iterable[str], progress: Progress
) -> AsyncIterator[Study]:
    """Open a study, whose results are those of the options that are `varied`, and make its databases."""
    embedder = await open_embedder(options.embedder or settings().embedder)
    who = await identify(options.agents)
    configuration: Row = {"agents": who.model_dump(), "embedder": embedder.name, "rows": options.rows}
    configuration |= options.model_dump(mode="json", include={*varied})
    journal = open_journal(options.out, name, configuration, fresh=options.fresh)
    async with ledger_at(home_beside(journal), embedder) as ledger:
        await asyncio.to_thread(make_databases, options.rows)
        yield Study(who, embedder, ledger, journal, options.rows, progress)


def grouped(rows: Iterable[Row], *by: str) -> dict[tuple[object, ...], list[Row]]:
    """Return rows by what they say of these fields, in the order in which each first stands."""
    found: dict[tuple[object, ...], list[Row]] = {}
    for row in rows:
        found.setdefault(tuple(row[name] for name in by), []).append(row)
    return found


def mean(rows: Sequence[Row], name: str) -> float | None:
    """Return the mean of a field; None where there is no row."""
    return fmean(row[name] for row in rows) if rows else None


def with_gains(rows: Sequence[Row], alone: Sequence[Row], *same: str) -> list[Row]:
    """Return rows with the drafts `saved` and first attempts `gained` against the same task `alone`."""
    before = {tuple(row[name] for name in same): row for row in alone}
    pairs = [(before[tuple(row[name] for name in same)], row) for row in rows]
    return [
        row
        | {
            "saved": was["iterations"] - row["iterations"],
            "gained": float(row["first_attempt"]) - float(was["first_attempt"]),
        }
        for was, row in pairs
    ]
