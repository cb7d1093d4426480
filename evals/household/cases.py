"""What one process of the household evaluation does at a time; it loads nothing that only reports."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mneme.environments.household import Episode
from mneme.evals.household.arms import Arm, bound, informed
from mneme.evals.household.playing import lesson, play
from mneme.evals.report import Row


@dataclass(frozen=True)
class Case:
    """An episode to be played with an arm or learned from; without an arm, bounded or solved (`informed`).

    `runs` is the folder of the runs' files; `repeat` counts how often an arm that lapses has played the same
    episode before, with other lapses; `experience` is for taught arms.
    """

    arm: Arm | None
    episode: Episode
    runs: Path = Path()
    repeat: int = 0
    teaches: bool = False
    informed: bool = False
    experience: Mapping[str, Any] = field(default_factory=dict, compare=False)

    @property
    def key(self) -> str:
        """Name the case in the journal."""
        who = self.arm.key if self.arm else f"bound, {len(self.episode.starts)}"
        what = "lesson, " if self.teaches else "optimum, " if self.informed else ""
        again = f" | again {self.repeat}" if self.repeat else ""
        return f"{what}{who} | {self.episode.id}{again}"

    async def finished(self) -> Row:
        """Play the episode, learn from it, or bound it."""
        if self.arm is None:
            return informed(self.episode) if self.informed else bound(self.episode)
        if self.teaches:
            return await lesson(self.arm, self.episode)
        return await play(self.arm, self.episode, self.experience, self.runs, self.repeat)


def work(case: Case) -> tuple[str, Row]:
    """Finish a case in a process that does nothing else."""
    return case.key, asyncio.run(case.finished())
