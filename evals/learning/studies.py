"""What the questions of §7 and §11 share: teams that play a plan of tasks, and go on where a run stopped."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pandas as pd
from matplotlib.axes import Axes
from pydantic import Field

from mneme.environments.sql_tuning import TuningTask
from mneme.evals.answering import Identity, identify
from mneme.evals.learning.arms import OURS, RECALL, Team, make_databases
from mneme.evals.measuring import home_beside, ledger_at
from mneme.evals.options import Agents, RunOptions
from mneme.evals.report import Journal, Progress, Report, Row, draw
from mneme.models.embedding.embedders import Embedder
from mneme.stores.ledger.ledger import Ledger

Prepare = Callable[[Team], Awaitable[None]]


class StudyOptions(RunOptions):
    """What every study has."""

    rows: int = Field(8_000, ge=100, description="Rows of each database's table of facts.")
    agents: Agents = "auto"


@dataclass(frozen=True)
class Played:
    """A task of a plan: its arm, who solves it, how many cards that is shown, and what is noted of it.

    `prepare` is awaited before a team that has no card yet solves it; `rows` are those of its databases, by
    default the study's; `memory` is the memory of the team.
    """

    arm: str
    team: str
    task: TuningTask
    noted: Row
    shown: int = RECALL
    prepare: Prepare | None = None
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

    def team(self, name: str, shown: int = RECALL, rows: int = 0, memory: str = OURS) -> Team:
        """Return a team by its name; what it has learned is in the ledger."""
        return Team(name, self.ledger, self.who.responder, rows or self.rows, shown, memory)

    async def play(self, plan: Sequence[Played]) -> None:
        """Solve every task of a plan that is not in the journal, in this order."""
        await self.journal.play({each.case: each for each in plan}, self._solve, self.progress)

    async def _solve(self, each: Played) -> Row:
        team = self.team(each.team, each.shown, each.rows, each.memory)
        if each.prepare and not await team.cards.records.count():  # a killed run may have done it
            await each.prepare(team)
        return {"arm": each.arm} | each.noted | await team.solve(each.task)

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
    embedder = await options.opened_embedder()
    who = await identify(options.agents)
    configuration: Row = {"agents": who.model_dump(), "embedder": embedder.name, "rows": options.rows}
    configuration |= options.model_dump(mode="json", include={*varied})
    journal = options.journal(name, configuration)
    async with ledger_at(home_beside(journal), embedder) as ledger:
        await asyncio.to_thread(make_databases, options.rows)
        yield Study(who, embedder, ledger, journal, options.rows, progress)


def with_gains(rows: Sequence[Row], alone: Sequence[Row], *same: str) -> pd.DataFrame:
    """Return rows with the drafts `saved` and first attempts `gained` against the same task `alone`."""
    before = pd.DataFrame(alone)[[*same, "iterations", "first_attempt"]]
    both = pd.DataFrame(rows).merge(before, on=[*same], suffixes=("", "_alone"))
    gained = both["first_attempt"].astype(float) - both["first_attempt_alone"].astype(float)
    return both.assign(saved=both["iterations_alone"] - both["iterations"], gained=gained)
