"""Reward and discounted return of a played episode (§2's R and γ), shared by all agents.

The paper defines neither. Here each step costs `STEP_COST`, and each object placed as a goal wants earns an
equal part of 1; taking it away costs as much. So a faster team has the greater return, and a team that never
finishes keeps the reward of the objects that it has placed.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise

from mneme.environments.household.episode import Episode
from mneme.environments.household.play import Frame
from mneme.environments.household.world import World

STEP_COST = 0.01
"""Cost of a step."""
DISCOUNT = 0.99
"""γ: what a reward one step later is worth."""


def reward(episode: Episode, before: Mapping[str, int], now: Mapping[str, int]) -> float:
    """Return the reward of a step: progress by predicate before and after it."""
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
