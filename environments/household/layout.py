"""Paths through an apartment: straight lines through the centres of doors."""

import math
from collections.abc import Sequence
from functools import lru_cache
from itertools import product
from typing import NamedTuple

from mneme.environments.household.episode import BoxedObject, Episode

Point = tuple[float, float]
Doors = tuple[tuple[int, int, float, float], ...]
"""The doors, each as two rooms and a position."""
ROUNDING = 1e-9
STRAIGHT = 1.05
"""Metres walked for a metre of straight legs, as measured on the way to a room."""
REACH_METRES = 1.3
"""A walk to a thing ends at this distance in metres, as measured."""


class Layout:
    """Distances and positions on paths, for an apartment that does not change."""

    def __init__(self, episode: Episode) -> None:
        self.things = episode.by_id()
        self.doors = [(first, second, center) for first, second, center in episode.doors]
        self.centers: dict[int, Point] = {room.id: flat(room.center) for room in episode.rooms()}
        self._exits: dict[int, list[int]] = {room: [] for room in self.centers}
        for door, (first, second, _) in enumerate(self.doors):
            self._exits[first].append(door)
            self._exits[second].append(door)
        self._between = between_doors(tuple((one, other, *at) for one, other, at in self.doors))

    def way(self, room: int, position: Point, goal: int) -> tuple[float, list[tuple[int, Point]]]:
        """Return the metres to the last door before a room, and each door with the room behind it."""
        legs: list[tuple[int, Point]] = []
        length, here, used = 0.0, position, -1

        def length_by(door: int) -> tuple[float, float]:
            """Return a door's sort key: the way's length, then its rest behind the door."""
            onward = min((self._between[door][last] for last in self._exits[goal]), default=math.inf)
            # Rounded: a door on the straight way to another ties with it, and the other is taken.
            return round(math.dist(here, self.doors[door][2]) + onward, 6), onward

        while room != goal:
            used = min((door for door in self._exits[room] if door != used), key=length_by)
            length += math.dist(here, self.doors[used][2])
            first, second, here = self.doors[used]
            room = second if room == first else first
            legs.append((room, here))
        return length, legs

    def towards_room(self, room: int, position: Point, goal: int) -> tuple[int, Point]:
        """Take one step towards a room; the rest of a step behind the last door leads to its centre."""
        budget = 1.0 / STRAIGHT  # metres: a walk's real path is that much longer than straight legs
        for beyond, center in self.way(room, position, goal)[1]:
            leg = math.dist(position, center)
            if leg > budget + ROUNDING:
                return room, along(position, center, budget)
            room, position, budget = beyond, center, max(0.0, budget - leg)
        return room, along(position, self.centers[room], budget)


@lru_cache(maxsize=256)
def between_doors(plan: Doors) -> list[list[float]]:
    """Return the length of the shortest way between any two doors (Floyd and Warshall)."""
    ways = [
        [0.0 if a is b else math.dist(a[2:], b[2:]) if {*a[:2]} & {*b[:2]} else math.inf for b in plan]
        for a in plan
    ]
    for via, a, b in product(range(len(plan)), repeat=3):
        ways[a][b] = min(ways[a][b], ways[a][via] + ways[via][b])
    return ways


def flat(center: Sequence[float]) -> Point:
    """Drop the height."""
    return center[0], center[2]


class Box(NamedTuple):
    """A bounding box: centre and extent in metres."""

    center: tuple[float, float, float]
    size: tuple[float, float, float]


def overlap(one: BoxedObject, other: BoxedObject) -> bool:
    """Return whether two boxes share space."""
    return all(abs(one.center[n] - other.center[n]) < (one.size[n] + other.size[n]) / 2 for n in range(3))


def distance(position: Point, box: BoxedObject) -> float:
    """Measure the horizontal distance in metres to a bounding box."""
    (cx, _, cz), (width, _, depth) = box.center, box.size
    x = abs(position[0] - cx) - width / 2
    z = abs(position[1] - cz) - depth / 2
    return math.hypot(max(0.0, x), max(0.0, z))


def steps_to(metres: float) -> int:
    """Return the number of steps to an object in the same room at this bounding-box distance."""
    return max(1, math.ceil(metres - REACH_METRES - ROUNDING))  # on 14 Unity runs 97 % within 1 step


def towards(position: Point, box: BoxedObject) -> Point:
    """Take one of the `steps_to` equal steps that end within reach of a box."""
    metres = distance(position, box)
    if metres <= REACH_METRES:
        return position
    (cx, _, cz), (width, _, depth) = box.center, box.size
    nearest = _clamp(position[0], cx, width / 2), _clamp(position[1], cz, depth / 2)
    return along(position, nearest, (metres - REACH_METRES) / steps_to(metres))


def _clamp(value: float, center: float, half: float) -> float:
    return min(max(value, center - half), center + half)


def along(start: Point, end: Point, metres: float) -> Point:
    """Move that many metres straight ahead, or the rest of the way."""
    whole = math.dist(start, end)
    if whole <= metres:
        return end
    share = metres / whole
    return start[0] + share * (end[0] - start[0]), start[1] + share * (end[1] - start[1])
