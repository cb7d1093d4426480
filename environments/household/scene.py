"""The state of a household after each step, rebuilt from a trace."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from mneme.core.errors import BadInput
from mneme.environments.household.acting import NAMES
from mneme.environments.household.episode import Episode
from mneme.environments.household.play import Frame

__all__ = ["NAMES", "VERBS", "Point", "Scene", "scenes"]

Point = tuple[float, float]


@dataclass(frozen=True)
class Scene:
    """The apartment after a step: where agents and things are, what is open, how the agents came there."""

    step: int
    paths: list[list[Point]]
    """Every position of each agent up to now, the start first."""
    doing: list[str]
    hands: list[list[int]]
    places: dict[int, int]
    """Thing to holder; what is in a hand is not here."""
    open: frozenset[int]
    progress: dict[str, int]
    explored: frozenset[int] = frozenset()
    """Rooms that somebody has been in."""
    known: frozenset[int] = frozenset()
    """What somebody has seen: in its room, and not in a container that was shut then."""


def scenes(episode: Episode, frames: Sequence[Frame]) -> list[Scene]:
    """Rebuild the start and what each step left. Raises BadInput for steps of another team."""
    if any(len(frame.positions) != len(episode.starts) for frame in frames):
        raise BadInput("The steps are not of this episode's team.", "Give the trace of one run.")
    played = [_start(episode), *(_after(episode, frames[: number + 1]) for number in range(len(frames)))]
    rooms = [[start.room for start in episode.starts], *(frame.rooms for frame in frames)]
    return _with_what_is_known(episode, played, rooms)


def _with_what_is_known(
    episode: Episode, played: Sequence[Scene], rooms: Sequence[Sequence[int]]
) -> list[Scene]:
    """Add to each scene what the team has seen by then."""
    kinds = {thing.id: thing.category for thing in episode.things}
    furniture = {each: episode.room_of(each) for each, kind in kinds.items() if kind != "object"}
    explored, known, informed = frozenset[int](), frozenset[int](), []
    for scene, here in zip(played, rooms, strict=True):
        explored |= {*here}
        seen = {
            thing
            for thing, holder in scene.places.items()
            if furniture.get(holder) in here and (kinds[holder] != "container" or holder in scene.open)
        }
        stands = {each for each, room in furniture.items() if room in here}
        known |= seen | stands | {thing for held in scene.hands for thing in held}
        informed.append(replace(scene, explored=explored, known=known))
    return informed


def _start(episode: Episode) -> Scene:
    return Scene(
        step=0,
        paths=[[start.position] for start in episode.starts],
        doing=["" for _ in episode.starts],
        hands=[[] for _ in episode.starts],
        places={thing: holder for thing, (_, holder) in episode.places.items()},
        open=frozenset(episode.open),
        progress={goal.key: _met(episode, goal.key) for goal in episode.goals},
    )


def _met(episode: Episode, key: str) -> int:
    """Count what is in place at the start for a goal."""
    names = {thing.id: thing.name for thing in episode.things}
    goal = next(goal for goal in episode.goals if goal.key == key)
    placed = [names[t] for t, place in episode.places.items() if place == (goal.relation, goal.target)]
    return min(goal.count, placed.count(goal.name))


def _after(episode: Episode, frames: Sequence[Frame]) -> Scene:
    start, last = _start(episode), frames[-1]
    places, opened = dict(start.places), set(start.open)
    for frame in frames:
        for action, outcome in zip(frame.actions, frame.outcomes, strict=True):
            if not outcome.ok:
                continue
            if action.kind == "open" and action.target is not None:
                opened.add(action.target)
            elif action.kind == "grab" and action.object is not None:
                places.pop(action.object, None)
            elif action.object is not None and action.target is not None:
                places[action.object] = action.target
    agents = range(len(episode.starts))
    return Scene(
        step=last.step,
        paths=[[*start.paths[agent], *(frame.positions[agent] for frame in frames)] for agent in agents],
        doing=[_words(episode, last, agent) for agent in agents],
        hands=[list(held) for held in last.hands],
        places=places,
        open=frozenset(opened),
        progress=dict(last.progress),
    )


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
    """Return what an agent did in a step, and why it failed if it did."""
    names = {thing.id: thing.name for thing in episode.things}
    action, outcome = frame.actions[agent], frame.outcomes[agent]
    said = VERBS[action.kind].format(
        target=names.get(action.target or 0, ""), object=names.get(action.object or 0, ""), text=action.text
    )
    return said if outcome.ok else f"{said}: {outcome.why}"
