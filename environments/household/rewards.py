"""Reward and discounted return of a played episode (§2's R and γ), shared by all agents.

The paper names neither. Here each step costs `STEP_COST`, and each thing that comes to where the goals want
it brings an equal part of 1; what is taken away again costs as much. So a team that is done sooner has the
greater return, and one that never is keeps what it has placed.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise

from mneme.environments.household.episode import Episode
from mneme.environments.household.play import Frame
from mneme.environments.household.world import World

STEP_COST = 0.01
"""What a step costs."""
DISCOUNT = 0.99
"""γ: what a reward one step later is worth."""


def reward(episode: Episode, before: Mapping[str, int], now: Mapping[str, int]) -> float:
    """Return what a step brought: progress by predicate before and after it."""
    wanted = sum(goal.count for goal in episode.goals)
    gained = sum(now.get(goal.key, 0) - before.get(goal.key, 0) for goal in episode.goals)
    return gained / wanted - STEP_COST


def discounted_return(episode: Episode, frames: Sequence[Frame], discount: float = DISCOUNT) -> float:
    """Return the sum of the rewards of played steps, the one of step t (from 1) times discount ** (t - 1)."""
    progress = [World(episode).progress, *(frame.progress for frame in frames)]
    return sum(
        discount**number * reward(episode, before, now)
        for number, (before, now) in enumerate(pairwise(progress))
    )
