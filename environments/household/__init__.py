"""The household: rooms, containers and things to carry, as in C-WAH, with symbolic rules."""

from mneme.environments.household.acting import Action, ActionResult, Observation, Seen
from mneme.environments.household.beliefs import Beliefs, Met, Sighting
from mneme.environments.household.episode import (
    GOAL_CATEGORIES,
    Episode,
    Goal,
    Start,
    Thing,
    parse_episode,
    save_episode,
)
from mneme.environments.household.generator import generate
from mneme.environments.household.loading import load_episode, with_agents
from mneme.environments.household.macro import Macro, MacroEnd, Plan, possible
from mneme.environments.household.play import Event, Frame, advance
from mneme.environments.household.rewards import discounted_return, reward
from mneme.environments.household.trace import Trace
from mneme.environments.household.world import World

__all__ = [
    "GOAL_CATEGORIES",
    "Action",
    "ActionResult",
    "Beliefs",
    "Episode",
    "Event",
    "Frame",
    "Goal",
    "Macro",
    "MacroEnd",
    "Met",
    "Observation",
    "Plan",
    "Seen",
    "Sighting",
    "Start",
    "Thing",
    "Trace",
    "World",
    "advance",
    "discounted_return",
    "generate",
    "load_episode",
    "parse_episode",
    "possible",
    "reward",
    "save_episode",
    "with_agents",
]
