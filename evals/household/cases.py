"""What one process of the household evaluation does at a time; it loads nothing that only reports."""

import asyncio
from dataclasses import dataclass

from mneme.environments.household import Episode
from mneme.evals.household.arms import Arm, bound, play
from mneme.evals.report import Row


@dataclass(frozen=True)
class Case:
    """An episode to be played with an arm, or to be bounded where there is none."""

    arm: Arm | None
    episode: Episode

    @property
    def key(self) -> str:
        """Name the case in the journal."""
        who = self.arm.key if self.arm else f"bound, {len(self.episode.starts)}"
        return f"{who} | {self.episode.id}"

    async def finished(self) -> Row:
        """Play the episode, or bound it."""
        return await play(self.arm, self.episode) if self.arm else bound(self.episode)


def work(case: Case) -> tuple[str, Row]:
    """Finish a case in a process that does nothing else."""
    return case.key, asyncio.run(case.finished())
