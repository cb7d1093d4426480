"""The state of a household after each step, rebuilt from a trace."""

from collections.abc import Sequence
from dataclasses import dataclass

from mneme.core.errors import BadInput
from mneme.environments.household.acting import AGENT_NAMES
from mneme.environments.household.episode import Episode
from mneme.environments.household.play import Frame
from mneme.environments.household.world import World

__all__ = ["AGENT_NAMES", "VERBS", "Point", "Scene", "scenes"]

Point = tuple[float, float]


@dataclass(frozen=True)
class Scene:
    """The apartment after a step: where agents and things are, what is open, how the agents came there."""

    step: int
    paths: list[list[Point]]
    """All positions of each agent so far, the start first."""
    doing: list[str]
    hands: list[list[int]]
    places: dict[int, int]
    """Holder of each object; objects in hands are not included."""
    open: frozenset[int]
    progress: dict[str, int]
    explored: frozenset[int]
    """Rooms that somebody has been in."""
    known: frozenset[int]
    """Objects that an agent has seen: in its room, and not in a closed container."""


def scenes(episode: Episode, frames: Sequence[Frame]) -> list[Scene]:
    """Return the scenes of the start and of each step. Raises BadInput for steps of another team."""
    if any(len(frame.positions) != len(episode.starts) for frame in frames):
        raise BadInput("The steps are not of this episode's team.", "Give the trace of one run.")
    world, played = World(episode), list[Scene]()
    paths = [[start.position] for start in episode.starts]
    explored, known = frozenset[int](), frozenset[int]()
    for frame in (None, *frames):  # None: the start
        if frame is not None:
            world.follow(frame)
            # New lists, since each scene keeps its own.
            paths = [[*path, position] for path, position in zip(paths, frame.positions, strict=True)]
        here = {body.room for body in world.agents}
        explored |= here
        known |= {each for each in world.things if world.room_of(each) in here and not world.hidden(each)}
        played.append(
            Scene(
                step=world.steps,
                paths=paths,
                doing=[_words(episode, frame, agent) if frame else "" for agent in range(len(paths))],
                hands=[list(body.hands) for body in world.agents],
                places={thing: holder for thing, (_, holder) in world.places.items()},
                open=frozenset(world.open),
                progress=dict(frame.progress) if frame else world.progress,
                explored=explored,
                known=known,
            )
        )
    return played


VERBS = {
    "walk": "walks to {target}",
    "turn": "turns to the left",
    "open": "opens {target}",
    "grab": "takes {object}",
    "put_on": "puts {object} on {target}",
    "put_in": "puts {object} into {target}",
    "send": "says: {text}",
    "wait": "waits",
}


def _words(episode: Episode, frame: Frame, agent: int) -> str:
    """Return an agent's action in a step as text, and why it failed if it did."""
    names = {thing.id: thing.name for thing in episode.things}
    action, outcome = frame.actions[agent], frame.outcomes[agent]
    said = VERBS[action.kind].format(
        target=names.get(action.target or 0, ""), object=names.get(action.object or 0, ""), text=action.text
    )
    return said if outcome.ok else f"{said}: {outcome.why}"
