"""The household: rooms, containers and things to carry, as in C-WAH, by symbolic rules."""

from environments.household.acting import Action, Observation, Outcome, Seen
from environments.household.beliefs import Beliefs, Known, Met
from environments.household.episode import (
    CATEGORIES,
    Episode,
    Goal,
    Start,
    Thing,
    parse_episode,
    save_episode,
)
from environments.household.generator import generate
from environments.household.loading import load_episode, with_agents
from environments.household.macro import Ended, Macro, Plan, possible
from environments.household.play import Event, Frame, advance
from environments.household.trace import Trace
from environments.household.world import World

__all__ = [
    "CATEGORIES",
    "Action",
    "Beliefs",
    "Ended",
    "Episode",
    "Event",
    "Frame",
    "Goal",
    "Known",
    "Macro",
    "Met",
    "Observation",
    "Outcome",
    "Plan",
    "Seen",
    "Start",
    "Thing",
    "Trace",
    "World",
    "advance",
    "generate",
    "load_episode",
    "parse_episode",
    "possible",
    "save_episode",
    "with_agents",
]
