"""The changing part of a world, as plain JSON values for a checkpoint."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from mneme.environments.household.episode import Episode, Relation, read_fields, require


@dataclass(slots=True)
class Body:
    """Position of an agent, the objects it holds, and whether it has just sent a message."""

    room: int
    position: tuple[float, float]
    hands: list[int]
    sent: bool = False


class Changes(BaseModel):
    """All differences from the start of an episode; conflicts are drawn by seed and step."""

    model_config = ConfigDict(extra="forbid")

    steps: int = Field(ge=0)
    seed: int
    agents: list[Body]
    moved: dict[int, tuple[Relation, int]]
    opened: list[int]
    messages: list[tuple[int, str]]


def read_changes(given: Mapping[str, Any], episode: Episode) -> Changes:
    """Validate what a world's `state()` gave, against its episode; `BadInput` names the field."""
    changes = read_fields(Changes, given, "state")
    kinds = {thing.id: thing.category for thing in episode.things}
    held = [thing for body in changes.agents for thing in body.hands]
    holders = [holder for _, holder in changes.moved.values()]
    faults = {
        "agents": len(changes.agents) != len(episode.starts),
        "agents.room": any(kinds.get(body.room) != "room" for body in changes.agents),
        # Also an object that is in two hands, or in a hand and at a place.
        "agents.hands": any(kinds.get(thing) != "object" for thing in held)
        or len({*held, *changes.moved}) < len(held) + len(changes.moved),
        "moved": any(kinds.get(thing) != "object" for thing in changes.moved),
        "moved.holder": any(kinds.get(holder) not in ("container", "surface") for holder in holders),
        "opened": any(kinds.get(thing) != "container" for thing in changes.opened),
    }
    for field, wrong in faults.items():
        said = f"state.{field}: not of the episode {episode.id}."
        require(not wrong, said, "Restore with the same episode.")
    return changes
