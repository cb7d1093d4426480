"""One thing to be done for the household evaluation, with the name under which its result is kept."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mneme.environments.household import Episode
from mneme.evals.household.arms import Arm


@dataclass(frozen=True)
class Case:
    """An episode to be played with an arm or learned from; without an arm, bounded.

    `runs` is the folder of the runs' files; `repeat` counts how often an arm that lapses has played the same
    episode before, with other lapses; `experience` is for taught arms; `bound` is the episode's lower bound.
    """

    arm: Arm | None
    episode: Episode
    runs: Path = Path()
    repeat: int = 0
    teaches: bool = False
    experience: Mapping[str, Any] = field(default_factory=dict, compare=False)
    bound: int = 0

    @property
    def key(self) -> str:
        """Name the case in the journal."""
        who = self.arm.key if self.arm else f"bound, {len(self.episode.starts)}"
        what = "lesson, " if self.teaches else ""
        again = f" | again {self.repeat}" if self.repeat else ""
        return f"{what}{who} | {self.episode.id}{again}"
