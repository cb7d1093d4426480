"""What was so in a household at each step, rebuilt from the episode and the steps that were played.

It knows no beliefs: the checker of what agents are told (`truth.py`) compares their sentences with it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from mneme.environments.household.episode import Episode
from mneme.environments.household.world import World
from tests.doubles.walking import walking_steps

Place = tuple[str, int]
"""`on`, `inside` or `held by`, and what or who."""


@dataclass
class Moment:
    """The world after a step: where agents and things are, what they hold, what is open."""

    rooms: list[int]
    positions: list[tuple[float, float]]
    hands: list[list[int]]
    places: dict[int, Place]
    open: frozenset[int]
    actions: list[dict[str, Any]] = field(default_factory=list)


class History:
    """An episode's world, step by step."""

    def __init__(self, episode: Episode) -> None:
        self.episode, self.things = episode, episode.by_id()
        self.rooms = {room.id: room.name for room in episode.rooms()}
        self.targets = {goal.target for goal in episode.goals}
        self.wanted = {
            each.id
            for each in episode.things
            if each.category == "object" and each.name in episode.goal_names()
        }
        starts = episode.starts
        self.moments = [
            Moment(
                [each.room for each in starts],
                [each.position for each in starts],
                [[] for _ in starts],
                dict(episode.places),
                frozenset(episode.open),
            )
        ]

    def play(self, frames: Iterable[dict[str, Any]]) -> None:
        """Add the steps that a graph streamed."""
        for frame in frames:
            assert frame["step"] == len(self.moments)
            before = self.moments[-1]
            places, opened = dict(before.places), set(before.open)
            for agent, (action, outcome) in enumerate(zip(frame["actions"], frame["outcomes"], strict=True)):
                if outcome["ok"] and action["kind"] == "open":
                    opened.add(action["target"])
                elif outcome["ok"] and action["kind"] == "grab":
                    places[action["object"]] = ("held by", agent)
                elif outcome["ok"] and action["kind"].startswith("put"):
                    where = "on" if action["kind"] == "put_on" else "inside"
                    places[action["object"]] = (where, action["target"])
            self.moments.append(
                Moment(
                    frame["rooms"],
                    frame["positions"],
                    frame["hands"],
                    places,
                    frozenset(opened),
                    frame["actions"],
                )
            )

    def room(self, thing: int, step: int) -> int:
        """Return the room that a thing is in at a step."""
        moment = self.moments[step]
        while thing in moment.places:
            where, holder = moment.places[thing]
            if where == "held by":
                return moment.rooms[holder]
            thing = holder
        return thing

    def is_seen(self, agent: int, thing: int, step: int) -> bool:
        """Say whether an agent sees a thing at a step: it is in its room, and in nothing that is shut."""
        moment, it = self.moments[step], self.things[thing]
        if it.category != "container" and thing not in self.targets | self.wanted:
            return False
        if self.room(thing, step) != moment.rooms[agent]:
            return False
        where, holder = moment.places[thing]
        return not (where == "inside" and holder in self.shut(step)) or self._put(agent, thing, step)

    def _put(self, agent: int, thing: int, step: int) -> bool:
        """Say whether an agent has just put a thing where it is: it knows that, even of what is shut."""
        if not step:
            return False
        action = self.moments[step].actions[agent]
        return bool(action["object"] == thing and action["kind"].startswith("put"))

    def shut(self, step: int) -> set[int]:
        """Return the containers that are not open at a step."""
        containers = {each.id for each in self.things.values() if each.category == "container"}
        return containers - self.moments[step].open

    def sights(self, agent: int, step: int) -> set[int]:
        """Return the containers, targets and things of the task that an agent sees at a step."""
        containers = {each.id for each in self.things.values() if each.category == "container"}
        worded = containers | self.targets | self.wanted
        return {thing for thing in worded if self.is_seen(agent, thing, step)}

    def last_seen(self, agent: int, thing: int, now: int) -> int | None:
        """Return the last step at which an agent saw a thing."""
        return next((step for step in range(now, -1, -1) if self.is_seen(agent, thing, step)), None)

    def explored(self, agents: Sequence[int], first: int, now: int) -> dict[int, int]:
        """Return the rooms that some of these agents were in, and when last."""
        steps = range(max(0, first), now + 1)
        return {self.moments[step].rooms[agent]: step for step in steps for agent in agents}

    def placed(self, step: int) -> dict[str, int]:
        """Count for each goal what is in its place."""
        places = self.moments[step].places
        return {
            goal.key: min(
                goal.count,
                sum(
                    places[each] == (goal.relation, goal.target)
                    for each in self.wanted
                    if self.things[each].name == goal.name
                ),
            )
            for goal in self.episode.goals
        }

    def found(self, step: int) -> dict[str, int]:
        """Count for each class the things that somebody has seen up to a step, at most as many as wanted."""
        needed: dict[str, int] = {}
        for goal in self.episode.goals:
            needed[goal.name] = needed.get(goal.name, 0) + goal.count
        agents = range(len(self.episode.starts))
        known = [
            self.things[each].name
            for each in self.wanted
            if any(self.last_seen(agent, each, step) is not None for agent in agents)
        ]
        return {name: min(known.count(name), count) for name, count in needed.items() if name in known}

    def held(self, step: int) -> dict[str, int]:
        """Count for each class the things in hands."""
        names = [self.things[each].name for hands in self.moments[step].hands for each in hands]
        return {name: names.count(name) for name in names}

    def way(self, agent: int, target: int, step: int) -> int:
        """Return the steps from where an agent stands into a room, or until it has acted on a thing."""
        world, moment = World(self.episode), self.moments[step]
        world.agents[agent].room, world.agents[agent].position = moment.rooms[agent], moment.positions[agent]
        return walking_steps(world, agent, target) + (target not in self.rooms)

    def apart(self, start: int, target: int) -> int:
        """Return the steps from where a piece of furniture stands until one has acted on another."""
        world = World(self.episode)
        x, _, z = self.things[start].center
        world.agents[0].room, world.agents[0].position = self.episode.room_of(start), (x, z)
        return walking_steps(world, 0, target) + 1
